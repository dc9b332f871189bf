"""The bot, for `ostinato doctor`: is it set up as a whole, does a node listen, and what keeps it from that?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ostinato.cli.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ostinato.config import Settings
    from ostinato.models.node import Node
    from ostinato.models.telegram import TelegramSettings

__all__ = ["examine_telegram", "examine_telegram_settings"]


def examine_telegram_settings(settings: Settings) -> Iterator[Finding]:
    """What is missing of a bot; nothing, where nobody wants one."""
    telegram = settings.telegram
    if telegram.token is None:
        yield from _without_token(telegram)
        return
    if not telegram.chats:
        text = "there is a token, but no chat is allowed: the bot is not started, and answers nobody"
        yield _warning(text, 'write [telegram.chats] and "42" = "admin", with the id of your chat, into ostinato.toml')
    if find_spec("aiogram") is None:
        yield _warning("the bot needs the package aiogram", "pip install 'ostinato[telegram]'")
    yield from _token(telegram.token)
    yield from _agent(settings)


def examine_telegram(settings: TelegramSettings, alive: Sequence[Node], tasks: Collection[str]) -> Iterator[Finding]:
    """How the bot fares on the nodes; the tasks are those that some of them, or this app, have."""
    told = [(node, node.services["telegram"]) for node in alive if "telegram" in node.services]
    for node, how in told:
        if how.get("status"):
            text = f"on {node.id}: {how['status']}"
            if how.get("well"):
                yield Finding("telegram", "ok", text)
            else:
                yield _warning(text, "see docs/guides/telegram.md; it is tried again by itself")
    if settings.token is None:
        return
    if settings.task is not None and settings.task not in tasks:
        text = f"texts go to the task {settings.task!r}, which is not registered on any running node or in this app"
        yield _warning(text, "start a node whose --app registers it, or correct task in [telegram]")
    if alive and settings.chats and not told:
        yield _warning("no running node has a bot", "restart the nodes with these settings")


def _without_token(settings: TelegramSettings) -> Iterator[Finding]:
    given = {"chats": settings.chats, "an agent": settings.agent, "a task": settings.task}
    named = " and ".join(name for name, value in given.items() if value)
    if named:
        fix = 'write token = "env:NAME" or "file:PATH" into [telegram], or set OSTINATO_TELEGRAM_TOKEN'
        yield _warning(f"[telegram] has {named} but no token: the bot is not started", fix)


def _token(token: str) -> Iterator[Finding]:
    """Its reference is followed here; a node may have another environment."""
    kind, _, place = token.partition(":")
    is_there = bool(os.environ.get(place)) if kind == "env" else os.access(os.path.expanduser(place), os.R_OK)
    if not is_there:
        what = f"the variable {place} is not set" if kind == "env" else f"the file {place} cannot be read"
        yield _warning(f"the token is {token}, and {what} here", "set it where the engine runs, or correct [telegram]")


def _agent(settings: Settings) -> Iterator[Finding]:
    if settings.telegram.agent is None:
        return
    name = settings.telegram.agent.cli
    cli = settings.agent_clis.get(name)
    if cli is None:
        fix = f"write [agents.{name}] with its command into ostinato.toml, or correct agent in [telegram]"
        yield _warning(f"texts go to the agent {name!r}, which is not configured", fix)
    elif shutil.which(cli.command[0]) is None:
        text = f"texts go to the agent {name!r}, whose program {cli.command[0]!r} is not in PATH here"
        yield _warning(text, f"install it, or set its full path as the command of [agents.{name}] in ostinato.toml")


def _warning(text: str, fix: str) -> Finding:
    return Finding("telegram", "warn", text, fix)
