"""One look at the ledger of SQLite for whoever watches: what is new, what was asked for, what runs, what changed.

Called by runs.py, inside a read; everything is of one state of the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ostinato.models.ids import ScheduleId
from ostinato.models.live import ChangedSchedule, Changes, Mark, ToldRun
from ostinato.stores.access_rows import AUDIT_COLUMNS, REMOVED_SCHEDULE, load_audit
from ostinato.stores.look_rows import CHANGED_COLUMNS, TOLD_COLUMNS, load_changed, load_told
from ostinato.stores.rows import EVENT_COLUMNS, load_all, load_event
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value, snapshot

__all__ = ["look"]

# The verb as a literal, or SQLite would not see that the index audit_removed holds all of these.
_REMOVED = f"SELECT {AUDIT_COLUMNS} FROM audit WHERE id > ? AND verb = '{REMOVED_SCHEDULE}' ORDER BY id LIMIT ?"
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?"
_CHANGED = f"""
SELECT {CHANGED_COLUMNS} FROM schedules s WHERE s.updated_at >= ?1 AND (s.updated_at, s.id) > (?1, ?2)
ORDER BY s.updated_at, s.id LIMIT ?3
"""
_ENDED = """
r.finished_at >= ? AND r.id <= ? AND r.id NOT IN (SELECT value FROM json_each(?)) ORDER BY r.finished_at DESC LIMIT ?
"""
# By the partial indexes of what is active, not among all that ever ended.
_ACTIVE = """
r.id IN (SELECT id FROM runs WHERE state = 'running'
         UNION ALL SELECT id FROM runs WHERE state = 'queued' AND waiting = 0
         UNION ALL SELECT id FROM runs WHERE session IS NOT NULL AND waiting = 1 AND state IN ('queued', 'running'))
ORDER BY r.id DESC LIMIT ?
"""
_BROKEN = "SELECT id, broken FROM schedules WHERE broken IS NOT NULL LIMIT ?"


def look(connection: Connection, mark: Mark, limit: int) -> Changes:
    """What happened behind a mark."""
    with snapshot(connection):
        return Changes(
            new=_runs(connection, "r.id > ? ORDER BY r.id LIMIT ?", (mark.run, limit)),
            seen=_seen(connection, mark),
            ended=_ended(connection, mark, limit),
            # By a sum, so that the order does not lead through the whole ledger instead of the index of what runs.
            running=_runs(connection, "r.state = 'running' ORDER BY r.id + 0 LIMIT ?", (limit,)),
            schedules=_changed(connection, mark, limit),
            events=load_all(load_event, fetch(connection, _EVENTS, (mark.event, limit))),
            audit=load_all(load_audit, fetch(connection, _REMOVED, (mark.audit, limit))),
            last_run=fetch_value(connection, "SELECT coalesce(max(id), 0) FROM runs"),
            active=_runs(connection, _ACTIVE, (mark.active,)) if mark.active else [],
            broken=_broken(connection, mark.active) if mark.active else {},
        )


def _seen(connection: Connection, mark: Mark) -> list[ToldRun]:
    if not mark.runs:
        return []
    return _runs(connection, "r.id IN (SELECT value FROM json_each(?)) ORDER BY r.id", (_json(mark.runs),))


def _ended(connection: Connection, mark: Mark, limit: int) -> list[ToldRun]:
    if mark.finished_at is None:
        return []
    values = (mark.finished_at, mark.run, _json([*mark.runs, *mark.told]), limit)
    return _runs(connection, _ENDED, values)[::-1]


def _changed(connection: Connection, mark: Mark, limit: int) -> list[ChangedSchedule]:
    return load_all(load_changed, fetch(connection, _CHANGED, (mark.changed_at, mark.changed_id, limit)))


def _broken(connection: Connection, most: int) -> dict[ScheduleId, str]:
    return {ScheduleId(id): broken for id, broken in fetch(connection, _BROKEN, (most,))}


def _runs(connection: Connection, condition: str, values: tuple[Any, ...]) -> list[ToldRun]:
    query = f"SELECT {TOLD_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE {condition}"
    return load_all(load_told, fetch(connection, query, values))


def _json(ids: Iterable[int]) -> str:
    return msgspec.json.encode(list(ids)).decode()
