"""What was given up and goes on. Each store's finishes.py marks it, claims.py and schedules.py look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import from_micros
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId, ScheduleId
from ostinato.stores.sql.connection import Connection

__all__ = ["ALLOWS", "COUNT_GIVEN_UP", "LIVING", "forget_given_up", "list_given_up", "mark_removed"]

_COLUMNS = "g.run_id, g.token, g.schedule, g.name, g.node, g.at"
LIVING = "given_up g JOIN nodes n ON n.id = g.node AND n.lost_at IS NULL"
"""A process that is gone took its threads along."""
ALLOWS = '"overlap":"allow"'
"""What the policy of a run says that may start beside others. It is looked for as a text: no bad row is in the way."""
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
_LIST = f"SELECT {_COLUMNS} FROM {LIVING} ORDER BY g.at, g.run_id"


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
