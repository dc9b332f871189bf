"""What was given up and goes on. Each store's finishes.py marks it, claims.py and schedules.py look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import from_micros
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish
from ostinato.stores.sql.connection import Connection

__all__ = ["ALLOWS", "COUNT_GIVEN_UP", "LIVING", "forget_given_up", "list_given_up", "mark_given_up", "mark_removed"]

_COLUMNS = "g.run_id, g.token, g.schedule, g.name, g.node, g.at"
LIVING = "given_up g JOIN nodes n ON n.id = g.node AND n.lost_at IS NULL"
"""A process that is gone took its threads along."""
ALLOWS = '"overlap":"allow"'
"""What the policy of a run says that may start beside others. It is looked for as a text: no bad row is in the way."""
COUNT_GIVEN_UP = f"SELECT count(*) FROM {LIVING} JOIN schedules s ON s.name = g.schedule WHERE s.id = :id"
_MARK = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT coalesce(s.name, ''), r.id, r.token, coalesce(s.name, r.task, r.kind), r.node, f.at
FROM unnest(:ids::bigint[], :tokens::bigint[], :ats::bigint[]) f (id, token, at)
JOIN runs r ON r.id = f.id AND r.token = f.token AND r.state || '' = 'running'
JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL LEFT JOIN schedules s ON s.id = r.schedule_id
WHERE TRUE ON CONFLICT DO NOTHING
"""
_MARK_REMOVED = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT s.name, r.id, r.token, s.name, r.node, r.started_at
FROM runs r JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL JOIN schedules s ON s.id = r.schedule_id
WHERE s.id = :id AND r.state = 'running' AND r.mode IS NULL ON CONFLICT DO NOTHING
"""
_FORGET = """
DELETE FROM given_up WHERE (run_id, token) IN (SELECT * FROM unnest(:ids::bigint[], :tokens::bigint[]) f (id, token))
"""
_LIST = f"SELECT {_COLUMNS} FROM {LIVING} ORDER BY g.at, g.run_id"


async def mark_given_up(db: Connection, finishes: Sequence[Finish]) -> None:
    """Before they are finished: a run that goes back to the queue forgets its node."""
    marked = [finish for finish in finishes if finish.given_up]
    if marked:
        ids, tokens = [finish.id for finish in marked], [finish.token for finish in marked]
        await db.run(_MARK, {"ids": ids, "tokens": tokens, "ats": [finish.finished_at for finish in marked]})


async def mark_removed(db: Connection, id: ScheduleId) -> None:
    """What still runs of a schedule goes on without a row: its node tells when that has ended."""
    await db.run(_MARK_REMOVED, {"id": id})


async def forget_given_up(db: Connection, ended: Sequence[tuple[RunId, int]]) -> None:
    """This code has ended."""
    await db.run(_FORGET, {"ids": [id for id, _ in ended], "tokens": [token for _, token in ended]})


async def list_given_up(db: Connection) -> list[GivenUp]:
    """All of it, the oldest first."""
    return [_load(row) for row in await db.fetch(_LIST)]


def _load(row: Sequence[Any]) -> GivenUp:
    """From _COLUMNS."""
    run, token, schedule, name, node, at = row
    return GivenUp(run, token, schedule or None, name, node, from_micros(at))
