"""Step one of a fire: find what is due, by index and in batches, and sleep until the next due time.

Fires are recorded up to LOOKAHEAD before they are due and only started on time (by the dispatcher), so that many due
at one instant start together. The cost of a tick grows with what is due, not with what exists. Neighbours: plan.py
decides, the store's `record_fires` writes, the dispatcher is told.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ostinato import failpoints
from ostinato.announcer import Announcer
from ostinato.clock import SECOND, Clock, Micros, Signal, micros_of
from ostinato.config import Settings
from ostinato.engine.attendance import Attendance, Look
from ostinato.engine.plan import plan_fires
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.statistics import Statistics
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.states import RunState
from ostinato.stores.base import ScheduleStore
from ostinato.tracing import find_tracer

__all__ = ["LOOKAHEAD", "Ticker"]

LOOKAHEAD: Micros = SECOND
LEAD: Micros = SECOND // 4
"""How long before a due time it is looked for at the latest; the difference to LOOKAHEAD makes batches."""
PASSES = 50
"""How often one tick goes round before others get their turn."""


class Ticker:
    """Turns due times into queued runs."""

    def __init__(
        self,
        schedules: ScheduleStore,
        clock: Clock,
        settings: Settings,
        recorded: Callable[[], None],
        quarantine: Quarantine,
        statistics: Statistics | None = None,
        stood: Callable[[], float] = lambda: 0.0,
        announcer: Announcer | None = None,
    ) -> None:
        self._schedules = schedules
        self._statistics = statistics or Statistics()
        self._announcer = announcer or Announcer()
        self._clock = clock
        self._grace = micros_of(settings.misfire_grace)
        self._batch = settings.tuning.due_batch
        self._recorded = recorded
        self._quarantine = quarantine
        self._known_at: Micros | None = None
        """The earliest due time that the last tick saw and left for later."""
        self.attendance = Attendance(clock.uptime, stood)
        self.signal = Signal()

    def expect(self, next_at: Micros) -> None:
        """Something is due at this instant: tick now, if that is sooner than anything known."""
        if self._known_at is None or next_at < self._known_at:
            self.signal.set()

    async def run(self) -> None:
        """Tick, sleep until the next due time or a wake-up, and again."""
        while True:
            wake_at = await self.tick(LOOKAHEAD)
            await self._clock.wait(self.signal, wake_at)

    async def tick(self, lookahead: Micros = 0) -> Micros | None:
        """Record every fire due until `lookahead` from now; answers when to tick again."""
        return await self._quarantine.attempt(lambda: self._tick(lookahead))

    async def _tick(self, lookahead: Micros) -> Micros | None:
        wake_at: Micros | None = None
        first: Look | None = None
        for _ in range(PASSES):
            now = self._clock.now()
            look = self.attendance.look(now, self._clock.steady())
            failpoints.reach("ticker.look")
            due = await self.attendance.ask(self._schedules.due_schedules(now + lookahead, self._batch), look)
            # What did not fit into the first pass was missed for the same reason as what did.
            first = first or look
            absence, since_then = self.attendance.why(first), self.attendance.why(look, first)
            wake_at = None if due.next_at is None else max(due.next_at - (LEAD if lookahead else 0), now)
            self._known_at = due.next_at
            plans = []
            for schedule in due.schedules:
                why = absence if schedule.next_at <= first.wall else since_then
                plan = plan_fires(schedule, now, grace=self._grace, random=random.random, absence=why)
                if plan is not None:
                    plans.append(plan)
                else:
                    wake_at = schedule.next_at if wake_at is None else min(wake_at, schedule.next_at)
                    self._known_at = min(schedule.next_at, self._known_at or schedule.next_at)
            if not plans:
                if len(due.schedules) < self._batch or not lookahead:
                    self.attendance.recorded(look)
                    return wake_at
                # All that fitted waits for its due time: do without looking ahead this once.
                lookahead = 0
                continue
            tracer = find_tracer()
            spans = None if tracer is None else tracer.fire(due.schedules, plans)
            failpoints.reach("ticker.record")
            fired = await self.attendance.ask(self._schedules.record_fires(plans, now), look)
            failpoints.reach("ticker.recorded")
            if spans is not None:
                spans.end(fired.moved)
            self._count(due.schedules, plans, fired.moved)
            self._announcer.fired(due.schedules, plans, fired, now)
            self._recorded()
        return wake_at

    def _count(self, due: Sequence[DueSchedule], plans: Sequence[FirePlan], moved: Sequence[ScheduleId]) -> None:
        """Count the due times that were left out, of the schedules that nobody else had moved on before."""
        left_out = [plan for plan in plans if any(run.state is not RunState.QUEUED for run in plan.runs)]
        if left_out:
            names, won = {schedule.id: schedule.name for schedule in due}, set(moved)
            for plan in left_out:
                if plan.schedule_id in won:
                    self._statistics.left_out(names[plan.schedule_id], plan.runs)
