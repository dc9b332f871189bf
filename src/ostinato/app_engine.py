"""The engine of an app in its container: what is started beside it, and how it is stopped. `app.py` says when."""

from __future__ import annotations

from ostinato.engine.node import Engine
from ostinato.integrations.transactions.outboxes import Outboxes
from ostinato.logs import get_logger
from ostinato.wiring import Container

__all__ = ["force", "give_up", "leave_open", "start_bot", "stop_engine"]

log = get_logger("ostinato")

_BOT = "telegram"
"""The name of the bot among the services of a node."""


def start_bot(container: Container, engine: Engine) -> None:
    """Listen to Telegram beside the engine, if there is a token. It ends before the engine does."""
    if container.settings.telegram.token is not None:
        from ostinato.integrations.telegram import bot

        bot.start_bot(_BOT, container.services, container.settings, container.clock, engine)


async def stop_engine(container: Container, grace: float | None = None) -> None:
    """Drain the engine, if one is started, after what runs beside it."""
    if container.engine is not None:
        try:
            # First: what people ask for now, and what comes out of an outbox, is for a node that stays.
            watchdog = container.engine.watchdog
            await watchdog.stop(_BOT, *Outboxes.services(watchdog))
            await container.engine.stop(grace)
        finally:
            container.engine = None
    else:
        await container.registry.listeners.close()  # verbs have told, too


async def give_up(engine: Engine) -> None:
    """Stop what a failed start has started; why it failed is what the caller must see."""
    try:
        await engine.stop(grace=0)
    except Exception:
        log.exception("node %s could not be stopped after its start had failed", engine.id)


async def leave_open(_: Container) -> None:
    """The process ends: that closes the database too."""


def force(container: Container) -> None:
    """While it drains: wait no longer for running work."""
    if container.engine is not None:
        container.engine.force()
