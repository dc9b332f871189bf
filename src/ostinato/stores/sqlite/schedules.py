"""What is due in SQLite, and `record_fires`: the transaction that turns due times into rows of the ledger.

Everything else about schedules is in stores.sql.schedules.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import Notice
from ostinato.models.run import NewRun
from ostinato.models.schedule import FirePlan
from ostinato.stores.base import Due, Fired
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.followers import DUE_BY_ITSELF
from ostinato.stores.sql.schedules import Schedules
from ostinato.stores.sql.telling import tell
from ostinato.stores.sql.upstreams import answer_ends, unanswered, with_ends
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.given_up import given_up_of
from ostinato.stores.sqlite.query import Connection, fetch

__all__ = ["SqliteSchedules"]


class SqliteSchedules(Schedules[Connection]):
    """Answers stores.base.ScheduleStore."""

    _database: Database

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        async def look(connection: Connection) -> Due:
            rows = fetch(
                connection,
                f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.next_at <= ? {DUE_BY_ITSELF if shown else ''} "
                "ORDER BY s.next_at LIMIT ?",
                (horizon, limit),
                exact=not shown,
            )
            ids = [row[0] for row in rows]
            active, waiting = _active_runs(connection, ids)
            given_up = given_up_of(connection, ids)
            due = [
                load_due(row, active.get(row[0], ()), waiting.get(row[0], ()), given_up.get(row[0], ())) for row in rows
            ]
            due = await with_ends(connection, due)
            if len(rows) == limit:
                return Due(due, rows[-1][9])
            later = fetch(connection, "SELECT min(next_at) FROM schedules WHERE next_at > ?", (horizon,))
            return Due(due, later[0][0])

        return await self._database.read(look)

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> Fired:
        async def record(connection: Connection) -> Fired:
            moved: list[ScheduleId] = []
            changed: list[ScheduleId] = []
            held = {id for (id,) in fetch(connection, "SELECT id FROM schedules WHERE paused_since IS NOT NULL")}
            runs: list[NewRun] = []
            following: list[FirePlan] = []
            notices: list[Notice] = []
            for plan in await unanswered(connection, plans):
                connection.execute(
                    "UPDATE schedules SET next_at = ?, remaining = ?, enabled = ?, broken = ?, "
                    "paused_since = NULL, paused_reason = NULL, "
                    "version = version + (enabled <> ? OR broken IS NOT ?) "
                    "WHERE id = ? AND next_at = ? AND version = ? AND NOT (? AND EXISTS "
                    "(SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running')))",
                    (
                        plan.next_at,
                        plan.remaining,
                        plan.enabled,
                        plan.broken,
                        plan.enabled,
                        plan.broken,
                        plan.schedule_id,
                        plan.read_next_at,
                        plan.version,
                        plan.idle,
                    ),
                )
                if connection.changes():
                    moved.append(plan.schedule_id)
                    if plan.follows:
                        following.append(plan)
                    else:
                        runs.extend(plan.runs)
                    notices.extend(plan.notices)
                    if plan.schedule_id in held or not plan.enabled or plan.broken is not None:
                        changed.append(plan.schedule_id)
                    if plan.ending is not None:
                        await cancel_now(connection, self._parts, plan.cancel, plan.ending, now)
            # Only of these: a fire is no change, and its update leaves the index of changes alone.
            connection.executemany("UPDATE schedules SET updated_at = ? WHERE id = ?", [(now, id) for id in changed])
            await self._parts.insert_fires(connection, runs, now)
            await answer_ends(connection, self._parts, following, now)
            return Fired(moved, await tell(connection, notices, now))

        return await self._database.write(record, wakes=True)


def _active_runs(
    connection: Connection, ids: list[int]
) -> tuple[dict[int, tuple[RunId, ...]], dict[int, tuple[RunId, ...]]]:
    """By schedule: the runs that are under way or may start, and those that wait for their turn."""
    active: dict[int, tuple[RunId, ...]] = {}
    waiting: dict[int, tuple[RunId, ...]] = {}
    if ids:
        rows = fetch(
            connection,
            "SELECT schedule_id, id, waiting FROM runs WHERE schedule_id IN (SELECT value FROM json_each(?)) "
            "AND state IN ('queued', 'running') ORDER BY id",
            (msgspec.json.encode(ids).decode(),),
        )
        for schedule_id, run_id, waits in rows:
            found = waiting if waits else active
            found[schedule_id] = (*found.get(schedule_id, ()), run_id)
    return active, waiting
