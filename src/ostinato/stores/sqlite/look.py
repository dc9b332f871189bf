"""One look at the ledger of SQLite for whoever watches: what is new, what was asked for, what runs, what changed.

Called by runs.py, inside a read; everything is of one state of the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from ostinato.models.live import Changes, Mark, ToldRun
from ostinato.stores.access_rows import AUDIT_COLUMNS, REMOVED_SCHEDULE, load_audit
from ostinato.stores.look_rows import CHANGED_COLUMNS, TOLD_COLUMNS, load_changed, load_told
from ostinato.stores.rows import EVENT_COLUMNS, load_all, load_event
from ostinato.stores.sqlite.query import fetch, fetch_value, snapshot

__all__ = ["look"]

# The verb as a literal, or SQLite would not see that the index audit_removed holds all of these.
_REMOVED = f"SELECT {AUDIT_COLUMNS} FROM audit WHERE id > ? AND verb = '{REMOVED_SCHEDULE}' ORDER BY id LIMIT ?"
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?"
_CHANGED = f"""
SELECT {CHANGED_COLUMNS} FROM schedules s WHERE s.updated_at >= ? ORDER BY s.updated_at, s.id LIMIT ?
"""
_ENDED = """
r.finished_at >= ? AND r.id <= ? AND r.id NOT IN (SELECT value FROM json_each(?)) ORDER BY r.finished_at DESC LIMIT ?
"""


def look(connection: apsw.Connection, mark: Mark, limit: int) -> Changes:
    """What happened behind a mark."""
    with snapshot(connection):
        return Changes(
            new=_runs(connection, "r.id > ? ORDER BY r.id LIMIT ?", (mark.run, limit)),
            seen=_seen(connection, mark),
            ended=_ended(connection, mark, limit),
            # By a sum, so that the order does not lead through the whole ledger instead of the index of what runs.
            running=_runs(connection, "r.state = 'running' ORDER BY r.id + 0 LIMIT ?", (limit,)),
            schedules=load_all(load_changed, fetch(connection, _CHANGED, (mark.changed_at, limit))),
            events=load_all(load_event, fetch(connection, _EVENTS, (mark.event, limit))),
            audit=load_all(load_audit, fetch(connection, _REMOVED, (mark.audit, limit))),
            last_run=fetch_value(connection, "SELECT coalesce(max(id), 0) FROM runs"),
        )


def _seen(connection: apsw.Connection, mark: Mark) -> list[ToldRun]:
    if not mark.runs:
        return []
    return _runs(connection, "r.id IN (SELECT value FROM json_each(?)) ORDER BY r.id", (_json(mark.runs),))


def _ended(connection: apsw.Connection, mark: Mark, limit: int) -> list[ToldRun]:
    values = (mark.finished_at, mark.run, _json([*mark.runs, *mark.told]), limit)
    return _runs(connection, _ENDED, values)[::-1]


def _runs(connection: apsw.Connection, condition: str, values: tuple[Any, ...]) -> list[ToldRun]:
    query = f"SELECT {TOLD_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE {condition}"
    return load_all(load_told, fetch(connection, query, values))


def _json(ids: Iterable[int]) -> str:
    return msgspec.json.encode(list(ids)).decode()
