"""Budgets that are used up: the schedule is paused until its next day begins, and says so.

The recorder names the schedules of runs with a budget that have ended. Should a look fail, the next due run is refused
and its end asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ostinato.clock import Clock, Micros, Signal, to_micros
from ostinato.logs import get_logger
from ostinato.models.budget import end_of_day, spent_up
from ostinato.models.pause import resumes_at
from ostinato.models.schedule import Pause, Schedule
from ostinato.models.states import Cause
from ostinato.stores.base import Store

__all__ = ["BudgetKeeper"]

log = get_logger("ostinato.engine")


class BudgetKeeper:
    """Pauses schedules whose budget of the day is used up."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._settled: set[str] = set()
        self._signal = Signal()

    def settled(self, schedules: Iterable[str]) -> None:
        """Runs of these schedules were settled against their budgets."""
        self._settled.update(schedules)
        if self._settled:
            self._signal.set()

    async def run(self) -> None:
        """Look whenever something was settled."""
        while True:
            await self._signal.wait()
            await self.look()

    async def look(self) -> None:
        """See to the schedules that were named."""
        while self._settled:
            name = self._settled.pop()
            try:
                await self._look(name)
            except asyncio.CancelledError:
                self._settled.add(name)  # a node that stops looks once more
                raise
            except Exception:  # whatever is wrong with this schedule, the others are looked at
                log.exception("the budget of schedule %r could not be checked", name)

    async def _look(self, name: str) -> None:
        schedule = await self._store.schedules.get_schedule(name)
        if schedule is None or schedule.policy.budget is None or schedule.next_run_at is None:
            return
        now = self._clock.now()
        why = spent_up(schedule.policy.budget, await self._store.projects.read_spending(schedule.id, now))
        pause = None if why is None else _pause(schedule, why, now)
        if pause is not None and await self._store.schedules.pause_schedule(schedule.id, schedule.version, pause, now):
            log.warning("schedule %r is paused: %s", name, pause.reason)


def _pause(schedule: Schedule, why: str, now: Micros) -> Pause | None:
    """Until the first due time of the next day; None if nothing is due before that."""
    tomorrow = end_of_day(now, schedule.zone)
    resumes = resumes_at(schedule, tomorrow)
    if resumes is None or schedule.next_run_at is None:
        return None
    local = resumes.astimezone(tomorrow.tzinfo)
    reason = f"budget: {why}; it goes on at {local:%Y-%m-%d %H:%M} {schedule.zone}"
    return Pause(to_micros(schedule.next_run_at), to_micros(resumes), Cause.BUDGET, reason)
