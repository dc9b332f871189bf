"""What was given up and goes on. Each store's finishes.py marks it, claims.py and schedules.py look at it."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId, ScheduleId
from ostinato.stores.given_up import GIVEN_UP_COLUMNS, LIVING, load_given_up
from ostinato.stores.sql.connection import Connection

__all__ = ["COUNT_GIVEN_UP", "forget_given_up", "list_given_up", "mark_removed"]

COUNT_GIVEN_UP = f"SELECT count(*) FROM {LIVING} JOIN schedules s ON s.name = g.schedule WHERE s.id = :id"
_MARK_REMOVED = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT s.name, r.id, r.token, s.name, r.node, r.started_at
FROM runs r JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL JOIN schedules s ON s.id = r.schedule_id
WHERE s.id = :id AND r.state = 'running' AND r.mode IS NULL ON CONFLICT DO NOTHING
"""
_FORGET = """
DELETE FROM given_up WHERE (run_id, token) IN (SELECT * FROM unnest(:ids::bigint[], :tokens::bigint[]) f (id, token))
"""
_LIST = f"SELECT {GIVEN_UP_COLUMNS} FROM {LIVING} ORDER BY g.at, g.run_id"


async def mark_removed(db: Connection, id: ScheduleId) -> None:
    """What still runs of a schedule goes on without a row: its node tells when that has ended."""
    await db.run(_MARK_REMOVED, {"id": id})


async def forget_given_up(db: Connection, ended: Sequence[tuple[RunId, int]]) -> None:
    """This code has ended."""
    await db.run(_FORGET, {"ids": [id for id, _ in ended], "tokens": [token for _, token in ended]})


async def list_given_up(db: Connection) -> list[GivenUp]:
    """All of it, the oldest first."""
    return [load_given_up(row) for row in await db.fetch(_LIST)]
