"""Schedules of PostgreSQL after the clock was set back, inside the caller's transaction: planned anew by the new time.

What was recorded for due times that have not come, and was never executed, is taken back: those due times come again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.replanning import Replan, has_come
from ostinato.stores.base import RECORDED_AHEAD
from ostinato.stores.postgres.query import Connection, fetch

__all__ = ["replan_now"]

_MOVE = """
UPDATE schedules SET next_at = %s, anchor_at = %s, updated_at = %s
WHERE id = %s AND next_at = %s AND version = %s AND enabled AND broken IS NULL AND held_since IS NULL
RETURNING id
"""
_UNEXECUTED = """
schedule_id = %s AND trigger IN ('schedule', 'catch_up') AND state IN ('missed', 'skipped') AND started_at IS NULL
"""
_HASTEN = """
UPDATE runs SET ready_at = %(now)s WHERE schedule_id = %(id)s AND state = 'queued' AND ready_at > %(now)s
   AND (due_at > %(ahead)s OR EXISTS (SELECT 1 FROM attempts a WHERE a.run_id = runs.id AND a.finished_at > %(ahead)s))
"""


async def replan_now(connection: Connection, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
    """Plan these schedules anew; answers those that still were as they were read."""
    moved: list[ScheduleId] = []
    for plan in plans:
        read = plan.schedule
        values = (plan.next_at, plan.anchor_at, now, plan.id, read.next_at, read.version)
        if not await fetch(connection, _MOVE, values):
            continue
        moved.append(plan.id)
        await connection.execute(f"DELETE FROM runs WHERE {_UNEXECUTED} AND due_at > %s", (plan.id, now))
        query = f"SELECT id, due_at FROM runs WHERE {_UNEXECUTED} AND due_at <= %s AND last_due_at > %s"
        for id, due_at in await fetch(connection, query, (plan.id, now, now)):
            last, count = has_come(read, due_at, now)
            await connection.execute("UPDATE runs SET last_due_at = %s, count = %s WHERE id = %s", (last, count, id))
        await connection.execute(_HASTEN, {"now": now, "id": plan.id, "ahead": now + RECORDED_AHEAD})
    return moved
