"""What was given up and goes on, in PostgreSQL: marked by finishes.py, looked at by claims.py and schedules.py."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.run import Finish
from ostinato.stores.postgres.query import Connection, numbers
from ostinato.stores.sql.given_up import ALLOWS, LIVING

__all__ = ["GIVEN_UP_OF", "MAY_START", "mark_given_up"]

# Once for a statement, and not for each row: there is hardly ever one.
MAY_START = f"""
(schedule_id IS NULL
 OR schedule_id <> ALL (ARRAY(SELECT s.id FROM {LIVING} JOIN schedules s ON s.name = g.schedule))
 OR strpos(policy, '{ALLOWS}') > 0)
"""
GIVEN_UP_OF = f"ARRAY(SELECT g.run_id FROM {LIVING} WHERE g.schedule = s.name ORDER BY g.run_id)"
_MARK = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT coalesce(s.name, ''), r.id, r.token, coalesce(s.name, r.task, r.kind), r.node, f.at
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) f (id, token, at)
JOIN runs r ON r.id = f.id AND r.token = f.token AND r.state || '' = 'running'
JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL LEFT JOIN schedules s ON s.id = r.schedule_id
ON CONFLICT DO NOTHING
"""


async def mark_given_up(connection: Connection, finishes: Sequence[Finish]) -> None:
    """Before they are finished: a run that goes back to the queue forgets its node."""
    marked = [finish for finish in finishes if finish.given_up]
    if marked:
        ids, tokens = numbers([finish.id for finish in marked]), numbers([finish.token for finish in marked])
        await connection.execute(_MARK, (ids, tokens, numbers([finish.finished_at for finish in marked])))
