"""Schedules as people list them: filters, pages by keyset, and the bars of what ran last.

Called by each store's schedules.py, inside a read. Neighbours: overview.py for runs, changes.py for what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.ids import ScheduleId
from ostinato.models.project import NO_PROJECT
from ostinato.models.schedule import RecentRun, ScheduleFilter, ScheduleRow, ScheduleSort, ScheduleState
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import StateCount
from ostinato.stores.brief import BRIEF_COLUMNS, load_brief
from ostinato.stores.rows import SCHEDULE_COLUMNS, known_cause, known_state, load_all, load_schedule
from ostinato.stores.searching import matching
from ostinato.stores.sql.connection import Connection, Dialect, given, where
from ostinato.stores.sql.followers import DUE_BY_ITSELF
from ostinato.stores.sql.overview import load_count

__all__ = ["count_states", "list_rows", "page_rows", "recent_runs", "schedule_history", "scheduled_tasks"]

QUARTER: Micros = 900 * SECOND
_LOOKED_AT = 10
"""So many runs for each schedule of a page, before PostgreSQL asks every schedule for its last one."""

_ACTIVE_RUNS = "(SELECT count(*) FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))"
# With the condition of the index runs_active, word for word.
_QUEUED_RUNS = f"{_ACTIVE_RUNS.removesuffix(')')} AND state = 'queued')"
_RUNLESS = "NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id)"
_SEARCHED = ("name", "task", "note", "project")

# What is neither broken nor orphaned nor switched off: a switch that went off with the last of so many runs is not off.
_AT_WORK = "s.broken IS NULL AND NOT s.orphaned AND (s.enabled OR s.remaining = 0)"
# What follows others is due when they end.
_FOLLOWS = "s.follows AND s.remaining IS DISTINCT FROM 0"
_ON = f"{_AT_WORK} AND (s.next_at IS NOT NULL OR ({_FOLLOWS}) OR {_ACTIVE_RUNS} > 0)"
_FINISHED = f"{_AT_WORK} AND s.next_at IS NULL AND NOT ({_FOLLOWS}) AND {_ACTIVE_RUNS} = 0"

_RUN = 3 + len(SCHEDULE_COLUMNS.split(","))
"""Where the last run begins in a row: after the schedule, its key, and how many of its runs are active and queued."""
_COUNTED = tuple(state for state in ScheduleState if state not in (ScheduleState.RUNNING, ScheduleState.FAILING))


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
        if self is _KEYLESS:
            return ["s.name"]
        return [self.key] if self.unique else [self.key, "s.name"]


_KEYLESS = Order("CAST(NULL AS bigint)")
# With the condition of the index runs_unhappy, word for word: from the few that ever failed.
_FAILED = f"""
    SELECT schedule_id, max(id) AS id FROM runs
    WHERE state = '{RunState.FAILED}' AND state NOT IN ('succeeded', 'queued', 'running') AND schedule_id IS NOT NULL
    GROUP BY schedule_id"""
_ORDERS = {
    ScheduleSort.FAILED: Order(
        "l.id",
        join=f"JOIN ({_FAILED}) l ON l.schedule_id = s.id",
        absent=f"s.id NOT IN (SELECT schedule_id FROM ({_FAILED}) l)",
    ),
    ScheduleSort.NAME: Order("s.name", unique=True),
    # In the order in which they were made, which is that of their ids.
    ScheduleSort.CREATED: Order("s.id", unique=True),
    ScheduleSort.NEXT: Order(
        "s.next_at",
        present=f"s.next_at IS NOT NULL {DUE_BY_ITSELF}",
        absent=f"NOT (s.next_at IS NOT NULL {DUE_BY_ITSELF})",
    ),
}
"""All but the order of the last run, which each database finds in its own way."""

_NEWEST = "(SELECT max(id) FROM runs WHERE schedule_id = s.id)"
_LAST = "(SELECT {} FROM runs WHERE schedule_id = s.id ORDER BY id DESC LIMIT 1)"
_WITH_RUN: dict[Dialect, str] = {
    "sqlite": f"CROSS JOIN schedules s ON s.id = k.id LEFT JOIN runs r ON r.id = {_NEWEST}",
    "postgres": f"JOIN schedules s ON s.id = k.id LEFT JOIN LATERAL {_LAST.format('*')} r ON true",
}
_BY_LAST: dict[Dialect, Order] = {
    "sqlite": Order("l.id", join=f"CROSS JOIN runs l ON l.id = {_NEWEST}", absent=_RUNLESS),
    "postgres": Order("l.id", join=f"CROSS JOIN LATERAL {_LAST.format('id')} l", absent=_RUNLESS),
}
# Word for word what the index schedules_aside holds, in parts or whole.
_ASIDE = "s.enabled = FALSE OR s.broken IS NOT NULL OR s.orphaned = TRUE"
_STATES = {
    ScheduleState.ON: _ON,
    ScheduleState.OFF: (
        "s.enabled = FALSE AND s.broken IS NULL AND s.orphaned = FALSE AND s.remaining IS DISTINCT FROM 0"
    ),
    ScheduleState.BROKEN: "s.broken IS NOT NULL",
    ScheduleState.RUNNING: (
        "s.id IN (SELECT schedule_id FROM runs WHERE schedule_id IS NOT NULL AND state IN ('queued', 'running'))"
    ),
    ScheduleState.PAUSED: f"s.paused_since IS NOT NULL AND {_ON}",
    ScheduleState.FINISHED: _FINISHED,
    ScheduleState.ORPHANED: "s.orphaned = TRUE",
    # From the few that ever failed, by the index of what did not succeed, to those that have not succeeded since.
    ScheduleState.FAILING: f"""
        s.id IN (SELECT f.schedule_id FROM runs f
                 WHERE f.state = 'failed' AND f.state NOT IN ('succeeded', 'queued', 'running'))
        AND '{RunState.FAILED}' = (SELECT state FROM runs WHERE schedule_id = s.id AND state IN ('succeeded', 'failed')
                                   ORDER BY id DESC LIMIT 1)""",
}
_CONDITIONS = {
    "owner": "(s.owner = :owner OR substr(s.owner, 1, length(:owner) + 1) = :owner || ':')",
    "project": "s.project = :project",
}
_WITHOUT_PROJECT = {"project": "s.project IS NULL"}
# What is off or orphaned is that, whoever knows its task.
_UNKNOWN = "(s.task IS NOT NULL AND s.task = ANY (:unknown::text[]) AND s.enabled AND NOT s.orphaned)"
_BY_TASK = {ScheduleState.BROKEN: f"OR {_UNKNOWN}"} | dict.fromkeys(
    (ScheduleState.ON, ScheduleState.OFF, ScheduleState.PAUSED, ScheduleState.FINISHED), f"AND NOT {_UNKNOWN}"
)
"""What more holds where some tasks are known to nobody."""
# Where few are wanted, SQLite would rather walk through all of them in their order.
_HINTS = {
    ScheduleState.OFF: "INDEXED BY schedules_aside",
    ScheduleState.BROKEN: "INDEXED BY schedules_aside",
    ScheduleState.ORPHANED: "INDEXED BY schedules_aside",
    ScheduleState.PAUSED: "INDEXED BY schedules_held",
    ScheduleState.FINISHED: "INDEXED BY schedules_resting",
}
_APART = (
    ("INDEXED BY schedules_aside", _ASIDE),
    ("INDEXED BY schedules_resting", "s.next_at IS NULL"),
    ("INDEXED BY schedules_held", "s.paused_since IS NOT NULL"),
)
"""Whatever is not on is among these, or has a task that nobody knows."""
_RECENT_OF_EACH = f"""
SELECT k.id, r.* FROM unnest(:ids::bigint[]) k (id) CROSS JOIN LATERAL (
    SELECT id, state, coalesce(finished_at, due_at), (finished_at - started_at) / {SECOND}::float8, cause
    FROM runs WHERE schedule_id = k.id ORDER BY id DESC LIMIT :count
) r ORDER BY r.id
"""
_RECENT_OF_ONE = f"""
SELECT id, state, coalesce(finished_at, due_at), (finished_at - started_at) / {float(SECOND)}, cause
FROM runs WHERE schedule_id = :id ORDER BY id DESC LIMIT :count
"""
_HISTORY = f"""
SELECT due_at / {QUARTER} * {QUARTER}, state, count(*), coalesce(sum(finished_at - started_at), 0)::bigint,
       count(*) FILTER (WHERE cause = '{Cause.ERRORS}')
FROM runs WHERE schedule_id = :id AND due_at >= :since AND finished_at IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2
"""
# From one task to the next by the index: counting them would go over all schedules.
_TASKS = """
WITH RECURSIVE t (task) AS (
    SELECT min(task) FROM schedules WHERE task IS NOT NULL
    UNION ALL
    SELECT (SELECT min(s.task) FROM schedules s WHERE s.task > t.task) FROM t WHERE t.task IS NOT NULL
) SELECT task FROM t WHERE task IS NOT NULL
"""


async def page_rows(db: Connection, wanted: ScheduleFilter) -> tuple[list[ScheduleRow], int]:
    """A page, and how many the whole list has."""
    async with db.snapshot():
        if not wanted.search or db.dialect == "postgres":
            return await _list(db, wanted), await _count(db, wanted)
        # To search is the dearest of it: each row is looked at once, for the page and for the count.
        clauses, values = _clauses(db, wanted)
        rows = await db.fetch(f"SELECT s.id FROM schedules s WHERE {' AND '.join(clauses)}", values)
        found = tuple(ScheduleId(id) for (id,) in rows)
        return await _list(db, replace(wanted, search=None, ids=found)) if found else [], len(found)


async def list_rows(db: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    """The rows of a page, or of the whole list."""
    if _order(db, wanted).absent is None:
        # One query, which needs no transaction around it.
        return await _list(db, wanted)
    async with db.snapshot():
        return await _list(db, wanted)


def _order(db: Connection, wanted: ScheduleFilter) -> Order:
    return _BY_LAST[db.dialect] if wanted.sort is ScheduleSort.LAST else _ORDERS[wanted.sort]


async def _list(db: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    order = _order(db, wanted)
    rows: list[ScheduleRow] = []
    if wanted.after is None or wanted.after[0] is not None:
        rows = await _lately(db, wanted) or await _part(db, wanted, order, order.present, wanted.limit)
    left = None if wanted.limit is None else wanted.limit - len(rows)
    if order.absent is not None and left != 0:
        rows += await _part(db, wanted, _KEYLESS, order.absent, left)
    return rows


async def _lately(db: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    """A full page of those that ran last, or nothing: it is mostly among few runs, and no schedule must be asked."""
    if db.dialect == "sqlite" or wanted.sort is not ScheduleSort.LAST or not wanted.descending:
        return []
    if wanted.limit is None or _clauses(db, wanted)[0]:
        return []
    behind = "" if wanted.after is None else "AND id <= :key"
    join = f"""
        JOIN (SELECT schedule_id, id FROM runs WHERE schedule_id IS NOT NULL {behind}
              ORDER BY id DESC LIMIT {_LOOKED_AT * wanted.limit}) l ON l.schedule_id = s.id"""
    newest = "NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = l.schedule_id AND id > l.id)"
    rows = await _part(db, wanted, Order("l.id", join=join), newest, wanted.limit)
    return rows if len(rows) == wanted.limit else []


async def _part(
    db: Connection, wanted: ScheduleFilter, order: Order, condition: str | None, limit: int | None
) -> list[ScheduleRow]:
    """Those that have a key, or those that have none."""
    clauses, values = _clauses(db, wanted)
    if condition is not None:
        clauses.append(condition)
    direction, comparison = ("DESC", "<") if wanted.descending else ("ASC", ">")
    if wanted.after is not None and (wanted.after[0] is None) == (order is _KEYLESS):
        place = [":name" if column == "s.name" else ":key" for column in order.columns]
        clauses.append(f"({', '.join(order.columns)}) {comparison} ({', '.join(place)})")
        values["key"], values["name"] = wanted.after
    by = ", ".join(f"{column} {direction}" for column in order.columns)
    cut = f"LIMIT {int(limit)}" if limit is not None else ""
    source = f"schedules s {_hint(db, wanted)} {order.join}"
    found = f"SELECT s.id, {order.key} AS key FROM {source} {where(clauses)} ORDER BY {by} {cut}"
    query = f"""
        SELECT {_listed_columns("k.key")} FROM ({found}) k {_WITH_RUN[db.dialect]}
        ORDER BY k.key {direction}, s.name {direction}"""
    return load_all(_load_listed, await db.fetch(query, values))


async def _count(db: Connection, wanted: ScheduleFilter) -> int:
    clauses, values = _clauses(db, wanted)
    if wanted.state is ScheduleState.ON and len(clauses) == 1:
        # All but the few that are not: an index knows those.
        return (await _counts(db, wanted.unknown))[ScheduleState.ON]
    return int(await db.fetch_value(f"SELECT count(*) FROM schedules s {_hint(db, wanted)} {where(clauses)}", values))


async def count_states(db: Connection, unknown: Sequence[str]) -> dict[ScheduleState, int]:
    """How many are in which state."""
    async with db.snapshot():
        return await _counts(db, unknown)


async def _counts(db: Connection, unknown: Sequence[str]) -> dict[ScheduleState, int]:
    """Of those that are on, only the few are looked at that might not be."""
    hinted = db.dialect == "sqlite"
    apart = [f"SELECT s.id FROM schedules s {hint if hinted else ''} WHERE {condition}" for hint, condition in _APART]
    if unknown:
        apart.append(f"SELECT s.id FROM schedules s WHERE {_UNKNOWN}")
    query = f"""
        WITH apart (id) AS ({" UNION ".join(apart)})
        SELECT {_state_of(_UNKNOWN)}, count(*)
        FROM apart {"CROSS" if hinted else ""} JOIN schedules s ON s.id = apart.id GROUP BY 1"""
    total: int = await db.fetch_value("SELECT count(*) FROM schedules")
    return _with_on(await db.fetch(query, {"unknown": unknown}), total)


def _hint(db: Connection, wanted: ScheduleFilter) -> str:
    is_spread = wanted.state is ScheduleState.BROKEN and wanted.unknown
    if db.dialect == "postgres" or wanted.state is None or wanted.names or wanted.ids or is_spread:
        return ""
    return _HINTS.get(wanted.state, "")


def _clauses(db: Connection, wanted: ScheduleFilter) -> tuple[list[str], dict[str, Any]]:
    """What the schedules `s` of this filter have in common."""
    clauses, values = given(wanted, _CONDITIONS | _WITHOUT_PROJECT if wanted.project == NO_PROJECT else _CONDITIONS)
    values |= {"names": wanted.names, "ids": wanted.ids, "unknown": wanted.unknown}
    if wanted.names:
        clauses.append("s.name = ANY (:names::text[])")
    if wanted.ids:
        clauses.append("s.id = ANY (:ids::bigint[])")
    if wanted.search:
        matches, values["search"] = matching(db.dialect, wanted.search)
        clauses.append(f"({' OR '.join(matches.format(f's.{column}') for column in _SEARCHED)})")
    if wanted.enabled is not None:
        clauses.append("s.enabled = TRUE" if wanted.enabled else "s.enabled = FALSE")
    if wanted.state is not None:
        clauses.append(_STATES[wanted.state])
        if wanted.unknown and wanted.state in _BY_TASK:
            clauses[-1] = f"(({clauses[-1]}) {_BY_TASK[wanted.state]})"
    return clauses, values


async def recent_runs(db: Connection, ids: Sequence[ScheduleId], count: int) -> dict[ScheduleId, list[RecentRun]]:
    """The last runs of each, oldest first."""
    found: dict[ScheduleId, list[RecentRun]] = {id: [] for id in ids}
    if db.dialect == "postgres":
        for schedule_id, *run in await db.fetch(_RECENT_OF_EACH, {"ids": ids, "count": count}):
            found[ScheduleId(schedule_id)].append(_load_recent(run))
        return found
    async with db.snapshot():
        # One seek for each: a statement is prepared once.
        for id in ids:
            rows = await db.fetch(_RECENT_OF_ONE, {"id": id, "count": count})
            found[id] = [_load_recent(row) for row in reversed(rows)]
    return found


async def schedule_history(db: Connection, id: ScheduleId, since: Micros) -> list[StateCount]:
    """What became of its due times, by the quarter of an hour."""
    rows = await db.fetch(_HISTORY, {"id": id, "since": since})
    return [load_count(row) for row in rows]


async def scheduled_tasks(db: Connection) -> set[str]:
    """The tasks that schedules call."""
    return {task for (task,) in await db.fetch(_TASKS)}


def _listed_columns(key: str) -> str:
    """The SELECT list of what _load_listed takes: a schedule `s` with a key, and its last run `r`."""
    return f"{SCHEDULE_COLUMNS}, {key}, {_ACTIVE_RUNS}, {_QUEUED_RUNS}, {BRIEF_COLUMNS}"


def _load_listed(row: Sequence[Any]) -> ScheduleRow:
    """A schedule in a list, from _listed_columns."""
    key, active, queued = row[_RUN - 3 : _RUN]
    last_run = load_brief(row[_RUN:]) if row[_RUN] is not None else None
    schedule = load_schedule(row[: _RUN - 3], last_run, bool(active))
    return ScheduleRow(schedule, (key, schedule.name), active, queued)


def _load_recent(row: Sequence[Any]) -> RecentRun:
    """One of the last runs: its id, state, instant, seconds and cause."""
    id, state, at, seconds, cause = row
    return RecentRun(id, known_state(state), from_micros(at), seconds, known_cause(cause))


def _state_of(unknown: str) -> str:
    """The one state that a schedule `s` is counted in; `unknown` is true where nobody knows its task.

    While its last run is under way, one that ran as often as it should is still on.
    """
    return f"""
        CASE WHEN s.broken IS NOT NULL OR {unknown} THEN 'broken'
             WHEN s.orphaned THEN 'orphaned'
             WHEN {_FINISHED} THEN 'finished'
             WHEN NOT s.enabled AND s.remaining IS DISTINCT FROM 0 THEN 'off'
             WHEN s.paused_since IS NOT NULL THEN 'paused'
             ELSE 'on' END"""


def _with_on(apart: Iterable[Sequence[Any]], total: int) -> dict[ScheduleState, int]:
    """Every state with its count, from the counts of those that were looked at: all others are on, and so are those
    that are paused."""
    counts = dict.fromkeys(_COUNTED, 0) | {ScheduleState(state): count for state, count in apart}
    counts[ScheduleState.ON] = 0
    counts[ScheduleState.ON] = total - sum(counts.values()) + counts[ScheduleState.PAUSED]
    return counts
