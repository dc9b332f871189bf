"""One look at the ledger of PostgreSQL for whoever watches: what is new, what was asked for, what runs, what changed.

Called by runs.py, inside a read; everything is of one state of the database.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ostinato.models.ids import ScheduleId
from ostinato.models.live import ChangedSchedule, Changes, Mark, ToldRun
from ostinato.stores.access_rows import AUDIT_COLUMNS, REMOVED_SCHEDULE, load_audit
from ostinato.stores.look_rows import CHANGED_COLUMNS, TOLD_COLUMNS, load_changed, load_told
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers, snapshot
from ostinato.stores.rows import EVENT_COLUMNS, load_all, load_event

__all__ = ["look"]

AT_ONCE = 200
"""Rows between two breaths: thousands of them would hold up the engine's loop."""

# The verb as a literal: a prepared query does not know that the index audit_removed holds all of these.
_REMOVED = f"SELECT {AUDIT_COLUMNS} FROM audit WHERE id > %s AND verb = '{REMOVED_SCHEDULE}' ORDER BY id LIMIT %s"
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE id > %s ORDER BY id LIMIT %s"
_CHANGED = f"""
SELECT {CHANGED_COLUMNS} FROM schedules s WHERE s.updated_at >= %s AND (s.updated_at, s.id) > (%s, %s)
ORDER BY s.updated_at, s.id LIMIT %s
"""
_ENDED = """
r.finished_at >= %s AND r.id <= %s AND r.id NOT IN (SELECT unnest(%s::bigint[])) ORDER BY r.finished_at DESC LIMIT %s
"""
# By the partial indexes of what is active, not among all that ever ended.
_ACTIVE = """
r.id IN (SELECT id FROM runs WHERE state = 'running'
         UNION ALL SELECT id FROM runs WHERE state = 'queued' AND NOT waiting
         UNION ALL SELECT id FROM runs WHERE state = 'queued' AND waiting)
ORDER BY r.id DESC LIMIT %s
"""
_BROKEN = "SELECT id, broken FROM schedules WHERE broken IS NOT NULL LIMIT %s"


async def look(connection: Connection, mark: Mark, limit: int) -> Changes:
    """What happened behind a mark."""
    async with snapshot(connection):
        return Changes(
            new=await _runs(connection, "r.id > %s ORDER BY r.id LIMIT %s", (mark.run, limit)),
            seen=await _seen(connection, mark),
            ended=await _ended(connection, mark, limit),
            # By a sum, so that the order does not lead through the whole ledger instead of the index of what runs.
            running=await _runs(connection, "r.state = 'running' ORDER BY r.id + 0 LIMIT %s", (limit,)),
            schedules=await _changed(connection, mark, limit),
            events=load_all(load_event, await fetch(connection, _EVENTS, (mark.event, limit))),
            audit=load_all(load_audit, await fetch(connection, _REMOVED, (mark.audit, limit))),
            last_run=await fetch_value(connection, "SELECT coalesce(max(id), 0) FROM runs"),
            active=await _runs(connection, _ACTIVE, (mark.active,)) if mark.active else [],
            broken=await _broken(connection, mark.active) if mark.active else {},
        )


async def _seen(connection: Connection, mark: Mark) -> list[ToldRun]:
    if not mark.runs:
        return []
    return await _runs(connection, "r.id = ANY (%s::bigint[]) ORDER BY r.id", (numbers(mark.runs),))


async def _ended(connection: Connection, mark: Mark, limit: int) -> list[ToldRun]:
    if mark.finished_at is None:
        return []
    values = (mark.finished_at, mark.run, numbers([*mark.runs, *mark.told]), limit)
    return (await _runs(connection, _ENDED, values))[::-1]


async def _changed(connection: Connection, mark: Mark, limit: int) -> list[ChangedSchedule]:
    values = (mark.changed_at, mark.changed_at, mark.changed_id, limit)
    return load_all(load_changed, await fetch(connection, _CHANGED, values))


async def _broken(connection: Connection, most: int) -> dict[ScheduleId, str]:
    return {ScheduleId(id): broken for id, broken in await fetch(connection, _BROKEN, (most,))}


async def _runs(connection: Connection, condition: str, values: tuple[Any, ...]) -> list[ToldRun]:
    query = f"SELECT {TOLD_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE {condition}"
    cursor = await connection.execute(query, values)
    runs: list[ToldRun] = []
    while len(rows := await cursor.fetchmany(AT_ONCE)) == AT_ONCE:
        runs += load_all(load_told, rows)
        await asyncio.sleep(0)
    return [*runs, *load_all(load_told, rows)]
