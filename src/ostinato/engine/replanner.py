"""After the clock was set back: schedules that would sleep until the old time are planned anew by the new one.

The lease notices the jump and tells; a node that starts looks whether the ledger was written in the future. Neighbours:
models/replanning.py decides, the store's `replan_schedules` writes.
"""

from __future__ import annotations

from collections.abc import Callable

from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.logs import get_logger
from ostinato.models.ids import ScheduleId
from ostinato.models.replanning import Replan, replan
from ostinato.models.schedule import DueSchedule
from ostinato.plurals import counted
from ostinato.stores.base import ScheduleStore

__all__ = ["Replanner"]

log = get_logger("ostinato.engine")

BATCH = 200
AHEAD: Micros = 60 * SECOND
"""So far the clocks of nodes may differ before a ledger counts as written in the future."""


class Replanner:
    """Plans schedules anew, in small batches, whenever it is told that the clock went back."""

    def __init__(self, schedules: ScheduleStore, clock: Clock, planned: Callable[[], None]) -> None:
        self._schedules = schedules
        self._clock = clock
        self._planned = planned
        self.signal = Signal()

    async def run(self) -> None:
        """Look once whether the clock went back while nobody ran, and then whenever somebody says so."""
        latest = await self._schedules.latest_write()
        if latest is not None and latest > self._clock.now() + AHEAD:
            log.warning("the ledger was written %.0f s in the future", (latest - self._clock.now()) / SECOND)
            self.signal.set()
        while True:
            await self.signal.wait()
            await self.replan()

    async def replan(self) -> int:
        """Plan anew what sleeps beyond its next due time; answers how many schedules."""
        now, last, count = self._clock.now(), ScheduleId(0), 0
        while found := await self._schedules.later_schedules(now, last, BATCH):
            last = found[-1].id
            plans = [plan for schedule in found if (plan := _replan(schedule, now)) is not None]
            if plans:
                count += len(await self._schedules.replan_schedules(plans, now))
        if count:
            log.warning("the clock went back: planned %s again", counted(count, "schedule"))
            self._planned()
        return count


def _replan(schedule: DueSchedule, now: Micros) -> Replan | None:
    try:
        return replan(schedule, now)
    except Exception as error:  # the ticker breaks it when it is due, and says why; the others go on
        log.warning("schedule %r cannot be planned again: %s", schedule.name, error)
        return None
