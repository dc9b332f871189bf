"""`DailyAt`, `Weekly`, `Monthly` and `Quarterly`: times of day on some days, by the wall clock of a zone.

Text forms `daily 03:00`, `weekly mon,thu 09:00,17:00`, `monthly last 18:00`, `every 2 weeks on mon at 09:00`;
`clock_times.py` has the times of a day, `month_days.py` the days, `wallclock.py` does the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any, ClassVar

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, Timing, jitter_fields, store
from ostinato.timing.clock_times import ClockTimes, second_of
from ostinato.timing.explain import WEEKDAYS, date_phrase, month_end_remark, weekdays_phrase
from ostinato.timing.month_days import (
    LAST,
    DayOfMonth,
    Unit,
    all_days,
    counted,
    days_text,
    month_days_phrase,
    numbered_days,
    of_quarters,
    period,
    read_days,
    weekday_days,
    weekday_numbers,
)
from ostinato.timing.pattern import MonthDays, WallPattern
from ostinato.timing.reading import read_times
from ostinato.timing.wallclock import WallClockTiming
from ostinato.timing.zones import Zone, check_zone, local_date, start_of_day

__all__ = ["MOST_PERIODS", "CalendarTiming", "DailyAt", "Monthly", "Quarterly", "TimeOfDay", "Weekly"]

TimeOfDay = int | time | str | Iterable[int | time | str]
"""An hour, a time or their text (`09:00,17:00`, `09:00-17:00 every 30m`), or several of those."""

MOST_PERIODS: dict[Unit, int] = {"day": 1000, "week": 200, "month": 60}
"""So many lie between two due times at most."""
_WEEKDAYS = "'mon,thu', 'mon-fri' or ['mon', 'thu']"
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CalendarTiming(WallClockTiming):
    """What they share: the times of a day, and that only every nth day, week or month may count.

    Those are counted from the first due time after its anchor, or from whenever one asks while it has none.
    """

    times: ClockTimes
    every: int
    anchor: date | None

    unit: ClassVar[Unit] = "day"

    @property
    def days_rule(self) -> MonthDays:
        """Its days, if every day, week or month counts."""
        raise NotImplementedError

    @property
    def pattern(self) -> WallPattern:
        rule = self.days_rule
        if self.every > 1 and self.anchor is not None:
            rule = counted(rule, self.unit, self.every, self.anchor)
        return WallPattern(rule, self.times)

    @property
    def hour(self) -> int:
        """Of its first time of the day, as are minute and second."""
        return self.times.seconds[0] // 3600

    @property
    def minute(self) -> int:
        return self.times.seconds[0] // 60 % 60

    @property
    def second(self) -> int:
        return self.times.seconds[0] % 60

    def _store(
        self,
        clock: tuple[TimeOfDay, int, int],
        tz: Zone | None,
        every: int,
        anchor: date | None,
        jitter: Duration,
        stable: bool,
        **more: object,
    ) -> None:
        most = MOST_PERIODS[self.unit]
        if not isinstance(every, int) or isinstance(every, bool) or not 1 <= every <= most:
            raise TimingError(f"every is 1 to {most} {self.unit}s, not {every!r}")
        if anchor is not None and (not isinstance(anchor, date) or isinstance(anchor, datetime)):
            raise TimingError(f"an anchor is a date such as date(2027, 1, 1), not {anchor!r}")
        times, own = _times_of(*clock)
        if tz is not None and own is not None and check_zone(tz) != check_zone(own):
            raise TimingError(f"its zone is named twice: {check_zone(tz)} and {check_zone(own)}")
        zone = tz if tz is not None else own
        store(self, times=times, every=every, anchor=anchor if every > 1 else None, **more)
        store(self, tz=check_zone(zone) if zone is not None else None, names_zone=zone is not None)
        store(self, **jitter_fields(jitter, stable))

    def anchored(self, at: datetime) -> Timing:
        if self.every == 1 or self.anchor is not None:
            return self
        plain = self.replaced(every=1)
        first = at if plain.is_due(at) else plain.next_after(at)
        return self if first is None else self.replaced(anchor=local_date(self.tz or "UTC", first))

    def carried_back(self, start: datetime) -> CalendarTiming:
        """Counted on from a day before `start`, so that it is due at the same times after its anchor."""
        anchor, first = self.anchor, local_date(self.tz or "UTC", start)
        if anchor is None or anchor <= first:
            return self
        if self.unit != "month":
            days = self.every * (7 if self.unit == "week" else 1)
            # One period more: of a week, the anchor may be its last day.
            return self.replaced(anchor=anchor - timedelta(days=days * ((anchor - first).days // days + 2)))
        month = period("month", anchor)
        while date((month - 1) // 12, (month - 1) % 12 + 1, 1) > first or not self.days_rule(
            (month - 1) // 12, (month - 1) % 12 + 1
        ):
            month -= self.every
        return self.replaced(anchor=date((month - 1) // 12, (month - 1) % 12 + 1, 1))

    def _next(self, t: datetime) -> datetime | None:
        if self.every > 1:
            if self.anchor is None:
                bound = self.anchored(t)
                return None if bound is self else bound.next_after(t)
            t = max(t, start_of_day(self.tz or "UTC", self.anchor) - _SECOND)
        return WallClockTiming._next(self, t)

    def _previous(self, t: datetime) -> datetime | None:
        return None if self.every > 1 and self.anchor is None else WallClockTiming._previous(self, t)

    def _count(self, after: datetime, until: datetime) -> int:
        if self.every > 1 and self.anchor is None:
            bound = self.anchored(after)
            return 0 if bound is self else bound.count_between(after, until)
        return WallClockTiming._count(self, after, until)

    def _words(self) -> str:
        if self.every == 1:
            return self._plain_words()
        at = "" if self.times.step else "at "
        since = "" if self.anchor is None else f" from {self.anchor}"
        return f"every {self.every} {self.unit}s {self._on_words()}{at}{self.times.text}{since}"

    def _plain_words(self) -> str:
        raise NotImplementedError

    def _on_words(self) -> str:
        """Which days of its unit, `on mon `."""
        return ""

    def phrase(self) -> str:
        return f"{self.times.phrase} {self.days_phrase()}"

    def days_phrase(self) -> str:
        if self.every == 1:
            return self._plain_days()
        since = "when it is enabled" if self.anchor is None else date_phrase(self.anchor)
        return f"{self._counted_days()}every {self.every} {self.unit}s, counted from {since}"

    def _plain_days(self) -> str:
        raise NotImplementedError

    def _counted_days(self) -> str:
        return ""

    def _remarks(self, after: datetime, n: int) -> list[str]:
        if self.every > 1 and self.anchor is None:
            bound = self.anchored(after)
            return [] if bound is self else bound._remarks(after, n)
        return WallClockTiming._remarks(self, after, n)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DailyAt(CalendarTiming):
    """Every day at a wall time, 03:00 if none is given; in a gap the first minute that exists, in a fold once.

    `DailyAt(3)`, `DailyAt(time(3))`, `DailyAt("09:00,17:00")`, `DailyAt(6, every=3)`.
    """

    def __init__(
        self,
        hour: TimeOfDay = 3,
        minute: int = 0,
        second: int = 0,
        tz: Zone | None = None,
        *,
        every: int = 1,
        anchor: date | None = None,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        self._store((hour, minute, second), tz, every, anchor, jitter, stable)

    @property
    def days_rule(self) -> MonthDays:
        return all_days

    def _plain_words(self) -> str:
        return f"daily {self.times.text}"

    def _plain_days(self) -> str:
        return "every day"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Weekly(CalendarTiming):
    """On some weekdays at a wall time: `Weekly("mon,thu", 9, 0)`, `Weekly(["mon", "thu"], 9)`, also `"mon-fri"`.

    `Weekly(day="mon", hour=9)` is the same as `Weekly("mon", 9)`; `Weekly("mon", 9, every=2)` is every second week.
    """

    days: tuple[int, ...]

    unit: ClassVar[Unit] = "week"

    def __init__(
        self,
        days: str | Iterable[str] = (),
        hour: TimeOfDay = 0,
        minute: int = 0,
        second: int = 0,
        tz: Zone | None = None,
        *,
        day: str | Iterable[str] = (),
        every: int = 1,
        anchor: date | None = None,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        if days and day:
            raise TimingError("give either days or day, not both: Weekly(day='mon', hour=9)")
        given = days or day
        if not isinstance(given, Iterable):  # of numbers, nobody knows which day is the first
            raise TimingError(f"{given!r} is not a weekday: give such as {_WEEKDAYS}")
        names = given.split(",") if isinstance(given, str) else list(given)
        found: set[int] = set()
        for name in names:
            try:
                found.update(weekday_numbers(name))
            except (KeyError, AttributeError) as error:
                raise TimingError(f"{name!r} is not a weekday: give such as {_WEEKDAYS}") from error
        if not found:
            raise TimingError(f"Weekly needs at least one weekday: give such as {_WEEKDAYS}")
        self._store((hour, minute, second), tz, every, anchor, jitter, stable, days=tuple(sorted(found)))

    @property
    def days_rule(self) -> MonthDays:
        return weekday_days(self.days)

    @property
    def names(self) -> str:
        return ",".join(WEEKDAYS[day] for day in self.days)

    def _plain_words(self) -> str:
        return f"weekly {self.names} {self.times.text}"

    def _on_words(self) -> str:
        return f"on {self.names} "

    def _plain_days(self) -> str:
        return f"on {weekdays_phrase(self.days)}"

    def _counted_days(self) -> str:
        return f"on {weekdays_phrase(self.days)} "


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Monthly(CalendarTiming):
    """On days of the month at a wall time; a month without such a day is skipped, "last" is its last day.

    `Monthly(1, 9)`, `Monthly([1, 15], 9)`, `Monthly("first mon", 10)`, `Monthly("last workday", 17)`; with `every=2`
    every second month.
    """

    days: tuple[DayOfMonth, ...]
    kind: str
    """Of which the days are numbers: `day`, `workday` (Monday to Friday) or a weekday."""

    unit: ClassVar[Unit] = "month"

    def __init__(
        self,
        day: int | str | Iterable[int | str],
        hour: TimeOfDay = 0,
        minute: int = 0,
        second: int = 0,
        tz: Zone | None = None,
        *,
        every: int = 1,
        anchor: date | None = None,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        try:
            days, kind = read_days(day)
        except (ValueError, KeyError) as error:
            raise TimingError(
                f"a day of the month is 1 to 31, 'last', or such as 'first mon' or 'last workday', not {day!r}"
            ) from error
        self._store((hour, minute, second), tz, every, anchor, jitter, stable, days=days, kind=kind)

    @property
    def day(self) -> DayOfMonth:
        """The first of its days."""
        return self.days[0]

    @property
    def days_rule(self) -> MonthDays:
        return numbered_days(self.days, self.kind)

    def _plain_words(self) -> str:
        return f"monthly {days_text(self.days, self.kind)} {self.times.text}"

    def _on_words(self) -> str:
        return f"on {days_text(self.days, self.kind)} "

    def _plain_days(self) -> str:
        return f"{month_days_phrase(self.days, self.kind)} of every month"

    def _counted_days(self) -> str:
        return f"{month_days_phrase(self.days, self.kind)} "

    def _remarks(self, after: datetime, n: int) -> list[str]:
        # No super(): a dataclass with slots is a new class, which the zero-argument form does not know.
        return self._skips() + CalendarTiming._remarks(self, after, n)

    def _skips(self) -> list[str]:
        late = [int(day) for day in self.days if day != LAST and int(day) > (28 if self.kind == "day" else 4)]
        if not late or self.kind == "workday":
            return []
        if self.kind == "day":
            return [month_end_remark(late[0])]
        return [f"Skips months without a fifth {self.kind}; 'monthly last {self.kind}' is due in every month."]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Quarterly(Monthly):
    """Like Monthly, of quarters: in January, April, July and October, and "last" at the end of the quarter."""

    def __init__(
        self,
        day: int | str | Iterable[int | str] = 1,
        hour: TimeOfDay = 0,
        minute: int = 0,
        second: int = 0,
        tz: Zone | None = None,
        *,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        Monthly.__init__(self, day, hour, minute, second, tz, jitter=jitter, stable=stable)

    @property
    def days_rule(self) -> MonthDays:
        return of_quarters(self.days, self.kind)

    def _plain_words(self) -> str:
        return f"quarterly {days_text(self.days, self.kind)} {self.times.text}"

    def _plain_days(self) -> str:
        return f"{month_days_phrase(self.days, self.kind)} of every quarter"

    def _skips(self) -> list[str]:
        return []


def _times_of(hour: object, minute: int, second: int) -> tuple[ClockTimes, tzinfo | None]:
    """The times of a day, and the zone that they came with."""
    if isinstance(hour, (time, Iterable)):
        if minute != 0 or second != 0:
            raise TimingError(f"minute and second are of an hour that is a number, not of {hour!r}")
        if isinstance(hour, str):
            return read_times(hour), None
        return _listed([hour] if isinstance(hour, time) else hour)
    for name, value, most in (("hour", hour, 23), ("minute", minute, 59), ("second", second, 59)):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise TimingError(f"{name} must be 0 to {most}, not {value!r}")
    return _listed([time(int(hour), minute, second)])  # type: ignore[call-overload]


def _listed(given: Iterable[Any]) -> tuple[ClockTimes, tzinfo | None]:
    """Several times of a day: hours, times and texts, in one zone."""
    seconds: set[int] = set()
    zones: set[tzinfo | None] = set()
    for each in given:
        if isinstance(each, time) and not each.microsecond:
            seconds.add(second_of(each))
        elif isinstance(each, str):
            seconds.update(read_times(each).seconds)
        elif isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= 23:
            seconds.add(each * 3600)
        else:
            raise TimingError(f"{each!r} is not a time of day: give an hour, such as 9, '9:30' or time(9, 30)")
        zones.add(each.tzinfo if isinstance(each, time) else None)
    if len(zones) != 1:
        raise TimingError("one zone for all times of day" if seconds else "a time of day is missing")
    return ClockTimes.listed(seconds), zones.pop()
