"""Wall times by arithmetic: which days of a month times which seconds of a day, with no zone in sight.

Below `wallclock.py`, which maps these walls to instants; the rules themselves come from `calendar.py` and `cron.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import NamedTuple, Protocol

from ostinato.timing.zones import DAY

__all__ = ["DayTimes", "MonthDays", "TimesOfDay", "WallPattern"]

MonthDays = Callable[[int, int], Sequence[int]]
"""The matching days of a year and month, in ascending order."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
# The rarest honest pattern, 29 February on a given weekday, comes at least every 40 years (around 2100); but the year
# field of cron may name one that is far away.
_SEARCH_MONTHS = 150 * 12


class DayTimes(Protocol):
    """The times of a day, in order, addressed by rank."""

    def __hash__(self) -> int: ...

    @property
    def per_day(self) -> int: ...

    @property
    def hours(self) -> Sequence[int]: ...

    def rank(self, second_of_day: int) -> int:
        """How many of them lie before this second."""
        ...

    def select(self, rank: int) -> int:
        """The second of the day with this rank: the inverse of `rank`."""
        ...


class TimesOfDay(NamedTuple):
    """All combinations of hours, minutes and seconds (each sorted), addressed by rank instead of by listing them."""

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]

    @property
    def per_day(self) -> int:
        return len(self.hours) * len(self.minutes) * len(self.seconds)

    def rank(self, second_of_day: int) -> int:
        """How many matching times of the day lie before this second."""
        hours, minutes, seconds = self
        hour, rest = divmod(second_of_day, 3600)
        at_hour = bisect_left(hours, hour)
        rank = at_hour * len(minutes) * len(seconds)
        if at_hour == len(hours) or hours[at_hour] != hour:
            return rank
        minute, second = divmod(rest, 60)
        at_minute = bisect_left(minutes, minute)
        rank += at_minute * len(seconds)
        if at_minute == len(minutes) or minutes[at_minute] != minute:
            return rank
        return rank + bisect_left(seconds, second)

    def select(self, rank: int) -> int:
        """The second of the day with this rank: the inverse of `rank`."""
        hours, minutes, seconds = self
        rest, second = divmod(rank, len(seconds))
        hour, minute = divmod(rest, len(minutes))
        return hours[hour] * 3600 + minutes[minute] * 60 + seconds[second]


class WallPattern(NamedTuple):
    """Matching days times matching times of day. Walls are seconds since 1970-01-01T00:00 on the wall."""

    month_days: MonthDays
    times: DayTimes

    def next_wall(self, wall: int) -> int | None:
        """The first matching wall time strictly after this one, None if there is none in 150 years."""
        day, second = divmod(wall + 1, DAY)
        times = self.times
        rank = times.rank(second)
        if rank < times.per_day and self.matches_day(day):
            return day * DAY + times.select(rank)
        found = self._next_day(day + 1)
        return None if found is None else found * DAY + times.select(0)

    def previous_wall(self, wall: int) -> int | None:
        """The last matching wall time at or before this one, None if there is none in 150 years."""
        day, second = divmod(wall, DAY)
        rank = self.times.rank(second + 1)
        if rank > 0 and self.matches_day(day):
            return day * DAY + self.times.select(rank - 1)
        found = self._previous_day(day - 1)
        return None if found is None else found * DAY + self.times.select(self.times.per_day - 1)

    def count_walls(self, after: int, until: int) -> int:
        """How many matching wall times lie in (after, until]."""
        if until <= after:
            return 0
        first_day, first_second = divmod(after + 1, DAY)
        last_day, last_second = divmod(until + 1, DAY)
        total = self._count_days(first_day, last_day) * self.times.per_day
        if self.matches_day(first_day):
            total -= self.times.rank(first_second)
        if self.matches_day(last_day):
            total += self.times.rank(last_second)
        return total

    def walls(self, after: int, until: int) -> Iterator[int]:
        """The matching wall times in (after, until], a day at a time."""
        times = [self.times.select(rank) for rank in range(self.times.per_day)]
        for day in range((after + 1) // DAY, until // DAY + 1):
            if self.matches_day(day):
                midnight = day * DAY
                if after < midnight and midnight + DAY <= until:
                    yield from (midnight + second for second in times)
                else:
                    yield from (midnight + second for second in times if after < midnight + second <= until)

    def matches_day(self, day: int) -> bool:
        """Whether it is due on this day since 1970."""
        if not _FIRST_DAY <= day <= _LAST_DAY:
            return False
        on = date.fromordinal(day + _EPOCH_DAY)
        days = self.month_days(on.year, on.month)
        index = bisect_left(days, on.day)
        return index < len(days) and days[index] == on.day

    def _next_day(self, day: int) -> int | None:
        if day > _LAST_DAY:
            return None
        on = date.fromordinal(day + _EPOCH_DAY)
        year, month, first = on.year, on.month, on.day
        for _ in range(_SEARCH_MONTHS):
            days = self.month_days(year, month)
            index = bisect_left(days, first)
            if index < len(days):
                return date(year, month, days[index]).toordinal() - _EPOCH_DAY
            year, month, first = (year + 1, 1, 1) if month == 12 else (year, month + 1, 1)
            if year > 9999:
                return None
        return None

    def _previous_day(self, day: int) -> int | None:
        if day < _FIRST_DAY:
            return None
        on = date.fromordinal(day + _EPOCH_DAY)
        year, month, last = on.year, on.month, on.day
        for _ in range(_SEARCH_MONTHS):
            days = self.month_days(year, month)
            index = bisect_right(days, last)
            if index:
                return date(year, month, days[index - 1]).toordinal() - _EPOCH_DAY
            year, month, last = (year - 1, 12, 31) if month == 1 else (year, month - 1, 31)
            if year < 1:
                return None
        return None

    def _count_days(self, first: int, end: int) -> int:
        """Matching days in [first, end), a month at a time."""
        start, stop = date.fromordinal(first + _EPOCH_DAY), date.fromordinal(end + _EPOCH_DAY)
        total = bisect_left(self.month_days(stop.year, stop.month), stop.day)
        total -= bisect_left(self.month_days(start.year, start.month), start.day)
        year, month = start.year, start.month
        while (year, month) < (stop.year, stop.month):
            total += len(self.month_days(year, month))
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        return total
