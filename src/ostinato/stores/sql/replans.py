"""Schedules after the clock was set back, inside the caller's transaction: planned anew by the new time.

What was recorded for due times that have not come, and was never executed, is taken back: those due times come again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.replanning import Replan, has_come
from ostinato.stores.base import RECORDED_AHEAD
from ostinato.stores.sql.connection import Connection

__all__ = ["replan_now"]

_MOVE = """
UPDATE schedules SET next_at = :next_at, anchor_at = :anchor_at, updated_at = :now
WHERE id = :id AND next_at = :read_next_at AND version = :version AND enabled AND broken IS NULL
  AND paused_since IS NULL RETURNING id
"""
_UNEXECUTED = """
schedule_id = :id AND trigger IN ('schedule', 'catch_up') AND state IN ('missed', 'skipped') AND started_at IS NULL
"""
_FORGET = f"DELETE FROM runs WHERE {_UNEXECUTED} AND due_at > :now"
_ASTRIDE = f"SELECT id, due_at FROM runs WHERE {_UNEXECUTED} AND due_at <= :now AND last_due_at > :now"
_SHORTEN = "UPDATE runs SET last_due_at = :last_due_at, count = :count WHERE id = :id"
_HASTEN = """
UPDATE runs SET ready_at = :now WHERE schedule_id = :id AND state = 'queued' AND ready_at > :now
   AND (due_at > :ahead OR EXISTS (SELECT 1 FROM attempts a WHERE a.run_id = runs.id AND a.finished_at > :ahead))
"""


async def replan_now(db: Connection, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
    """Plan these schedules anew; answers those that still were as they were read."""
    moved: list[ScheduleId] = []
    for plan in plans:
        read = plan.schedule
        values = {"id": plan.id, "now": now, "ahead": now + RECORDED_AHEAD, "version": read.version}
        values |= {"next_at": plan.next_at, "anchor_at": plan.anchor_at, "read_next_at": read.next_at}
        if not await db.fetch(_MOVE, values):
            continue
        moved.append(plan.id)
        await db.run(_FORGET, values)
        for id, due_at in await db.fetch(_ASTRIDE, values):
            last, count = has_come(read, due_at, now)
            await db.run(_SHORTEN, {"id": id, "last_due_at": last, "count": count})
        await db.run(_HASTEN, values)
    return moved
