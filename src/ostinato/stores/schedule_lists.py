"""Lists of schedules, as far as they are the same for every store: their orders, their states, rows to models.

As rows.py; each store's schedule_pages.py makes its queries of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ostinato.clock import from_micros
from ostinato.models.schedule import RecentRun, ScheduleRow, ScheduleSort, ScheduleState
from ostinato.stores.brief import BRIEF_COLUMNS, load_brief
from ostinato.stores.rows import SCHEDULE_COLUMNS, known_state, load_schedule

__all__ = [
    "ACTIVE_RUNS",
    "FINISHED",
    "KEYLESS",
    "ON",
    "ORDERS",
    "RUNLESS",
    "SEARCHED",
    "Order",
    "listed_columns",
    "load_listed",
    "load_recent",
    "state_of",
    "with_on",
]

ACTIVE_RUNS = "(SELECT count(*) FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))"
RUNLESS = "NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id)"
SEARCHED = ("name", "task", "note", "project")

# What is neither broken nor orphaned nor switched off: a switch that went off with the last of so many runs is not off.
_AT_WORK = "s.broken IS NULL AND NOT s.orphaned AND (s.enabled OR s.remaining = 0)"
ON = f"{_AT_WORK} AND (s.next_at IS NOT NULL OR {ACTIVE_RUNS} > 0)"
FINISHED = f"{_AT_WORK} AND s.next_at IS NULL AND {ACTIVE_RUNS} = 0"

_RUN = 2 + len(SCHEDULE_COLUMNS.split(","))
"""Where the last run begins in a row: after the schedule, its key, and how many of its runs are active."""
_COUNTED = tuple(state for state in ScheduleState if state is not ScheduleState.RUNNING)


@dataclass(frozen=True, slots=True)
class Order:
    """How a list is sorted: by a key, after which come those that have none."""

    key: str
    join: str = ""
    """What more it takes to know the key."""
    unique: bool = False
    present: str | None = None
    absent: str | None = None

    @property
    def columns(self) -> list[str]:
        """What one row is compared with the next by."""
        if self is KEYLESS:
            return ["s.name"]
        return [self.key] if self.unique else [self.key, "s.name"]


KEYLESS = Order("CAST(NULL AS bigint)")
ORDERS = {
    ScheduleSort.NAME: Order("s.name", unique=True),
    # In the order in which they were made, which is that of their ids.
    ScheduleSort.CREATED: Order("s.id", unique=True),
    ScheduleSort.NEXT: Order("s.next_at", present="s.next_at IS NOT NULL", absent="s.next_at IS NULL"),
}
"""All but the order of the last run, which each store finds in its own way."""


def listed_columns(key: str) -> str:
    """The SELECT list of what load_listed takes: a schedule `s` with a key, and its last run `r`."""
    return f"{SCHEDULE_COLUMNS}, {key}, {ACTIVE_RUNS}, {BRIEF_COLUMNS}"


def load_listed(row: Sequence[Any]) -> ScheduleRow:
    """A schedule in a list, from listed_columns."""
    key, active = row[_RUN - 2 : _RUN]
    last_run = load_brief(row[_RUN:]) if row[_RUN] is not None else None
    schedule = load_schedule(row[: _RUN - 2], last_run, bool(active))
    return ScheduleRow(schedule, (key, schedule.name), active)


def load_recent(row: Sequence[Any]) -> RecentRun:
    """One of the last runs: its id, state, instant and seconds."""
    id, state, at, seconds = row
    return RecentRun(id, known_state(state), from_micros(at), seconds)


def state_of(unknown: str) -> str:
    """The one state that a schedule `s` is counted in; `unknown` is true where nobody knows its task.

    While its last run is under way, one that ran as often as it should is still on.
    """
    return f"""
        CASE WHEN s.broken IS NOT NULL OR {unknown} THEN 'broken'
             WHEN s.orphaned THEN 'orphaned'
             WHEN {FINISHED} THEN 'finished'
             WHEN NOT s.enabled AND s.remaining IS DISTINCT FROM 0 THEN 'off'
             WHEN s.held_since IS NOT NULL THEN 'paused'
             ELSE 'on' END"""


def with_on(apart: Iterable[Sequence[Any]], total: int) -> dict[ScheduleState, int]:
    """Every state with its count, from the counts of those that were looked at: all others are on, and so are those
    that are paused."""
    counts = dict.fromkeys(_COUNTED, 0) | {ScheduleState(state): count for state, count in apart}
    counts[ScheduleState.ON] = 0
    counts[ScheduleState.ON] = total - sum(counts.values()) + counts[ScheduleState.PAUSED]
    return counts
