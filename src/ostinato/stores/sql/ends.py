"""The due time that counts from the end of a run, inside the caller's transaction. What follows from an end besides is
in each store's ends.py."""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.stores.sql.connection import Connection

__all__ = ["wait_for_finish"]

_LOCK = "SELECT id FROM schedules WHERE id = :id AND after_finish IS NOT NULL FOR NO KEY UPDATE"
_WAIT = """
UPDATE schedules SET next_at = NULL
WHERE id = :id AND after_finish IS NOT NULL AND held_since IS NULL AND next_at > :now
  AND EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))
"""


async def wait_for_finish(db: Connection, schedule_id: ScheduleId | None, now: Micros) -> None:
    """Take back the next due time of a schedule that counts from the end of its last run, if that is to come."""
    # Locked in a statement of its own: who ends another run of it meanwhile is seen, or waits and sees ours.
    await db.run(_LOCK, {"id": schedule_id})
    await db.run(_WAIT, {"id": schedule_id, "now": now})
