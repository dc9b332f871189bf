"""Schedules that run after others, as people see them: whether those exist, and who comes before and after whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ostinato.errors import InvalidInput
from ostinato.models.ids import RunId
from ostinato.models.schedule import Schedule, ScheduleFilter, ScheduleState
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.timing import parse_timing
from ostinato.timing.explain import joined

__all__ = ["check_upstreams"]


@dataclass(frozen=True, slots=True)
class RelatedSchedule:
    """A schedule that comes before or after another one."""

    name: str
    timing: str | None
    """Null if there is no schedule of this name."""
    state: ScheduleState | None
    running: bool = False
    """Whether something of it is queued or running."""
    last_run: RunId | None = None
    last_state: RunState | None = None
    """What became of its last run; null if it has none."""


@dataclass(frozen=True, slots=True)
class Relations:
    """Which schedules come right before and right after one."""

    upstreams: Sequence[RelatedSchedule] = ()
    """Those that it runs after, in the order of its timing."""
    dependents: Sequence[RelatedSchedule] = ()
    """Those that run after it, by name."""


async def check_upstreams(store: Store, name: str, upstreams: Iterable[str]) -> None:
    """InvalidInput if there is no schedule of one of these names; this one's own is for the store to refuse."""
    wanted = [upstream for upstream in upstreams if upstream != name]
    if not wanted:
        return
    found = await store.schedules.list_schedules(ScheduleFilter(names=tuple(wanted)))
    missing = sorted(set(wanted) - {schedule.name for schedule in found})
    if not missing:
        return
    known = [schedule.name for schedule in await store.schedules.list_schedules(ScheduleFilter(limit=1_000))]
    near = get_close_matches(missing[0], known, n=1)
    otherwise = f"did you mean {near[0]!r}?" if near else "'ostinato schedule ls' lists them"
    raise InvalidInput(
        f"schedule {name!r} would run after {missing[0]!r}, and there is no such schedule",
        field="timing",
        hint=f"add it first; {otherwise}",
    )


async def relations_of(store: Store, schedule: Schedule) -> Relations:
    """Who comes right before and right after it."""
    upstreams = _upstreams_of(schedule)
    dependents = await store.schedules.followers_of(schedule.name)
    names = {*upstreams, *dependents}
    if not names:
        return Relations()
    found = {one.name: one for one in await store.schedules.list_schedules(ScheduleFilter(names=tuple(names)))}
    return Relations(
        [_related(name, found.get(name)) for name in upstreams],
        [_related(name, found[name]) for name in dependents if name in found],
    )


def _upstreams_of(schedule: Schedule) -> Sequence[str]:
    """Whom it follows; nobody, where its timing cannot be read."""
    if not schedule.follows or not schedule.sentence:
        return ()
    return parse_timing(schedule.timing, tz=schedule.zone, stored=True).follows


def _related(name: str, found: Schedule | None) -> RelatedSchedule:
    if found is None:
        return RelatedSchedule(name, None, None)
    last = found.last_run
    run, state = (None, None) if last is None else (last.id, last.state)
    return RelatedSchedule(name, found.timing, found.state, found.active, run, state)


def waits_for(upstreams: Sequence[RelatedSchedule]) -> str:
    """What a schedule waits for, in words: `it waits for 'import', whose last run failed`."""
    return f"it waits for {joined([_waits_for(one) for one in upstreams])}"


def _waits_for(upstream: RelatedSchedule) -> str:
    name = f"'{upstream.name}'"
    if upstream.state is None:
        return f"{name}, which does not exist"
    if upstream.running:
        return f"{name}, which is under way"
    if upstream.state is not ScheduleState.ON:
        return f"{name}, which is {upstream.state}"
    if upstream.last_state is None:
        return f"{name}, which has not run yet"
    return f"{name}, whose last run {_ended(upstream.last_state)}"


def _ended(state: RunState) -> str:
    return str(state) if state in (RunState.SUCCEEDED, RunState.FAILED) else f"was {state}"
