"""Schedules as people list them, in PostgreSQL: filters, pages by keyset, and the bars of what ran last.

Called by schedules.py, inside a read. Neighbours: overview.py for runs, look.py for what changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import RecentRun, ScheduleFilter, ScheduleRow, ScheduleSort, ScheduleState
from ostinato.stores.base import Tally
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers, readable, snapshot, texts
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
from ostinato.stores.searching import regex_of

__all__ = [
    "count_states",
    "list_rows",
    "page_rows",
    "recent_runs",
    "schedule_history",
    "scheduled_tasks",
]

QUARTER: Micros = 900 * SECOND
_LOOKED_AT = 10
"""So many runs for each schedule of a page, before every schedule is asked for its last one."""

_LAST = "(SELECT {columns} FROM runs WHERE schedule_id = s.id ORDER BY id DESC LIMIT 1)"
# Word for word what the index schedules_aside holds, in parts or whole.
_ASIDE = "NOT s.enabled OR s.broken IS NOT NULL OR s.orphaned"
_STATES = {
    ScheduleState.ON: ON,
    ScheduleState.OFF: "NOT s.enabled AND s.broken IS NULL AND NOT s.orphaned AND s.remaining IS DISTINCT FROM 0",
    ScheduleState.BROKEN: "s.broken IS NOT NULL",
    ScheduleState.RUNNING: (
        "s.id IN (SELECT schedule_id FROM runs WHERE schedule_id IS NOT NULL AND state IN ('queued', 'running'))"
    ),
    ScheduleState.PAUSED: f"s.held_since IS NOT NULL AND {ON}",
    ScheduleState.FINISHED: FINISHED,
    ScheduleState.ORPHANED: "s.orphaned",
}

_UNKNOWN = "(s.task IS NOT NULL AND s.task = ANY (%(unknown)s::text[]))"
_BY_TASK = {ScheduleState.BROKEN: f"OR {_UNKNOWN}"} | dict.fromkeys(
    (ScheduleState.ON, ScheduleState.OFF, ScheduleState.PAUSED, ScheduleState.FINISHED), f"AND NOT {_UNKNOWN}"
)
"""What more holds where some tasks are known to nobody."""
_BY_LAST = Order("l.id", join=f"CROSS JOIN LATERAL {_LAST.format(columns='id')} l", absent=RUNLESS)
_APART = (_ASIDE, "s.next_at IS NULL", "s.held_since IS NOT NULL", _UNKNOWN)
"""Whatever is not on is among these."""
_ORDERS = ORDERS | {ScheduleSort.LAST: _BY_LAST}


async def page_rows(connection: Connection, wanted: ScheduleFilter) -> tuple[list[ScheduleRow], int]:
    """A page, and how many the whole list has."""
    async with snapshot(connection):
        return await _list(connection, wanted), await _count(connection, wanted)


async def list_rows(connection: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    """The rows of a page, or of the whole list."""
    if _ORDERS[wanted.sort].absent is None:
        # One query, which needs no transaction around it.
        return await _list(connection, wanted)
    async with snapshot(connection):
        return await _list(connection, wanted)


async def _list(connection: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    order = _ORDERS[wanted.sort]
    rows: list[ScheduleRow] = []
    if wanted.after is None or wanted.after[0] is not None:
        rows = await _lately(connection, wanted) or await _part(connection, wanted, order, order.present, wanted.limit)
    left = None if wanted.limit is None else wanted.limit - len(rows)
    if order.absent is not None and left != 0:
        rows += await _part(connection, wanted, KEYLESS, order.absent, left)
    return rows


async def _lately(connection: Connection, wanted: ScheduleFilter) -> list[ScheduleRow]:
    """A full page of those that ran last, or nothing: it is mostly among few runs, and no schedule must be asked."""
    if wanted.sort is not ScheduleSort.LAST or not wanted.descending or wanted.limit is None or _clauses(wanted)[0]:
        return []
    behind = "" if wanted.after is None else "AND id <= %(key)s"
    join = f"""
        JOIN (SELECT schedule_id, id FROM runs WHERE schedule_id IS NOT NULL {behind}
              ORDER BY id DESC LIMIT {_LOOKED_AT * wanted.limit}) l ON l.schedule_id = s.id"""
    newest = "NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = l.schedule_id AND id > l.id)"
    rows = await _part(connection, wanted, Order("l.id", join=join), newest, wanted.limit)
    return rows if len(rows) == wanted.limit else []


async def _part(
    connection: Connection, wanted: ScheduleFilter, order: Order, condition: str | None, limit: int | None
) -> list[ScheduleRow]:
    """Those that have a key, or those that have none."""
    clauses, values = _clauses(wanted)
    if condition is not None:
        clauses.append(condition)
    direction, comparison = ("DESC", "<") if wanted.descending else ("ASC", ">")
    if wanted.after is not None and (wanted.after[0] is None) == (order is KEYLESS):
        given = ["%(name)s" if column == "s.name" else "%(key)s" for column in order.columns]
        clauses.append(f"({', '.join(order.columns)}) {comparison} ({', '.join(given)})")
        values["key"], values["name"] = wanted.after
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    by = ", ".join(f"{column} {direction}" for column in order.columns)
    cut = f"LIMIT {int(limit)}" if limit is not None else ""
    found = f"SELECT s.id, {order.key} AS key FROM schedules s {order.join} {where} ORDER BY {by} {cut}"
    query = f"""
        SELECT {listed_columns("k.key")} FROM ({found}) k
        JOIN schedules s ON s.id = k.id LEFT JOIN LATERAL {_LAST.format(columns="*")} r ON true
        ORDER BY k.key {direction}, s.name {direction}"""
    return load_all(load_listed, await fetch(connection, query, values))


async def _count(connection: Connection, wanted: ScheduleFilter) -> int:
    clauses, values = _clauses(wanted)
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    if wanted.state is ScheduleState.ON and len(clauses) == 1:
        # All but the few that are not: an index knows those.
        return (await _counts(connection, wanted.unknown))[ScheduleState.ON]
    return int(await fetch_value(connection, f"SELECT count(*) FROM schedules s {where}", values))


async def count_states(connection: Connection, unknown: Sequence[str]) -> dict[ScheduleState, int]:
    """How many are in which state."""
    async with snapshot(connection):
        return await _counts(connection, unknown)


async def _counts(connection: Connection, unknown: Sequence[str]) -> dict[ScheduleState, int]:
    """Of those that are on, only the few are looked at that might not be."""
    apart = " UNION ".join(f"SELECT s.id FROM schedules s WHERE {condition}" for condition in _APART)
    query = f"""
        WITH apart (id) AS ({apart})
        SELECT {state_of(_UNKNOWN)}, count(*) FROM apart JOIN schedules s ON s.id = apart.id GROUP BY 1"""
    total: int = await fetch_value(connection, "SELECT count(*) FROM schedules")
    return with_on(await fetch(connection, query, {"unknown": texts(unknown)}), total)


def _clauses(wanted: ScheduleFilter) -> tuple[list[str], dict[str, Any]]:
    """What the schedules `s` of this filter have in common."""
    clauses: list[str] = []
    values: dict[str, Any] = {}
    if wanted.names:
        clauses.append("s.name = ANY (%(names)s::text[])")
        values["names"] = texts(wanted.names)
    if wanted.ids:
        clauses.append("s.id = ANY (%(ids)s::bigint[])")
        values["ids"] = numbers(wanted.ids)
    if wanted.search:
        matches, values["search"] = _matching(readable(wanted.search))
        clauses.append(f"({' OR '.join(matches.format(column=column) for column in SEARCHED)})")
    if wanted.owner is not None:
        clauses.append("s.owner = %(owner)s")
        values["owner"] = readable(wanted.owner)
    if wanted.project is not None:
        clauses.append("s.project = %(project)s")
        values["project"] = readable(wanted.project)
    if wanted.enabled is not None:
        clauses.append("s.enabled" if wanted.enabled else "NOT s.enabled")
    if wanted.state is not None:
        clauses.append(_STATES[wanted.state])
        if wanted.unknown and wanted.state in _BY_TASK:
            clauses[-1] = f"(({clauses[-1]}) {_BY_TASK[wanted.state]})"
            values["unknown"] = texts(wanted.unknown)
    return clauses, values


def _matching(search: str) -> tuple[str, str]:
    """How a column is looked through, and for what: plainly if that is enough, which is four times as fast."""
    if search.isascii():
        return """strpos(lower(s.{column} COLLATE "C"), %(search)s) > 0""", search.lower()
    return "s.{column} ~ %(search)s", regex_of(search)


async def recent_runs(
    connection: Connection, ids: Sequence[ScheduleId], count: int
) -> dict[ScheduleId, list[RecentRun]]:
    """The last runs of each, oldest first."""
    query = f"""
        SELECT k.id, r.* FROM unnest(%s::bigint[]) k (id) CROSS JOIN LATERAL (
            SELECT id, state, coalesce(finished_at, due_at), (finished_at - started_at) / {SECOND}::float8
            FROM runs WHERE schedule_id = k.id ORDER BY id DESC LIMIT %s
        ) r ORDER BY r.id"""
    found: dict[ScheduleId, list[RecentRun]] = {id: [] for id in ids}
    for schedule_id, *run in await fetch(connection, query, (numbers(ids), count)):
        found[ScheduleId(schedule_id)].append(load_recent(run))
    return found


async def schedule_history(connection: Connection, id: ScheduleId, since: Micros) -> list[Tally]:
    """What became of its due times, by the quarter of an hour."""
    query = f"""
        SELECT due_at / {QUARTER} * {QUARTER}, state, count(*), coalesce(sum(finished_at - started_at), 0)::bigint
        FROM runs WHERE schedule_id = %s AND due_at >= %s AND finished_at IS NOT NULL
        GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = await fetch(connection, query, (id, since))
    return [Tally(at, known_state(state), number, micros / SECOND) for at, state, number, micros in rows]


async def scheduled_tasks(connection: Connection) -> set[str]:
    """From one task to the next by the index: counting them would go over all schedules."""
    query = """
        WITH RECURSIVE t (task) AS (
            SELECT min(task) FROM schedules WHERE task IS NOT NULL
            UNION ALL
            SELECT (SELECT min(s.task) FROM schedules s WHERE s.task > t.task) FROM t WHERE t.task IS NOT NULL
        ) SELECT task FROM t WHERE task IS NOT NULL"""
    return {task for (task,) in await fetch(connection, query)}
