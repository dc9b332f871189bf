"""Calendars: named sets of dates, and the schedules that use them.

A schedule has the dates of its calendars in its stored timing. Whoever stores one locks its calendars first, and writes
which they are with it; whoever changes a calendar writes the new dates into all that use it, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros, from_micros, to_micros
from ostinato.errors import InvalidInput
from ostinato.models.calendar import Calendar
from ostinato.models.ids import RunId
from ostinato.models.replanning import AheadRun, due_by_calendar, off_by_calendar
from ostinato.models.schedule import ScheduleDraft
from ostinato.stores.drafts import STORED_COLUMNS, StoredSchedule, load_stored
from ostinato.stores.rows import load_all
from ostinato.stores.sql.connection import Connection, Database
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.pauses import end_pauses, find_paused
from ostinato.timing import Dates, parse_timing
from ostinato.timing.calendar_days import calendar_dates, calendars_in, with_dates

__all__ = ["Calendars", "relate_calendars", "with_calendars"]

C = TypeVar("C", bound=Connection)

_LIST = """
SELECT name, dates, note, version, made_by, created_at, updated_by, updated_at FROM calendars
WHERE :name::text IS NULL OR name = :name ORDER BY name
"""
_USES = """
SELECT c.calendar, s.name FROM schedule_calendars c JOIN schedules s ON s.id = c.schedule_id
WHERE :name::text IS NULL OR c.calendar = :name ORDER BY s.name
"""
_DATES = "SELECT name, dates FROM calendars WHERE name = ANY (:names::text[]) ORDER BY name"
_LOCK = "SELECT dates, note, version FROM calendars WHERE name = :name FOR UPDATE"
_INSERT = """
INSERT INTO calendars (name, dates, note, made_by, created_at, updated_by, updated_at)
VALUES (:name, :dates, :note, :by, :now, :by, :now) ON CONFLICT (name) DO NOTHING RETURNING name
"""
_UPDATE = """
UPDATE calendars SET dates = :dates, note = :note, version = version + 1, updated_by = :by, updated_at = :now
WHERE name = :name
"""
_USING = f"""
SELECT {STORED_COLUMNS} FROM schedules WHERE id IN (SELECT schedule_id FROM schedule_calendars WHERE calendar = :name)
ORDER BY id FOR NO KEY UPDATE
"""
# Fires may be recorded a moment before they are due. Both triggers, as in the index of due times.
_AHEAD = """
SELECT schedule_id, id, due_at, state FROM runs
WHERE schedule_id = ANY (:ids::bigint[]) AND trigger IN ('schedule', 'catch_up') AND due_at > :now
"""
_MOVE = """
UPDATE schedules AS s SET timing = n.timing, enabled = n.enabled, next_at = n.next_at, remaining = n.remaining,
                          version = s.version + 1, updated_at = :now
FROM unnest(:ids::bigint[], :timings::text[], :switches::boolean[], :nexts::bigint[], :lefts::bigint[])
     n (id, timing, enabled, next_at, remaining)
WHERE s.id = n.id
"""
_TAKE_BACK = """
DELETE FROM runs WHERE id = ANY (:runs::bigint[]) AND state = 'queued' RETURNING id, session
"""
_UNRELATE = """
DELETE FROM schedule_calendars WHERE schedule_id IN (SELECT id FROM schedules WHERE name = ANY (:names::text[]))
"""
_RELATE = """
INSERT INTO schedule_calendars (calendar, schedule_id)
SELECT n.calendar, s.id FROM unnest(:calendars::text[], :names::text[]) n (calendar, name)
JOIN schedules s ON s.name = n.name WHERE TRUE ON CONFLICT DO NOTHING
"""


async def with_calendars(db: Connection, drafts: Sequence[ScheduleDraft]) -> Sequence[ScheduleDraft]:
    """The drafts with the dates that their calendars have now, which nobody changes before these are stored."""
    names = sorted({name for draft in drafts for name in calendars_in(draft.timing)})
    if not names:
        return drafts
    known = {name: calendar_dates(dates) for name, dates in await db.fetch(f"{_DATES} FOR KEY SHARE", {"names": names})}
    if missing := [name for name in names if name not in known]:
        raise InvalidInput(
            f"there is no calendar {missing[0]!r}: it was just removed", field="timing", hint="make it again"
        )
    return [_with_dates(draft, with_dates(draft.timing, known)) for draft in drafts]


def _with_dates(draft: ScheduleDraft, timing: str) -> ScheduleDraft:
    """The draft, planned by the dates of this timing where it has others."""
    if timing == draft.timing:
        return draft
    moment = from_micros(draft.anchor_at)
    read = parse_timing(timing, tz=draft.zone, name=draft.name, stored=True)
    due = read.anchored(moment).next_after(moment)
    return replace(draft, timing=timing, next_at=None if due is None else to_micros(due))


async def relate_calendars(db: Connection, drafts: Iterable[ScheduleDraft]) -> None:
    """Note which calendars these schedules use now."""
    used = {draft.name: calendars_in(draft.timing) for draft in drafts}
    if not used:
        return
    await db.run(_UNRELATE, {"names": list(used)})
    pairs = [(calendar, name) for name, calendars in used.items() for calendar in calendars]
    if pairs:
        await db.run(_RELATE, {"calendars": [one for one, _ in pairs], "names": [name for _, name in pairs]})


class Calendars(Generic[C]):
    """Answers stores.calendars.CalendarStore."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    async def list_calendars(self, name: str | None = None) -> list[Calendar]:
        async def look(db: Connection) -> list[Calendar]:
            async with db.snapshot():
                rows = await db.fetch(_LIST, {"name": name})
                uses: dict[str, list[str]] = {}
                for calendar, schedule in await db.fetch(_USES, {"name": name}):
                    uses.setdefault(calendar, []).append(schedule)
            return load_all(_loaded, [(*row, uses.get(row[0], [])) for row in rows], "calendar")

        return await self._database.read(look)

    async def calendar_dates(self, names: Iterable[str]) -> dict[str, Dates]:
        wanted = {"names": list(names)}
        rows = await self._database.read(lambda db: db.fetch(_DATES, wanted))
        return {name: calendar_dates(dates) for name, dates in rows}

    async def put_calendar(
        self, name: str, dates: Dates, note: str | None, by: str, now: Micros, version: int | None = None
    ) -> Sequence[str] | None:
        values = {"name": name, "dates": dates.text, "note": note, "by": by, "now": now}

        async def put(db: C) -> Sequence[str] | None:
            while not (known := await db.fetch(_LOCK, values)):
                if version not in (None, 0):
                    return None
                if await db.fetch(_INSERT, values):
                    return ()
                # Somebody else made it meanwhile.
            before, noted, at = known[0]
            if version not in (None, at):
                return None
            kept = noted if note is None else note
            if (before, noted) == (dates.text, kept):
                return ()
            await db.run(_UPDATE, {**values, "note": kept})
            return () if before == dates.text else await self._replan(db, name, dates, now)

        return await self._database.write(put, wakes=True, once=False)

    async def remove_calendar(self, name: str) -> Sequence[str] | None:
        wanted = {"name": name}

        async def remove(db: C) -> Sequence[str] | None:
            if not await db.fetch(_LOCK, wanted):
                return None
            uses = [schedule for _, schedule in await db.fetch(_USES, wanted)]
            if not uses:
                await db.run("DELETE FROM calendars WHERE name = :name", wanted)
            return uses

        return await self._database.write(remove)

    async def _replan(self, db: C, name: str, dates: Dates, now: Micros) -> Sequence[str]:
        """Give these dates to all that use the calendar, inside the caller's transaction; answers their names."""
        using = [load_stored(row) for row in await db.fetch(_USING, {"name": name}, exact=False)]
        ids = {"ids": [one.id for one in using], "now": now}
        paused = await find_paused(db, "s.id = ANY (:ids::bigint[])", ids)
        ended = await end_pauses(db, self._parts, paused, now)
        known = [
            replace(one, next_at=ended.get(one.id, one.next_at), timing=timing)
            for one in using
            if (timing := with_dates(one.timing, {name: dates})) != one.timing
        ]
        ahead: dict[int, list[AheadRun]] = {}
        for schedule, *run in await db.fetch(_AHEAD, ids):
            ahead.setdefault(schedule, []).append(AheadRun(*run))
        # A node may have claimed some of them since: what is really gone says how each is planned.
        gone = await self._take_back(db, [run for one in known for run in _off(one, ahead)])
        moved = [_planned(one, ahead.get(one.id, ()), gone, now) for one in known]
        await self._write(db, moved, now)
        return sorted(one.name for one in moved)

    async def _write(self, db: C, moved: Sequence[StoredSchedule], now: Micros) -> None:
        if moved:
            columns: dict[str, list[Any]] = {
                "ids": [one.id for one in moved],
                "timings": [one.timing for one in moved],
                "switches": [one.enabled for one in moved],
                "nexts": [one.next_at for one in moved],
                "lefts": [one.remaining for one in moved],
            }
            await db.run(_MOVE, {**columns, "now": now})

    async def _take_back(self, db: C, runs: Sequence[RunId]) -> set[RunId]:
        """Delete those of these runs that are still queued, and answer them; the next of their sessions go."""
        if not runs:
            return set()
        rows = await db.fetch(_TAKE_BACK, {"runs": runs})
        sessions = {session for _, session in rows if session is not None}
        await self._parts.lock_sessions(db, sessions)
        await self._parts.give_turns(db, sessions)
        return {RunId(id) for id, _ in rows}


def _off(one: StoredSchedule, ahead: Mapping[int, Sequence[AheadRun]]) -> list[RunId]:
    """What was recorded ahead for days that are off now. The run of what is broken is its probe, at any time."""
    return off_by_calendar(one, ahead.get(one.id, ())) if one.broken is None else []


def _planned(one: StoredSchedule, ahead: Sequence[AheadRun], gone: Set[RunId], now: Micros) -> StoredSchedule:
    """The schedule without what is gone of what was recorded ahead: that is still to run, though it were the last."""
    if one.remaining is not None and (back := sum(run.id in gone for run in ahead)):
        one = replace(one, remaining=one.remaining + back, enabled=one.enabled or one.remaining == 0)
    if not one.enabled or one.broken is not None or one.orphaned or one.remaining == 0:
        return one  # its timing does not say when it is due; what is broken has the time of its probe, if any
    return replace(one, next_at=due_by_calendar(one, [run.due_at for run in ahead if run.id not in gone], now))


def _loaded(row: Sequence[Any]) -> Calendar:
    name, dates, note, version, made_by, created_at, updated_by, updated_at, schedules = row
    return Calendar(
        name=name,
        dates=tuple(dates.split(",")) if dates else (),
        note=note or None,
        schedules=tuple(schedules),
        made_by=made_by,
        updated_by=updated_by,
        version=version,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
    )
