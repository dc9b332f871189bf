"""The runs that others wait for: of each schedule, session, lane and node the one that is active longest, and of steps
of chains those before them.

Called by runs.py, inside a read. Each is found by an index of what is active, however long the ledger is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Run
from ostinato.stores.runs import FirstActive, FirstActiveOf
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.overview import find_runs
from ostinato.stores.sql.run_relations import pending_upstreams

__all__ = ["first_active"]

K = TypeVar("K")

_OF_SCHEDULES = """
SELECT schedule_id, state, min(id) FROM runs
WHERE schedule_id = ANY (:schedules::bigint[]) AND state IN ('queued', 'running') AND due_at <= :now
GROUP BY schedule_id, state
"""
_OF_SESSIONS = """
SELECT session, min(id) FROM runs
WHERE session = ANY (:sessions::text[]) AND waiting = FALSE AND state IN ('queued', 'running') GROUP BY session
"""
# The one that began first: a run that was tried again may have a lower number.
_LONGEST = """
SELECT r.{0}, min(r.id) FROM runs r
JOIN (SELECT {0}, min(started_at) AS at FROM runs WHERE state = 'running' AND {0} = ANY (:names::text[]) GROUP BY {0}) f
  ON f.{0} = r.{0} AND f.at = r.started_at
WHERE r.state = 'running' GROUP BY r.{0}
"""
_OF_LANES, _OF_NODES = _LONGEST.format("lane"), _LONGEST.format("node")


async def first_active(db: Connection, of: FirstActiveOf) -> FirstActive:
    """What is active longest of each of these; what has nothing active is left out."""
    async with db.snapshot():
        schedules = await db.fetch(_OF_SCHEDULES, {"schedules": of.schedules, "now": of.now}) if of.schedules else []
        sessions = await db.fetch(_OF_SESSIONS, {"sessions": of.sessions}) if of.sessions else []
        lanes = await db.fetch(_OF_LANES, {"names": of.lanes}) if of.lanes else []
        nodes = await db.fetch(_OF_NODES, {"names": of.nodes}) if of.nodes else []
        after = await pending_upstreams(db, of.after) if of.after else []
        ids = sorted({row[-1] for rows in (schedules, sessions, lanes, nodes, after) for row in rows})
        where = "WHERE r.id = ANY (:ids::bigint[])"
        found = await find_runs(db, where, {"ids": ids}, len(ids), brief=True) if ids else []
    runs = {int(run.id): run for run in found}
    return FirstActive(
        queued=_by([row for row in schedules if row[1] == "queued"], ScheduleId, runs),
        running=_by([row for row in schedules if row[1] == "running"], ScheduleId, runs),
        sessions=_by(sessions, str, runs),
        lanes=_by(lanes, str, runs),
        nodes=_by(nodes, str, runs),
        after=_after(after, runs),
    )


def _after(links: Sequence[tuple[RunId, RunId]], runs: dict[int, Run]) -> dict[RunId, Sequence[Run]]:
    """What ended and is not noted yet holds up nobody for long."""
    after: dict[RunId, list[Run]] = {}
    for run, upstream in links:
        if upstream in runs and not runs[upstream].ended:
            after.setdefault(run, []).append(runs[upstream])
    return {run: tuple(before) for run, before in after.items()}


def _by(rows: list[tuple[Any, ...]], key: Callable[[Any], K], runs: dict[int, Run]) -> dict[K, Run]:
    return {key(row[0]): runs[row[-1]] for row in rows if row[-1] in runs}
