"""The overview: what runs, what is late, what is broken, what comes, and how the last day went, all at a glance.

It is asked again and again, so what a look costs is bounded: counts come from indexes, closed hours from memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ostinato.clock import SECOND, Clock, Micros, from_micros
from ostinato.models.notification import NotificationCounts
from ostinato.models.quarantine import Quarantined
from ostinato.models.run import Run as RunModel
from ostinato.models.run import RunFilter
from ostinato.models.schedule import ScheduleFilter, ScheduleSort, ScheduleState
from ostinato.models.states import RunState
from ostinato.service.answers import Answer, Run, Schedule, answer_of, run_answer, schedule_answer
from ostinato.service.blocking import Blocking
from ostinato.service.forecast import DueTime, Forecast
from ostinato.service.schedules.listing import ListedSchedule, listed, unknown_tasks
from ostinato.stores.base import Store

__all__ = ["Activity", "Overview", "OverviewService"]

BUCKET: Micros = 15 * 60 * SECOND
HOUR: Micros = 3_600 * SECOND
DAY: Micros = 24 * HOUR

_LATE: Micros = 10 * SECOND
"""What is ready for longer than this and has not started is late."""
_SHOWN, _FAILED, _DUE = 20, 10, 50


@dataclass(frozen=True, slots=True)
class Activity:
    """How the runs that ended in this time ended; `at` is where it begins."""

    at: datetime
    states: Mapping[str, int]
    """How many runs, by state."""
    with_errors: int = 0
    """How many of those that succeeded counted errors."""


class EngineState(Answer):
    """Whether any engine is running."""

    alive: bool
    nodes: int
    """How many nodes are alive or draining."""
    lost: int
    here: bool
    """One of them is in this process."""


class Counts(Answer):
    """How many there are."""

    schedules: int
    on: int
    """Schedules that are running or will run again, paused or not."""
    off: int
    broken: int
    finished: int
    orphaned: int
    due: int
    """Schedules that are due within the hour or overdue."""
    running: int
    queued: int
    late: int
    quarantined: int
    """Rows that were set aside because they could not be used."""


class Hour(Answer):
    """How many due times an hour has."""

    at: datetime
    count: int


# What it said may be a secret, and is for whoever has the database.
@answer_of(Quarantined, "id", "content")
class QuarantinedRow(Answer):
    """A row that was ended, switched off, repaired or removed because it could not be used."""


class Overview(Answer):
    """Everything at a glance."""

    now: datetime
    zone: str
    engine: EngineState
    counts: Counts
    running: list[Run]
    late: list[Run]
    """Each says what it waits for."""
    broken: list[Schedule]
    due: list[DueTime]
    """The next due time of each schedule that has one within the hour or is overdue, the soonest 50 first."""
    next24: list[Hour]
    """The next 24 hours; the first is the current one."""
    estimated: bool
    """There are too many schedules to count them all; next24 has lower bounds."""
    failed: list[Run]
    activity: list[Activity]
    """The last 24 hours; buckets in which no run ended are left out."""
    quarantine: list[QuarantinedRow]
    """The last 20 of them."""
    bucket_seconds: int


class OverviewService:
    """Two verbs: look, and count what people are told."""

    def __init__(self, store: Store, clock: Clock, zone: str, blocking: Blocking) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._forecast = Forecast(store)
        self._blocking = blocking
        self._closed: dict[Micros, Activity] = {}
        """Buckets in which nothing more will end."""

    async def notification_counts(self) -> NotificationCounts:
        """How many incidents are open, and how many messages wait."""
        return await self._store.notifications.counts()

    async def look(self, *, is_here: bool = False) -> Overview:
        """How everything is now; `is_here` says that this process has an engine."""
        now = self._clock.now()
        runs = self._store.runs
        nodes, counts, due, hours, activity = await asyncio.gather(
            self._store.nodes.list_nodes(now),
            runs.count_runs(now, now - _LATE),
            self._store.schedules.due_schedules(now + HOUR, _DUE, shown=True),
            self._forecast.hours(now),
            self._activity(now),
        )
        unknown = await unknown_tasks(self._store, now)
        running, late, failed, broken, totals, (quarantined, quarantine) = await asyncio.gather(
            runs.list_runs(RunFilter(states=(RunState.RUNNING,), limit=_SHOWN, brief=True)),
            runs.late_runs(now - _LATE, _SHOWN),
            runs.list_runs(RunFilter(states=(RunState.FAILED,), limit=_FAILED, brief=True)),
            self._broken(now, unknown),
            self._totals(unknown),
            self._quarantine(),
        )
        lost = sum(node.state == "lost" for node in nodes)
        alive = len(nodes) - lost
        yesterday = from_micros(now - DAY)
        return Overview(
            now=from_micros(now),
            zone=self._zone,
            engine=EngineState(alive > 0, alive, lost, is_here),
            counts=Counts(
                **totals,
                due=await self._count_due(now, len(due.schedules)),
                running=counts.running,
                queued=counts.queued,
                late=counts.late,
                quarantined=quarantined,
            ),
            running=self._told(running),
            late=self._told(await self._blocking.explained(late)),
            broken=[schedule_answer(one.schedule, one.running, one.queued) for one in broken],
            due=[DueTime(one.name, from_micros(one.next_at), one.zone) for one in due.schedules],
            next24=[Hour(at, count) for at, count in hours.counts],
            estimated=hours.estimated,
            failed=self._told(run for run in failed if run.finished_at is not None and run.finished_at >= yesterday),
            activity=activity,
            quarantine=[QuarantinedRow.of(row) for row in quarantine],
            bucket_seconds=BUCKET // SECOND,
        )

    def _told(self, runs: Iterable[RunModel]) -> list[Run]:
        return [run_answer(run, self._zone) for run in runs]

    async def _totals(self, unknown: tuple[str, ...]) -> dict[str, int]:
        counts = await self._store.schedules.count_schedules(unknown)
        return {
            # What is paused is on, and counted there.
            "schedules": sum(counts.values()) - counts[ScheduleState.PAUSED],
            "on": counts[ScheduleState.ON],
            "off": counts[ScheduleState.OFF],
            "broken": counts[ScheduleState.BROKEN],
            "finished": counts[ScheduleState.FINISHED],
            "orphaned": counts[ScheduleState.ORPHANED],
        }

    async def _quarantine(self) -> tuple[int, Sequence[Quarantined]]:
        """How many rows are quarantined, and the last of them."""
        rows = await self._store.quarantine.list_quarantined(_SHOWN)
        return (await self._store.quarantine.count_quarantined() if len(rows) == _SHOWN else len(rows)), rows

    async def _count_due(self, now: Micros, read: int) -> int:
        if read < _DUE:
            return read
        return sum(await self._store.schedules.count_due((0, now + HOUR + 1)))

    async def _broken(self, now: Micros, unknown: tuple[str, ...]) -> Sequence[ListedSchedule]:
        wanted = ScheduleFilter(
            state=ScheduleState.BROKEN, unknown=unknown, sort=ScheduleSort.LAST, descending=True, limit=_SHOWN
        )
        rows, _ = await self._store.schedules.page_schedules(wanted)
        return await listed(self._store, rows, now)

    async def _activity(self, now: Micros) -> list[Activity]:
        """What ended in the last day. Only the last buckets are read: what ended may be written a moment later."""
        first, open_from = (now - DAY) // BUCKET * BUCKET + BUCKET, (now // BUCKET - 1) * BUCKET
        known = {at: bucket for at, bucket in self._closed.items() if first <= at < open_from}
        start = max(first, max(known, default=first - BUCKET) + BUCKET)
        fresh = {at: Activity(from_micros(at), {}) for at in range(start, now + 1, BUCKET)}
        for tally in await self._store.runs.tally_ended(start, now + 1, BUCKET):
            before = fresh[tally.at]
            states = {**before.states, str(tally.state): before.states.get(str(tally.state), 0) + tally.count}
            fresh[tally.at] = Activity(before.at, states, before.with_errors + tally.with_errors)
        self._closed = {**known, **{at: bucket for at, bucket in fresh.items() if at < open_from}}
        return [bucket for _, bucket in sorted({**known, **fresh}.items()) if bucket.states]
