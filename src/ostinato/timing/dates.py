"""`DaySet`: days for `A except B`. `Dates` is a list of them; one date, or the same date of every year.

A set of days, not a timing: `combine.py` asks it which days of a span it covers. Others: public_holidays.py,
calendar_days.py.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache

from ostinato.errors import TimingError
from ostinato.timing.explain import joined

__all__ = ["Dates", "DaySet", "read_day"]

Day = tuple[int, int, int]
"""Year, month, day; year 0 means every year."""

_DAY = re.compile(r"(?:(\d{4})-)?(\d{1,2})-(\d{1,2})")
_LEAP_YEAR = 2028


def read_day(text: str) -> Day | None:
    """A day as people write it, `2026-12-25` or `12-25`; None when it is not one."""
    match = _DAY.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = int(match[1] or 0), int(match[2]), int(match[3])
    try:
        date(year or _LEAP_YEAR, month, day)
    except ValueError:
        return None
    return year, month, day


class DaySet(ABC):
    """Local days of the timing that they are taken from."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str:
        """As it stands behind `except`."""

    @abstractmethod
    def days_phrase(self) -> str:
        """As it stands behind 'except' in a sentence."""

    @abstractmethod
    def covers(self, day: date) -> bool:
        """Whether this day is one of them."""

    @abstractmethod
    def within(self, first: date, last: date) -> Iterator[date]:
        """The covered days from first to last, both included, in order."""

    @abstractmethod
    def day_phrase(self, day: date) -> str:
        """What a covered day is, as in 'it leaves out 2026-12-25, one of its dates'."""

    def name_of(self, day: date) -> str:
        """What a covered day is called, where it has a name."""
        return ""

    @property
    def is_listed(self) -> bool:
        """Whether its text, as people see it, says which days they are."""
        return False

    @property
    def calendars(self) -> tuple[str, ...]:
        """The calendars that it has its days from."""
        return ()

    @property
    def wants_dates(self) -> bool:
        """Whether those are to be looked up yet."""
        return False

    def with_calendars(self, known: Mapping[str, Dates]) -> DaySet:
        """The same with the dates of these calendars."""
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text}>"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Dates(DaySet):
    """Local days of the timing they are taken from: `Dates("2026-12-25,12-26")`, `Dates([date(2026, 12, 25)])`."""

    days: tuple[Day, ...]
    known: frozenset[Day] = field(compare=False)

    def __init__(self, days: Iterable[str | date] | str, *, may_be_empty: bool = False) -> None:
        given = days.split(",") if isinstance(days, str) else list(days)
        found = []
        for item in given:
            day = _day_of(item)
            if day is None:
                raise TimingError(f"{item!r} is not a date", hint="2026-12-25 or, for every year, 12-25")
            found.append(day)
        if not found and not may_be_empty:
            raise TimingError("a list of dates needs at least one", hint="2026-12-25,2026-12-26")
        known = frozenset(found)
        object.__setattr__(self, "days", tuple(sorted(known)))
        object.__setattr__(self, "known", known)

    @property
    def is_listed(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return _days_text(self.days)

    def days_phrase(self) -> str:
        shown = [f"{day[2]} {date(_LEAP_YEAR, *day[1:]):%B}" if not day[0] else _day_text(day) for day in self.days]
        if len(shown) > 6:
            shown = [*shown[:5], f"{len(shown) - 5} other dates"]
        return f"on {joined(shown)}"

    def day_phrase(self, day: date) -> str:
        return "one of its dates"

    def covers(self, day: date) -> bool:
        return (day.year, day.month, day.day) in self.known or (0, day.month, day.day) in self.known

    def within(self, first: date, last: date) -> Iterator[date]:
        found = {date(*day) for day in self.days if day[0]}
        for year in range(first.year, last.year + 1):
            for _, month, day in (yearly for yearly in self.days if not yearly[0]):
                if (month, day) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)):
                    found.add(date(year, month, day))
        return iter(sorted(day for day in found if first <= day <= last))

    def merged(self, other: Dates) -> Dates:
        return Dates((self.text + "," + other.text).split(","))


def _day_of(item: object) -> Day | None:
    if isinstance(item, datetime):
        return None
    if isinstance(item, date):
        return item.year, item.month, item.day
    return read_day(item) if isinstance(item, str) else None


@lru_cache(maxsize=256)
def _days_text(days: tuple[Day, ...]) -> str:
    """Thousands of schedules may use one calendar."""
    return ",".join(map(_day_text, days))


def _day_text(day: Day) -> str:
    year = f"{day[0]:04}-" if day[0] else ""
    return f"{year}{day[1]:02}-{day[2]:02}"
