"""Schedules: put, changed, removed and read. What is due and how a fire is recorded is in each store's schedules.py.

Whoever changes a schedule locks its row in a statement of its own first, so that the next one sees what others did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros
from ostinato.errors import StoreUnavailable
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import SWITCHED_OFF
from ostinato.models.pause import ends_pause
from ostinato.models.replanning import Replan
from ostinato.models.run import Ending
from ostinato.models.schedule import (
    REMOVED,
    DueSchedule,
    Pause,
    Schedule,
    ScheduleChange,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleSort,
)
from ostinato.models.states import Cause
from ostinato.models.work import CheckIn
from ostinato.stores.drafts import (
    STORED_COLUMNS,
    UNSTORED,
    StoredSchedule,
    check_replaced,
    load_stored,
    merged,
    new_schedule,
    resolved,
)
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.schedules import Late, Removed
from ostinato.stores.sql import freshness, schedule_pages, tasks, upstreams
from ostinato.stores.sql.calendars import relate_calendars, with_calendars
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.connection import Connection, Database, Values, reading
from ostinato.stores.sql.ends import end_queued, wait_for_finish
from ostinato.stores.sql.given_up import mark_removed
from ostinato.stores.sql.incidents import close_incidents, drop_repeats
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.pauses import end_pauses, find_paused
from ostinato.stores.sql.replans import replan_now
from ostinato.stores.sql.upstreams import break_followers, forget_ends, relate
from ostinato.timing.calendar_days import calendars_in

__all__ = ["Schedules"]

C = TypeVar("C", bound=Connection)

_SQL_TYPES = {"str": "text", "bool": "boolean", "int": "bigint", "Micros": "bigint"}
_TYPES = {
    field.name: _SQL_TYPES[str(field.type).removesuffix(" | None")]
    for field in fields(ScheduleDraft)
    if field.name not in UNSTORED
}
"""Of the columns that a draft has, which are called as its fields are."""
_CHANGED_TYPES = {"id": "bigint"} | _TYPES | {"broken": "text", "failures": "bigint", "orphaned": "boolean"}
del _CHANGED_TYPES["name"]


def _given(types: dict[str, str]) -> str:
    """Rows of these columns, one array for each."""
    return f"unnest({', '.join(f':{name}::{type}[]' for name, type in types.items())}) n ({', '.join(types)})"


_COLUMNS = ", ".join(_TYPES)
# By their ids, as whoever fires or finishes locks them, and then new ones by their names: so two nodes wait and do not
# deadlock. Where a group of several operations meets another's, its writer begins it again.
_KNOWN = f"SELECT {STORED_COLUMNS} FROM schedules WHERE name = ANY (:names::text[]) ORDER BY id FOR NO KEY UPDATE"
_INSERT = f"""
INSERT INTO schedules ({_COLUMNS}, created_at, updated_at)
SELECT {_COLUMNS}, :now::bigint, :now::bigint FROM {_given(_TYPES)} WHERE TRUE ORDER BY name
ON CONFLICT (name) DO NOTHING RETURNING name
"""
_UPDATE = f"""
UPDATE schedules AS s SET {", ".join(f"{name} = n.{name}" for name in _CHANGED_TYPES if name != "id")},
                          off_by = CASE WHEN n.enabled = s.enabled THEN s.off_by END,
                          off_at = CASE WHEN n.enabled = s.enabled THEN s.off_at END,
                          version = s.version + 1, updated_at = :now
FROM {_given(_CHANGED_TYPES)} WHERE s.id = n.id
"""
_VERSION = "SELECT version FROM schedules WHERE name = :name AND id = :id FOR NO KEY UPDATE"
_LOCK = "SELECT version FROM schedules WHERE id = :id FOR NO KEY UPDATE"
_CHANGE = """
UPDATE schedules SET enabled = :enabled, broken = NULL, off_note = :off_note, off_by = :off_by, off_at = :off_at,
                     anchor_at = :anchor_at, next_at = :next_at, remaining = :remaining, overrides = :overrides,
                     failures = 0, version = version + 1, updated_at = :now
WHERE id = :id AND version = :version RETURNING id
"""
# Only what would still be due at `since`: a fire that was recorded meanwhile has moved it on.
_PAUSE = """
UPDATE schedules SET next_at = :next_at, paused_since = coalesce(paused_since, :since), paused_cause = :cause,
                     paused_reason = :reason, updated_at = :now
WHERE id = :id AND version = :version AND next_at = :since AND enabled AND broken IS NULL AND NOT orphaned
  AND NOT follows
RETURNING id
"""
_TAKE_BACK = """
DELETE FROM runs WHERE schedule_id = :id AND state = 'queued' AND trigger = 'schedule' AND due_at > :now
RETURNING session
"""
_DETACH = """
UPDATE runs SET schedule_id = NULL, cancel = coalesce(cancel, :reason),
                cause = CASE WHEN cancel IS NULL THEN :cause ELSE cause END
WHERE schedule_id = :id AND state = 'running' AND mode IS NOT NULL
"""
_OTHERS_RUN = """
SELECT 1 FROM runs WHERE schedule_id = :id AND state = 'running' AND id <> ALL (:spared::bigint[]) LIMIT 1
"""
_SESSIONS = """
SELECT DISTINCT session FROM runs
WHERE schedule_id = :id AND state IN ('queued', 'running') AND session IS NOT NULL
"""
_FORGET_INCIDENTS = """
UPDATE incidents SET closed_at = :now, changed_at = :now, turned_at = :now, closed_reason = :reason
WHERE closed_at IS NULL AND subject = (SELECT name FROM schedules WHERE id = :id) RETURNING id
"""
_SWITCHED = f"""
UPDATE incidents SET closed_at = :now, changed_at = :now, turned_at = :now, closed_reason = :switched
WHERE closed_at IS NULL AND cause = '{SWITCHED_OFF}' AND subject = (SELECT name FROM schedules WHERE id = :id)
"""
_UNDECLARED = "s.owner = 'code' AND s.origin = :origin AND NOT s.orphaned AND s.name <> ALL (:declared::text[])"
_ORPHAN = f"""
UPDATE schedules AS s SET orphaned = TRUE, next_at = NULL, paused_since = NULL, paused_reason = NULL,
                          version = version + 1, updated_at = :now
WHERE {_UNDECLARED} RETURNING name
"""
_LATER = f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.id > :after AND s.next_at > :now ORDER BY s.id LIMIT :limit"
# Each a range of the index: a GROUP BY would sort.
_COUNT_DUE = """
SELECT (SELECT count(*) FROM schedules WHERE next_at >= span.start AND next_at < span.stop)
FROM unnest(:starts::bigint[], :stops::bigint[]) WITH ORDINALITY span (start, stop, place) ORDER BY place
"""
_COUNT_TASKS = "SELECT task, count(*) FROM schedules WHERE task IS NOT NULL GROUP BY task"
_LATEST = """
SELECT max(at) FROM (SELECT max(finished_at) AS at FROM runs WHERE finished_at IS NOT NULL
                     UNION ALL SELECT max(updated_at) FROM schedules) latest
"""
_AWAITED = f"""
SELECT id FROM runs
WHERE schedule_id = ANY (:ids::bigint[]) AND state IN ('queued', 'running') AND kind = '{CheckIn.kind}'
"""
_OTHER_WORK = Ending(Cause.CANCELLED, "its schedule does other work now")
_OFF = Ending(Cause.CANCELLED, "its schedule was switched off while it waited for another attempt")
_RETRIES = """
SELECT id FROM runs r WHERE schedule_id = :id AND state = 'queued'
   AND EXISTS (SELECT 1 FROM attempts WHERE run_id = r.id)
"""
_TRIES = 5


class Schedules(Generic[C]):
    """Answers stores.base.ScheduleStore, but for what is due."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    async def put_schedules(self, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
        async def put(db: C) -> None:
            await self._put(db, await with_calendars(db, drafts), now)

        if drafts:
            await self._database.write(put, wakes=True, once=False)

    async def insert_schedule(self, draft: ScheduleDraft, now: Micros) -> bool:
        async def insert(db: C) -> bool:
            resolved = await with_calendars(db, [draft])
            is_new = bool(await db.fetch(_INSERT, {**_new(resolved, now), "now": now}))
            if is_new and draft.follows:
                await relate(db, [draft])
            if is_new and calendars_in(draft.timing):
                await relate_calendars(db, [draft])
            return is_new

        return await self._database.write(insert, wakes=True)

    async def get_schedule(self, name: str) -> Schedule | None:
        found = await self.list_schedules(ScheduleFilter(names=(name,), sort=ScheduleSort.NAME))
        return found[0] if found else None

    async def list_schedules(self, wanted: ScheduleFilter) -> list[Schedule]:
        return [row.schedule for row in await self._database.read(lambda db: schedule_pages.list_rows(db, wanted))]

    page_schedules = reading(schedule_pages.page_rows)
    count_schedules = reading(schedule_pages.count_states)
    recent_runs = reading(schedule_pages.recent_runs)
    schedule_history = reading(schedule_pages.schedule_history)
    scheduled_tasks = reading(schedule_pages.scheduled_tasks)
    task_schedules = reading(tasks.task_schedules)
    next_of_tasks = reading(tasks.next_of_tasks)

    async def count_tasks(self) -> dict[str, int]:
        rows: list[Any] = await self._database.read(lambda db: db.fetch(_COUNT_TASKS))
        return dict(rows)

    async def edit_schedule(self, draft: ScheduleDraft, id: ScheduleId, version: int, now: Micros) -> int | None:
        named = {"name": draft.name, "id": id}

        async def edit(db: C) -> int | None:
            dated = await with_calendars(db, [draft])
            if await db.fetch(_VERSION, named) != [(version,)]:
                return None
            await self._put(db, dated, now)
            await wait_for_finish(db, id, now)
            return int(await db.fetch_value(_VERSION, named))

        return await self._database.write(edit, wakes=True)

    async def change_schedule(self, id: ScheduleId, version: int, change: ScheduleChange, now: Micros) -> bool:
        switched = "the schedule was enabled" if change.enabled else "the schedule was disabled"
        values = {**asdict(change), "id": id, "version": version, "now": now, "switched": switched}

        async def write(db: C) -> bool:
            await db.run(_LOCK, values)
            paused = await find_paused(db, "s.id = :id AND s.version = :version", values)
            await end_pauses(db, self._parts, paused, now)
            if not await db.fetch(_CHANGE, values):
                return False
            await wait_for_finish(db, id, now)
            await forget_ends(db, [id])
            await db.run(_SWITCHED, values)
            if not change.enabled:
                # Recorded ahead of its due time, which for a disabled schedule never comes.
                await self._give_up_turns(db, await db.fetch(_TAKE_BACK, values))
            if change.ends_retries:
                await self._end_retries(db, id, now)
            return True

        return await self._database.write(write, wakes=True, sessions=await self._sessions_of(id))

    async def remove_schedule(
        self, id: ScheduleId, now: Micros, version: int | None = None, spared: Sequence[RunId] | None = None
    ) -> Removed | None:
        values: Values = {"id": id, "now": now, "spared": spared, "reason": REMOVED, "cause": Cause.REMOVED}

        async def remove(db: C) -> Removed | None:
            # A run that is put in meanwhile is seen by the next statement, or finds no schedule.
            found = await db.fetch("SELECT version FROM schedules WHERE id = :id FOR UPDATE", values)
            if not found or version not in (None, found[0][0]):
                return None
            if spared is not None and await db.fetch(_OTHERS_RUN, values):
                return None
            sessions = await db.fetch(_SESSIONS, values)
            # What runs in a user session holds its turn until it has ended: it is told to, and stays.
            await db.run(_DETACH, values)
            await mark_removed(db, id)
            closed = await db.fetch(_FORGET_INCIDENTS, values)
            await drop_repeats(db, [incident for (incident,) in closed], REMOVED)
            removed = await break_followers(db, id, now)
            await db.run("DELETE FROM schedules WHERE id = :id", values)
            await self._give_up_turns(db, sessions)
            return removed

        return await self._database.write(remove, wakes=True, sessions=await self._sessions_of(id))

    async def pause_schedule(self, id: ScheduleId, version: int, pause: Pause, now: Micros) -> bool:
        values = {**asdict(pause), "id": id, "version": version, "now": now}
        return bool(await self._database.write(lambda db: db.fetch(_PAUSE, values)))

    followers_of = reading(upstreams.followers_of)
    next_fresh_at = reading(freshness.next_fresh_at)

    async def tell_late(self, now: Micros, limit: int) -> Late:
        return await self._database.write(lambda db: freshness.tell_late_now(db, now, limit))

    async def mark_orphans(self, origin: str, declared: Sequence[str], now: Micros) -> list[str]:
        values = {"origin": origin, "declared": declared, "now": now}

        async def mark(db: C) -> list[str]:
            await end_pauses(db, self._parts, await find_paused(db, _UNDECLARED, values), now)
            return sorted(name for (name,) in await db.fetch(_ORPHAN, values))

        return await self._database.write(mark)

    async def later_schedules(self, now: Micros, after: ScheduleId, limit: int) -> list[DueSchedule]:
        values = {"now": now, "after": after, "limit": limit}
        return [load_due(row, (), ()) for row in await self._database.read(lambda db: db.fetch(_LATER, values))]

    async def replan_schedules(self, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
        return await self._database.write(lambda db: replan_now(db, plans, now), wakes=True)

    async def latest_write(self) -> Micros | None:
        latest: Micros | None = await self._database.read(lambda db: db.fetch_value(_LATEST))
        return latest

    async def count_due(self, edges: Sequence[Micros]) -> list[int]:
        spans = {"starts": edges[:-1], "stops": edges[1:]}
        return [count for (count,) in await self._database.read(lambda db: db.fetch(_COUNT_DUE, spans))]

    async def _sessions_of(self, id: ScheduleId) -> list[str]:
        """Looked up beforehand, for the writer to lock them in its order; later ones are locked on the way."""
        return [session for (session,) in await self._database.read(lambda db: db.fetch(_SESSIONS, {"id": id}))]

    async def _give_up_turns(self, db: C, sessions: Sequence[tuple[Any, ...]]) -> None:
        """Runs of these sessions are gone: let the next ones go."""
        names = {session for (session,) in sessions if session is not None}
        await self._parts.lock_sessions(db, names)
        await self._parts.give_turns(db, names)

    async def _put(self, db: C, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
        """Put schedules that are `with_calendars` inside the caller's transaction, which has locked no schedule before
        that; of a name that is given twice the last counts."""
        left = {draft.name: draft for draft in drafts}
        related: list[ScheduleDraft] = []
        calendars: list[ScheduleDraft] = []
        for _ in range(_TRIES):
            # What is damaged of a schedule is mended by what its draft says.
            rows = await db.fetch(_KNOWN, {"names": list(left)}, exact=False)
            known = [load_stored(row) for row in rows]
            for one in known:
                check_replaced(one, left[one.name])
            words = {one.name: resolved(one, left.pop(one.name), now) for one in known}
            known = await self._end_changed_pauses(db, known, words, now)
            changed = [now_known for one in known if (now_known := merged(one, words[one.name])) is not None]
            await self._await_no_more(db, known, changed, now)
            if changed:
                columns = {name: [getattr(one, name) for one in changed] for name in _CHANGED_TYPES}
                await db.run(_UPDATE, {**columns, "now": now})
                before = {one.id: one for one in known}
                await self._follow_switches(db, before, changed, now)
                again = [one for one in changed if before[one.id].follows and _begins_anew(before[one.id], one)]
                await forget_ends(db, [one.id for one in again])
                related += again + [one for one in changed if one.follows and not before[one.id].follows]
                calendars += [one for one in changed if _uses_others(before[one.id], one)]
            if left:
                for (name,) in await db.fetch(_INSERT, {**_new(list(left.values()), now), "now": now}):
                    if (inserted := left.pop(name)).follows:
                        related.append(inserted)
                    if calendars_in(inserted.timing):
                        calendars.append(inserted)
            if not left:
                await relate(db, related)
                await relate_calendars(db, calendars)
                return
            # Somebody else inserted those meanwhile: they are seen now.
        raise StoreUnavailable(f"the schedule {next(iter(left))!r} keeps being added and removed; it is tried again")

    async def _follow_switches(
        self, db: C, known: dict[int, StoredSchedule], changed: Sequence[StoredSchedule], now: Micros
    ) -> None:
        """Of what is no longer broken the incident ends; what the code has switched off starts nothing more."""
        for one in changed:
            before = known[one.id]
            if one.broken is None and before.broken is not None:
                await close_incidents(db, one.name, now, _mended(before, one), [SWITCHED_OFF])
            if one.enabled != before.enabled:
                await wait_for_finish(db, ScheduleId(one.id), now)
            if before.enabled and not one.enabled:
                await self._give_up_turns(db, await db.fetch(_TAKE_BACK, {"id": one.id, "now": now}))
                await self._end_retries(db, ScheduleId(one.id), now)

    async def _end_retries(self, db: C, id: ScheduleId, now: Micros) -> None:
        """Cancel what waits for another attempt; what runs goes on."""
        rows = await db.fetch(_RETRIES, {"id": id})
        await end_queued(db, self._parts, [RunId(run) for (run,) in rows], _OFF, now)

    async def _await_no_more(
        self, db: C, known: Sequence[StoredSchedule], changed: Sequence[StoredSchedule], now: Micros
    ) -> None:
        """Cancel the awaited check-ins of schedules that get other work: nobody would end them."""
        were = {one.id for one in known if one.kind == CheckIn.kind}
        ids = [one.id for one in changed if one.id in were and one.kind != CheckIn.kind]
        if ids:
            rows = await db.fetch(_AWAITED, {"ids": ids})
            await cancel_now(db, self._parts, [RunId(id) for (id,) in rows], _OTHER_WORK, now)

    async def _end_changed_pauses(
        self, db: C, known: list[StoredSchedule], drafts: dict[str, ScheduleDraft], now: Micros
    ) -> list[StoredSchedule]:
        """End the pauses of schedules whose timing or budget is about to change; answers all as they are then."""
        ids = [one.id for one in known if one.paused_since is not None]
        if not ids:
            return known
        paused = await find_paused(db, "s.id = ANY (:ids::bigint[])", {"ids": ids})
        ended = await end_pauses(db, self._parts, [one for one in paused if ends_pause(one, drafts[one.name])], now)
        return [replace(one, next_at=ended[one.id]) if one.id in ended else one for one in known]


def _begins_anew(before: StoredSchedule, after: StoredSchedule) -> bool:
    """Whether a schedule that follows others has another timing or switch."""
    return (before.timing, before.enabled, before.broken) != (after.timing, after.enabled, after.broken)


def _uses_others(before: StoredSchedule, after: StoredSchedule) -> bool:
    """Whether its timing names other calendars than before."""
    return calendars_in(before.timing) != calendars_in(after.timing)


def _mended(before: StoredSchedule, after: StoredSchedule) -> str:
    is_retimed = (before.timing, before.zone) != (after.timing, after.zone)
    return "its timing was changed" if is_retimed else "its code switched it on"


def _new(drafts: Sequence[ScheduleDraft], now: Micros) -> dict[str, Any]:
    """The columns of new schedules."""
    made = [new_schedule(draft, now) for draft in drafts]
    return {name: [getattr(draft, name) for draft in made] for name in _TYPES}
