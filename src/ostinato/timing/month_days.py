"""Which days of a month a calendar timing means: weekdays, numbers, the nth weekday, and of those every nth period.

Below `calendar.py`. Each rule is made once and shared, since a pattern asks it for month after month.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

from ostinato.timing.explain import WEEKDAY_NAMES, WEEKDAYS, day_number, joined
from ostinato.timing.pattern import MonthDays

__all__ = [
    "LAST",
    "ORDINALS",
    "DayOfMonth",
    "Unit",
    "all_days",
    "counted",
    "days_text",
    "ends_quarters",
    "month_days_phrase",
    "numbered_days",
    "of_quarters",
    "period",
    "read_days",
    "weekday_days",
    "weekday_numbers",
]

LAST: Literal["last"] = "last"
DayOfMonth = int | Literal["last"]
Unit = Literal["day", "week", "month"]
ORDINALS = ("first", "second", "third", "fourth", "fifth")
_KINDS = ("day", "workday", *WEEKDAYS)
_WORKDAYS = (0, 1, 2, 3, 4)
_WORDS = {"weekdays": _WORKDAYS, "workdays": _WORKDAYS, "weekends": (5, 6)}
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


def read_days(given: object) -> tuple[tuple[DayOfMonth, ...], str]:
    """The days, and their kind, of `1`, `"last"`, `[1, 15]`, `"1,15"`, `"first mon"` or `"last workday"`."""
    if isinstance(given, str):
        words = given.lower().split()
        kind = words.pop() if len(words) > 1 else "day"
        items: Iterable[object] = "".join(words).split(",")
    else:
        kind = "day"
        items = given if isinstance(given, Iterable) else [given]
    if kind not in _KINDS:
        kind = WEEKDAYS[weekday_numbers(kind)[0]]
    numbers = {_day(item, 31 if kind == "day" else 5) for item in items}
    if not numbers:
        raise ValueError("no day")
    return tuple(sorted(numbers, key=lambda day: 99 if day == LAST else int(day))), kind


def _day(item: object, most: int) -> DayOfMonth:
    if isinstance(item, str):
        word = item.strip()
        if word == LAST:
            return LAST
        number = ORDINALS.index(word) + 1 if most == len(ORDINALS) and word in ORDINALS else int(word)
    else:
        number = item if isinstance(item, int) and not isinstance(item, bool) else 0
    if not 1 <= number <= most:
        raise ValueError(f"{item!r} is not 1 to {most}")
    return number


def days_text(days: Sequence[DayOfMonth], kind: str) -> str:
    """`1,15,last`, or `first,third mon`: what `read_days` reads."""
    if kind == "day":
        return ",".join(map(str, days))
    return f"{','.join(_ordinal(day) for day in days)} {kind}"


def month_days_phrase(days: Sequence[DayOfMonth], kind: str) -> str:
    """`on the 1st and 15th`, `on the first Monday`, `on the last workday`; 'of every month' may follow."""
    if kind == "day":
        return f"on the {joined(['last day' if day == LAST else day_number(int(day)) for day in days])}"
    noun = "workday (Monday to Friday)" if kind == "workday" else WEEKDAY_NAMES[WEEKDAYS.index(kind)]
    return f"on the {joined([_ordinal(day) for day in days])} {noun}"


def _ordinal(day: DayOfMonth) -> str:
    return LAST if day == LAST else ORDINALS[int(day) - 1]


@lru_cache(maxsize=4096)
def all_days(year: int, month: int) -> Sequence[int]:
    return range(1, monthrange(year, month)[1] + 1)


@lru_cache(maxsize=128)
def weekday_days(weekdays: tuple[int, ...]) -> MonthDays:
    """The days that are one of these weekdays."""

    @lru_cache(maxsize=1200)
    def month_days(year: int, month: int) -> Sequence[int]:
        first, length = monthrange(year, month)
        return tuple(day for day in range(1, length + 1) if (first + day - 1) % 7 in weekdays)

    return month_days


@lru_cache(maxsize=128)
def numbered_days(numbers: tuple[DayOfMonth, ...], kind: str) -> MonthDays:
    """Of the days of a kind in a month, the first, the third, the last, …; what a month has not is left out."""
    of_kind = all_days if kind == "day" else weekday_days(_WORKDAYS if kind == "workday" else weekday_numbers(kind))

    @lru_cache(maxsize=1200)
    def month_days(year: int, month: int) -> Sequence[int]:
        days = of_kind(year, month)
        found = {days[-1] if number == LAST else days[int(number) - 1] for number in numbers if _has(days, number)}
        return tuple(sorted(found))

    return month_days


def _has(days: Sequence[int], number: DayOfMonth) -> bool:
    return number == LAST or int(number) <= len(days)


@lru_cache(maxsize=128)
def of_quarters(numbers: tuple[DayOfMonth, ...], kind: str) -> MonthDays:
    """The same of a quarter: counted from its first month, and the last in its last month."""
    from_start = numbered_days(tuple(number for number in numbers if number != LAST), kind)
    last = numbered_days((LAST,), kind) if LAST in numbers else from_start

    def month_days(year: int, month: int) -> Sequence[int]:
        if month % 3 == 1:
            return from_start(year, month)
        return last(year, month) if ends_quarters(numbers) and month % 3 == 0 else ()

    return month_days


def ends_quarters(numbers: Sequence[DayOfMonth]) -> bool:
    """Whether the end of a quarter is among them."""
    return LAST in numbers


def period(unit: Unit, day: date) -> int:
    """The number of the day, week (from Monday) or month that a day is in."""
    if unit == "month":
        return day.year * 12 + day.month
    return day.toordinal() if unit == "day" else (day.toordinal() - 1) // 7


@lru_cache(maxsize=1024)
def counted(rule: MonthDays, unit: Unit, every: int, anchor: date) -> MonthDays:
    """The days of a rule in every so many days, weeks or months, from the first one at or after the anchor on."""
    start = _first_from(rule, anchor)

    @lru_cache(maxsize=1200)
    def month_days(year: int, month: int) -> Sequence[int]:
        if start is None:
            return ()
        days = (date(year, month, day) for day in rule(year, month))
        first = period(unit, start)
        return tuple(day.day for day in days if day >= anchor and (period(unit, day) - first) % every == 0)

    return month_days


def _first_from(rule: MonthDays, anchor: date) -> date | None:
    month = anchor
    for _ in range(50 * 12):
        found = [day for day in rule(month.year, month.month) if date(month.year, month.month, day) >= anchor]
        if found:
            return date(month.year, month.month, found[0])
        month = month.replace(day=1) + timedelta(days=32)
    return None
