"""When tokens and logins were used last, for every store: noted now and then, and in nobody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ostinato.clock import SECOND, Micros
from ostinato.errors import StoreError
from ostinato.logs import get_logger

__all__ = ["TokenUses"]

log = get_logger("ostinato.stores")

USE_NOTED: Micros = 60 * SECOND
"""How old the last noted use is before the next one is noted: a request is normally one read."""

PATIENCE = 0.5
"""Seconds for which a request waits until its use is noted: who only reads does not wait for who writes."""


class TokenUses:
    """Writes uses by the store's own `write(table, hash, now)`."""

    def __init__(self, write: Callable[[str, str, Micros], Awaitable[object]]) -> None:
        self._write = write
        self._failed_at: Micros | None = None
        self._noting: set[asyncio.Future[object]] = set()

    async def note(self, table: str, hash: str, used_at: Micros | None, now: Micros) -> Micros | None:
        """Write that it is used, unless that is known well enough; answers what is written.

        On a full disk, a locked file, or a server that only reads, nothing is: whoever comes to read is let in all the
        same, and it is tried again in a minute.
        """
        for known in (used_at, self._failed_at):
            if known is not None and now - known < USE_NOTED:
                return used_at
        noting = asyncio.ensure_future(self._write(table, hash, now))
        self._noting.add(noting)
        noting.add_done_callback(self._noted)
        done, _ = await asyncio.wait({noting}, timeout=PATIENCE)
        if done and noting.exception() is None:
            return now
        self._failed_at = now
        return used_at

    def _noted(self, noting: asyncio.Future[object]) -> None:
        self._noting.discard(noting)
        error = None if noting.cancelled() else noting.exception()
        if isinstance(error, StoreError):
            log.warning("the last use of tokens and logins cannot be recorded right now: %s", error)
        elif error is not None:
            log.error("the last use of tokens and logins cannot be recorded", exc_info=error)
