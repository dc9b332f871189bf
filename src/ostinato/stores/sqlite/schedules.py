"""Schedules in SQLite, and `record_fires`: the transaction that turns due times into rows of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import NewRun
from ostinato.models.schedule import REMOVED, FirePlan, Hold, Schedule, ScheduleChange, ScheduleDraft, ScheduleFilter
from ostinato.stores.base import Due
from ostinato.stores.rows import DUE_COLUMNS, RUN_COLUMNS, SCHEDULE_COLUMNS, load_due, load_run, load_schedule
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.holds import end_changed_holds, end_holds, find_held
from ostinato.stores.sqlite.inserts import insert_fires
from ostinato.stores.sqlite.query import fetch
from ostinato.stores.sqlite.runs import cancel_now
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["SqliteSchedules"]

# `timing` and `zone` together are what a person calls the timing.
_RETIMED = "(excluded.timing, excluded.zone) IS NOT (schedules.timing, schedules.zone)"
_PUT = f"""
INSERT INTO schedules (name, timing, zone, work, kind, task, policy, project, owner, origin, enabled, note, anchor_at,
                       next_at, after_finish, remaining, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, CASE WHEN ?11 THEN ?14 END, ?15, ?16, ?17, ?17)
ON CONFLICT (name) DO UPDATE SET
    timing = excluded.timing, zone = excluded.zone, work = excluded.work, kind = excluded.kind, task = excluded.task,
    policy = excluded.policy, project = excluded.project, owner = excluded.owner,
    origin = coalesce(excluded.origin, origin),
    note = coalesce(excluded.note, note), after_finish = excluded.after_finish, orphaned = 0,
    enabled = CASE WHEN {_RETIMED} AND broken IS NOT NULL THEN 1 ELSE enabled END,
    anchor_at = CASE WHEN {_RETIMED} THEN excluded.anchor_at ELSE anchor_at END,
    next_at = CASE
        WHEN NOT ({_RETIMED} OR orphaned) THEN next_at
        WHEN enabled OR broken IS NOT NULL THEN ?14
    END,
    broken = CASE WHEN {_RETIMED} THEN NULL ELSE broken END,
    failures = CASE WHEN {_RETIMED} THEN 0 ELSE failures END,
    remaining = CASE WHEN excluded.policy IS NOT policy OR {_RETIMED} THEN excluded.remaining ELSE remaining END,
    version = version + 1, updated_at = excluded.updated_at
WHERE {_RETIMED} OR orphaned OR (excluded.note IS NOT NULL AND excluded.note IS NOT note)
   OR (excluded.origin IS NOT NULL AND excluded.origin IS NOT origin)
   OR (excluded.work, excluded.policy, excluded.project, excluded.owner) IS NOT (work, policy, project, owner)
"""
# Only what would still be due at `since`: a fire that was recorded meanwhile has moved it on.
_HOLD = """
UPDATE schedules SET next_at = ?1, held_since = coalesce(held_since, ?2), held_reason = ?3, updated_at = ?4
WHERE id = ?5 AND version = ?6 AND next_at = ?2 AND enabled AND broken IS NULL AND NOT orphaned
"""
_UNDECLARED = "s.owner = 'code' AND s.origin = ? AND NOT s.orphaned AND s.name NOT IN (SELECT value FROM json_each(?))"
_DETACH = """
UPDATE runs SET schedule_id = NULL, cancel = coalesce(cancel, ?)
WHERE schedule_id = ? AND state = 'running' AND mode IS NOT NULL
"""
_IN_SESSION = "schedule_id = ? AND state IN ('queued', 'running') AND session IS NOT NULL"
_RUN = 1 + len(SCHEDULE_COLUMNS.split(","))
"""Where the last run begins in a row: after the schedule, and whether something of it is active."""
_ACTIVE = "EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))"


class SqliteSchedules:
    """Answers stores.base.ScheduleStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_schedules(self, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
        rows = [(*_fields(draft), now) for draft in drafts]

        def put(connection: apsw.Connection) -> None:
            end_changed_holds(connection, drafts, now)
            connection.executemany(_PUT, rows)

        await self._database.write(put, wakes=True)

    async def get_schedule(self, name: str) -> Schedule | None:
        found = await self.list_schedules(ScheduleFilter(names=(name,)))
        return found[0] if found else None

    async def list_schedules(self, wanted: ScheduleFilter) -> list[Schedule]:
        clauses: list[str] = []
        values: dict[str, Any] = {}
        if wanted.names:
            clauses.append("s.name IN (SELECT value FROM json_each(:names))")
            values["names"] = msgspec.json.encode(wanted.names).decode()
        if wanted.search:
            clauses.append("instr(lower(s.name), lower(:search)) > 0")
            values["search"] = wanted.search
        if wanted.owner is not None:
            clauses.append("s.owner = :owner")
            values["owner"] = wanted.owner
        if wanted.project is not None:
            clauses.append("s.project = :project")
            values["project"] = wanted.project
        if wanted.enabled is not None:
            clauses.append("s.enabled = :enabled")
            values["enabled"] = wanted.enabled
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        limit = f"LIMIT {int(wanted.limit)}" if wanted.limit is not None else ""
        query = f"""
            SELECT {SCHEDULE_COLUMNS}, {_ACTIVE}, {RUN_COLUMNS} FROM schedules s
            LEFT JOIN runs r ON r.id = (SELECT max(id) FROM runs WHERE schedule_id = s.id)
            {where} ORDER BY s.next_at IS NULL, s.next_at, s.name {limit}"""
        rows = await self._database.read(lambda connection: fetch(connection, query, values))
        return [_load(row) for row in rows]

    async def change_schedule(self, id: ScheduleId, version: int, change: ScheduleChange, now: Micros) -> bool:
        def write(connection: apsw.Connection) -> bool:
            end_holds(connection, find_held(connection, "s.id = ? AND s.version = ?", (id, version)), now)
            connection.execute(
                "UPDATE schedules SET enabled = ?, broken = ?, note = ?, anchor_at = ?, next_at = ?, remaining = ?, "
                "failures = 0, version = version + 1, updated_at = ? "
                "WHERE id = ? AND version = ?",
                (
                    change.enabled,
                    change.broken,
                    change.note,
                    change.anchor_at,
                    change.next_at,
                    change.remaining,
                    now,
                    id,
                    version,
                ),
            )
            if not connection.changes():
                return False
            if not change.enabled:
                # Recorded ahead of its due time, which for a disabled schedule never comes.
                rows = fetch(
                    connection,
                    "DELETE FROM runs WHERE schedule_id = ? AND state = 'queued' AND trigger = 'schedule' "
                    "AND due_at > ? RETURNING session",
                    (id, now),
                )
                give_turns(connection, {session for (session,) in rows if session is not None})
            return True

        return await self._database.write(write, wakes=True)

    async def remove_schedule(self, id: ScheduleId) -> bool:
        def remove(connection: apsw.Connection) -> bool:
            sessions = fetch(connection, f"SELECT DISTINCT session FROM runs WHERE {_IN_SESSION}", (id,))
            # What runs in a session of people's holds its turn until it has ended: it is told to, and stays.
            connection.execute(_DETACH, (REMOVED, id))
            connection.execute("DELETE FROM schedules WHERE id = ?", (id,))
            is_removed = bool(connection.changes())
            give_turns(connection, [session for (session,) in sessions])
            return is_removed

        return await self._database.write(remove, wakes=True)

    async def hold_schedule(self, id: ScheduleId, version: int, hold: Hold, now: Micros) -> bool:
        def write(connection: apsw.Connection) -> bool:
            connection.execute(_HOLD, (hold.next_at, hold.since, hold.reason, now, id, version))
            return bool(connection.changes())

        return await self._database.write(write)

    async def mark_orphans(self, origin: str, declared: Sequence[str], now: Micros) -> list[str]:
        values = (now, origin, msgspec.json.encode(declared).decode())

        def mark(connection: apsw.Connection) -> list[str]:
            end_holds(connection, find_held(connection, _UNDECLARED, values[1:]), now)
            rows = fetch(
                connection,
                "UPDATE schedules AS s SET orphaned = 1, next_at = NULL, version = version + 1, updated_at = ? "
                f"WHERE {_UNDECLARED} RETURNING name",
                values,
            )
            return sorted(name for (name,) in rows)

        return await self._database.write(mark)

    async def due_schedules(self, horizon: Micros, limit: int) -> Due:
        def look(connection: apsw.Connection) -> Due:
            rows = fetch(
                connection,
                f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.next_at <= ? ORDER BY s.next_at LIMIT ?",
                (horizon, limit),
            )
            active, waiting = _active_runs(connection, [row[0] for row in rows])
            due = [load_due(row, active.get(row[0], ()), waiting.get(row[0], ())) for row in rows]
            if len(rows) == limit:
                return Due(due, rows[-1][9])
            later = fetch(connection, "SELECT min(next_at) FROM schedules WHERE next_at > ?", (horizon,))
            return Due(due, later[0][0])

        return await self._database.read(look)

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> list[ScheduleId]:
        def record(connection: apsw.Connection) -> list[ScheduleId]:
            moved: list[ScheduleId] = []
            runs: list[NewRun] = []
            for plan in plans:
                connection.execute(
                    "UPDATE schedules SET next_at = ?, remaining = ?, enabled = ?, broken = ?, "
                    "held_since = NULL, held_reason = NULL, "
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
                    runs.extend(plan.runs)
                    if plan.cancel:
                        cancel_now(connection, plan.cancel, plan.cancel_reason or "cancelled", now)
            insert_fires(connection, runs, now)
            return moved

        return await self._database.write(record, wakes=True)


_fields = attrgetter(
    *("name", "timing", "zone", "work", "kind", "task", "policy", "project", "owner", "origin", "enabled", "note"),
    *("anchor_at", "next_at", "after_finish", "remaining"),
)
"""A draft's values in the order of _PUT."""


def _load(row: tuple[Any, ...]) -> Schedule:
    last_run = load_run(row[_RUN:]) if row[_RUN] is not None else None
    return load_schedule(row[: _RUN - 1], last_run, bool(row[_RUN - 1]))


def _active_runs(
    connection: apsw.Connection, ids: list[int]
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
