"""The timeline: runs that touch a span, and the due times in it that are yet to come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import field

from ostinato.clock import Clock, Micros, from_micros, to_micros
from ostinato.errors import InvalidInput, NotFound
from ostinato.models.run import Run
from ostinato.models.schedule import Schedule, ScheduleFilter, ScheduleSort
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.service.answers import Answer
from ostinato.service.forecast import DueTime, of_schedule, soonest, soonest_of
from ostinato.service.projects import ProjectService
from ostinato.stores.base import Store

__all__ = ["Timeline", "TimelineService"]

LONGEST = timedelta(days=31)


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
    """Runs that touch the span, and its future due times."""

    start: datetime = field(name="from")
    end: datetime = field(name="to")
    now: datetime
    zone: str
    runs: list[TimelineRun]
    due: list[DueTime]
    truncated: bool
    """There are more than the limit; these are the active and latest runs, and the soonest due times."""


class TimelineService:
    """One verb: between."""

    def __init__(self, store: Store, clock: Clock, zone: str, projects: ProjectService, most_schedules: int) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._projects = projects
        self._most_schedules = most_schedules

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
        ids = None if chosen is None else [one.id for one in chosen]
        first, last = to_micros(start), to_micros(end)
        found: tuple[Sequence[Run], bool] = ([], False)
        if ids is None or ids:
            found = await self._store.runs.runs_between(first, last, ids, limit)
        runs, has_more = found
        due, more = await self._due(chosen, now, first - 1, last, limit)
        zone = chosen[0].zone if schedule is not None and chosen else self._zone
        bars = [TimelineRun.of(run) for run in runs]
        return Timeline(start, end, from_micros(now), zone, bars, due, truncated=cut or more or has_more)

    async def _chosen(self, schedule: str | None, project: str | None) -> Sequence[Schedule] | None:
        """The schedules that were asked for; None for all of them."""
        if schedule is None and project is None:
            return None
        if project is not None:
            await self._projects.get(project)
        names = () if schedule is None else (schedule,)
        wanted = ScheduleFilter(names=names, project=project, sort=ScheduleSort.NEXT, limit=self._most_schedules + 1)
        found = await self._store.schedules.list_schedules(wanted)
        if schedule is not None and not found:
            raise NotFound(f"there is no schedule {schedule!r}; 'ostinato schedule ls' lists them")
        return found

    async def _due(
        self, chosen: Sequence[Schedule] | None, now: Micros, since: Micros, until: Micros, limit: int
    ) -> tuple[list[DueTime], bool]:
        if until <= now:
            return [], False
        if chosen is None:
            return await soonest(self._store, now, until, limit, since=since)
        # One by one, as they are asked for: reading thousands of timings takes its breaths there.
        coming = (one for schedule in chosen if (one := of_schedule(schedule)) is not None)
        return await soonest_of(coming, now, until, limit, since=since)
