"""One look at the ledger for whoever watches: what is new, what was asked for, what runs, what changed.

Called by runs.py, inside a read; everything is of one state of the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import from_micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.live import ChangedSchedule, Changes, Position, PublishedRun
from ostinato.stores.rows import (
    EVENT_COLUMNS,
    SCHEDULE_OF,
    begun_at,
    known_cause,
    known_words,
    load_all,
    load_event,
    load_progress,
    load_totals,
    moment,
    shown_canceller,
)
from ostinato.stores.sql.access import AUDIT_COLUMNS, REMOVED_SCHEDULE, load_audit
from ostinato.stores.sql.connection import Connection, Values
from ostinato.stores.sql.incidents import changed_incidents
from ostinato.trace_context import trace_id_of

__all__ = ["changes_since"]

# Without what may be large and is not told.
_PUBLISHED_COLUMNS = (
    f"r.id, {SCHEDULE_OF}, r.task, r.state, r.cause, r.reason, r.cancel, r.trigger, r.due_at, r.last_due_at, r.count, "
    "r.ready_at, r.started_at, r.finished_at, r.attempt, r.totals, r.progress, r.error, r.lane, r.priority, r.session, "
    "r.project, r.key, r.node, r.schedule_id, s.zone, r.trace, r.started_by, r.cancelled_by"
)
_CHANGED_COLUMNS = "s.id, s.name, s.version, s.enabled, s.broken, s.updated_at"
# The verb as a literal: a prepared query does not know that the index audit_removed holds all of these.
_REMOVED = f"""
SELECT {AUDIT_COLUMNS} FROM audit WHERE id > :audit AND verb = '{REMOVED_SCHEDULE}' ORDER BY id LIMIT :limit
"""
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE id > :event ORDER BY id LIMIT :limit"
_CHANGED = f"""
SELECT {_CHANGED_COLUMNS} FROM schedules s WHERE s.updated_at >= :changed_at ORDER BY s.updated_at, s.id LIMIT :limit
"""
_NEW = "r.id > :run ORDER BY r.id LIMIT :limit"
_SEEN = "r.id = ANY (:runs::bigint[]) ORDER BY r.id"
_ENDED = """
r.finished_at >= :finished_at AND r.id <= :run AND r.id NOT IN (SELECT id FROM unnest(:known::bigint[]) k (id))
ORDER BY r.finished_at DESC LIMIT :limit
"""
# By a sum, so that the order does not lead through the whole ledger instead of the index of what runs.
_RUNNING = "r.state = 'running' ORDER BY r.id + 0 LIMIT :limit"


async def changes_since(db: Connection, position: Position, limit: int) -> Changes:
    """What happened behind a position."""
    values = {
        "run": position.run,
        "event": position.event,
        "audit": position.audit,
        "changed_at": position.changed_at,
        "runs": position.runs,
        "known": [*position.runs, *position.told],
        "finished_at": position.finished_at,
        "limit": limit,
    }
    async with db.snapshot():
        return Changes(
            new=await _runs(db, _NEW, values),
            seen=await _runs(db, _SEEN, values) if position.runs else [],
            ended=(await _runs(db, _ENDED, values))[::-1],
            running=await _runs(db, _RUNNING, values),
            schedules=load_all(_changed, await db.fetch(_CHANGED, values)),
            incidents=await changed_incidents(db, position.changed_at, limit),
            events=load_all(load_event, await db.fetch(_EVENTS, values)),
            audit=load_all(load_audit, await db.fetch(_REMOVED, values)),
            last_run=await db.fetch_value("SELECT coalesce(max(id), 0) FROM runs"),
        )


async def _runs(db: Connection, condition: str, values: Values) -> list[PublishedRun]:
    query = f"SELECT {_PUBLISHED_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE {condition}"
    return load_all(_told, await db.fetch(query, values))


def _told(row: Sequence[Any]) -> PublishedRun:
    """A run, from _PUBLISHED_COLUMNS; of one that is not under way nobody wants any more that it stops."""
    # fmt: off
    (id, schedule, task, state, cause, reason, cancel, trigger, due_at, last_due_at, count, ready_at, started_at,
     finished_at, attempt, totals, progress, error, lane, priority, session, project, key, node, schedule_id,
     zone, trace, started_by, cancelled_by) = row
    state, trigger, reason = known_words(state, trigger, reason)
    return PublishedRun(
        RunId(id), schedule, task, state, known_cause(cause), reason, cancel if state == "running" else None, trigger,
        from_micros(due_at), moment(last_due_at), count, from_micros(ready_at),
        moment(begun_at(state, started_at, ready_at, node)), moment(finished_at), attempt, load_totals(totals),
        load_progress(progress), error, lane, priority, session, project, key or f"run-{id}", node,
        None if schedule_id is None else ScheduleId(schedule_id), zone, trace_id_of(trace), started_by,
        shown_canceller(state, cancelled_by),
    )
    # fmt: on


def _changed(row: Sequence[Any]) -> ChangedSchedule:
    """A changed schedule, from _CHANGED_COLUMNS."""
    id, name, version, enabled, broken, updated_at = row
    return ChangedSchedule(ScheduleId(id), name, version, bool(enabled), broken, from_micros(updated_at))
