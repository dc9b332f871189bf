"""What schedules and runs say of tasks, each from an index: few rows are read, however many schedules call a task.

Called by schedules.py and runs.py, inside a read.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.task import RunningTask, TaskSchedule
from ostinato.stores.rows import moment
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.followers import DUE_BY_ITSELF
from ostinato.timing.calendar_days import folded

__all__ = ["next_of_tasks", "running_tasks", "task_schedules"]

_FEW = 1_000
"""So many schedules of one task are looked at one by one. Of more, the next is found among all that are due next."""

_RUNNING = "SELECT task, count(*), min(started_at) FROM runs WHERE state = 'running' AND task IS NOT NULL GROUP BY task"
_DUE = f"CASE WHEN TRUE {DUE_BY_ITSELF} THEN s.next_at END AS next_at"
_SCHEDULES = f"SELECT name, timing, zone, enabled, broken, {_DUE} FROM schedules s WHERE task = :task LIMIT :limit"
_NEXT_OF_FEW = f"""
SELECT count(*), min(few.next_at) FROM (SELECT {_DUE} FROM schedules s WHERE task = :task LIMIT {_FEW + 1}) few
"""
# By a sum, so that it goes along the due times and not over all schedules of the task.
_NEXT_OF_MANY = f"""
SELECT next_at FROM schedules s WHERE next_at IS NOT NULL {DUE_BY_ITSELF} AND task || '' = :task
ORDER BY next_at LIMIT 1
"""


async def running_tasks(db: Connection) -> dict[str, RunningTask]:
    """The tasks that have runs under way."""
    return {task: RunningTask(count, moment(since)) for task, count, since in await db.fetch(_RUNNING)}


async def task_schedules(db: Connection, tasks: Sequence[str], limit: int) -> dict[str, list[TaskSchedule]]:
    """The schedules that call each of these tasks, `limit` of each at most; the soonest first."""
    found = {}
    async with db.snapshot():
        for task in tasks:
            rows = await db.fetch(_SCHEDULES, {"task": task, "limit": limit})
            rows = sorted(rows, key=lambda row: (row[5] is None, row[5] or 0, row[0]))
            found[task] = [
                TaskSchedule(name, folded(timing), zone, bool(enabled), broken, moment(next_at))
                for name, timing, zone, enabled, broken, next_at in rows
            ]
    return found


async def next_of_tasks(db: Connection, tasks: Sequence[str]) -> dict[str, Micros]:
    """When the next schedule of each of these tasks is due; those that have none are left out."""
    found: dict[str, Micros] = {}
    async with db.snapshot():
        for task in tasks:
            ((count, next_at),) = await db.fetch(_NEXT_OF_FEW, {"task": task})
            if count > _FEW:
                rows = await db.fetch(_NEXT_OF_MANY, {"task": task})
                next_at = rows[0][0] if rows else None
            if next_at is not None:
                found[task] = next_at
    return found
