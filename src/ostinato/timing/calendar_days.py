"""`CalendarDays`: the dates of a calendar, which a ledger keeps under a name, for `A except calendar(office)`.

A timing is a value and reads no ledger: whoever stores one gives it the dates, which its text then has in it. What
people see is the folded text, without the dates. Neighbours: service/calendars.py, stores/sql/calendars.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from ostinato.errors import TimingError
from ostinato.timing.dates import Dates, DaySet

__all__ = [
    "MOST_DATES",
    "NO_DATES",
    "CalendarDays",
    "calendar_dates",
    "calendars_in",
    "check_calendar_name",
    "folded",
    "with_dates",
]

MOST_DATES = 1_000
NO_DATES = Dates((), may_be_empty=True)
_LONGEST = 200
_PLAIN = re.compile(r'[^\s",():]+')
_NAME = r'"(?:[^"\\]|\\.)*"|[^\s",():]+'
_REFERENCE = re.compile(rf'\bcalendar\(({_NAME})(?::([^()"]*))?\)')


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CalendarDays(DaySet):
    """`CalendarDays("office")`. Without its dates it can be written and read, but nothing can be due by it."""

    name: str
    dates: Dates | None
    """None: nobody has said yet which they are."""

    def __init__(self, name: str, dates: Iterable[str | date] | str | Dates | None = None) -> None:
        object.__setattr__(self, "name", check_calendar_name(name))
        object.__setattr__(self, "dates", None if dates is None else _listed(dates))

    @property
    def calendars(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def wants_dates(self) -> bool:
        return self.dates is None

    def with_calendars(self, known: Mapping[str, Dates]) -> DaySet:
        if self.name not in known:
            return self
        copy = object.__new__(CalendarDays)
        object.__setattr__(copy, "name", self.name)
        object.__setattr__(copy, "dates", known[self.name])
        return copy

    @property
    def text(self) -> str:
        return _reference(self.name, None if self.dates is None else self.dates.text)

    def days_phrase(self) -> str:
        return f"on the days of calendar {self.name!r}"

    def day_phrase(self, day: date) -> str:
        return f"a day of calendar {self.name!r}"

    def covers(self, day: date) -> bool:
        return self._known().covers(day)

    def within(self, first: date, last: date) -> Iterator[date]:
        return self._known().within(first, last)

    def _known(self) -> Dates:
        if self.dates is None:
            raise TimingError(
                f"the dates of calendar {self.name!r} are not known here: a ledger keeps them", text=self.text
            )
        return self.dates


def check_calendar_name(name: Any) -> str:
    """A name that can stand in a text; TimingError if it cannot."""
    is_name = isinstance(name, str) and name.strip() == name and 0 < len(name) <= _LONGEST and name.isprintable()
    if not is_name or name in (".", ".."):
        raise TimingError(f"a calendar cannot be called {name!r}", hint="daily 09:00 except calendar(office)")
    return str(name)


@lru_cache(maxsize=64)
def calendar_dates(text: str) -> Dates:
    """The dates of a calendar from their text, which may be empty. Many timings share one calendar."""
    return _listed(text)


def _listed(dates: Iterable[str | date] | str | Dates) -> Dates:
    if isinstance(dates, Dates):
        return dates
    given = dates.split(",") if isinstance(dates, str) else list(dates)
    if len(given) > MOST_DATES:
        raise TimingError(f"a calendar has {MOST_DATES} dates at most, not {len(given)}")
    return Dates([] if given == [""] else given, may_be_empty=True)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _reference(name: str, dates: str | None) -> str:
    if dates is None:
        return f"calendar({_quoted(name)})"
    return f"calendar({_quoted(name)}:{' ' if dates else ''}{dates})"


def _unquoted(name: str) -> str:
    return str(json.loads(name)) if name[:1] == '"' else name


def calendars_in(text: str) -> tuple[str, ...]:
    """The calendars that a canonical text names, each once."""
    if not _may_name(text):
        return ()
    return tuple(dict.fromkeys(_unquoted(found[1]) for found in _REFERENCE.finditer(text)))


def folded(text: str) -> str:
    """A canonical text as people see it, without the dates of its calendars."""
    return _each(text, lambda name, _: _reference(name, None)) if _may_name(text) else text


def with_dates(text: str, known: Mapping[str, Dates]) -> str:
    """A canonical text with these dates of these calendars; it need not be one that can be read here."""

    def told(name: str, dates: str | None) -> str:
        if name in known:
            return _reference(name, known[name].text)
        return _reference(name, None if dates is None else dates.strip())

    return _each(text, told) if _may_name(text) else text


def _may_name(text: str) -> bool:
    # After the runs of a schedule whose name looks like one, nothing is due by the clock.
    return "calendar(" in text and not text.startswith("after ")


def _each(text: str, told: Callable[[str, str | None], str]) -> str:
    return _REFERENCE.sub(lambda found: told(_unquoted(found[1]), found[2]), text)
