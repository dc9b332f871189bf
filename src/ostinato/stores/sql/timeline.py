"""Runs of a span of time, as the timeline draws them: the active and the latest one by one, all others counted.

Called by runs.py, inside a read. Neighbour: overview.py for lists and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Run
from ostinato.models.states import Cause
from ostinato.models.work import CheckIn
from ostinato.stores.base import CountedRuns, RunStretch
from ostinato.stores.rows import known_state
from ostinato.stores.sql.connection import Connection, Dialect
from ostinato.stores.sql.overview import find_runs
from ostinato.stores.sql.turns import PARKED

__all__ = ["count_runs_between", "runs_between"]

_DUE_IN_SPAN = "(r.due_at <= :end AND coalesce(r.last_due_at, r.due_at) >= :start)"
_NOT_PARKED = f"(r.session IS NOT NULL OR r.kind = '{CheckIn.kind}')"
_TOUCHES_SPAN = f"(r.finished_at <= :end OR r.started_at <= :end OR {_DUE_IN_SPAN})"
# Of what has ended only what did so in the span or later, found by columns that the index holds.
_ENDED_IN_SPAN: dict[Dialect, tuple[str, str]] = {
    "sqlite": (
        f"""
        WHERE r.finished_at >= :start AND (r.finished_at <= :end OR r.started_at <= :end OR r.due_at <= :end)
          AND {_TOUCHES_SPAN}""",
        "r.finished_at DESC",
    ),
    "postgres": (
        f"""
        JOIN (SELECT id, finished_at FROM runs
              WHERE finished_at >= :start AND (finished_at <= :end OR started_at <= :end OR due_at <= :end)) k
          ON k.id = r.id
        WHERE {_TOUCHES_SPAN}""",
        "k.finished_at DESC",
    ),
}
# One for each partial index of what is active: together they would be a scan of the whole ledger.
_ACTIVE_IN_SPAN = (
    f"r.state = 'running' AND (r.started_at <= :end OR {_DUE_IN_SPAN})",
    f"r.state = 'queued' AND r.waiting = FALSE AND {_DUE_IN_SPAN}",
    f"r.state = 'queued' AND r.waiting = TRUE AND {_NOT_PARKED} AND {_DUE_IN_SPAN}",
    f"r.id = ANY (ARRAY({PARKED})) AND r.state = 'queued' AND {_DUE_IN_SPAN}",
)
_OF_THESE = "AND r.schedule_id = ANY (:schedules::bigint[])"
_KNOWN_FROM = """
SELECT finished_at FROM runs
WHERE finished_at >= :start AND (finished_at <= :end OR started_at <= :end OR due_at <= :end)
ORDER BY finished_at DESC LIMIT 1 OFFSET :most
"""
_STRETCH = """
SELECT r.schedule_id, r.schedule_name,
       CASE WHEN r.schedule_id IS NULL AND r.schedule_name IS NULL THEN r.task END AS task,
       CASE WHEN r.cause = '{errors}' THEN 1 ELSE 0 END AS errors, r.state, r.id, r.count,
       coalesce(r.started_at, r.due_at) AS start,
       CASE WHEN r.started_at IS NULL THEN coalesce(r.last_due_at, r.due_at) ELSE coalesce(r.finished_at, :now::bigint)
       END AS until
FROM runs r WHERE {condition} {of_these} AND r.id <> ALL (:listed::bigint[])
"""
_COUNT = """
SELECT coalesce(s.name, k.schedule_name), k.task, k.state, k.errors, min(k.start), max(k.until), count(*),
       sum(k.count)::bigint, min(k.id)
FROM ({stretches}) k LEFT JOIN schedules s ON s.id = k.schedule_id
GROUP BY k.schedule_id, s.name, k.schedule_name, k.task, k.state, k.errors, k.start / :bucket
ORDER BY min(k.start)
"""


async def runs_between(
    db: Connection, start: Micros, end: Micros, schedule_ids: Sequence[ScheduleId] | None, limit: int
) -> tuple[list[Run], bool]:
    """What is active and touches the span, then what ended last; oldest first, and whether there are more."""
    values = {"start": start, "end": end, "schedules": schedule_ids}
    of_these = "" if schedule_ids is None else _OF_THESE
    found: list[Run] = []
    async with db.snapshot():
        for condition in _ACTIVE_IN_SPAN:
            # By a sum, so that the order does not lead through the whole ledger instead of the index.
            wanted, left = f"WHERE {condition} {of_these}", limit + 1 - len(found)
            found += await find_runs(db, wanted, values, left, order="r.id + 0 DESC", brief=True)
        ended, order = _ENDED_IN_SPAN[db.dialect]
        left = limit + 1 - len(found)
        found += await find_runs(db, f"{ended} {of_these}", values, left, order=order, brief=True)
    # Cut before it is sorted: a run that is under way for long has a low number, and is wanted before what has ended.
    return sorted(found[:limit], key=lambda run: run.id), len(found) > limit


async def count_runs_between(
    db: Connection,
    start: Micros,
    end: Micros,
    schedule_ids: Sequence[ScheduleId] | None,
    *,
    listed: Sequence[RunId],
    bucket: Micros,
    now: Micros,
    most: int,
) -> CountedRuns:
    """What touches the span and is not among `listed`, by schedule or task, state and bucket.

    Of what has ended the latest `most` are read; `known_from` says from when on that is all.
    """
    values: dict[str, Any] = {"start": start, "end": end, "schedules": schedule_ids, "listed": listed, "now": now}
    of_these = "" if schedule_ids is None else _OF_THESE
    async with db.snapshot():
        # Of all schedules: what is not theirs is passed over by the same index.
        beyond = await db.fetch(_KNOWN_FROM, {"start": start, "end": end, "most": most})
        known_from: Micros | None = beyond[0][0] if beyond else None
        values |= {"bucket": bucket, "start": start if known_from is None else known_from + 1}
        conditions = (*_ACTIVE_IN_SPAN, f"r.finished_at >= :start AND {_TOUCHES_SPAN}")
        each = (_STRETCH.format(errors=Cause.ERRORS, condition=one, of_these=of_these) for one in conditions)
        rows = await db.fetch(_COUNT.format(stretches=" UNION ALL ".join(each)), values)
    return CountedRuns([_load_stretch(row) for row in rows], known_from)


def _load_stretch(row: Sequence[Any]) -> RunStretch:
    schedule, task, state, errors, start, end, runs, due_times, first = row
    only = RunId(first) if runs == 1 else None
    return RunStretch(schedule, task, known_state(state), bool(errors), start, end, runs, due_times, only)
