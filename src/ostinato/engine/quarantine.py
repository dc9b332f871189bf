"""Bad rows out of the way: when a service meets a row that it cannot work with, that row is set aside, and it goes on.

The rules are those of stores/rules.py. Dispatcher, ticker, rescuer, waker and pruner make their calls by `attempt`.
What breaks a rule and is in nobody's way is found once in an hour where it is new, and once in a day wherever it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.errors import StoreUnavailable
from ostinato.logs import get_logger
from ostinato.stores.quarantine import QuarantineStore, Seen

__all__ = ["Quarantine"]

log = get_logger("ostinato.engine")

T = TypeVar("T")

EVERY: Micros = 3_600 * SECOND
WHOLE: Micros = 24 * EVERY
"""Between two sweeps of the whole ledger that nothing asked for."""
PAUSE: Micros = 10 * SECOND
"""After a look that found nothing, the next failure is worth one so much later: it goes through the whole ledger."""
_STEP = 1_000
_MOST_STEPS = 1_000


class Quarantine:
    """Looks for bad rows and sets them aside."""

    def __init__(self, store: QuarantineStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._turn = asyncio.Lock()
        self._found_nothing_at: Micros | None = None
        self._whole_at: Micros | None = None
        self._seen: Seen = {}
        self.signal = Signal()

    async def run(self) -> None:
        """Look once in an hour at what is new, and once in a day at everything."""
        while True:
            await self._clock.wait(self.signal, self._clock.now() + EVERY)
            await self.sweep_new()

    async def attempt(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call; if it fails and a bad row may be why, set that aside and make the call again."""
        try:
            return await call()
        except StoreUnavailable:
            raise
        except Exception:
            if not await self._help():
                raise
        return await call()

    async def _help(self) -> int:
        """A sweep, unless one has just found nothing; whoever comes while another sweeps shares what it did."""
        shared = self._turn.locked()
        async with self._turn:
            if shared and self._found_nothing_at is None:
                return 1
            last = self._found_nothing_at
            if last is not None and 0 <= self._clock.steady() - last < PAUSE:
                return 0
            count = await self._sweep_all()
            self._found_nothing_at = None if count else self._clock.steady()
            return count

    async def sweep(self) -> int:
        """Set aside every row that breaks a rule; answers how many."""
        async with self._turn:
            return await self._sweep_all()

    async def sweep_new(self) -> int:
        """The same for what has come since the last sweep; for all of it, if that was long ago."""
        async with self._turn:
            last = self._whole_at
            is_due = last is None or not 0 <= self._clock.steady() - last < WHOLE
            return await (self._sweep_all() if is_due else self._sweep())

    async def _sweep_all(self) -> int:
        self._seen = {}
        count = await self._sweep()
        self._whole_at = self._clock.steady()
        return count

    async def _sweep(self) -> int:
        count = 0
        for _ in range(_MOST_STEPS):
            bad = await self._store.find_bad(_STEP, self._seen)
            kept = await self._store.set_aside(bad, self._clock.now()) if bad else []
            for row in kept:
                log.error("%s %r is quarantined: %s; see 'ostinato db quarantine'", row.table, row.row, row.reason)
            count += len(kept)
            if not kept or len(bad) < _STEP:
                break
        return count
