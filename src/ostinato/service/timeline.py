"""The timeline: runs that touch a span, and the due times in it that are yet to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import datetime, timedelta

from msgspec import field

from ostinato.clock import Clock, Micros, from_micros, to_micros
from ostinato.errors import InvalidInput, NotFound
from ostinato.models.run import Run
from ostinato.models.schedule import Schedule, ScheduleFilter, ScheduleSort
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.service.answers import Answer
from ostinato.service.forecast import DueTime, coming_until, of_schedule, soonest, soonest_of
from ostinato.service.projects import ProjectService
from ostinato.service.stretches import DueStretch, TimelineStretch, due_stretches, joined
from ostinato.stores.base import RunStretch, Store
from ostinato.tuning import Tuning

__all__ = ["Timeline", "TimelineService"]

LONGEST = timedelta(days=31)
_BUCKETS = 600
"""So many parts of the span are told apart where runs are counted: about as many as a screen can show."""


class TimelineRun(Answer):
    """A run as a bar."""

    id: int
    schedule: str | None
    task: str | None
    state: RunState
    cause: Cause | None
    trigger: Trigger
    due_at: datetime
    last_due_at: datetime | None
    count: int
    started_at: datetime | None
    finished_at: datetime | None
    lane: str
    node: str | None


class Timeline(Answer):
    """Runs that touch the span, and its future due times: one by one up to the limit, all others counted."""

    start: datetime = field(name="from")
    end: datetime = field(name="to")
    now: datetime
    zone: str
    runs: list[TimelineRun]
    due: list[DueTime]
    truncated: bool
    """There are more than the limit; these are the active and latest runs, and the soonest due times."""
    stretches: list[TimelineStretch]
    """The runs that are not listed, counted by schedule and state."""
    due_stretches: list[DueStretch]
    """The due times that are not listed, counted by schedule."""
    known_from: datetime | None
    """There are so many that what ended before or then is not even counted."""
    incomplete: bool
    """There are so many schedules that some are not shown at all."""


@dataclass(frozen=True, slots=True)
class _Past:
    """What the span has of runs."""

    runs: Sequence[Run] = ()
    stretches: Sequence[RunStretch] = ()
    known_from: Micros | None = None
    has_more: bool = False
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class _Coming:
    """What the span has of due times."""

    due: list[DueTime] = dataclass_field(default_factory=list)
    stretches: list[DueStretch] = dataclass_field(default_factory=list)
    has_more: bool = False
    is_whole: bool = True


class TimelineService:
    """One verb: between."""

    def __init__(self, store: Store, clock: Clock, zone: str, projects: ProjectService, tuning: Tuning) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._projects = projects
        self._most_schedules = tuning.timeline_schedules
        self._most_runs = tuning.timeline_runs

    async def between(
        self,
        start: datetime,
        end: datetime,
        *,
        schedule: str | None = None,
        project: str | None = None,
        limit: int = 500,
    ) -> Timeline:
        """What is in the span, of one schedule, of a project or of all."""
        if start >= end:
            raise InvalidInput(f"from {start} is not before to {end}", field="from", hint="give the earlier time first")
        if end - start > LONGEST:
            raise InvalidInput("the period is longer than 31 days", field="to", hint="give a shorter one")
        now = self._clock.now()
        chosen = await self._chosen(schedule, project)
        cut = chosen is not None and len(chosen) > self._most_schedules
        chosen = chosen if chosen is None else chosen[: self._most_schedules]
        first, last = to_micros(start), to_micros(end)
        past = await self._past(chosen, now, first, last, limit)
        coming = await self._coming(chosen, now, first - 1, last, limit)
        return Timeline(
            start,
            end,
            from_micros(now),
            chosen[0].zone if schedule is not None and chosen else self._zone,
            [TimelineRun.of(run) for run in past.runs],
            coming.due,
            truncated=cut or past.has_more or coming.has_more,
            stretches=[TimelineStretch.told(one) for one in past.stretches],
            due_stretches=coming.stretches,
            known_from=None if past.known_from is None else from_micros(past.known_from),
            incomplete=cut or not (past.is_whole and coming.is_whole),
        )

    async def _chosen(self, schedule: str | None, project: str | None) -> Sequence[Schedule] | None:
        """The schedules that were asked for; None for all of them."""
        if schedule is None and project is None:
            return None
        await self._projects.check(project)
        names = () if schedule is None else (schedule,)
        wanted = ScheduleFilter(names=names, project=project, sort=ScheduleSort.NEXT, limit=self._most_schedules + 1)
        found = await self._store.schedules.list_schedules(wanted)
        if schedule is not None and not found:
            raise NotFound(f"there is no schedule {schedule!r}; 'ostinato schedule ls' lists them")
        return found

    async def _past(
        self, chosen: Sequence[Schedule] | None, now: Micros, first: Micros, last: Micros, limit: int
    ) -> _Past:
        """The active and latest runs, and all others as stretches."""
        ids = None if chosen is None else [one.id for one in chosen]
        if ids is not None and not ids:
            return _Past()
        runs, has_more = await self._store.runs.runs_between(first, last, ids, limit)
        if not has_more:
            return _Past(runs)
        bucket = max(1, (last - first) // _BUCKETS)
        listed = [run.id for run in runs]
        counted = await self._store.runs.count_runs_between(
            first, last, ids, listed=listed, bucket=bucket, now=now, most=self._most_runs
        )
        stretches, is_whole = joined(counted.stretches, bucket, last - first, limit)
        return _Past(runs, stretches, counted.known_from, has_more=True, is_whole=is_whole)

    async def _coming(
        self, chosen: Sequence[Schedule] | None, now: Micros, since: Micros, until: Micros, limit: int
    ) -> _Coming:
        """The soonest due times, and all others as stretches."""
        if until <= now:
            return _Coming()
        if chosen is None:
            due, has_more = await soonest(self._store, now, until, limit, since=since)
        else:
            # One by one, as they are asked for: reading thousands of timings takes its breaths there.
            each = (one for schedule in chosen if (one := of_schedule(schedule)) is not None)
            due, has_more = await soonest_of(each, now, until, limit, since=since)
        if not has_more:
            return _Coming(due)
        if chosen is None:
            coming, is_cut = await coming_until(self._store, until)
        else:
            coming, is_cut = [one for schedule in chosen if (one := of_schedule(schedule)) is not None], False
        stretches, is_whole = await due_stretches(coming, now, due, until, limit)
        return _Coming(due, stretches, has_more=True, is_whole=is_whole and not is_cut)
