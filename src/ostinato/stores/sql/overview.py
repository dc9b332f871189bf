"""Runs as people read them: lists and counts, each from an index.

Called by runs.py, inside a read. Neighbours: timeline.py for spans of time, changes.py for what changed, rows.py and
brief.py for the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.project import NO_PROJECT
from ostinato.models.run import Run, RunFilter
from ostinato.models.states import ACTIVE, ENDS, Cause, RunState
from ostinato.stores.base import RunCounts, StateCount
from ostinato.stores.brief import BRIEF_COLUMNS, load_brief
from ostinato.stores.rows import ATTEMPT_COLUMNS, RUN_COLUMNS, known_state, load_all, load_attempt, load_run
from ostinato.stores.searching import matching
from ostinato.stores.sql.connection import Connection, Values, given, where
from ostinato.stores.sql.turns import PARKED

__all__ = [
    "answered_due",
    "count_active",
    "count_runs",
    "find_runs",
    "late_runs",
    "list_runs",
    "load_count",
    "tally_ended",
]

_UNHAPPY = ENDS - {RunState.SUCCEEDED}
_ACTIVE = {
    RunState.RUNNING: "SELECT id FROM runs WHERE state = 'running'",
    RunState.QUEUED: (
        "SELECT id FROM runs WHERE state = 'queued' AND waiting = FALSE UNION ALL "
        f"SELECT id FROM runs WHERE state = 'queued' AND waiting = TRUE UNION ALL {PARKED}"
    ),
}
_READY = """
(SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = FALSE AND ready_at <= :now)
+ (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = TRUE AND session IS NOT NULL)
- (SELECT count(*) FROM runs WHERE later = TRUE AND waiting = TRUE AND state = 'queued' AND ready_at > :now)
"""
_COUNT_ACTIVE = f"""
SELECT (SELECT count(*) FROM runs WHERE state = 'running') + {_READY}
     + (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = FALSE AND burst = TRUE AND ready_at > :now)
"""
_COUNTS = f"""
SELECT (SELECT count(*) FROM runs WHERE state = 'running'), {_READY},
       (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = FALSE AND ready_at < :late_before)
"""
_ATTEMPTS = f"""
SELECT {ATTEMPT_COLUMNS} FROM attempts a WHERE a.run_id = ANY (:ids::bigint[]) ORDER BY a.run_id, a.number
"""
_LATE = "WHERE r.state = 'queued' AND r.waiting = FALSE AND r.ready_at < :late_before"
# Both from an index alone: runs_finished does not hold the cause, and few of what ended had errors.
_TALLY = f"""
SELECT t.*, CASE WHEN t.state = '{RunState.SUCCEEDED}' THEN (
    SELECT count(*) FROM runs WHERE cause = '{Cause.ERRORS}' AND finished_at >= t.at AND finished_at < t.at + :bucket
       AND finished_at >= :since AND finished_at < :until) ELSE 0 END
FROM (SELECT finished_at / :bucket * :bucket AS at, state, count(*) AS number,
             coalesce(sum(finished_at - started_at), 0)::bigint AS micros
      FROM runs WHERE finished_at >= :since AND finished_at < :until GROUP BY 1, 2) t ORDER BY 1, 2
"""
_CONDITIONS = {
    "ids": "r.id = ANY (:ids::bigint[])",
    "schedule_id": "r.schedule_id = :schedule_id",
    "task": "r.task = :task",
    "project": "r.project = :project",
    "session": "r.session = :session AND r.mode IS NOT NULL",
    "lane": "r.lane = :lane",
    "trigger": "r.trigger = :trigger",
    "due_from": "coalesce(r.last_due_at, r.due_at) >= :due_from",
    "due_until": "r.due_at <= :due_until",
    "before_id": "r.id < :before_id",
    "from_id": "r.id >= :from_id",
}
_WITHOUT_PROJECT = {"project": "r.project IS NULL"}
# A session of its own is no name that somebody gave.
_SEARCHED = """
(r.schedule_id IN (SELECT id FROM schedules WHERE {name}) OR {removed} OR {task} OR (r.mode IS NOT NULL AND {session}))
"""
_ANSWERED = """
SELECT due_at, last_due_at FROM runs WHERE schedule_id = :id AND state IN ('succeeded', 'queued', 'running')
   AND due_at <= :end AND coalesce(last_due_at, due_at) >= :start
"""


async def list_runs(db: Connection, wanted: RunFilter) -> list[Run]:
    """The newest runs of a filter."""
    clauses, values = given(wanted, _CONDITIONS | _WITHOUT_PROJECT if wanted.project == NO_PROJECT else _CONDITIONS)
    if wanted.removed is not None:
        # Only where there are such rows: every other list is read in the order of one index.
        clauses, values = _with_removed(clauses), {**values, "removed": wanted.removed}
    if wanted.states:
        states = ", ".join(f"'{state}'" for state in wanted.states)
        clauses.append(f"r.state IN ({states})")
        if _UNHAPPY.issuperset(wanted.states):
            # Word for word the condition of the index runs_unhappy, or it would not be used.
            clauses.append("r.state NOT IN ('succeeded', 'queued', 'running')")
        elif ACTIVE.issuperset(wanted.states) and (wanted.schedule_id, wanted.session, wanted.ids) == (None,) * 3:
            # Found by the partial indexes of what is active, not among all that ever ended.
            clauses.append(f"r.id IN ({' UNION ALL '.join(_ACTIVE[state] for state in wanted.states)})")
    if wanted.causes:
        clauses.append("r.cause = ANY (:causes::text[])")
        values["causes"] = wanted.causes
    if wanted.search:
        matches, values["search"] = matching(db.dialect, wanted.search)
        columns = {"name": "name", "removed": "r.schedule_name", "task": "r.task", "session": "r.session"}
        clauses.append(_SEARCHED.format(**{name: matches.format(column) for name, column in columns.items()}))
    return await find_runs(db, where(clauses), values, wanted.limit, brief=wanted.brief)


def _with_removed(clauses: Sequence[str]) -> list[str]:
    """The conditions, with the rows of removed schedules of this name beside those of the schedule."""
    of_schedule, of_removed = _CONDITIONS["schedule_id"], "r.schedule_name = :removed"
    if of_schedule not in clauses:
        return [*clauses, of_removed]
    return [f"({of_schedule} OR {of_removed})" if clause == of_schedule else clause for clause in clauses]


async def find_runs(
    db: Connection, condition: str, values: Values, limit: int, *, order: str = "r.id DESC", brief: bool = False
) -> list[Run]:
    """Runs `r` for which this is so, with their earlier attempts; or cut, as lists show them."""
    query = f"""
        SELECT {BRIEF_COLUMNS if brief else RUN_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
        {condition} ORDER BY {order} LIMIT {int(limit)}"""
    rows = await db.fetch(query, values)
    if brief:
        return load_all(load_brief, rows)
    # Only a run that was tried has rows of earlier attempts. Where none of them counted, it has a reason at least.
    earlier: dict[int, list[Any]] = {}
    tried = [row[0] for row in rows if row[13] or row[5]]
    for row in await db.fetch(_ATTEMPTS, {"ids": tried}) if tried else ():
        earlier.setdefault(row[0], []).append(load_attempt(row))
    return load_all(lambda row: load_run(row, earlier.get(row[0], ())), rows, "run")


async def count_runs(db: Connection, now: Micros, late_before: Micros) -> RunCounts:
    """How busy everything is."""
    return RunCounts(*(await db.fetch(_COUNTS, {"now": now, "late_before": late_before}))[0])


async def count_active(db: Connection, now: Micros) -> int:
    """What is under way, ready, waiting for its turn, or an open burst."""
    return int(await db.fetch_value(_COUNT_ACTIVE, {"now": now}))


async def late_runs(db: Connection, late_before: Micros, limit: int) -> list[Run]:
    """What has its turn and is not started, the longest waiting first."""
    return await find_runs(db, _LATE, {"late_before": late_before}, limit, order="r.ready_at, r.id", brief=True)


async def tally_ended(db: Connection, since: Micros, until: Micros, bucket: Micros) -> list[StateCount]:
    """What ended in the span, by bucket and state."""
    rows = await db.fetch(_TALLY, {"since": since, "until": until, "bucket": bucket})
    return [load_count(row) for row in rows]


def load_count(row: Sequence[Any]) -> StateCount:
    """A bucket and a state, how many, for how many microseconds, and how many with errors."""
    at, state, count, micros, with_errors = row
    return StateCount(at, known_state(state), count, micros / SECOND, with_errors)


async def answered_due(db: Connection, id: ScheduleId, start: Micros, end: Micros) -> set[Micros]:
    """The due times that need no other run; of one that stands for several, the first and the last."""
    rows = await db.fetch(_ANSWERED, {"id": id, "start": start, "end": end})
    return {due for row in rows for due in row if due is not None and start <= due <= end}
