"""Schedules in PostgreSQL, and `record_fires`: the transaction that turns due times into rows of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.replanning import Replan
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
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.ends import wait_for_finish
from ostinato.stores.postgres.given_up import GIVEN_UP_OF, mark_removed
from ostinato.stores.postgres.holds import end_changed_holds, end_holds, find_held
from ostinato.stores.postgres.inserts import insert_fires
from ostinato.stores.postgres.query import Connection, Row, booleans, fetch, fetch_value, numbers, readable, texts
from ostinato.stores.postgres.replans import replan_now
from ostinato.stores.postgres.runs import cancel_now
from ostinato.stores.postgres.schedule_pages import (
    count_states,
    list_rows,
    page_rows,
    recent_runs,
    schedule_history,
    scheduled_tasks,
)
from ostinato.stores.postgres.turns import give_turns, lock_sessions
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.rows import DUE_COLUMNS, load_due

__all__ = ["PostgresSchedules"]

# `timing` and `zone` together are what a person calls the timing.
_RETIMED = "((excluded.timing, excluded.zone) IS DISTINCT FROM (s.timing, s.zone))"
# Held since end_changed_holds has looked, and not one that it left alone: no due time has been left out yet.
_JUST_HELD = "(s.held_since IS NOT NULL AND excluded.policy IS DISTINCT FROM s.policy AND s.name <> ALL (%s::text[]))"
_PUT_COLUMNS = (
    "name, timing, zone, work, kind, task, policy, project, owner, origin, enabled, note, anchor_at, next_at, "
    "after_finish, remaining, off_note"
)
_INSERT_UNLESS = f"""
INSERT INTO schedules AS s ({_PUT_COLUMNS}, created_at, updated_at)
SELECT {_PUT_COLUMNS}, %s::bigint, %s::bigint FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
    %s::text[], %s::boolean[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::text[]
) n ({_PUT_COLUMNS}) {{unless}} ORDER BY name
ON CONFLICT (name)
"""
_PUT_UNLESS = f"""{_INSERT_UNLESS} DO UPDATE SET
    timing = excluded.timing, zone = excluded.zone, work = excluded.work, kind = excluded.kind, task = excluded.task,
    policy = excluded.policy, project = excluded.project, owner = excluded.owner,
    origin = coalesce(excluded.origin, s.origin),
    note = coalesce(excluded.note, s.note), after_finish = excluded.after_finish, orphaned = false,
    enabled = CASE WHEN {_RETIMED} AND s.broken IS NOT NULL THEN true ELSE s.enabled END,
    off_note = CASE WHEN {_RETIMED} AND s.broken IS NOT NULL THEN NULL ELSE s.off_note END,
    anchor_at = CASE WHEN {_RETIMED} THEN excluded.anchor_at ELSE s.anchor_at END,
    next_at = CASE
        WHEN NOT ({_RETIMED} OR s.orphaned) THEN CASE WHEN {_JUST_HELD} THEN s.held_since ELSE s.next_at END
        WHEN s.enabled OR s.broken IS NOT NULL THEN excluded.next_at
    END,
    broken = CASE WHEN {_RETIMED} THEN NULL ELSE s.broken END,
    held_since = CASE WHEN {_RETIMED} OR {_JUST_HELD} THEN NULL ELSE s.held_since END,
    held_reason = CASE WHEN {_RETIMED} OR {_JUST_HELD} THEN NULL ELSE s.held_reason END,
    failures = CASE WHEN {_RETIMED} THEN 0 ELSE s.failures END,
    remaining = CASE
        WHEN excluded.policy IS DISTINCT FROM s.policy OR {_RETIMED} THEN excluded.remaining ELSE s.remaining
    END,
    version = s.version + 1, updated_at = excluded.updated_at
WHERE {_RETIMED} OR s.orphaned OR (excluded.note IS NOT NULL AND excluded.note IS DISTINCT FROM s.note)
   OR (excluded.origin IS NOT NULL AND excluded.origin IS DISTINCT FROM s.origin)
   OR (excluded.work, excluded.policy, excluded.project, excluded.owner)
      IS DISTINCT FROM (s.work, s.policy, s.project, s.owner)
"""
_PUT = _PUT_UNLESS.format(unless="")
_INSERT = f"{_INSERT_UNLESS.format(unless='')} DO NOTHING RETURNING s.id"
# Does nothing where one of them is held: what it left out needs its row first. The answer says so.
_PUT_FREE = f"""
WITH held AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM schedules WHERE held_since IS NOT NULL AND name = ANY (%s::text[])) AS found
), put AS ({_PUT_UNLESS.format(unless="WHERE NOT (SELECT found FROM held)")})
SELECT found FROM held
"""
# A new schedule that is disabled has no due time; an old one that a person enabled takes the draft's.
_NOT_DUE = "UPDATE schedules SET next_at = NULL WHERE name = ANY (%s::text[]) AND NOT enabled AND next_at IS NOT NULL"
_ACTIVE = "EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))"
_CHANGE = """
UPDATE schedules SET enabled = %s, broken = %s, off_note = %s, anchor_at = %s, next_at = %s, remaining = %s,
                     failures = 0, version = version + 1, updated_at = %s
WHERE id = %s AND version = %s RETURNING id
"""
# Only what would still be due at `since`: a fire that was recorded meanwhile has moved it on.
_HOLD = """
UPDATE schedules SET next_at = %(next_at)s, held_since = coalesce(held_since, %(since)s), held_cause = %(cause)s,
                     held_reason = %(reason)s, updated_at = %(now)s
WHERE id = %(id)s AND version = %(version)s AND next_at = %(since)s AND enabled AND broken IS NULL AND NOT orphaned
RETURNING id
"""
_TAKE_BACK = """
DELETE FROM runs WHERE schedule_id = %s AND state = 'queued' AND trigger = 'schedule' AND due_at > %s
RETURNING session
"""
_DETACH = """
UPDATE runs SET schedule_id = NULL, cancel = coalesce(cancel, %s),
                cause = CASE WHEN cancel IS NULL THEN %s ELSE cause END
WHERE schedule_id = %s AND state = 'running' AND mode IS NOT NULL
"""
_OTHERS_RUN = """
SELECT 1 FROM runs WHERE schedule_id = %s AND state = 'running' AND id <> ALL (%s::bigint[]) LIMIT 1
"""
_SESSIONS = """
SELECT DISTINCT session FROM runs
WHERE schedule_id = %s AND state IN ('queued', 'running') AND session IS NOT NULL
"""
_UNDECLARED = "s.owner = 'code' AND s.origin = %s AND NOT s.orphaned AND s.name <> ALL (%s::text[])"
_ORPHAN = f"""
UPDATE schedules s SET orphaned = true, next_at = NULL, held_since = NULL, held_reason = NULL,
                       version = version + 1, updated_at = %s
WHERE {_UNDECLARED} RETURNING name
"""
_DUE = f"""
SELECT {DUE_COLUMNS},
       ARRAY(SELECT id FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running') AND NOT waiting
             ORDER BY id),
       ARRAY(SELECT id FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running') AND waiting ORDER BY id),
       {GIVEN_UP_OF}
FROM schedules s WHERE s.next_at <= %s ORDER BY s.next_at LIMIT %s
"""
# Each a range of the index: a GROUP BY would sort.
_COUNT_DUE = """
SELECT (SELECT count(*) FROM schedules WHERE next_at >= span.start AND next_at < span.stop)
FROM unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY span (start, stop, place) ORDER BY place
"""
_MOVE = f"""
UPDATE schedules s SET next_at = p.next_at, remaining = p.remaining, enabled = p.enabled, broken = p.broken,
    held_since = NULL, held_reason = NULL,
    version = s.version + (s.enabled <> p.enabled OR s.broken IS DISTINCT FROM p.broken)::int,
    -- A fire is no change; its switch is, and the end of a hold.
    updated_at = CASE WHEN s.enabled <> p.enabled OR s.broken IS DISTINCT FROM p.broken OR s.held_since IS NOT NULL
                      THEN %s ELSE s.updated_at END
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::boolean[], %s::bigint[], %s::bigint[], %s::boolean[],
            %s::text[])
     p (id, read_next_at, version, idle, next_at, remaining, enabled, broken)
WHERE s.id = p.id AND s.next_at = p.read_next_at AND s.version = p.version AND NOT (p.idle AND {_ACTIVE})
RETURNING s.id
"""

_LATEST = "SELECT greatest((SELECT max(finished_at) FROM runs), (SELECT max(updated_at) FROM schedules))"


class PostgresSchedules:
    """Answers stores.base.ScheduleStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_schedules(self, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
        if not drafts:
            return
        # Of a name that is given twice the last counts: one statement touches a row once.
        unique = list({draft.name: draft for draft in drafts}.values())
        if not await self._put_free(unique, now):
            await self._database.write(lambda connection: _put(connection, unique, now), wakes=True, once=False)

    async def _put_free(self, drafts: Sequence[ScheduleDraft], now: Micros) -> bool:
        """Put schedules of which none is held, in one round trip; False if one is."""
        names, *others = _columns(drafts)
        resting = texts([draft.name for draft in drafts if not draft.enabled])

        async def put(connection: Connection) -> Answer[bool]:
            nobody = texts([])
            values = (names, now, now, names, *others, nobody, nobody, nobody)
            cursor = await connection.execute(_PUT_FREE, values)
            if resting != "{}":
                await connection.execute(_NOT_DUE, (resting,))

            async def answer() -> bool:
                return not (await cursor.fetchall())[0][0]

            return answer

        return await self._database.send(put, wakes=True, once=False)

    async def insert_schedule(self, draft: ScheduleDraft, now: Micros) -> bool:
        new = draft if draft.enabled else replace(draft, next_at=None)
        values = (now, now, *_columns([new]))
        return bool(await self._database.write(lambda connection: fetch(connection, _INSERT, values), wakes=True))

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

    async def edit_schedule(self, draft: ScheduleDraft, id: ScheduleId, version: int, now: Micros) -> int | None:
        async def edit(connection: Connection) -> int | None:
            query = "SELECT version FROM schedules WHERE name = %s AND id = %s FOR NO KEY UPDATE"
            if await fetch(connection, query, (draft.name, id)) != [(version,)]:
                return None
            await _put(connection, [draft], now)
            await wait_for_finish(connection, id, now)
            return int(await fetch_value(connection, query, (draft.name, id)))

        return await self._database.write(edit, wakes=True)

    async def count_tasks(self) -> dict[str, int]:
        query = "SELECT task, count(*) FROM schedules WHERE task IS NOT NULL GROUP BY task"
        return dict(await self._database.read(lambda connection: fetch(connection, query)))

    async def scheduled_tasks(self) -> set[str]:
        return await self._database.read(scheduled_tasks)

    async def change_schedule(self, id: ScheduleId, version: int, change: ScheduleChange, now: Micros) -> bool:
        values = (
            change.enabled,
            change.broken,
            change.off_note,
            change.anchor_at,
            change.next_at,
            change.remaining,
            now,
            id,
            version,
        )

        async def write(connection: Connection) -> bool:
            # Locked in a statement of its own, so that the next one sees a hold that began meanwhile.
            await connection.execute("SELECT id FROM schedules WHERE id = %s FOR NO KEY UPDATE", (id,))
            held = await find_held(connection, "s.id = %s AND s.version = %s", (id, version))
            await end_holds(connection, held, now)
            if not await fetch(connection, _CHANGE, values):
                return False
            await wait_for_finish(connection, id, now)
            if not change.enabled:
                # Recorded ahead of its due time, which for a disabled schedule never comes.
                await _give_up_turns(connection, await fetch(connection, _TAKE_BACK, (id, now)))
            return True

        return await self._database.write(write, wakes=True, sessions=await self._sessions_of(id))

    async def remove_schedule(
        self, id: ScheduleId, version: int | None = None, spared: Sequence[RunId] | None = None
    ) -> bool:
        async def remove(connection: Connection) -> bool:
            # Locked first: a run that is put in meanwhile is seen by the next statement, or finds no schedule.
            found = await fetch(connection, "SELECT version FROM schedules WHERE id = %s FOR UPDATE", (id,))
            if not found or version not in (None, found[0][0]):
                return False
            if spared is not None and await fetch(connection, _OTHERS_RUN, (id, numbers(list(spared)))):
                return False
            sessions = await fetch(connection, _SESSIONS, (id,))
            # What runs in a session of people's holds its turn until it has ended: it is told to, and stays.
            await connection.execute(_DETACH, (REMOVED, Cause.REMOVED, id))
            await mark_removed(connection, id)
            await connection.execute("DELETE FROM schedules WHERE id = %s", (id,))
            await _give_up_turns(connection, sessions)
            return True

        return await self._database.write(remove, wakes=True, sessions=await self._sessions_of(id))

    async def hold_schedule(self, id: ScheduleId, version: int, hold: Hold, now: Micros) -> bool:
        held: dict[str, Any] = {"id": id, "version": version, "now": now}
        held |= {"since": hold.since, "next_at": hold.next_at, "cause": hold.cause, "reason": readable(hold.reason)}
        return bool(await self._database.write(lambda connection: fetch(connection, _HOLD, held)))

    async def _sessions_of(self, id: ScheduleId) -> list[str]:
        """Looked up beforehand, for the writer to lock them in its order; later ones are locked on the way."""
        rows = await self._database.read(lambda connection: fetch(connection, _SESSIONS, (id,)))
        return [session for (session,) in rows]

    async def mark_orphans(self, origin: str, declared: Sequence[str], now: Micros) -> list[str]:
        values = (now, origin, texts(declared))

        async def mark(connection: Connection) -> list[str]:
            await end_holds(connection, await find_held(connection, _UNDECLARED, values[1:]), now)
            return sorted(name for (name,) in await fetch(connection, _ORPHAN, values))

        return await self._database.write(mark)

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        # Shown or not: every text of PostgreSQL is UTF-8.
        async def look(connection: Connection) -> Due:
            rows = await fetch(connection, _DUE, (horizon, limit))
            due = [load_due(row[:-3], *(tuple(map(RunId, ids)) for ids in row[-3:])) for row in rows]
            if len(rows) == limit:
                return Due(due, rows[-1][9])
            return Due(
                due, await fetch_value(connection, "SELECT min(next_at) FROM schedules WHERE next_at > %s", (horizon,))
            )

        return await self._database.read(look)

    async def later_schedules(self, now: Micros, after: ScheduleId, limit: int) -> list[DueSchedule]:
        query = f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.id > %s AND s.next_at > %s ORDER BY s.id LIMIT %s"
        rows = await self._database.read(lambda connection: fetch(connection, query, (after, now, limit)))
        return [load_due(row, (), ()) for row in rows]

    async def replan_schedules(self, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
        return await self._database.write(lambda connection: replan_now(connection, plans, now), wakes=True)

    async def latest_write(self) -> Micros | None:
        latest: Micros | None = await self._database.read(lambda connection: fetch_value(connection, _LATEST))
        return latest

    async def count_due(self, edges: Sequence[Micros]) -> list[int]:
        given = (numbers(edges[:-1]), numbers(edges[1:]))
        rows = await self._database.read(lambda connection: fetch(connection, _COUNT_DUE, given))
        return [count for (count,) in rows]

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> list[ScheduleId]:
        # In the order of their ids, so that two nodes that fire the same schedules wait and do not deadlock.
        first: dict[ScheduleId, FirePlan] = {}
        for plan in plans:
            first.setdefault(plan.schedule_id, plan)
        sorted_plans = sorted(first.values(), key=lambda plan: plan.schedule_id)
        values = (now, *_moves(sorted_plans))
        ids = values[1]

        async def record(connection: Connection) -> list[ScheduleId]:
            # Locked in a statement of its own, so that the next one sees every run that was inserted meanwhile.
            await connection.execute(
                "SELECT id FROM schedules WHERE id = ANY (%s::bigint[]) ORDER BY id FOR NO KEY UPDATE", (ids,)
            )
            moved = {ScheduleId(id) for (id,) in await fetch(connection, _MOVE, values)}
            fired = [plan for plan in sorted_plans if plan.schedule_id in moved]
            for plan in fired:
                if plan.ending is not None:
                    await cancel_now(connection, plan.cancel, plan.ending, now)
            await insert_fires(connection, [run for plan in fired for run in plan.runs], now)
            return [id for id in first if id in moved]

        sessions = {run.session for plan in sorted_plans for run in plan.runs if run.session is not None}
        # A second time no schedule is where it was read: nothing is moved, and no row made.
        return await self._database.write(record, wakes=True, once=False, sessions=sessions) if plans else []


async def _put(connection: Connection, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
    """Put schedules of which some may be held, inside the caller's transaction."""
    still_held = texts(await end_changed_holds(connection, drafts, now))
    await connection.execute(_PUT, (now, now, *_columns(drafts), still_held, still_held, still_held))
    resting = texts([draft.name for draft in drafts if not draft.enabled])
    if resting != "{}":
        await connection.execute(_NOT_DUE, (resting,))


def _columns(drafts: Sequence[ScheduleDraft]) -> tuple[str | None, ...]:
    return (
        texts([draft.name for draft in drafts]),
        texts([draft.timing for draft in drafts]),
        texts([draft.zone for draft in drafts]),
        texts([draft.work for draft in drafts]),
        texts([draft.kind for draft in drafts]),
        texts([draft.task for draft in drafts]),
        texts([draft.policy for draft in drafts]),
        texts([draft.project for draft in drafts]),
        texts([draft.owner for draft in drafts]),
        texts([draft.origin for draft in drafts]),
        booleans([draft.enabled for draft in drafts]),
        texts([draft.note for draft in drafts]),
        numbers([draft.anchor_at for draft in drafts]),
        numbers([draft.next_at for draft in drafts]),
        numbers([draft.after_finish for draft in drafts]),
        numbers([draft.remaining for draft in drafts]),
        texts([draft.off_note for draft in drafts]),
    )


def _moves(plans: Sequence[FirePlan]) -> tuple[str | None, ...]:
    return (
        numbers([plan.schedule_id for plan in plans]),
        numbers([plan.read_next_at for plan in plans]),
        numbers([plan.version for plan in plans]),
        booleans([plan.idle for plan in plans]),
        numbers([plan.next_at for plan in plans]),
        numbers([plan.remaining for plan in plans]),
        booleans([plan.enabled for plan in plans]),
        texts([plan.broken for plan in plans]),
    )


async def _give_up_turns(connection: Connection, sessions: Sequence[Row]) -> None:
    """Runs of these sessions are gone: let the next ones go."""
    names = [session for (session,) in sessions if session is not None]
    await lock_sessions(connection, names)
    await give_turns(connection, names)
