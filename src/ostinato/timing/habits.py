"""Habits of other tools and of the tongue: `9.30`, `17 Uhr`, `24.12.2026`, `except 12/24`, `every half hour`.

Called by `text.py` for a text that is no timing: which of its words such a habit is, and the text without it, where
that can mean one thing only. `habit_dates.py` has the dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ostinato.errors import TimingError
from ostinato.timing.day_set_words import DAY_SET
from ostinato.timing.habit_dates import (
    DATE,
    DAY_OFF,
    IN_MONTHS,
    NAMED_DATE,
    ONE_DAY_A_YEAR,
    Parse,
    Written,
    write_date,
    write_day_off,
    write_in_months,
    write_named_date,
    write_one_day_a_year,
)
from ostinato.timing.zones import check_zone

__all__ = ["Habit", "find_habit"]


class Habit(NamedTuple):
    """Where it is, what to say of it, and the whole text without it: empty where it may mean two things."""

    position: int
    message: str
    text: str


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    write: Callable[[re.Match[str]], Written | None]


def find_habit(text: str, parse: Parse) -> Habit | None:
    """The habit that a text which is no timing should be told of: one that may mean two things, else the first."""
    # What is 'after' are names, which may look like anything.
    if len(text) > _LONGEST or text.split(maxsplit=1)[:1] == ["after"]:
        return None
    rules = [*_RULES, *(_Rule(pattern, partial(write, parse=parse)) for pattern, write in _IN_CRON)]
    told = [(bool(made.text), start, made.message) for rule in rules for start, _, made in _written(rule, text)]
    if not told:
        return None
    _, position, message = min(told)
    fixed = text
    for rule in rules:
        for start, end, made in reversed(_written(rule, fixed)):
            if not made.text:
                return Habit(position, message, "")
            fixed = f"{fixed[:start]}{made.text}{fixed[end:]}"
    return Habit(position, message, fixed)


def _written(rule: _Rule, text: str) -> list[tuple[int, int, Written]]:
    """Where this habit is in a text, outside of the parentheses of days off."""
    named = [match.span() for match in _NAMED.finditer(text)]
    return [
        (match.start(), match.end(), made)
        for match in rule.pattern.finditer(text)
        if not any(begin <= match.start() < end for begin, end in named) and (made := rule.write(match)) is not None
    ]


def _write_clock(match: re.Match[str]) -> Written | None:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if hour > 23 or minute > 59 or "*" in match.string:
        return None
    if "h" in match[0].lower() and re.fullmatch(rf"\s*{match[0]}\s*(?:after\b.*)?", match.string, re.IGNORECASE):
        return None  # alone it may be a duration
    clock = f"{hour}:{minute:02}"
    return Written(clock, f"{match[0]!r} is written {clock}")


def _write_zone(match: re.Match[str]) -> Written | None:
    try:
        zone = check_zone(match[0])
    except TimingError as error:
        zone = error.hint
    if not zone:
        return None
    # Of a combination, it might be the zone of one part or of all.
    is_clear = not re.search(r"\b(?:or|except)\b", match.string, re.IGNORECASE)
    return Written(f"in {zone}" if is_clear else "", f"a zone is written with 'in': in {zone}")


_LONGEST = 500
_NAMED = re.compile(DAY_SET, re.IGNORECASE)
_WHOSE_HOLIDAYS = (
    r"\bholidays?\s+(?:(?:in|of|for)\s+([A-Za-z]{2,}(?:-[A-Za-z0-9]+)?)"
    r"|(?!(?:AT|ON|IN|OR)\b)((?-i:[A-Z]{2,4}(?:-[A-Z0-9]{1,3})?)))(?![\w/(-])"
)
_PART = {
    ("half", "hour"): "30m",
    ("half", "minute"): "30s",
    ("half", "day"): "12h",
    ("quarter", "hour"): "15m",
}


def _write_part(match: re.Match[str]) -> Written | None:
    amount = _PART.get((match[1].lower(), match[2].lower()))
    return Written(amount, f"{match[0]!r} is written {amount}") if amount else None


_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_NUMBERS |= {"twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}


def _write_number(match: re.Match[str]) -> Written:
    number = str(_NUMBERS[match[0].lower()])
    return Written(number, f"{match[0]!r} is written {number}")


def _write_one(match: re.Match[str]) -> Written:
    return Written(f"1 {match[1]}", f"{match[0]!r} is written 1 {match[1]}")


def _write_runs(match: re.Match[str]) -> Written | None:
    if re.match(r"\s*(?:at|in|today|tomorrow)\b", match.string, re.IGNORECASE):
        return None  # once is once
    runs = f"until {match[1]} {'run' if int(match[1]) == 1 else 'runs'}"
    return Written(runs, f"so many runs are written '{runs}'")


def _write_except(match: re.Match[str]) -> Written:
    return Written("except", f"days are left out with 'except', not {match[0]!r}")


def _write_holidays(match: re.Match[str]) -> Written:
    named = f"holidays({match[1] or match[2]})"
    return Written(named, f"whose holidays is written in parentheses: {named}")


_UNITS = "second|minute|hour|day|week"
_COUNTED = (
    rf"(?:^|(?<=\bevery )|(?<=\beach )|(?<=\bin )|(?<=\band ))(?:{'|'.join(_NUMBERS)})(?=\s+(?:{_UNITS}|month)s\b)"
)
_RULES: Sequence[_Rule] = [
    _Rule(re.compile(pattern, re.IGNORECASE), write)
    for pattern, write in (
        (r"\b(?:without|excluding|but not|except for)(?: on)?\b(?=\s)", _write_except),
        (_WHOSE_HOLIDAYS, _write_holidays),
        (DATE, write_date),
        (NAMED_DATE, write_named_date),
        (DAY_OFF, write_day_off),
        (r"(?<![\w:.])(?P<hour>\d{1,2})(?:[.:h](?P<minute>\d{2}))?\s+Uhr\b", _write_clock),
        (r"(?<!every )(?<!each )(?<!in )(?<![\w:./-])(?P<hour>\d{1,2})[.h](?P<minute>\d{2})(?![\w:./])", _write_clock),
        (r"\b(half|quarter)(?:\s+(?:of\s+)?an?)?\s+(hour|minute|day)\b", _write_part),
        (_COUNTED, _write_number),
        (rf"(?<=\bin )(?:an?|one)\s+({_UNITS})\b", _write_one),
        # Behind a time or an interval: '3 times' alone may be how often on each day.
        (r"(?:(?<=\d )|(?<=\d[a-z] )|(?<=[ap]m )|(?<=noon ))(?:for )?(\d{1,9}) (?:times?|runs?)\s*$", _write_runs),
        (r"(?<!\bin )(?<![\w/=])(?:[A-Za-z]{2,}(?:/[A-Za-z_][\w+-]{2,})+|UTC|GMT)(?![\w/+-])", _write_zone),
    )
]
_IN_CRON = (
    (re.compile(ONE_DAY_A_YEAR, re.IGNORECASE), write_one_day_a_year),
    (re.compile(IN_MONTHS, re.IGNORECASE), write_in_months),
)
