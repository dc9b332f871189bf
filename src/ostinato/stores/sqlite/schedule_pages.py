"""Schedules as people list them, in SQLite: filters, pages by keyset, and the bars of what ran last.

Called by schedules.py, inside a read. Neighbours: overview.py for runs, look.py for what changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import apsw
import msgspec

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
from ostinato.stores.searching import glob_of
from ostinato.stores.sqlite.query import fetch, fetch_value, snapshot

__all__ = [
    "count_states",
    "list_rows",
    "page_rows",
    "recent_runs",
    "schedule_history",
    "scheduled_tasks",
]

QUARTER: Micros = 900 * SECOND

_LAST = "(SELECT max(id) FROM runs WHERE schedule_id = s.id)"
# Word for word what the index schedules_aside holds, in parts or whole.
_ASIDE = "s.enabled = 0 OR s.broken IS NOT NULL OR s.orphaned = 1"
_STATES = {
    ScheduleState.ON: ON,
    ScheduleState.OFF: "s.enabled = 0 AND s.broken IS NULL AND s.orphaned = 0 AND s.remaining IS NOT 0",
    ScheduleState.BROKEN: "s.broken IS NOT NULL",
    ScheduleState.RUNNING: (
        "s.id IN (SELECT schedule_id FROM runs WHERE schedule_id IS NOT NULL AND state IN ('queued', 'running'))"
    ),
    ScheduleState.PAUSED: f"s.held_since IS NOT NULL AND {ON}",
    ScheduleState.FINISHED: FINISHED,
    ScheduleState.ORPHANED: "s.orphaned = 1",
}
_UNKNOWN = "(s.task IS NOT NULL AND s.task IN (SELECT value FROM json_each(:unknown)))"
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
_ORDERS = ORDERS | {ScheduleSort.LAST: Order("l.id", join=f"CROSS JOIN runs l ON l.id = {_LAST}", absent=RUNLESS)}


def page_rows(connection: apsw.Connection, wanted: ScheduleFilter) -> tuple[list[ScheduleRow], int]:
    """A page, and how many the whole list has."""
    with snapshot(connection):
        if not wanted.search:
            return list_rows(connection, wanted), _count(connection, wanted)
        # To search is the dearest of it: each row is looked at once, for the page and for the count.
        clauses, values = _clauses(wanted)
        rows = fetch(connection, f"SELECT s.id FROM schedules s WHERE {' AND '.join(clauses)}", values)
        found = tuple(ScheduleId(id) for (id,) in rows)
        return list_rows(connection, replace(wanted, search=None, ids=found)) if found else [], len(found)


def list_rows(connection: apsw.Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    """The rows of a page, or of the whole list."""
    order = _ORDERS[wanted.sort]
    rows: list[ScheduleRow] = []
    with snapshot(connection):
        if wanted.after is None or wanted.after[0] is not None:
            rows = _part(connection, wanted, order, order.present, wanted.limit)
        left = None if wanted.limit is None else wanted.limit - len(rows)
        if order.absent is not None and left != 0:
            rows += _part(connection, wanted, KEYLESS, order.absent, left)
    return rows


def _part(
    connection: apsw.Connection, wanted: ScheduleFilter, order: Order, condition: str | None, limit: int | None
) -> list[ScheduleRow]:
    """Those that have a key, or those that have none."""
    clauses, values = _clauses(wanted)
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
    source = f"schedules s {_hint(wanted)} {order.join}"
    found = f"SELECT s.id, {order.key} AS key FROM {source} {where} ORDER BY {by} {cut}"
    query = f"""
        SELECT {listed_columns("k.key")} FROM ({found}) k
        CROSS JOIN schedules s ON s.id = k.id LEFT JOIN runs r ON r.id = {_LAST}
        ORDER BY k.key {direction}, s.name {direction}"""
    return load_all(load_listed, fetch(connection, query, values))


def _count(connection: apsw.Connection, wanted: ScheduleFilter) -> int:
    clauses, values = _clauses(wanted)
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    if wanted.state is ScheduleState.ON and len(clauses) == 1:
        # All but the few that are not: an index knows those.
        return count_states(connection, wanted.unknown)[ScheduleState.ON]
    return int(fetch_value(connection, f"SELECT count(*) FROM schedules s {_hint(wanted)} {where}", values))


def count_states(connection: apsw.Connection, unknown: Sequence[str]) -> dict[ScheduleState, int]:
    """How many are in which state; of those that are on, only the few are looked at that might not be."""
    apart = [f"SELECT s.id FROM schedules s {hint} WHERE {condition}" for hint, condition in _APART]
    if unknown:
        apart.append(f"SELECT s.id FROM schedules s WHERE {_UNKNOWN}")
    query = f"""
        WITH apart (id) AS ({" UNION ".join(apart)})
        SELECT {state_of(_UNKNOWN)}, count(*)
        FROM apart CROSS JOIN schedules s ON s.id = apart.id GROUP BY 1"""
    with snapshot(connection):
        total: int = fetch_value(connection, "SELECT count(*) FROM schedules")
        apart_by_state = fetch(connection, query, {"unknown": msgspec.json.encode(unknown).decode()})
        return with_on(apart_by_state, total)


def _hint(wanted: ScheduleFilter) -> str:
    is_spread = wanted.state is ScheduleState.BROKEN and wanted.unknown
    if wanted.state is None or wanted.names or wanted.ids or is_spread:
        return ""
    return _HINTS.get(wanted.state, "")


def _clauses(wanted: ScheduleFilter) -> tuple[list[str], dict[str, Any]]:
    """What the schedules `s` of this filter have in common."""
    clauses: list[str] = []
    values: dict[str, Any] = {}
    if wanted.names:
        clauses.append("s.name IN (SELECT value FROM json_each(:names))")
        values["names"] = msgspec.json.encode(wanted.names).decode()
    if wanted.ids:
        clauses.append("s.id IN (SELECT value FROM json_each(:ids))")
        values["ids"] = msgspec.json.encode(wanted.ids).decode()
    if wanted.search:
        clauses.append(f"({' OR '.join(f's.{column} GLOB :search' for column in SEARCHED)})")
        values["search"] = glob_of(wanted.search)
    if wanted.owner is not None:
        clauses.append("s.owner = :owner")
        values["owner"] = wanted.owner
    if wanted.project is not None:
        clauses.append("s.project = :project")
        values["project"] = wanted.project
    if wanted.enabled is not None:
        clauses.append(f"s.enabled = {int(wanted.enabled)}")
    if wanted.state is not None:
        clauses.append(_STATES[wanted.state])
        if wanted.unknown and wanted.state in _BY_TASK:
            clauses[-1] = f"(({clauses[-1]}) {_BY_TASK[wanted.state]})"
            values["unknown"] = msgspec.json.encode(wanted.unknown).decode()
    return clauses, values


def recent_runs(
    connection: apsw.Connection, ids: Sequence[ScheduleId], count: int
) -> dict[ScheduleId, list[RecentRun]]:
    """The last runs of each, oldest first."""
    query = f"""
        SELECT id, state, coalesce(finished_at, due_at), (finished_at - started_at) / {float(SECOND)}
        FROM runs WHERE schedule_id = ? ORDER BY id DESC LIMIT ?"""
    with snapshot(connection):
        # One seek for each: a statement is prepared once.
        return {id: [load_recent(row) for row in reversed(fetch(connection, query, (id, count)))] for id in ids}


def schedule_history(connection: apsw.Connection, id: ScheduleId, since: Micros) -> list[Tally]:
    """What became of its due times, by the quarter of an hour."""
    query = f"""
        SELECT due_at / {QUARTER} * {QUARTER}, state, count(*), coalesce(sum(finished_at - started_at), 0)
        FROM runs WHERE schedule_id = ? AND due_at >= ? AND finished_at IS NOT NULL
        GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = fetch(connection, query, (id, since))
    return [Tally(at, known_state(state), number, micros / SECOND) for at, state, number, micros in rows]


def scheduled_tasks(connection: apsw.Connection) -> set[str]:
    """From one task to the next by the index: counting them would go over all schedules."""
    query = """
        WITH RECURSIVE t (task) AS (
            SELECT min(task) FROM schedules WHERE task IS NOT NULL
            UNION ALL
            SELECT (SELECT min(s.task) FROM schedules s WHERE s.task > t.task) FROM t WHERE t.task IS NOT NULL
        ) SELECT task FROM t WHERE task IS NOT NULL"""
    return {task for (task,) in fetch(connection, query)}
