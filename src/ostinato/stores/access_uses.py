"""When tokens and logins were used last, for every store: noted now and then, and in nobody's way."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ostinato.clock import SECOND, Micros
from ostinato.errors import StoreError

__all__ = ["Uses"]

log = logging.getLogger("ostinato.stores")

USE_NOTED: Micros = 60 * SECOND
"""How old the last noted use is before the next one is noted: a request is normally one read."""


class Uses:
    """Writes uses by the store's own `write(table, hash, now)`."""

    def __init__(self, write: Callable[[str, str, Micros], Awaitable[object]]) -> None:
        self._write = write
        self._failed_at: Micros | None = None

    async def note(self, table: str, hash: str, used_at: Micros | None, now: Micros) -> Micros | None:
        """Write that it is used, unless that is known well enough; answers what is written.

        On a full disk, or a server that only reads, nothing is: whoever comes to read is let in all the same, and it
        is tried again in a minute.
        """
        for known in (used_at, self._failed_at):
            if known is not None and now - known < USE_NOTED:
                return used_at
        try:
            await self._write(table, hash, now)
        except StoreError as error:
            self._failed_at = now
            log.warning("when %s are used is not noted just now: %s", table, error)
            return used_at
        return now
