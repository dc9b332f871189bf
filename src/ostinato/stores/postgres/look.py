"""One look at the ledger of PostgreSQL for whoever watches: what is new, what was asked for, what runs, what changed.

Called by runs.py, inside a read; everything is of one state of the database.
"""

from __future__ import annotations

from typing import Any

from ostinato.models.live import Changes, Mark, ToldRun
from ostinato.stores.access_rows import AUDIT_COLUMNS, REMOVED_SCHEDULE, load_audit
from ostinato.stores.look_rows import CHANGED_COLUMNS, TOLD_COLUMNS, load_changed, load_told
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers, snapshot
from ostinato.stores.rows import EVENT_COLUMNS, load_all, load_event

__all__ = ["look"]

# The verb as a literal: a prepared query does not know that the index audit_removed holds all of these.
_REMOVED = f"SELECT {AUDIT_COLUMNS} FROM audit WHERE id > %s AND verb = '{REMOVED_SCHEDULE}' ORDER BY id LIMIT %s"
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE id > %s ORDER BY id LIMIT %s"
_CHANGED = f"""
SELECT {CHANGED_COLUMNS} FROM schedules s WHERE s.updated_at >= %s ORDER BY s.updated_at, s.id LIMIT %s
"""
_ENDED = """
r.finished_at >= %s AND r.id <= %s AND r.id NOT IN (SELECT unnest(%s::bigint[])) ORDER BY r.finished_at DESC LIMIT %s
"""


async def look(connection: Connection, mark: Mark, limit: int) -> Changes:
    """What happened behind a mark."""
    async with snapshot(connection):
        return Changes(
            new=await _runs(connection, "r.id > %s ORDER BY r.id LIMIT %s", (mark.run, limit)),
            seen=await _seen(connection, mark),
            ended=await _ended(connection, mark, limit),
            # By a sum, so that the order does not lead through the whole ledger instead of the index of what runs.
            running=await _runs(connection, "r.state = 'running' ORDER BY r.id + 0 LIMIT %s", (limit,)),
            schedules=load_all(load_changed, await fetch(connection, _CHANGED, (mark.changed_at, limit))),
            events=load_all(load_event, await fetch(connection, _EVENTS, (mark.event, limit))),
            audit=load_all(load_audit, await fetch(connection, _REMOVED, (mark.audit, limit))),
            last_run=await fetch_value(connection, "SELECT coalesce(max(id), 0) FROM runs"),
        )


async def _seen(connection: Connection, mark: Mark) -> list[ToldRun]:
    if not mark.runs:
        return []
    return await _runs(connection, "r.id = ANY (%s::bigint[]) ORDER BY r.id", (numbers(mark.runs),))


async def _ended(connection: Connection, mark: Mark, limit: int) -> list[ToldRun]:
    values = (mark.finished_at, mark.run, numbers([*mark.runs, *mark.told]), limit)
    return (await _runs(connection, _ENDED, values))[::-1]


async def _runs(connection: Connection, condition: str, values: tuple[Any, ...]) -> list[ToldRun]:
    query = f"SELECT {TOLD_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE {condition}"
    return load_all(load_told, await fetch(connection, query, values))
