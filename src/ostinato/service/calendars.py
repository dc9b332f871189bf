"""Calendars: list, get, set, add, remove; and `resolved`, by which a timing gets the dates of those that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from typing import Any

from ostinato.clock import Clock, Micros, from_micros
from ostinato.command_hints import hint
from ostinato.errors import Conflict, InvalidInput, NotFound, TimingError, VersionConflict
from ostinato.models.calendar import Calendar
from ostinato.service.audit import audited, changed_by
from ostinato.stores.base import Store
from ostinato.timing import Dates, Timing, parse_timing
from ostinato.timing.calendar_days import CalendarDays, check_calendar_name
from ostinato.timing.zones import local_date

__all__ = ["CalendarService"]

_NAMED = 5
"""How many schedules or calendars an error names."""
_TRIES = 5
_SUCH_AS = ["2026-12-24", "12-31"]


class CalendarService:
    """What can be done with calendars. Each change is one transaction, with the schedules that it plans anew."""

    def __init__(self, store: Store, clock: Clock, zone: str) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone

    async def list(self) -> Sequence[Calendar]:
        """All calendars, by name, with the schedules that use them."""
        return [self._dated(one) for one in await self._store.calendars.list_calendars()]

    async def get(self, name: str) -> Calendar:
        """The calendar of this name."""
        found = await self._find(name)
        if found is None:
            raise _missing(name)
        return found

    @audited("calendar.set")
    async def set(
        self, name: str, dates: Iterable[str | date], *, note: str | None = None, version: int | None = None
    ) -> Calendar:
        """Add a calendar, or give the one of this name these dates; doing it twice changes nothing.

        A date is `2026-12-24`, or `12-24` for every year. The schedules that use it are planned anew at once. Without a
        note it keeps its own; an empty one clears it. With a `version`, a VersionConflict unless it still has that one;
        0 is for a name that no calendar has.
        """
        wanted, now = _checked(name, dates), self._clock.now()
        moved = await self._store.calendars.put_calendar(name, wanted, note, changed_by(), now, version)
        if moved is None:
            raise _overtaken(name, await self._find(name), is_new=version == 0)
        return replace(await self.get(name), replanned=tuple(moved))

    @audited("calendar.add")
    async def add(self, name: str, dates: Iterable[str | date]) -> Calendar:
        """Add dates to a calendar; one that does not exist is made, unless its name looks like a misspelled one."""
        more = _checked(name, dates)
        names = [one.name for one in await self._store.calendars.list_calendars()]
        if name not in names and (near := get_close_matches(name, names, 1)):
            raise InvalidInput(
                f"there is no calendar {name!r}: did you mean {near[0]!r}?",
                field="name",
                hint=f"{hint('calendar set', name, *_SUCH_AS)} makes a new one",
            )
        return await self._changed(name, lambda known: dict.fromkeys([*known, *_texts(more)]), may_be_new=True)

    @audited("calendar.remove")
    async def remove(self, name: str, dates: Iterable[str | date] | None = None) -> Calendar | None:
        """Take dates out of a calendar, which stays; without dates delete it, a Conflict while schedules use it."""
        if dates is None:
            await self._delete(name)
            return None
        gone = set(_texts(_checked(name, dates)))
        known = await self.get(name)
        if missing := sorted(gone - set(known.dates)):
            raise InvalidInput(
                f"calendar {name!r} has no date {missing[0]}",
                field="dates",
                hint=f"{hint('calendar show', name)} lists them",
            )
        return await self._changed(name, lambda dates: [one for one in dates if one not in gone])

    async def resolved(
        self, timing: Timing | str, zone: str, now: Micros, known: dict[str, Dates] | None = None
    ) -> Timing | str:
        """The timing with the dates of the calendars that it names; InvalidInput if one of them is not there. Those
        that were looked up are in `known`."""
        if isinstance(timing, str):
            if "calendar" not in timing.casefold():
                return timing
            found = parse_timing(timing, tz=zone, now=from_micros(now))
        else:
            found = timing
        if not isinstance(found, Timing) or not found.calendars:
            return timing
        known = {} if known is None else known
        if wanted := [name for name in found.calendars if name not in known]:
            known.update(await self._store.calendars.calendar_dates(wanted))
        for name in found.calendars:
            if name not in known:
                raise await self._unknown(name)
        return found.with_calendars(known)

    async def _unknown(self, name: str) -> InvalidInput:
        names = [one.name for one in await self._store.calendars.list_calendars()]
        near = get_close_matches(name, names, 1)
        there = f"the calendars are {', '.join(names[:_NAMED])}" if names else "there are no calendars yet"
        there += ", …" if len(names) > _NAMED else ""
        what = f"did you mean {near[0]!r}? If not, make it" if near else "make it"
        return InvalidInput(
            f"there is no calendar {name!r} ({there})",
            field="timing",
            hint=f"{what} with {hint('calendar set', name, *_SUCH_AS)}, "
            f"or in code, before app.start(), with app.calendars.set({name!r}, {_SUCH_AS})",
        )

    async def _changed(
        self, name: str, change: Callable[[Sequence[str]], Iterable[str]], *, may_be_new: bool = False
    ) -> Calendar:
        for _ in range(_TRIES):
            known = await self._find(name)
            if known is None and not may_be_new:
                raise _missing(name)
            version = 0 if known is None else known.version
            wanted = _checked(name, change(() if known is None else known.dates))
            now = self._clock.now()
            moved = await self._store.calendars.put_calendar(name, wanted, None, changed_by(), now, version)
            if moved is not None:
                return replace(await self.get(name), replanned=tuple(moved))
        raise VersionConflict(f"calendar {name!r} keeps being changed by others: try again")

    async def _delete(self, name: str) -> None:
        using = await self._store.calendars.remove_calendar(name)
        if using is None:
            raise _missing(name)
        if using:
            listed = ", ".join(using[:_NAMED]) + (", …" if len(using) > _NAMED else "")
            raise Conflict(
                f"schedules use calendar {name!r}: {listed}; give them another timing first, or take all dates "
                "out of it"
            )

    async def _find(self, name: str) -> Calendar | None:
        found = await self._store.calendars.list_calendars(name)
        return self._dated(found[0]) if found else None

    def _dated(self, calendar: Calendar) -> Calendar:
        today = local_date(self._zone, from_micros(self._clock.now()))
        is_past = bool(calendar.dates) and all(len(one) == 10 and one < str(today) for one in calendar.dates)
        return replace(calendar, past=is_past)


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no calendar {name!r}; 'ostinato calendar ls' lists them")


def _overtaken(name: str, current: Calendar | None, *, is_new: bool) -> VersionConflict:
    if current is None:
        return VersionConflict(f"calendar {name!r} was removed by somebody else: make it again without a version")
    if is_new:
        return VersionConflict(f"a calendar {name!r} already exists", version=current.version)
    return VersionConflict(
        f"calendar {name!r} was changed by somebody else: read it again and repeat the change", version=current.version
    )


def _checked(name: str, dates: Iterable[str | date]) -> Dates:
    """The dates of a calendar of this name; InvalidInput where either cannot be."""
    try:
        check_calendar_name(name)
    except TimingError as error:
        raise InvalidInput(error.message, field="name", hint="give a name such as office") from None
    given: Any = [dates] if isinstance(dates, date) else dates
    if not isinstance(given, Iterable):
        raise InvalidInput(
            f"dates cannot be {dates!r}", field="dates", hint="give a list such as ['2026-12-24', '12-31']"
        )
    try:
        found = CalendarDays(name, given).dates
    except TimingError as error:
        raise InvalidInput(error.message, field="dates", hint=error.hint) from None
    assert found is not None
    return found


def _texts(dates: Dates) -> list[str]:
    return dates.text.split(",") if dates.days else []
