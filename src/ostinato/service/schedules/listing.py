"""Schedules as lists show them: found by name or number, page by page, with what runs and what ran last.

`schedules.py` and `overview.py` ask; the store answers with rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import RecentRun, Schedule, ScheduleFilter, ScheduleRow, ScheduleSort
from ostinato.models.work_kinds import unserved
from ostinato.service.pages import Page, cursor_text, read_cursor
from ostinato.stores.base import Store

__all__ = ["ListedSchedule", "ScheduleList", "find", "page_of", "unknown_tasks", "with_unknown_tasks"]

_LONGEST_ID = 15
"""So many digits may be the number of a schedule; more are only a name."""


@dataclass(frozen=True, slots=True)
class ListedSchedule:
    """A schedule, how many of its runs are active, how many of these wait, and its last runs if they were asked for."""

    schedule: Schedule
    running: int
    queued: int
    recent: Sequence[RecentRun] | None = None


@dataclass(frozen=True, slots=True)
class ScheduleList(Page[ListedSchedule]):
    """A page of schedules, and how many the whole list has."""

    total: int


async def find(store: Store, ref: str, now: Micros) -> ListedSchedule | None:
    """The schedule of this name, or else of this number."""
    rows, _ = await store.schedules.page_schedules(ScheduleFilter(names=(ref,), limit=1))
    if not rows and ref.isascii() and ref.isdecimal() and len(ref) <= _LONGEST_ID:
        rows, _ = await store.schedules.page_schedules(ScheduleFilter(ids=(ScheduleId(int(ref)),), limit=1))
    return (await listed(store, rows, now))[0] if rows else None


async def page_of(
    store: Store, wanted: ScheduleFilter, now: Micros, *, cursor: str | None, limit: int, recent: int
) -> ScheduleList:
    """A page of the schedules of this filter, behind a cursor."""
    after = None
    if cursor is not None:
        kind = str if wanted.sort is ScheduleSort.NAME else int
        key, name = read_cursor(cursor, wanted, (kind, type(None)), str)
        after = (key, name)
    unknown = await unknown_tasks(store, now) if wanted.state is not None else ()
    asked = replace(wanted, unknown=unknown, after=after, limit=limit + 1)
    rows, total = await store.schedules.page_schedules(asked)
    more = cursor_text(rows[limit - 1].key, wanted) if len(rows) > limit else None
    return ScheduleList(await listed(store, rows[:limit], now, recent), more, total)


async def listed(store: Store, rows: Sequence[ScheduleRow], now: Micros, recent: int = 0) -> Sequence[ListedSchedule]:
    """Rows as they are shown, with the last `recent` runs of each."""
    schedules = await with_unknown_tasks(store, [row.schedule for row in rows], now)
    if not recent:
        return [ListedSchedule(schedule, row.active, row.queued) for schedule, row in zip(schedules, rows, strict=True)]
    found: Mapping[ScheduleId, Sequence[RecentRun]] = {}
    if rows:
        found = await store.schedules.recent_runs([schedule.id for schedule in schedules], recent)
    return [
        ListedSchedule(schedule, row.active, row.queued, found.get(schedule.id, ()))
        for schedule, row in zip(schedules, rows, strict=True)
    ]


async def with_unknown_tasks(store: Store, schedules: Sequence[Schedule], now: Micros) -> Sequence[Schedule]:
    """Schedules that are on and whose task no running node knows are shown as broken. It is not stored: a node may
    come."""
    known = await _known_tasks(store, now)
    if known is None:
        return schedules
    return [
        replace(schedule, broken=unserved(needs))
        if _counts(schedule) and (needs := schedule.work.needs) is not None and needs not in known
        else schedule
        for schedule in schedules
    ]


def _counts(schedule: Schedule) -> bool:
    """Whether it matters that nobody knows its task: what is off, broken or orphaned is that, and says so."""
    return schedule.enabled and schedule.broken is None and not schedule.orphaned


async def unknown_tasks(store: Store, now: Micros) -> tuple[str, ...]:
    """The scheduled tasks that no running node knows; none while no node runs, for then nobody can tell."""
    known = await _known_tasks(store, now)
    return () if known is None else tuple(sorted(await store.schedules.scheduled_tasks() - known))


async def _known_tasks(store: Store, now: Micros) -> set[str] | None:
    nodes = [node for node in await store.nodes.list_nodes(now) if node.state != "lost"]
    return {task for node in nodes for task in node.tasks} if nodes else None
