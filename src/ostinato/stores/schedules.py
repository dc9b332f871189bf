"""Schedules, as the other layers ask for them: a part of base.py, answered in each schedules.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import Notice
from ostinato.models.replanning import Replan
from ostinato.models.run import Finish
from ostinato.models.schedule import (
    DueSchedule,
    FirePlan,
    Pause,
    RecentRun,
    Schedule,
    ScheduleChange,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleRow,
    ScheduleState,
)
from ostinato.models.task import TaskSchedule
from ostinato.stores.runs import NOTHING_TOLD, StateCount, Told

__all__ = ["RECORDED_AHEAD", "Due", "Fired", "Late", "Removed", "ScheduleStore"]

RECORDED_AHEAD: Micros = 2 * SECOND
"""A due time this near may have been recorded ahead of its time, by a right clock."""


@dataclass(frozen=True, slots=True)
class Due:
    """What a tick sees: the schedules due until the horizon, and when the next after it is."""

    schedules: Sequence[DueSchedule]
    next_at: Micros | None
    """The earliest due time past the horizon, or the first one left out by the limit."""


@dataclass(frozen=True, slots=True)
class Late:
    """What was told of schedules that have not succeeded in time."""

    notices: Sequence[Notice] = ()
    told: Told = NOTHING_TOLD
    finishes: Sequence[Finish] = ()
    """The ends of check-ins that had started, and took too long."""


class Removed(NamedTuple):
    """A schedule is gone, and so is what others ran after."""

    broken: Sequence[tuple[str, str]] = ()
    """Those that were switched off because they ran after it, each with the reason."""
    told: Told = NOTHING_TOLD
    """What people are told of it."""


@dataclass(frozen=True, slots=True)
class Fired:
    """What became of plans."""

    moved: Sequence[ScheduleId] = ()
    """The schedules that were moved on; the others lost a race."""
    told: Told = NOTHING_TOLD
    """What people are told of it."""


class ScheduleStore(Protocol):
    """Schedules, and the one transaction that turns due times into runs."""

    async def put_schedules(self, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
        """Insert each draft, or update the schedule of its name where timing, work, policy, project, owner or
        note differ. A switch set by a person stays; `next_at` and `anchor_at` change only with the timing, which
        also clears `broken` (and enables again what the breaker had disabled). Another timing or budget ends a pause;
        after another budget it is due at its next due time. A Conflict, and nothing is written, if one of them would
        change what is somebody else's and is not to replace it."""
        ...

    async def insert_schedule(self, draft: ScheduleDraft, now: Micros) -> bool:
        """Insert it, unless there is one of this name; says whether it did."""
        ...

    async def get_schedule(self, name: str) -> Schedule | None: ...

    async def list_schedules(self, wanted: ScheduleFilter) -> list[Schedule]: ...

    async def page_schedules(self, wanted: ScheduleFilter) -> tuple[list[ScheduleRow], int]:
        """One page of a long list, by keyset, and how many the whole list has."""
        ...

    async def recent_runs(self, ids: Sequence[ScheduleId], count: int) -> dict[ScheduleId, list[RecentRun]]:
        """The last `count` runs of each of these schedules, oldest first."""
        ...

    async def schedule_history(self, id: ScheduleId, since: Micros) -> list[StateCount]:
        """The ended runs of a schedule that were due since then, counted by state and the quarter of an hour in which
        they were due."""
        ...

    async def count_schedules(self, unknown: Sequence[str]) -> dict[ScheduleState, int]:
        """How many schedules there are, each in one state of these: broken (a task that is `unknown` breaks too),
        orphaned, finished, off, on. Together they are all; of those that are on, how many are paused."""
        ...

    async def count_tasks(self) -> dict[str, int]:
        """How many schedules call each task."""
        ...

    async def task_schedules(self, tasks: Sequence[str], limit: int) -> dict[str, list[TaskSchedule]]:
        """The schedules that call each of these tasks, `limit` of each at most; the soonest first."""
        ...

    async def next_of_tasks(self, tasks: Sequence[str]) -> dict[str, Micros]:
        """When the next schedule of each of these tasks is due; those that have none are left out."""
        ...

    async def scheduled_tasks(self) -> set[str]:
        """The tasks that schedules call, found by skipping from one to the next."""
        ...

    async def edit_schedule(self, draft: ScheduleDraft, id: ScheduleId, version: int, now: Micros) -> int | None:
        """What `put_schedules` does, if the schedule of this name still has this id and version; answers the version
        it has then, None if it was another."""
        ...

    async def change_schedule(self, id: ScheduleId, version: int, change: ScheduleChange, now: Micros) -> bool:
        """Write the switch if the version still is what was read. Takes back runs that were recorded ahead of
        their due time when it disables."""
        ...

    async def remove_schedule(
        self, id: ScheduleId, now: Micros, version: int | None = None, spared: Sequence[RunId] | None = None
    ) -> Removed | None:
        """Delete it with its runs, attempts and output, and close its incidents; with `version`, only if it still has
        that one; with `spared`, only if no other run of it is under way; None if it is not deleted. What is under way
        on a living node then counts as given up."""
        ...

    async def followers_of(self, name: str) -> list[str]:
        """The names of the schedules that run after this one."""
        ...

    async def pause_schedule(self, id: ScheduleId, version: int, pause: Pause, now: Micros) -> bool:
        """Put off an enabled schedule, if its version still is what was read and it is still due at `pause.since`. The
        next fire that is recorded ends it, and so does whatever changes its switch, its timing or its budget, orphans
        or breaks it; then the due times left out until now get their one skipped row in the same transaction. What is
        paused already keeps its first `since`."""
        ...

    async def mark_orphans(self, origin: str, declared: Sequence[str], now: Micros) -> list[str]:
        """Mark schedules of this app's code that it no longer declares; answers their names."""
        ...

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        """What is due up to the horizon. Where it is only shown, a text that is not UTF-8 is shown as far as it can
        be, and what follows others is left out; where it is to fire, that is an error."""
        ...

    async def count_due(self, edges: Sequence[Micros]) -> list[int]:
        """How many schedules have their next due time from each edge up to the next one: one number less than edges."""
        ...

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> Fired:
        """In one transaction, for each plan whose `next_at` and version still are what was read: insert its runs,
        move the schedule on, and tell people what they have to know of it."""
        ...

    async def next_fresh_at(self) -> Micros | None:
        """When the first of the schedules that are to be fresh must have succeeded."""
        ...

    async def tell_late(self, now: Micros, limit: int) -> Late:
        """In one transaction, for up to so many schedules whose `fresh_at` has come: those that have not succeeded
        since are told, once until they succeed; what the ledger knows to be fresh is looked at when that ends."""
        ...

    async def later_schedules(self, now: Micros, after: ScheduleId, limit: int) -> list[DueSchedule]:
        """Schedules that are due after now, by their ids, from the one behind `after` on; without their active runs."""
        ...

    async def replan_schedules(self, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
        """In one transaction, for each plan whose `next_at` and version still are what was read: set when it is due,
        take back what was missed or skipped in the future, and let what is queued for the future start now. Answers
        the schedules that were moved."""
        ...

    async def latest_write(self) -> Micros | None:
        """The latest instant at which a run ended or a schedule changed, by the clock of who wrote it."""
        ...
