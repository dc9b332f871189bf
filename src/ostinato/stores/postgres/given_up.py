"""What was given up and goes on, in PostgreSQL. finishes.py marks it, claims.py and schedules.py look at it."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish
from ostinato.stores.given_up import ALLOWS, GIVEN_UP_COLUMNS, LIVING, load_given_up
from ostinato.stores.postgres.query import Connection, fetch, numbers

__all__ = [
    "COUNT_GIVEN_UP",
    "GIVEN_UP_OF",
    "MAY_START",
    "forget_given_up",
    "list_given_up",
    "mark_given_up",
    "mark_removed",
]

# Once for a statement, and not for each row: there is hardly ever one.
MAY_START = f"""
(schedule_id IS NULL
 OR schedule_id <> ALL (ARRAY(SELECT s.id FROM {LIVING} JOIN schedules s ON s.name = g.schedule))
 OR strpos(policy, '{ALLOWS}') > 0)
"""
COUNT_GIVEN_UP = f"SELECT count(*) FROM {LIVING} JOIN schedules s ON s.name = g.schedule WHERE s.id = %s"
GIVEN_UP_OF = f"ARRAY(SELECT g.run_id FROM {LIVING} WHERE g.schedule = s.name ORDER BY g.run_id)"
_MARK = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT coalesce(s.name, ''), r.id, r.token, coalesce(s.name, r.task, r.kind), r.node, f.at
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) f (id, token, at)
JOIN runs r ON r.id = f.id AND r.token = f.token AND r.state || '' = 'running'
JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL LEFT JOIN schedules s ON s.id = r.schedule_id
ON CONFLICT DO NOTHING
"""
_MARK_REMOVED = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT s.name, r.id, r.token, s.name, r.node, r.started_at
FROM runs r JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL JOIN schedules s ON s.id = r.schedule_id
WHERE s.id = %s AND r.state = 'running' AND r.mode IS NULL ON CONFLICT DO NOTHING
"""
_FORGET = """
DELETE FROM given_up g USING unnest(%s::bigint[], %s::bigint[]) f (id, token)
WHERE g.run_id = f.id AND g.token = f.token
"""
_LIST = f"SELECT {GIVEN_UP_COLUMNS} FROM {LIVING} ORDER BY g.at, g.run_id"


async def mark_given_up(connection: Connection, finishes: Sequence[Finish]) -> None:
    """Before they are finished: a run that goes back to the queue forgets its node."""
    marked = [finish for finish in finishes if finish.given_up]
    if marked:
        ids, tokens = numbers([finish.id for finish in marked]), numbers([finish.token for finish in marked])
        await connection.execute(_MARK, (ids, tokens, numbers([finish.finished_at for finish in marked])))


async def mark_removed(connection: Connection, id: ScheduleId) -> None:
    """What still runs of a schedule goes on without a row: its node tells when that has ended."""
    await connection.execute(_MARK_REMOVED, (id,))


async def forget_given_up(connection: Connection, ended: Sequence[tuple[RunId, int]]) -> None:
    """This code has ended."""
    await connection.execute(_FORGET, (numbers([id for id, _ in ended]), numbers([token for _, token in ended])))


async def list_given_up(connection: Connection) -> list[GivenUp]:
    """All of it, the oldest first."""
    return [load_given_up(row) for row in await fetch(connection, _LIST)]
