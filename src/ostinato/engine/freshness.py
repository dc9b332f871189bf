"""Freshness: tells of schedules that have not succeeded in time, and of check-ins that did not come.

It sleeps until the earliest of these times, and looks again now and then, since others change schedules too. What came
due while no node ran is told by the first one that starts. Neighbours: models/freshness.py and models/check_in.py
decide, the store's `tell_late` and `end_late` write, the announcer is told.
"""

from __future__ import annotations

from ostinato.announcer import Announcer
from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.engine.quarantine import Quarantine
from ostinato.stores.base import Late, Store

__all__ = ["FreshnessKeeper"]

BATCH = 200
LOOK_AGAIN: Micros = 15 * SECOND
"""How long it sleeps at most: a schedule that somebody adds meanwhile is told so much too late at worst."""


class FreshnessKeeper:
    """Looks for what is late."""

    def __init__(self, store: Store, clock: Clock, quarantine: Quarantine, announcer: Announcer) -> None:
        self._schedules = store.schedules
        self._check_ins = store.check_ins
        self._clock = clock
        self._quarantine = quarantine
        self._announcer = announcer
        self.next_at: Micros | None = None
        """When the next one would be late, as the last look saw it."""
        self.signal = Signal()

    async def run(self) -> None:
        """Look, sleep, and again."""
        while True:
            await self.look()
            again = self._clock.now() + LOOK_AGAIN
            await self._clock.wait(self.signal, again if self.next_at is None else min(again, self.next_at))

    async def look(self) -> int:
        """Tell of everything that is late now; answers how much."""
        return await self._quarantine.attempt(self._look)

    async def _look(self) -> int:
        now = self._clock.now()
        check_ins = await self._check_ins.end_late(now)
        count = self._tell(check_ins.late, now)
        while True:
            fresh_at = await self._schedules.next_fresh_at()
            if fresh_at is None or fresh_at > now:
                self.next_at = min((at for at in (check_ins.next_at, fresh_at) if at is not None), default=None)
                return count
            count += self._tell(await self._schedules.tell_late(now, BATCH), now)

    def _tell(self, late: Late, now: Micros) -> int:
        self._announcer.late(late, now)
        return len(late.notices)
