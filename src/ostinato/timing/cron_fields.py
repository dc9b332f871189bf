"""Reading a cron expression: checks each field, says where a wrong one is, and hands cronsim's sets to a pattern.

cronsim knows what a field means and which days match; `cron.py` is the timing, `wallclock.py` finds its instants.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError
from cronsim.cronsim import RANGES, SYMBOLIC_DAYS, SYMBOLIC_MONTHS, Field

from ostinato.errors import TimingError
from ostinato.timing.pattern import MonthDays, TimesOfDay, WallPattern

__all__ = ["MACROS", "CompiledCron", "compile_cron"]

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NAMES = ("second", "minute", "hour", "day of the month", "month", "day of the week")
_EXAMPLE = "30 9 * * 1-5"
# 28 years hold every first weekday with and without a leap day: what never happens in them never happens.
_ALL_KINDS_OF_YEARS = range(2026, 2054)


@dataclass(frozen=True, slots=True)
class CompiledCron:
    """A checked expression: its plain fields (macros and `?` replaced), its pattern, and how it treats DST."""

    fields: tuple[str, ...]
    pattern: WallPattern
    follows_clock: bool
    either_day: bool
    last_day: int


@lru_cache(maxsize=4096)
def compile_cron(expression: str) -> CompiledCron:
    """Check an expression and make its pattern; a wrong one is a TimingError that points at the place."""
    given = [(match[0], match.start()) for match in re.finditer(r"\S+", expression)]
    if given and given[0][0].startswith("@"):
        given = [(word, given[0][1]) for word in _macro(expression, given).split()]
    if len(given) not in (5, 6):
        raise _wrong_number(expression, given)
    names = _NAMES[-len(given) :]
    plain = tuple(
        _plain_field(expression, word, position, name) for (word, position), name in zip(given, names, strict=True)
    )
    six = plain if len(plain) == 6 else ("0", *plain)
    days = _day_rule(six[3:])
    if not _ever_matches(days):
        raise _impossible(expression, given, six)
    sim = _cronsim(six)
    times = TimesOfDay(tuple(sorted(sim.hours)), tuple(sorted(sim.minutes)), tuple(sorted(sim.seconds)))
    # Debian's rule: a job at fixed times runs once whatever DST does, one with wildcards follows the clock.
    fixed = len(plain) == 5 and not plain[0].startswith("*") and not plain[1].startswith("*")
    days_of_month = [day for day in sim.days if day > 0]
    last_day = min(days_of_month) if sim.day_and and len(days_of_month) == len(sim.days) else 0
    return CompiledCron(plain, WallPattern(days, times), not fixed, not sim.day_and, last_day)


def _cronsim(six_fields: Sequence[str]) -> CronSim:
    return CronSim(" ".join(six_fields), datetime(2026, 1, 1))


@lru_cache(maxsize=1024)
def _day_rule(day_fields: tuple[str, ...]) -> MonthDays:
    """The matching days of a month, shared by all expressions with the same last three fields."""
    try:
        sim = _cronsim(("0", "0", "0", *day_fields))
    except CronSimError:
        # The fields were checked one by one, so only their combination can be wrong: a date that never comes.
        return _no_days

    @lru_cache(maxsize=1200)
    def month_days(year: int, month: int) -> Sequence[int]:
        if month not in sim.months:
            return ()
        days = range(1, monthrange(year, month)[1] + 1)
        return tuple(day for day in days if sim.match_day(date(year, month, day)))

    return month_days


def _no_days(_year: int, _month: int) -> Sequence[int]:
    return ()


def _ever_matches(days: MonthDays) -> bool:
    return any(days(year, month) for year in _ALL_KINDS_OF_YEARS for month in range(1, 13))


def _macro(expression: str, given: list[tuple[str, int]]) -> str:
    word, position = given[0][0].lower(), given[0][1]
    if word not in MACROS:
        reason = "there is no start-up to wait for" if word == "@reboot" else "unknown macro"
        raise TimingError(
            f"{reason}: {given[0][0]}", text=expression, position=position, hint=" ".join(MACROS) + " @every 5m"
        )
    if len(given) > 1:
        raise TimingError(f"nothing may follow {word}", text=expression, position=given[1][1], hint=word)
    return MACROS[word]


def _wrong_number(expression: str, given: list[tuple[str, int]]) -> TimingError:
    position = given[6][1] if len(given) > 6 else len(expression.rstrip())
    hint = " ".join(word for word, _ in given[:6]) if len(given) > 6 else ""
    if 0 < len(given) < 5:
        hint = " ".join([word for word, _ in given] + ["*"] * (5 - len(given)))
    return TimingError(
        f"cron has 5 fields (minute hour day month weekday) or 6 with seconds first, not {len(given)}",
        text=expression,
        position=position,
        hint=hint or _EXAMPLE,
    )


def _plain_field(expression: str, word: str, position: int, name: str) -> str:
    """The field as cronsim reads it; each item of a list is checked alone, so that an error can point at it."""
    field = Field(_NAMES.index(name))
    items = []
    for item in word.split(","):
        plain = _plain_item(item.upper(), field)
        try:
            field.parse(plain)
        except (CronSimError, AssertionError, ValueError, TypeError) as error:
            message, hint = _diagnosis(item, field, name)
            fixed = expression[:position] + hint + expression[position + len(item) :]
            right = " ".join(fixed.split()) if not expression.lstrip().startswith("@") else _EXAMPLE
            raise TimingError(message, text=expression, position=position, hint=right) from error
        items.append(plain)
        position += len(item) + 1
    return ",".join(items)


def _plain_item(item: str, field: Field) -> str:
    if item == "?" and field in (Field.DAY, Field.DOW):
        return "*"
    if field == Field.DOW:
        # Sunday ends the week in a range (MON-SUN, FRI-0), though its number is 0.
        return re.sub(r"^(\w+)-(?:SUN|0)(?=$|/)", lambda found: f"{found[1]}-7", item)
    return item


def _diagnosis(item: str, field: Field, name: str) -> tuple[str, str]:
    """What is wrong with an item, and a right item in its place."""
    low, high = min(RANGES[field]), max(RANGES[field])
    allowed = f"{low} to {high}"
    if found := re.fullmatch(r"(\d*)~\d*", item):
        right = found[1] if _number(found[1], field) in RANGES[field] else f"{low}"
        return f"{name} {item!r}: choose one; a jitter behind the timing spreads the start", right
    if "/" in item:
        base, _, step = item.partition("/")
        if not step.isdecimal() or int(step) == 0:
            return f"{name} {item!r}: a step must be a number from 1", f"{base or '*'}/5"
    numbers = [_number(word, field) for word in re.findall(r"\w+", item.partition("/")[0])]
    if -1 in numbers:
        return f"{name} {item!r} is not understood: {allowed}, a list, a range or a step", "*"
    if any(number not in RANGES[field] for number in numbers):
        return f"{name} {item!r} is out of range: {allowed}", f"{low}-{high}" if "-" in item else str(high)
    if len(numbers) == 2 and "-" in item and numbers[0] > numbers[1]:
        first = 1 if field == Field.DOW else low
        wrapped = f"{first}-{numbers[1]}" if numbers[1] > first else str(numbers[1])
        return f"{name} {item!r} runs backwards", f"{numbers[0]}-{high},{wrapped}"
    return f"{name} {item!r} is not understood: {allowed}, a list, a range or a step", "*"


def _number(word: str, field: Field) -> int:
    """The number that a word of a field stands for, -1 when it is none."""
    names = {Field.MONTH: ["", *SYMBOLIC_MONTHS], Field.DOW: SYMBOLIC_DAYS}.get(field, [])
    if word.upper() in names:
        return names.index(word.upper())
    return int(word) if word.isdecimal() else -1


def _impossible(expression: str, given: list[tuple[str, int]], six: Sequence[str]) -> TimingError:
    day = given[-3]
    fixed = [word for word, _ in given]
    fixed[-3] = "L"
    return TimingError(
        f"this date never occurs: day {six[3]}, month {six[4]}, weekday {six[5]}",
        text=expression,
        position=day[1],
        hint=" ".join(fixed) if six[5] == "*" else _EXAMPLE,
    )
