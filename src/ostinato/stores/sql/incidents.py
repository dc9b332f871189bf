"""Incidents as people read and change them, and what an engine has to know of them. Called by notifications.py.

How they are opened and closed by what is recorded is in telling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import Micros, from_micros
from ostinato.models.delivery_wait import AGAIN
from ostinato.models.ids import IncidentId, RunId
from ostinato.models.incident import (
    EACH_RUN,
    Incident,
    IncidentChange,
    IncidentFilter,
    IncidentState,
    Interests,
    RepeatedRun,
)
from ostinato.models.live import ChangedIncident
from ostinato.models.notification import known_kind, known_kinds
from ostinato.models.project import NO_PROJECT
from ostinato.stores.rows import known_state
from ostinato.stores.sql.connection import Connection, given, where
from ostinato.stores.sql.deliveries import ALONE, PENDING_CHANNELS

__all__ = [
    "CHANGE_COLUMNS",
    "ack_incident",
    "changed_incidents",
    "close_incidents",
    "drop_repeats",
    "get_incident",
    "incident_runs",
    "interests",
    "list_incidents",
    "load_change",
    "repeated_runs",
]

_COLUMNS = """
i.id, i.subject, i.cause, i.kind, i.opened_at, i.last_at, i.closed_at, i.count, i.reopened, i.reason, i.first_run,
i.last_run, i.schedule, i.project, i.closed_reason, i.acked_at, i.acked_by, i.note
"""
CHANGE_COLUMNS = "id, subject, cause, kind, reason, count, schedule, last_run"
"""What of a row is an IncidentChange."""
_CONDITIONS = {
    "subject": "i.subject = :subject",
    "project": "i.project = :project",
}
_WITHOUT_PROJECT = {"project": "i.project IS NULL"}
_STATES = {IncidentState.OPEN: "i.closed_at IS NULL", IncidentState.CLOSED: "i.closed_at IS NOT NULL"}
_CHANGED = f"""
SELECT {_COLUMNS}, i.changed_at, i.turned_at FROM incidents i
WHERE i.changed_at >= :since ORDER BY i.changed_at, i.id LIMIT :limit
"""
_ACK = """
UPDATE incidents SET acked_at = :now, changed_at = :now, acked_by = :who, note = coalesce(:note::text, note)
WHERE id = :id AND closed_at IS NULL RETURNING id
"""
_CLOSE = f"""
UPDATE incidents SET closed_at = :now, changed_at = :now, turned_at = :now, closed_reason = :reason
WHERE subject = :subject AND closed_at IS NULL AND (:every::boolean OR cause = ANY (:causes::text[]))
RETURNING {CHANGE_COLUMNS}
"""
_DROP_REPEATS = f"""
UPDATE deliveries SET state = 'dropped', error = :why
WHERE incident_id = ANY (:ids::bigint[]) AND state = 'pending' AND data LIKE '%"{AGAIN}":true%'
"""
# What ended in its time for its cause, and is of its subject as `subject_of` says: a schedule, whose runs an index has,
# a task, what sessions run, or one command. All these were counted. A run that succeeded has its errors as its cause.
_IN_ITS_TIME = """
r.finished_at >= i.opened_at AND r.finished_at <= i.last_at
  AND (r.cause = i.cause AND (r.state IN ('failed', 'expired') OR r.cause IN ('errors', 'late'))
       OR i.cause IN ('broken', 'late') AND (r.state IN ('failed', 'expired') OR r.cause = 'errors')
          AND r.kind <> 'check_in')
"""
_RUNS = f"""
SELECT id, is_manual FROM (
    SELECT r.id, r.trigger = 'manual' AS is_manual FROM incidents i
    JOIN schedules s ON s.name = i.subject JOIN runs r ON r.schedule_id = s.id
    WHERE i.id = :id AND {_IN_ITS_TIME}
    UNION ALL
    SELECT r.id, r.trigger = 'manual' FROM incidents i
    JOIN runs r ON CASE WHEN r.kind = 'function' THEN r.task ELSE r.kind END = i.subject
    WHERE i.id = :id AND i.schedule IS NULL AND {_IN_ITS_TIME}
      AND r.schedule_id IS NULL AND r.schedule_name IS NULL AND (r.kind = 'function' OR r.session IS NOT NULL)
    UNION ALL
    SELECT r.id, r.trigger = 'manual' FROM incidents i
    JOIN runs f ON f.id = i.last_run JOIN runs r ON r.kind = f.kind AND r.work = f.work
    WHERE i.id = :id AND i.schedule IS NULL AND i.subject LIKE f.kind || ' %' AND {_IN_ITS_TIME}
      AND r.schedule_id IS NULL AND r.schedule_name IS NULL AND r.session IS NULL) found
ORDER BY is_manual, id DESC LIMIT :limit
"""
_REPEATED = "SELECT retry_of, id, state, reason FROM runs WHERE retry_of = ANY (:ids::bigint[]) ORDER BY id DESC"
# Behind what is being sent just now, the rest of a channel waits; what a node that is gone was sending does not. How
# often a message was tried is asked for its index alone.
_INTERESTS = f"""
WITH RECURSIVE {PENDING_CHANNELS}
SELECT min(at) FROM (
    SELECT CASE WHEN ready_at < retry_at THEN retry_at ELSE ready_at END AS at FROM (
        SELECT coalesce(c.retry_at, 0) AS retry_at,
               (SELECT min(ready_at) FROM deliveries WHERE channel = o.channel AND state = 'pending') AS ready_at
        FROM owed o LEFT JOIN channels c ON c.name = o.channel
        WHERE o.channel NOT IN (SELECT channel FROM deliveries WHERE state = 'sending')) others
    UNION ALL
    SELECT min(d.ready_at + 0) FROM owed o JOIN deliveries d ON d.channel = o.channel
    WHERE d.state = 'pending' AND d.{ALONE} AND d.kind = 'test' AND d.attempts >= 0
      AND o.channel NOT IN (SELECT channel FROM deliveries WHERE state = 'sending')
    UNION ALL
    SELECT min(d.ready_at) FROM deliveries d
    WHERE d.state = 'sending' AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = d.node AND lost_at IS NULL)
    UNION ALL SELECT min(digest_at) FROM rules WHERE digest_at IS NOT NULL) next
"""


async def list_incidents(db: Connection, wanted: IncidentFilter) -> list[Incident]:
    """Those that are open first, then the newest."""
    found: list[Incident] = []
    for state in IncidentState:
        is_behind = wanted.before_id is not None and wanted.before_open is (state is IncidentState.OPEN)
        is_over = wanted.before_id is not None and state is IncidentState.OPEN and not wanted.before_open
        if wanted.state in (None, state) and not is_over and len(found) < wanted.limit:
            found += await _list_of(db, wanted, state, wanted.before_id if is_behind else None, len(found))
    return found


async def _list_of(
    db: Connection, wanted: IncidentFilter, state: IncidentState, before: int | None, known: int
) -> list[Incident]:
    """The newest of a state, read in the order of an index: behind this id, as many as are still wanted."""
    clauses, values = given(wanted, _CONDITIONS | _WITHOUT_PROJECT if wanted.project == NO_PROJECT else _CONDITIONS)
    clauses.append(_STATES[state])
    if before is not None:
        clauses.append("i.id < :before_id")
        values["before_id"] = before
    query = f"SELECT {_COLUMNS} FROM incidents i {where(clauses)} ORDER BY i.id DESC LIMIT {int(wanted.limit) - known}"
    return [_load(row) for row in await db.fetch(query, values)]


async def get_incident(db: Connection, id: IncidentId) -> Incident | None:
    """The one of this number."""
    rows = await db.fetch(f"SELECT {_COLUMNS} FROM incidents i WHERE i.id = :id", {"id": id})
    return _load(rows[0]) if rows else None


async def changed_incidents(db: Connection, since: Micros, limit: int) -> list[ChangedIncident]:
    """Those of which something changed since then, in that order."""
    rows = await db.fetch(_CHANGED, {"since": since, "limit": limit})
    return [ChangedIncident(_load(row), from_micros(changed), from_micros(turned)) for *row, changed, turned in rows]


async def ack_incident(db: Connection, id: IncidentId, who: str, note: str | None, now: Micros) -> bool:
    """Whether there is such an open incident."""
    if not await db.fetch(_ACK, {"id": id, "who": who, "note": note, "now": now}):
        return False
    await drop_repeats(db, [id], "somebody sees to it")
    return True


async def close_incidents(
    db: Connection, subject: str, now: Micros, reason: str, causes: Sequence[str] | None = None
) -> list[IncidentChange]:
    """Without telling anybody: a person has seen to it."""
    every = causes is None
    values = {"subject": subject, "now": now, "reason": reason, "every": every, "causes": causes or []}
    changes = [load_change(row, False, now) for row in await db.fetch(_CLOSE, values)]
    await drop_repeats(db, [change.id for change in changes], reason)
    return changes


async def drop_repeats(db: Connection, ids: Sequence[IncidentId], why: str) -> None:
    """Tell nobody again of these incidents, who would be once a cool-down is over."""
    if ids:
        await db.run(_DROP_REPEATS, {"ids": ids, "why": why})


async def incident_runs(db: Connection, id: IncidentId, limit: int) -> list[RunId]:
    """What it stands for, the newest first."""
    rows = await db.fetch(_RUNS, {"id": id, "limit": limit})
    # What a person ran again stands for a run that is here already.
    return [RunId(run) for run, is_manual in rows if bool(is_manual) is bool(rows[0][1])]


async def repeated_runs(db: Connection, ids: Sequence[RunId]) -> list[RepeatedRun]:
    """Those that were started again by hand, the newest first."""
    rows = await db.fetch(_REPEATED, {"ids": ids})
    return [RepeatedRun(RunId(of), RunId(run), known_state(state), reason) for of, run, state, reason in rows]


_WANTED = "SELECT DISTINCT kinds, project FROM rules"


async def interests(db: Connection) -> Interests:
    """What rules want, who has an open incident, and when there is something to do."""
    rules = [(known_kinds(kinds.split(",")), project) for kinds, project in await db.fetch(_WANTED)]
    subjects = await db.fetch("SELECT DISTINCT subject FROM incidents WHERE closed_at IS NULL")
    return Interests(
        frozenset(kind for kinds, _ in rules for kind in kinds),
        frozenset(project for kinds, project in rules if not EACH_RUN.isdisjoint(kinds)),
        frozenset(subject for (subject,) in subjects),
        await db.fetch_value(_INTERESTS),
    )


def load_change(row: Sequence[Any], opened: bool, at: Micros) -> IncidentChange:
    """From CHANGE_COLUMNS."""
    id, subject, cause, kind, reason, count, schedule, run = row
    return IncidentChange(id, opened, subject, cause, known_kind(kind), reason, count, at, schedule, run)


def _load(row: Sequence[Any]) -> Incident:
    """From _COLUMNS."""
    id, subject, cause, kind, opened_at, last_at, closed_at, count, reopened, reason, first, last, *rest = row
    schedule, project, closed_reason, acked_at, acked_by, note = rest
    return Incident(
        id=id,
        subject=subject,
        cause=cause,
        kind=known_kind(kind),
        state=IncidentState.OPEN if closed_at is None else IncidentState.CLOSED,
        opened_at=from_micros(opened_at),
        last_at=from_micros(last_at),
        closed_at=None if closed_at is None else from_micros(closed_at),
        count=count,
        reopened=reopened,
        reason=reason,
        first_run=first,
        last_run=last,
        schedule=schedule,
        project=project,
        closed_reason=closed_reason,
        acked_at=None if acked_at is None else from_micros(acked_at),
        acked_by=acked_by,
        note=note,
    )
