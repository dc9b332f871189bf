"""Schedules as people list them: filters, pages by keyset, and the bars of what ran last.

Called by each store's schedules.py, inside a read. Neighbours: overview.py for runs, look.py for what changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import RecentRun, ScheduleFilter, ScheduleRow, ScheduleSort, ScheduleState
from ostinato.stores.base import Tally
from ostinato.stores.rows import known_state, load_all
from ostinato.stores.schedule_lists import (
    FINISHED,
    KEYLESS,
    ON,
    ORDERS,
    RUNLESS,
    SEARCHED,
    Order,
    listed_columns,
    load_listed,
    load_recent,
    state_of,
    with_on,
)
from ostinato.stores.searching import glob_of, regex_of
from ostinato.stores.sql.connection import Connection, Dialect

__all__ = ["count_states", "list_rows", "page_rows", "recent_runs", "schedule_history", "scheduled_tasks"]

QUARTER: Micros = 900 * SECOND
_LOOKED_AT = 10
"""So many runs for each schedule of a page, before PostgreSQL asks every schedule for its last one."""

_NEWEST = "(SELECT max(id) FROM runs WHERE schedule_id = s.id)"
_LAST = "(SELECT {} FROM runs WHERE schedule_id = s.id ORDER BY id DESC LIMIT 1)"
_WITH_RUN: dict[Dialect, str] = {
    "sqlite": f"CROSS JOIN schedules s ON s.id = k.id LEFT JOIN runs r ON r.id = {_NEWEST}",
    "postgres": f"JOIN schedules s ON s.id = k.id LEFT JOIN LATERAL {_LAST.format('*')} r ON true",
}
_BY_LAST: dict[Dialect, Order] = {
    "sqlite": Order("l.id", join=f"CROSS JOIN runs l ON l.id = {_NEWEST}", absent=RUNLESS),
    "postgres": Order("l.id", join=f"CROSS JOIN LATERAL {_LAST.format('id')} l", absent=RUNLESS),
}
# Word for word what the index schedules_aside holds, in parts or whole.
_ASIDE = "s.enabled = FALSE OR s.broken IS NOT NULL OR s.orphaned = TRUE"
_STATES = {
    ScheduleState.ON: ON,
    ScheduleState.OFF: (
        "s.enabled = FALSE AND s.broken IS NULL AND s.orphaned = FALSE AND s.remaining IS DISTINCT FROM 0"
    ),
    ScheduleState.BROKEN: "s.broken IS NOT NULL",
    ScheduleState.RUNNING: (
        "s.id IN (SELECT schedule_id FROM runs WHERE schedule_id IS NOT NULL AND state IN ('queued', 'running'))"
    ),
    ScheduleState.PAUSED: f"s.held_since IS NOT NULL AND {ON}",
    ScheduleState.FINISHED: FINISHED,
    ScheduleState.ORPHANED: "s.orphaned = TRUE",
}
_UNKNOWN = "(s.task IS NOT NULL AND s.task = ANY (:unknown::text[]))"
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
    ("INDEXED BY schedules_held", "s.held_since IS NOT NULL"),
)
"""Whatever is not on is among these, or has a task that nobody knows."""
_RECENT_OF_EACH = f"""
SELECT k.id, r.* FROM unnest(:ids::bigint[]) k (id) CROSS JOIN LATERAL (
    SELECT id, state, coalesce(finished_at, due_at), (finished_at - started_at) / {SECOND}::float8
    FROM runs WHERE schedule_id = k.id ORDER BY id DESC LIMIT :count
) r ORDER BY r.id
"""
_RECENT_OF_ONE = f"""
SELECT id, state, coalesce(finished_at, due_at), (finished_at - started_at) / {float(SECOND)}
FROM runs WHERE schedule_id = :id ORDER BY id DESC LIMIT :count
"""
_HISTORY = f"""
SELECT due_at / {QUARTER} * {QUARTER}, state, count(*), coalesce(sum(finished_at - started_at), 0)::bigint
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
    return _BY_LAST[db.dialect] if wanted.sort is ScheduleSort.LAST else ORDERS[wanted.sort]


async def _list(db: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    order = _order(db, wanted)
    rows: list[ScheduleRow] = []
    if wanted.after is None or wanted.after[0] is not None:
        rows = await _lately(db, wanted) or await _part(db, wanted, order, order.present, wanted.limit)
    left = None if wanted.limit is None else wanted.limit - len(rows)
    if order.absent is not None and left != 0:
        rows += await _part(db, wanted, KEYLESS, order.absent, left)
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
    if wanted.after is not None and (wanted.after[0] is None) == (order is KEYLESS):
        given = [":name" if column == "s.name" else ":key" for column in order.columns]
        clauses.append(f"({', '.join(order.columns)}) {comparison} ({', '.join(given)})")
        values["key"], values["name"] = wanted.after
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    by = ", ".join(f"{column} {direction}" for column in order.columns)
    cut = f"LIMIT {int(limit)}" if limit is not None else ""
    source = f"schedules s {_hint(db, wanted)} {order.join}"
    found = f"SELECT s.id, {order.key} AS key FROM {source} {where} ORDER BY {by} {cut}"
    query = f"""
        SELECT {listed_columns("k.key")} FROM ({found}) k {_WITH_RUN[db.dialect]}
        ORDER BY k.key {direction}, s.name {direction}"""
    return load_all(load_listed, await db.fetch(query, values))


async def _count(db: Connection, wanted: ScheduleFilter) -> int:
    clauses, values = _clauses(db, wanted)
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    if wanted.state is ScheduleState.ON and len(clauses) == 1:
        # All but the few that are not: an index knows those.
        return (await _counts(db, wanted.unknown))[ScheduleState.ON]
    return int(await db.fetch_value(f"SELECT count(*) FROM schedules s {_hint(db, wanted)} {where}", values))


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
        SELECT {state_of(_UNKNOWN)}, count(*)
        FROM apart {"CROSS" if hinted else ""} JOIN schedules s ON s.id = apart.id GROUP BY 1"""
    total: int = await db.fetch_value("SELECT count(*) FROM schedules")
    return with_on(await db.fetch(query, {"unknown": unknown}), total)


def _hint(db: Connection, wanted: ScheduleFilter) -> str:
    is_spread = wanted.state is ScheduleState.BROKEN and wanted.unknown
    if db.dialect == "postgres" or wanted.state is None or wanted.names or wanted.ids or is_spread:
        return ""
    return _HINTS.get(wanted.state, "")


def _clauses(db: Connection, wanted: ScheduleFilter) -> tuple[list[str], dict[str, Any]]:
    """What the schedules `s` of this filter have in common."""
    clauses: list[str] = []
    values: dict[str, Any] = {"names": wanted.names, "ids": wanted.ids, "unknown": wanted.unknown}
    if wanted.names:
        clauses.append("s.name = ANY (:names::text[])")
    if wanted.ids:
        clauses.append("s.id = ANY (:ids::bigint[])")
    if wanted.search:
        matches, values["search"] = _matching(db.dialect, wanted.search)
        clauses.append(f"({' OR '.join(matches.format(f's.{column}') for column in SEARCHED)})")
    if wanted.owner is not None:
        clauses.append("s.owner = :owner")
        values["owner"] = wanted.owner
    if wanted.project is not None:
        clauses.append("s.project = :project")
        values["project"] = wanted.project
    if wanted.enabled is not None:
        clauses.append("s.enabled = TRUE" if wanted.enabled else "s.enabled = FALSE")
    if wanted.state is not None:
        clauses.append(_STATES[wanted.state])
        if wanted.unknown and wanted.state in _BY_TASK:
            clauses[-1] = f"(({clauses[-1]}) {_BY_TASK[wanted.state]})"
    return clauses, values


def _matching(dialect: Dialect, search: str) -> tuple[str, str]:
    """How a column is looked through, and for what: plainly if that is enough, which is four times as fast."""
    if dialect == "sqlite":
        return "{} GLOB :search", glob_of(search)
    if search.isascii():
        return 'strpos(lower({} COLLATE "C"), :search) > 0', search.lower()
    return "{} ~ :search", regex_of(search)


async def recent_runs(db: Connection, ids: Sequence[ScheduleId], count: int) -> dict[ScheduleId, list[RecentRun]]:
    """The last runs of each, oldest first."""
    found: dict[ScheduleId, list[RecentRun]] = {id: [] for id in ids}
    if db.dialect == "postgres":
        for schedule_id, *run in await db.fetch(_RECENT_OF_EACH, {"ids": ids, "count": count}):
            found[ScheduleId(schedule_id)].append(load_recent(run))
        return found
    async with db.snapshot():
        # One seek for each: a statement is prepared once.
        for id in ids:
            rows = await db.fetch(_RECENT_OF_ONE, {"id": id, "count": count})
            found[id] = [load_recent(row) for row in reversed(rows)]
    return found


async def schedule_history(db: Connection, id: ScheduleId, since: Micros) -> list[Tally]:
    """What became of its due times, by the quarter of an hour."""
    rows = await db.fetch(_HISTORY, {"id": id, "since": since})
    return [Tally(at, known_state(state), number, micros / SECOND) for at, state, number, micros in rows]


async def scheduled_tasks(db: Connection) -> set[str]:
    """The tasks that schedules call."""
    return {task for (task,) in await db.fetch(_TASKS)}
