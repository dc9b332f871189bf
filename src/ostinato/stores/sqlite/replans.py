"""Schedules of SQLite after the clock was set back, inside the caller's transaction: planned anew by the new time.

What was recorded for due times that have not come, and was never executed, is taken back: those due times come again.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.replanning import Replan, has_come
from ostinato.stores.base import RECORDED_AHEAD
from ostinato.stores.sqlite.query import fetch

__all__ = ["replan_now"]

_MOVE = """
UPDATE schedules SET next_at = ?, anchor_at = ?, updated_at = ?
WHERE id = ? AND next_at = ? AND version = ? AND enabled AND broken IS NULL AND held_since IS NULL
"""
_UNEXECUTED = """
schedule_id = ? AND trigger IN ('schedule', 'catch_up') AND state IN ('missed', 'skipped') AND started_at IS NULL
"""
_HASTEN = """
UPDATE runs SET ready_at = ?1 WHERE schedule_id = ?2 AND state = 'queued' AND ready_at > ?1
   AND (due_at > ?3 OR EXISTS (SELECT 1 FROM attempts a WHERE a.run_id = runs.id AND a.finished_at > ?3))
"""


def replan_now(connection: apsw.Connection, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
    """Plan these schedules anew; answers those that still were as they were read."""
    moved: list[ScheduleId] = []
    for plan in plans:
        read = plan.schedule
        connection.execute(_MOVE, (plan.next_at, plan.anchor_at, now, plan.id, read.next_at, read.version))
        if not connection.changes():
            continue
        moved.append(plan.id)
        connection.execute(f"DELETE FROM runs WHERE {_UNEXECUTED} AND due_at > ?", (plan.id, now))
        query = f"SELECT id, due_at FROM runs WHERE {_UNEXECUTED} AND due_at <= ? AND last_due_at > ?"
        for id, due_at in fetch(connection, query, (plan.id, now, now)):
            last, count = has_come(read, due_at, now)
            connection.execute("UPDATE runs SET last_due_at = ?, count = ? WHERE id = ?", (last, count, id))
        connection.execute(_HASTEN, (now, plan.id, now + RECORDED_AHEAD))
    return moved
