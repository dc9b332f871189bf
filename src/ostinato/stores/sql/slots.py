"""Slots in lanes that waiting runs lend to what they wait for, so that a lane full of them does not wait for ever.

A run that waits inside of its work executes nothing meanwhile, and the run that it waits for ends before it goes on:
with its slot lent to that one, the lane still executes no more at once than its limit. Each store's claims.py reads it.
"""

from __future__ import annotations

from ostinato.models.ids import RunId
from ostinato.models.run import OuterRun
from ostinato.stores.sql.connection import Connection

__all__ = ["BORROWED", "lend_slot", "take_back_slot"]

BORROWED = """(
    SELECT count(*) FROM runs b WHERE b.state = 'running' AND b.lane = {lane} AND b.slot_of IS NOT NULL
      AND EXISTS (SELECT 1 FROM runs o WHERE o.id = b.slot_of AND o.state = 'running')
)"""
"""How many runs of a lane use a slot that is counted as another's."""

# One at a time: it has one slot. The node tells that it is a run of this database.
_LEND = f"""
UPDATE runs SET slot_of = :outer
WHERE id = :id AND state = 'queued' AND (session IS NOT NULL OR waiting = FALSE) AND EXISTS (
    SELECT 1 FROM runs o JOIN lanes l ON l.name = o.lane
    WHERE o.id = :outer AND o.state = 'running' AND o.node = :node AND o.lane = runs.lane
      AND (SELECT count(*) FROM runs r WHERE r.state = 'running' AND r.lane = o.lane)
          - {BORROWED.format(lane="o.lane")} >= l.max_running
      AND NOT EXISTS (
        SELECT 1 FROM runs b WHERE b.state IN ('queued', 'running') AND b.lane = o.lane AND b.slot_of = o.id
      )
) RETURNING lane
"""
_TAKE_BACK = "UPDATE runs SET slot_of = NULL WHERE id = :id AND slot_of = :outer AND state IN ('queued', 'running')"


async def lend_slot(db: Connection, outer: OuterRun, to: RunId) -> str | None:
    """Lend the slot of a run that waits for this one, if both are in one lane that is full; answers which."""
    rows = await db.fetch(_LEND, {"id": to, "outer": outer.id, "node": outer.node})
    return str(rows[0][0]) if rows else None


async def take_back_slot(db: Connection, outer: OuterRun, to: RunId) -> None:
    """It waits no longer, though that has not ended."""
    await db.run(_TAKE_BACK, {"id": to, "outer": outer.id})
