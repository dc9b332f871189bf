"""On which days of a month the last fields of a cron expression match; `pattern.py` asks it a month at a time.

`cron_fields.py` has read the fields, `cron_lines.py` puts these days together with the times of day.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ostinato.timing.cron_fields import CronField, FromEnd, Nearest, Nth
from ostinato.timing.pattern import MonthDays

__all__ = ["DayFields", "day_rule", "ever_matches"]

# 28 years hold every first weekday with and without a leap day: what never happens in them never happens.
_ALL_KINDS_OF_YEARS = range(2026, 2054)


class DayFields(NamedTuple):
    """What decides on which days an expression is due; without a year it is due in every year."""

    day: CronField
    month: CronField
    weekday: CronField
    year: CronField | None

    @property
    def either(self) -> bool:
        """Vixie's rule: of two day fields one is enough, unless one of them begins with a star."""
        return not (self.day.starred or self.weekday.starred)


@lru_cache(maxsize=1024)
def day_rule(fields: DayFields) -> MonthDays:
    """The matching days of a month, shared by all expressions with the same days."""
    months = frozenset(fields.month.values)
    years = None if fields.year is None or fields.year.is_any else frozenset(fields.year.values)
    days, weekdays = frozenset(fields.day.values), frozenset(fields.weekday.values)
    either = fields.either

    @lru_cache(maxsize=1200)
    def month_days(year: int, month: int) -> Sequence[int]:
        if month not in months or (years is not None and year not in years):
            return ()
        first, length = monthrange(year, month)
        all_days = range(1, length + 1)
        in_month = {day for day in all_days if day in days} | _special_days(fields.day, first, length)
        # monthrange says 0 for Monday, cron for Sunday.
        in_week = {day for day in all_days if (first + day) % 7 in weekdays} | _nth_days(fields.weekday, first, length)
        return tuple(sorted(in_month | in_week if either else in_month & in_week))

    return month_days


def ever_matches(days: MonthDays, year: CronField | None) -> bool:
    """Whether any day matches at all."""
    years = _ALL_KINDS_OF_YEARS if year is None or year.is_any else year.values
    return any(days(of, month) for of in years for month in range(1, 13))


def _special_days(field: CronField, first: int, length: int) -> set[int]:
    """What `L`, `L-3`, `LW` and `15W` are in a month that begins on this weekday and has so many days."""
    found = set()
    for item in field.items:
        if isinstance(item, FromEnd) and item.back < length:
            day = length - item.back
            found.add(_nearest_workday(day, first, length) if item.workday else day)
        elif isinstance(item, Nearest) and item.day <= length:
            found.add(_nearest_workday(item.day, first, length))
    return found


def _nearest_workday(day: int, first: int, length: int) -> int:
    """Monday to Friday, and not in another month."""
    weekday = (first + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < length else day - 2
    return day


def _nth_days(field: CronField, first: int, length: int) -> set[int]:
    found = set()
    for item in field.items:
        if isinstance(item, Nth):
            # Monday is 0 to monthrange and 1 to cron.
            earliest = (item.weekday - 1 - first) % 7 + 1
            day = earliest + 7 * (item.nth - 1) if item.nth > 0 else earliest + (length - earliest) // 7 * 7
            if day <= length:
                found.add(day)
    return found
