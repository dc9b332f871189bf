"""Runs as people read them, in SQLite: lists, spans of time, and counts, each from an index.

Called by runs.py, inside a read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.run import Run, RunFilter
from ostinato.models.states import ACTIVE, ENDS, RunState
from ostinato.stores.base import RunCounts, Tally
from ostinato.stores.brief import BRIEF_COLUMNS, load_brief
from ostinato.stores.rows import ATTEMPT_COLUMNS, RUN_COLUMNS, known_state, load_all, load_attempt, load_run
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value, snapshot

__all__ = [
    "answered_due",
    "count_active",
    "count_runs",
    "find_runs",
    "late_runs",
    "list_runs",
    "runs_between",
    "tally_ended",
]

_UNHAPPY = ENDS - {RunState.SUCCEEDED}
_DUE_IN_SPAN = "(r.due_at <= :end AND coalesce(r.last_due_at, r.due_at) >= :start)"
# Of what has ended only what did so in the span or later; the second line says the same as the third, of columns
# that the index holds.
_ENDED_IN_SPAN = f"""
r.finished_at >= :start
AND (r.finished_at <= :end OR r.started_at <= :end OR r.due_at <= :end)
AND (r.finished_at <= :end OR r.started_at <= :end OR {_DUE_IN_SPAN})
"""
_ACTIVE = {
    RunState.RUNNING: "SELECT id FROM runs WHERE state = 'running'",
    RunState.QUEUED: (
        "SELECT id FROM runs WHERE state = 'queued' AND waiting = 0 UNION ALL "
        "SELECT id FROM runs WHERE session IS NOT NULL AND waiting = 1 AND state IN ('queued', 'running')"
    ),
}
# One for each partial index of what is active: together they would be a scan of the whole ledger.
_ACTIVE_IN_SPAN = (
    f"r.state = 'running' AND (r.started_at <= :end OR {_DUE_IN_SPAN})",
    f"r.state = 'queued' AND r.waiting = 0 AND {_DUE_IN_SPAN}",
    f"r.session IS NOT NULL AND r.waiting = 1 AND r.state IN ('queued', 'running') AND {_DUE_IN_SPAN}",
)
_READY = """
(SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND ready_at <= :now)
+ (SELECT count(*) FROM runs WHERE session IS NOT NULL AND waiting = 1 AND state IN ('queued', 'running')
   AND (later = 0 OR ready_at <= :now))
"""
_COUNT_ACTIVE = f"""
SELECT (SELECT count(*) FROM runs WHERE state = 'running') + {_READY}
     + (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND burst = 1 AND ready_at > :now)
"""
_COUNTS = f"""
SELECT (SELECT count(*) FROM runs WHERE state = 'running'), {_READY},
       (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND ready_at < :late_before)
"""


def list_runs(connection: Connection, wanted: RunFilter) -> list[Run]:
    """The newest runs of a filter."""
    clauses: list[str] = []
    values: list[Any] = []
    for clause, value in (
        ("r.schedule_id = ?", wanted.schedule_id),
        ("r.task = ?", wanted.task),
        ("r.project = ?", wanted.project),
        ("r.session = ? AND r.mode IS NOT NULL", wanted.session),
        ("r.lane = ?", wanted.lane),
        ("r.trigger = ?", wanted.trigger),
        ("coalesce(r.last_due_at, r.due_at) >= ?", wanted.due_from),
        ("r.due_at <= ?", wanted.due_until),
        ("r.id < ?", wanted.before_id),
    ):
        if value is not None:
            clauses.append(clause)
            values.append(value)
    if wanted.states:
        clauses.append(f"r.state IN ({', '.join('?' * len(wanted.states))})")
        values.extend(wanted.states)
        if _UNHAPPY.issuperset(wanted.states):
            # Word for word the condition of the index runs_unhappy, or SQLite would not use it.
            clauses.append("r.state NOT IN ('succeeded', 'queued', 'running')")
        elif ACTIVE.issuperset(wanted.states) and wanted.schedule_id is None and wanted.session is None:
            # Found by the partial indexes of what is active, not among all that ever ended.
            clauses.append(f"r.id IN ({' UNION ALL '.join(_ACTIVE[state] for state in wanted.states)})")
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    return find_runs(connection, where, values, wanted.limit, brief=wanted.brief)


def find_runs(
    connection: Connection, where: str, values: Any, limit: int, *, order: str = "r.id DESC", brief: bool = False
) -> list[Run]:
    """Runs `r` for which this is so, with their earlier attempts; or cut, as lists show them."""
    query = f"""
        SELECT {BRIEF_COLUMNS if brief else RUN_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
        {where} ORDER BY {order} LIMIT {int(limit)}"""
    rows = fetch(connection, query, values)
    if brief:
        return load_all(load_brief, rows)
    # Only a run that was tried has rows of earlier attempts. Where none of them counted, it has a reason at least.
    earlier: dict[int, list[Any]] = {}
    ids = msgspec.json.encode([row[0] for row in rows if row[12] or row[4]]).decode()
    query = f"""
        SELECT {ATTEMPT_COLUMNS} FROM attempts a WHERE a.run_id IN (SELECT value FROM json_each(?))
        ORDER BY a.run_id, a.number"""
    for row in fetch(connection, query, (ids,)):
        earlier.setdefault(row[0], []).append(load_attempt(row))
    return load_all(lambda row: load_run(row, earlier.get(row[0], ())), rows, "run")


def runs_between(
    connection: Connection, start: Micros, end: Micros, schedule_ids: Sequence[ScheduleId] | None, limit: int
) -> tuple[list[Run], bool]:
    """What is active and touches the span, then what ended last; oldest first, and whether there are more."""
    values: dict[str, Any] = {"start": start, "end": end}
    of_these = ""
    if schedule_ids is not None:
        of_these = "AND r.schedule_id IN (SELECT value FROM json_each(:schedules))"
        values["schedules"] = msgspec.json.encode(schedule_ids).decode()
    found: list[Run] = []
    with snapshot(connection):
        for condition in _ACTIVE_IN_SPAN:
            # By a sum, so that the order does not lead through the whole ledger instead of the index.
            wanted, left = f"WHERE {condition} {of_these}", limit + 1 - len(found)
            found += find_runs(connection, wanted, values, left, order="r.id + 0 DESC", brief=True)
        wanted, left = f"WHERE {_ENDED_IN_SPAN} {of_these}", limit + 1 - len(found)
        found += find_runs(connection, wanted, values, left, order="r.finished_at DESC", brief=True)
    # Cut before it is sorted: a run that is under way for long has a low number, and is wanted before what has ended.
    return sorted(found[:limit], key=lambda run: run.id), len(found) > limit


def count_runs(connection: Connection, now: Micros, late_before: Micros) -> RunCounts:
    """How busy everything is."""
    return RunCounts(*fetch(connection, _COUNTS, {"now": now, "late_before": late_before})[0])


def count_active(connection: Connection, now: Micros) -> int:
    """What is under way, ready, waiting for its turn, or an open burst."""
    return int(fetch_value(connection, _COUNT_ACTIVE, {"now": now}))


def late_runs(connection: Connection, late_before: Micros, limit: int) -> list[Run]:
    """What has its turn and is not started, the longest waiting first."""
    late = "WHERE r.state = 'queued' AND r.waiting = 0 AND r.ready_at < ?"
    return find_runs(connection, late, [late_before], limit, order="r.ready_at, r.id", brief=True)


def tally_ended(connection: Connection, since: Micros, until: Micros, bucket: Micros) -> list[Tally]:
    """What ended in the span, by bucket and state."""
    query = """
        SELECT finished_at / :bucket * :bucket, state, count(*), coalesce(sum(finished_at - started_at), 0)
        FROM runs WHERE finished_at >= :since AND finished_at < :until GROUP BY 1, 2 ORDER BY 1, 2"""
    rows = fetch(connection, query, {"since": since, "until": until, "bucket": bucket})
    return [Tally(at, known_state(state), number, micros / SECOND) for at, state, number, micros in rows]


def answered_due(connection: Connection, id: ScheduleId, start: Micros, end: Micros) -> set[Micros]:
    """The due times that need no other run; of one that stands for several, the first and the last."""
    query = """
        SELECT due_at, last_due_at FROM runs WHERE schedule_id = ? AND state IN ('succeeded', 'queued', 'running')
          AND due_at <= ? AND coalesce(last_due_at, due_at) >= ?"""
    rows = fetch(connection, query, (id, end, start))
    return {due for row in rows for due in row if due is not None and start <= due <= end}
