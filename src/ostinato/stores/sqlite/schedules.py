"""Schedules in SQLite, and `record_fires`: the transaction that turns due times into rows of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.replanning import Replan
from ostinato.models.run import NewRun
from ostinato.models.schedule import (
    REMOVED,
    DueSchedule,
    FirePlan,
    Hold,
    RecentRun,
    Schedule,
    ScheduleChange,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleRow,
    ScheduleSort,
    ScheduleState,
)
from ostinato.models.states import Cause
from ostinato.stores.base import Due, Tally
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.ends import wait_for_finish
from ostinato.stores.sqlite.given_up import given_up_of, mark_removed
from ostinato.stores.sqlite.holds import end_changed_holds, end_holds, find_held
from ostinato.stores.sqlite.inserts import insert_fires
from ostinato.stores.sqlite.query import fetch, fetch_value, snapshot
from ostinato.stores.sqlite.replans import replan_now
from ostinato.stores.sqlite.runs import cancel_now
from ostinato.stores.sqlite.schedule_pages import (
    count_states,
    list_rows,
    page_rows,
    recent_runs,
    schedule_history,
    scheduled_tasks,
)
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["SqliteSchedules"]

# `timing` and `zone` together are what a person calls the timing.
_RETIMED = "(excluded.timing, excluded.zone) IS NOT (schedules.timing, schedules.zone)"
_INSERT = """
INSERT INTO schedules (name, timing, zone, work, kind, task, policy, project, owner, origin, enabled, note, anchor_at,
                       next_at, after_finish, remaining, off_note, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, CASE WHEN ?11 THEN ?14 END, ?15, ?16, ?17, ?18, ?18)
ON CONFLICT (name)
"""
_PUT = f"""{_INSERT} DO UPDATE SET
    timing = excluded.timing, zone = excluded.zone, work = excluded.work, kind = excluded.kind, task = excluded.task,
    policy = excluded.policy, project = excluded.project, owner = excluded.owner,
    origin = coalesce(excluded.origin, origin),
    note = coalesce(excluded.note, note), after_finish = excluded.after_finish, orphaned = 0,
    enabled = CASE WHEN {_RETIMED} AND broken IS NOT NULL THEN 1 ELSE enabled END,
    off_note = CASE WHEN {_RETIMED} AND broken IS NOT NULL THEN NULL ELSE off_note END,
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
UPDATE schedules SET next_at = ?1, held_since = coalesce(held_since, ?2), held_cause = ?3, held_reason = ?4,
                     updated_at = ?5
WHERE id = ?6 AND version = ?7 AND next_at = ?2 AND enabled AND broken IS NULL AND NOT orphaned
"""
_LATEST = """
SELECT max(at) FROM (SELECT max(finished_at) AS at FROM runs WHERE finished_at IS NOT NULL
                     UNION ALL SELECT max(updated_at) FROM schedules)
"""
_UNDECLARED = "s.owner = 'code' AND s.origin = ? AND NOT s.orphaned AND s.name NOT IN (SELECT value FROM json_each(?))"
_DETACH = """
UPDATE runs SET schedule_id = NULL, cancel = coalesce(cancel, ?),
                cause = CASE WHEN cancel IS NULL THEN ? ELSE cause END
WHERE schedule_id = ? AND state = 'running' AND mode IS NOT NULL
"""
_OTHERS_RUN = """
SELECT 1 FROM runs WHERE schedule_id = ? AND state = 'running' AND id NOT IN (SELECT value FROM json_each(?)) LIMIT 1
"""
_IN_SESSION = "schedule_id = ? AND state IN ('queued', 'running') AND session IS NOT NULL"


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

    async def insert_schedule(self, draft: ScheduleDraft, now: Micros) -> bool:
        def insert(connection: apsw.Connection) -> bool:
            connection.execute(f"{_INSERT} DO NOTHING", (*_fields(draft), now))
            return bool(connection.changes())

        return await self._database.write(insert, wakes=True)

    async def get_schedule(self, name: str) -> Schedule | None:
        found = await self.list_schedules(ScheduleFilter(names=(name,), sort=ScheduleSort.NAME))
        return found[0] if found else None

    async def list_schedules(self, wanted: ScheduleFilter) -> list[Schedule]:
        rows = await self._database.read(lambda connection: list_rows(connection, wanted))
        return [row.schedule for row in rows]

    async def page_schedules(self, wanted: ScheduleFilter) -> tuple[list[ScheduleRow], int]:
        return await self._database.read(lambda connection: page_rows(connection, wanted))

    async def count_schedules(self, unknown: Sequence[str]) -> dict[ScheduleState, int]:
        return await self._database.read(lambda connection: count_states(connection, unknown))

    async def recent_runs(self, ids: Sequence[ScheduleId], count: int) -> dict[ScheduleId, list[RecentRun]]:
        return await self._database.read(lambda connection: recent_runs(connection, ids, count))

    async def schedule_history(self, id: ScheduleId, since: Micros) -> list[Tally]:
        return await self._database.read(lambda connection: schedule_history(connection, id, since))

    async def count_tasks(self) -> dict[str, int]:
        query = "SELECT task, count(*) FROM schedules WHERE task IS NOT NULL GROUP BY task"
        return dict(await self._database.read(lambda connection: fetch(connection, query)))

    async def scheduled_tasks(self) -> set[str]:
        return await self._database.read(scheduled_tasks)

    async def edit_schedule(self, draft: ScheduleDraft, id: ScheduleId, version: int, now: Micros) -> int | None:
        def edit(connection: apsw.Connection) -> int | None:
            query = "SELECT version FROM schedules WHERE name = ? AND id = ?"
            if fetch(connection, query, (draft.name, id)) != [(version,)]:
                return None
            end_changed_holds(connection, [draft], now)
            connection.execute(_PUT, (*_fields(draft), now))
            wait_for_finish(connection, id, now)
            return int(fetch(connection, query, (draft.name, id))[0][0])

        return await self._database.write(edit, wakes=True)

    async def change_schedule(self, id: ScheduleId, version: int, change: ScheduleChange, now: Micros) -> bool:
        def write(connection: apsw.Connection) -> bool:
            end_holds(connection, find_held(connection, "s.id = ? AND s.version = ?", (id, version)), now)
            connection.execute(
                "UPDATE schedules SET enabled = ?, broken = ?, off_note = ?, anchor_at = ?, next_at = ?, "
                "remaining = ?, failures = 0, version = version + 1, updated_at = ? WHERE id = ? AND version = ?",
                (
                    change.enabled,
                    change.broken,
                    change.off_note,
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
            wait_for_finish(connection, id, now)
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

    async def remove_schedule(
        self, id: ScheduleId, version: int | None = None, spared: Sequence[RunId] | None = None
    ) -> bool:
        def remove(connection: apsw.Connection) -> bool:
            found = fetch(connection, "SELECT version FROM schedules WHERE id = ?", (id,))
            if not found or version not in (None, found[0][0]):
                return False
            if spared is not None and fetch(connection, _OTHERS_RUN, (id, msgspec.json.encode(spared).decode())):
                return False
            sessions = fetch(connection, f"SELECT DISTINCT session FROM runs WHERE {_IN_SESSION}", (id,))
            # What runs in a session of people's holds its turn until it has ended: it is told to, and stays.
            connection.execute(_DETACH, (REMOVED, Cause.REMOVED, id))
            mark_removed(connection, id)
            connection.execute("DELETE FROM schedules WHERE id = ?", (id,))
            give_turns(connection, [session for (session,) in sessions])
            return True

        return await self._database.write(remove, wakes=True)

    async def hold_schedule(self, id: ScheduleId, version: int, hold: Hold, now: Micros) -> bool:
        def write(connection: apsw.Connection) -> bool:
            connection.execute(_HOLD, (hold.next_at, hold.since, hold.cause, hold.reason, now, id, version))
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

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        def look(connection: apsw.Connection) -> Due:
            rows = fetch(
                connection,
                f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.next_at <= ? ORDER BY s.next_at LIMIT ?",
                (horizon, limit),
                exact=not shown,
            )
            ids = [row[0] for row in rows]
            active, waiting = _active_runs(connection, ids)
            given_up = given_up_of(connection, ids)
            due = [
                load_due(row, active.get(row[0], ()), waiting.get(row[0], ()), given_up.get(row[0], ())) for row in rows
            ]
            if len(rows) == limit:
                return Due(due, rows[-1][9])
            later = fetch(connection, "SELECT min(next_at) FROM schedules WHERE next_at > ?", (horizon,))
            return Due(due, later[0][0])

        return await self._database.read(look)

    async def later_schedules(self, now: Micros, after: ScheduleId, limit: int) -> list[DueSchedule]:
        query = f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.id > ? AND s.next_at > ? ORDER BY s.id LIMIT ?"
        rows = await self._database.read(lambda connection: fetch(connection, query, (after, now, limit)))
        return [load_due(row, (), ()) for row in rows]

    async def replan_schedules(self, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
        return await self._database.write(lambda connection: replan_now(connection, plans, now), wakes=True)

    async def latest_write(self) -> Micros | None:
        return await self._database.read(lambda connection: fetch_value(connection, _LATEST))

    async def count_due(self, edges: Sequence[Micros]) -> list[int]:
        # Each a range of the index: a GROUP BY would sort.
        query = "SELECT count(*) FROM schedules WHERE next_at >= ? AND next_at < ?"

        def count(connection: apsw.Connection) -> list[int]:
            with snapshot(connection):
                return [fetch_value(connection, query, span) for span in pairwise(edges)]

        return await self._database.read(count)

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> list[ScheduleId]:
        def record(connection: apsw.Connection) -> list[ScheduleId]:
            moved: list[ScheduleId] = []
            changed: list[ScheduleId] = []
            held = {id for (id,) in fetch(connection, "SELECT id FROM schedules WHERE held_since IS NOT NULL")}
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
                    if plan.schedule_id in held or not plan.enabled or plan.broken is not None:
                        changed.append(plan.schedule_id)
                    if plan.ending is not None:
                        cancel_now(connection, plan.cancel, plan.ending, now)
            # Only of these: a fire is no change, and its update leaves the index of changes alone.
            connection.executemany("UPDATE schedules SET updated_at = ? WHERE id = ?", [(now, id) for id in changed])
            insert_fires(connection, runs, now)
            return moved

        return await self._database.write(record, wakes=True)


_fields = attrgetter(
    *("name", "timing", "zone", "work", "kind", "task", "policy", "project", "owner", "origin", "enabled", "note"),
    *("anchor_at", "next_at", "after_finish", "remaining", "off_note"),
)
"""A draft's values in the order of _PUT."""


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
