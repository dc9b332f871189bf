"""The bot's life on a node: wait for the turn, listen while it is kept, leave it to another node at the end.

One node of all listens, by a lease in the database; the entry points start it with an engine, under the watchdog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from ostinato.clock import SECOND, Clock, micros_of
from ostinato.config import Settings
from ostinato.errors import StoreError
from ostinato.integrations.telegram.handler import UpdateHandler
from ostinato.integrations.telegram.poller import Poller, TellStatus
from ostinato.logs import get_logger
from ostinato.models.ids import NodeId
from ostinato.models.telegram import TelegramSettings
from ostinato.notifications.telegram_api import TelegramClient
from ostinato.service.services import Services

__all__ = ["TelegramBot", "start_bot", "why_no_bot"]

log = get_logger("ostinato.telegram")

_LAST_SECONDS = 3.0
"""What is under way has so long to end, and the lease as long to be given back."""


def why_no_bot(settings: TelegramSettings) -> str | None:
    """Why a bot that has a token is not started; None if it is."""
    if settings.chats:
        return None
    return "no chat may speak with the Telegram bot, so it is not started: put your chat's id into [telegram.chats]"


class BotNode(Protocol):
    """The engine that it runs beside."""

    @property
    def id(self) -> NodeId: ...

    @property
    def watchdog(self) -> BotWatchdog: ...


class BotWatchdog(Protocol):
    """What runs services beside an engine."""

    def start(self, name: str, service: Callable[[], Any], /) -> None: ...
    def tell(self, name: str, status: str, well: bool, /) -> None: ...


def start_bot(name: str, services: Services, settings: Settings, clock: Clock, engine: BotNode) -> None:
    """Start it beside the engine as the service of this name, unless nobody may speak with it: the log says so."""
    if (why := why_no_bot(settings.telegram)) is not None:
        log.warning("%s", why)
        return
    bot = TelegramBot(services, settings, clock, lambda: engine.id, partial(engine.watchdog.tell, name))
    engine.watchdog.start(name, bot.run)


class TelegramBot:
    """Listens to Telegram, if it is this node's turn."""

    def __init__(
        self,
        services: Services,
        settings: Settings,
        clock: Clock,
        node: Callable[[], NodeId],
        tell: TellStatus,
    ) -> None:
        self._services = services
        self._settings = settings
        self._clock = clock
        self._node = node
        self._tell = tell
        self._lasting = micros_of(settings.lease)
        self._look_seconds = self._lasting / SECOND / 3

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._services.chats.ensure_channels(self._settings.telegram.chats)
        while True:
            await self._wait_for_turn()
            await self._listen()

    async def _wait_for_turn(self) -> None:
        while not await self._services.chats.take_turn(self._node(), self._lasting):
            self._tell("another node listens", True)
            await asyncio.sleep(self._look_seconds)

    async def _listen(self) -> None:
        """While the turn is kept."""
        node = self._node()
        client = TelegramClient(self._settings.telegram)
        handler = UpdateHandler(self._services, self._settings, self._clock, client)
        poller = Poller(client, handler, self._tell, self._settings.tuning)
        tasks = {asyncio.create_task(self._keep_turn()), asyncio.create_task(self._poll(poller, handler))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await handler.close(_LAST_SECONDS)
            await client.close()
            await self._leave_turn(node)

    async def _poll(self, poller: Poller, handler: UpdateHandler) -> None:
        for chat in self._settings.telegram.chats:
            await handler.conversation.resume(chat)
        await poller.run()

    async def _keep_turn(self) -> None:
        """Ends when another node has it, or may have."""
        kept_at = self._clock.steady()
        while True:
            await asyncio.sleep(self._look_seconds)
            asked_at = self._clock.steady()
            try:
                if not await self._services.chats.take_turn(self._node(), self._lasting):
                    log.warning("another node listens to Telegram now")
                    return
                kept_at = asked_at
            except StoreError as error:
                if self._clock.steady() - kept_at >= self._lasting:
                    log.warning("the turn to listen to Telegram could not be kept: %s", error)
                    return

    async def _leave_turn(self, node: NodeId) -> None:
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._services.chats.leave_turn(node)
        except (StoreError, TimeoutError) as error:
            log.debug("the turn to listen to Telegram was not given back, and runs out: %s", error)
