"""`DailyAt`, `Weekly` and `Monthly`: one time of day on some days, by the wall clock of a zone.

Text forms `daily 03:00`, `weekly mon,thu 09:00`, `monthly last 18:00`; `wallclock.py` does the arithmetic.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, jitter_fields, store
from ostinato.timing.explain import (
    WEEKDAY_NAMES,
    WEEKDAYS,
    clock_text,
    day_number,
    month_end_remark,
    weekdays_phrase,
)
from ostinato.timing.pattern import MonthDays, TimesOfDay, WallPattern
from ostinato.timing.wallclock import WallClockTiming
from ostinato.timing.zones import check_zone

__all__ = ["DailyAt", "Monthly", "Weekly", "weekday_numbers"]

_WORDS = {"weekdays": (0, 1, 2, 3, 4), "weekends": (5, 6)}
_WORDS |= {word.rstrip("s"): days for word, days in _WORDS.items()}
_NAMES = {name: number for number, name in enumerate(WEEKDAYS)}
_NAMES |= {name.lower(): number for number, name in enumerate(WEEKDAY_NAMES)}
_NAMES |= {f"{name.lower()}s": number for number, name in enumerate(WEEKDAY_NAMES)}
_NAMES |= {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}


def weekday_numbers(text: str) -> tuple[int, ...]:
    """Monday is 0. Takes `mon`, `Monday`, `mon-fri`, `sat-mon`, `weekdays`, `weekends`; raises KeyError on others."""
    name = text.strip().lower()
    if name in _WORDS:
        return _WORDS[name]
    first, dash, last = name.partition("-")
    start = _NAMES[first.strip()]
    if not dash:
        return (start,)
    return tuple((start + step) % 7 for step in range((_NAMES[last.strip()] - start) % 7 + 1))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _OnceADay(WallClockTiming):
    """What the three share: the time of day."""

    hour: int
    minute: int
    second: int

    @property
    def month_days(self) -> MonthDays:
        raise NotImplementedError

    @property
    def pattern(self) -> WallPattern:
        return WallPattern(self.month_days, TimesOfDay((self.hour,), (self.minute,), (self.second,)))

    @property
    def clock(self) -> str:
        return clock_text(self.hour, self.minute, self.second)

    def _store(
        self, hour: int, minute: int, second: int, tz: str | None, jitter: Duration, stable: bool, **more: object
    ) -> None:
        example = "DailyAt(3, 0), Weekly('mon', 9, 30), Monthly(1, 9, 0)"
        for name, value, most in (("hour", hour, 23), ("minute", minute, 59), ("second", second, 59)):
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
                raise TimingError(f"{name} must be 0 to {most}, not {value!r}", hint=example)
        zone = check_zone(tz) if tz is not None else None
        store(self, hour=hour, minute=minute, second=second, tz=zone, **more)
        store(self, **jitter_fields(jitter, stable))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DailyAt(_OnceADay):
    """Every day at a wall time, 03:00 if none is given; in a gap the first minute that exists, in a fold once."""

    def __init__(
        self,
        hour: int = 3,
        minute: int = 0,
        second: int = 0,
        tz: str | None = None,
        *,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        self._store(hour, minute, second, tz, jitter, stable)

    @property
    def month_days(self) -> MonthDays:
        return _all_days

    def _words(self) -> str:
        return f"daily {self.clock}"

    def phrase(self) -> str:
        return f"at {self.clock} every day"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Weekly(_OnceADay):
    """On some weekdays at a wall time: `Weekly("mon,thu", 9, 0)`, `Weekly(["mon", "thu"], 9)`, also `"mon-fri"`.

    `Weekly(day="mon", hour=9)` is the same as `Weekly("mon", 9)`.
    """

    days: tuple[int, ...]

    def __init__(
        self,
        days: str | Iterable[str] = (),
        hour: int = 0,
        minute: int = 0,
        second: int = 0,
        tz: str | None = None,
        *,
        day: str | Iterable[str] = (),
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        if days and day:
            raise TimingError("give either days or day, not both", hint="Weekly(day='mon', hour=9)")
        given = days or day
        if not isinstance(given, Iterable):  # of numbers, nobody knows which day is the first
            raise TimingError(f"{given!r} is not a weekday", hint="Weekly('mon,thu', 9, 0)")
        names = given.split(",") if isinstance(given, str) else list(given)
        found: set[int] = set()
        for name in names:
            try:
                found.update(weekday_numbers(name))
            except (KeyError, AttributeError) as error:
                raise TimingError(f"{name!r} is not a weekday", hint="Weekly('mon,thu', 9, 0)") from error
        if not found:
            raise TimingError("Weekly needs at least one weekday", hint="Weekly('mon,thu', 9, 0)")
        self._store(hour, minute, second, tz, jitter, stable, days=tuple(sorted(found)))

    @property
    def month_days(self) -> MonthDays:
        return _weekdays_rule(self.days)

    @property
    def names(self) -> str:
        return ",".join(WEEKDAYS[day] for day in self.days)

    def _words(self) -> str:
        return f"weekly {self.names} {self.clock}"

    def phrase(self) -> str:
        return f"at {self.clock} on {weekdays_phrase(self.days)}"

    def days_phrase(self) -> str:
        return f"on {weekdays_phrase(self.days)}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Monthly(_OnceADay):
    """On one day of the month at a wall time; a month without that day is skipped, "last" is its last day."""

    day: int | Literal["last"]

    def __init__(
        self,
        day: int | Literal["last"],
        hour: int = 0,
        minute: int = 0,
        second: int = 0,
        tz: str | None = None,
        *,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        if day != "last" and (not isinstance(day, int) or isinstance(day, bool) or not 1 <= day <= 31):
            raise TimingError(f"a day of the month is 1 to 31 or 'last', not {day!r}", hint="Monthly('last', 9, 0)")
        self._store(hour, minute, second, tz, jitter, stable, day=day)

    @property
    def month_days(self) -> MonthDays:
        return _month_day_rule(self.day)

    def _words(self) -> str:
        return f"monthly {self.day} {self.clock}"

    def phrase(self) -> str:
        return f"at {self.clock} {self.days_phrase()}"

    def days_phrase(self) -> str:
        day = "last day" if self.day == "last" else day_number(self.day)
        return f"on the {day} of every month"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        skips = [month_end_remark(self.day)] if self.day != "last" and self.day > 28 else []
        # No super(): a dataclass with slots is a new class, which the zero-argument form does not know.
        return skips + WallClockTiming._remarks(self, after, n)


@lru_cache(maxsize=4096)
def _all_days(year: int, month: int) -> Sequence[int]:
    return range(1, monthrange(year, month)[1] + 1)


@lru_cache(maxsize=128)
def _weekdays_rule(weekdays: tuple[int, ...]) -> MonthDays:
    @lru_cache(maxsize=1200)
    def month_days(year: int, month: int) -> Sequence[int]:
        first, length = monthrange(year, month)
        return tuple(day for day in range(1, length + 1) if (first + day - 1) % 7 in weekdays)

    return month_days


@lru_cache(maxsize=32)
def _month_day_rule(day: int | Literal["last"]) -> MonthDays:
    def month_days(year: int, month: int) -> Sequence[int]:
        length = monthrange(year, month)[1]
        if day == "last":
            return (length,)
        return (day,) if day <= length else ()

    return month_days
