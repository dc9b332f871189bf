"""Asks Telegram for updates, one request after the other, and hands them on in their order.

An update is confirmed by asking for the next one, once it is handled: what a node had when it was killed comes again.
That is why aiogram's own polling does not serve here: it confirms what it has not handled, and hides what is wrong.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Protocol

from ostinato import failpoints
from ostinato.errors import StoreUnavailable
from ostinato.integrations.telegram.handler import UpdateHandler
from ostinato.integrations.telegram.incoming import read_update
from ostinato.logs import get_logger
from ostinato.notifications.telegram_api import TelegramClient, TelegramError, TelegramFault
from ostinato.tuning import Tuning

if TYPE_CHECKING:
    from aiogram.types import Update

__all__ = ["Poller", "TellStatus"]

log = get_logger("ostinato.telegram")

_LONGEST_PAUSE = 60.0
_SPREAD = 0.25


class TellStatus(Protocol):
    """Takes what the bot says of itself, and whether it is well."""

    def __call__(self, status: str, well: bool, /) -> None: ...


class Poller:
    """Listens for ever, whatever the network does."""

    def __init__(self, client: TelegramClient, handler: UpdateHandler, tell: TellStatus, tuning: Tuning) -> None:
        self._client = client
        self._handler = handler
        self._tell = tell
        self._tuning = tuning
        self._offset: int | None = None
        self._failures = 0
        self._said: str | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                if not self._handler.bot:
                    await self._introduce()
                # After a failure without a wait: whether it works again is to be known now.
                seconds = 0.0 if self._failures or self._said is None else self._tuning.telegram_poll_seconds
                for update in await self._client.updates(self._offset, seconds):
                    await self._handle(update)
                    failpoints.reach("telegram.handled")
                    self._offset = update.update_id + 1
                self._is_well()
            except TelegramError as error:
                await self._pause(error, self._seconds_after(error))
            except StoreUnavailable as error:
                await self._pause(error, self._backoff())

    async def _introduce(self) -> None:
        name = await self._client.name()
        await self._client.take_updates()
        self._handler.bot = name

    async def _handle(self, update: Update) -> None:
        incoming = read_update(update)
        if incoming is None:
            return
        try:
            await self._handler.handle(incoming)
        except StoreUnavailable:
            raise
        except Exception:
            # One that cannot be handled must not keep back all that come after it.
            log.exception("update %s could not be handled", update.update_id)

    def _is_well(self) -> None:
        if self._said is None or self._failures:
            self._say(status := f"listens as @{self._handler.bot}", well=True)
            log.info("the bot %s", status)
        self._failures = 0

    async def _pause(self, error: Exception, seconds: float) -> None:
        self._failures += 1
        if self._say(str(error), well=False):
            log.warning("the bot does not listen: %s; it tries again in %.0f s", error, seconds)
        await asyncio.sleep(seconds)

    def _say(self, status: str, *, well: bool) -> bool:
        """Tell how it is; whether that is new."""
        is_new, self._said = status != self._said, status
        self._tell(status, well)
        return is_new

    def _seconds_after(self, error: TelegramError) -> float:
        match error.fault:
            case TelegramFault.FLOOD if error.retry_after is not None:
                return error.retry_after
            case TelegramFault.TOKEN:
                return self._tuning.telegram_refused_seconds
            case TelegramFault.CONFLICT:
                return self._tuning.telegram_conflict_seconds
            case _:
                return self._backoff()

    def _backoff(self) -> float:
        # Not a number that grows with each failure for weeks: 2.0 ** 1100 is none.
        pause = self._tuning.telegram_retry_seconds * 2.0 ** min(self._failures, 10)
        return min(pause, _LONGEST_PAUSE) * random.uniform(1 - _SPREAD, 1 + _SPREAD)
