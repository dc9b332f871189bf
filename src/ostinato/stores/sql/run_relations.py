"""Which runs come before and after others, as people see them. Called by runs.py and first_active.py, inside a read.

Neighbours: upstreams.py for schedules that follow others, chains.py for runs that wait for others.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import from_micros
from ostinato.models.ids import RunId
from ostinato.models.upstream import RelatedRun, RunRelations, Upstream
from ostinato.stores.rows import known_state, load_result
from ostinato.stores.sql.connection import Connection

__all__ = ["IS_READ", "pending_upstreams", "related_runs", "upstreams_of"]

IS_READ = """
{0}.followed AND EXISTS (
    SELECT 1 FROM run_upstreams u JOIN runs w ON w.id = u.run_id
    WHERE u.upstream_run = {0}.id AND w.state || '' IN ('queued', 'running')
)"""
"""Whether a step that has not ended reads the result of this run: retention leaves that until then."""
_MOST = 1_000
"""So many of each side are shown."""

# One that is run again came after what the first one came after.
_BEFORE = """
RECURSIVE first (id) AS (
    SELECT :id::bigint UNION SELECT r.retry_of FROM runs r JOIN first f ON r.id = f.id WHERE r.retry_of IS NOT NULL
),
before AS (
    SELECT upstream_run, upstream AS schedule, NULL AS task, u.state, ended_at, 0 AS place
    FROM first f JOIN upstream_ends u ON u.run_id = f.id
    UNION ALL
    SELECT upstream_run, NULL, upstream, u.state, ended_at, place FROM first f JOIN run_upstreams u ON u.run_id = f.id
)
"""
_UPSTREAMS_OF = f"""
WITH {_BEFORE}
SELECT b.upstream_run, b.schedule, b.task, b.state, b.ended_at, r.result, r.error
FROM before b LEFT JOIN runs r ON r.id = b.upstream_run WHERE b.state IS NOT NULL
ORDER BY b.place, b.ended_at, b.upstream_run
"""
_RUNS_BEFORE = f"""
WITH {_BEFORE}
SELECT b.upstream_run, b.schedule, b.task, coalesce(b.state, r.state)
FROM before b LEFT JOIN runs r ON r.id = b.upstream_run
ORDER BY b.place, b.ended_at, b.upstream_run LIMIT {_MOST}
"""
_RUNS_AFTER = f"""
SELECT r.id, coalesce(s.name, r.schedule_name), r.task, r.state
FROM (SELECT run_id FROM run_upstreams WHERE upstream_run = :id
      UNION SELECT run_id FROM upstream_ends WHERE upstream_run = :id AND run_id IS NOT NULL) a
JOIN runs r ON r.id = a.run_id LEFT JOIN schedules s ON s.id = r.schedule_id
ORDER BY r.id LIMIT {_MOST}
"""
_IS_FIRST = "AND u.place = (SELECT min(place) FROM run_upstreams WHERE run_id = u.run_id AND state IS NULL)"
_PENDING = """
WITH RECURSIVE pending (run_id, place, upstream_run) AS (
    SELECT u.run_id, u.place, u.upstream_run FROM run_upstreams u
    WHERE u.run_id = ANY (:after::bigint[]) AND u.state IS NULL {0}
    UNION
    SELECT u.run_id, u.place, u.upstream_run FROM pending p JOIN run_upstreams u ON u.run_id = p.upstream_run
    WHERE u.state IS NULL {0}
)
SELECT run_id, place, upstream_run FROM pending LIMIT {1}
"""
_FIRST_PENDING, _ALL_PENDING = _PENDING.format(_IS_FIRST, 10 * _MOST), _PENDING.format("", _MOST)


async def pending_upstreams(db: Connection, after: Sequence[RunId]) -> list[tuple[RunId, RunId]]:
    """Of each of these runs that waits for others those, in their order, and so on to those that wait for none. Of
    very many the nearest, and for each the first."""
    links = await db.fetch(_ALL_PENDING, {"after": after})
    if len(links) == _MOST:
        links += await db.fetch(_FIRST_PENDING, {"after": after})
    return [(RunId(run), RunId(upstream)) for run, _, upstream in sorted(set(links))]


async def upstreams_of(db: Connection, id: RunId) -> list[Upstream]:
    """The runs that this one came after, as its work sees them."""
    return [
        Upstream(RunId(run), schedule, known_state(state), from_micros(at), load_result(result), error, task)
        for run, schedule, task, state, at, result, error in await db.fetch(_UPSTREAMS_OF, {"id": id})
    ]


async def related_runs(db: Connection, id: RunId) -> RunRelations:
    """The runs that this one comes after, ended or not, and those that come after it."""
    async with db.snapshot():
        before = await db.fetch(_RUNS_BEFORE, {"id": id})
        after = await db.fetch(_RUNS_AFTER, {"id": id})
    return RunRelations([_related(*row) for row in before], [_related(*row) for row in after])


def _related(id: int, schedule: str | None, task: str | None, state: str | None) -> RelatedRun:
    return RelatedRun(RunId(id), schedule, task, None if state is None else known_state(state))
