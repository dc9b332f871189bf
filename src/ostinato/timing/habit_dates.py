"""Dates as other tools and people write them: `24.12.2026`, `12/24`, `24 December 2026`, `in december`.

Beside `habits.py`, which asks for them; one that may be two days is written as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from ostinato.errors import TimingError
from ostinato.timing.calendar import DailyAt, Weekly
from ostinato.timing.cron_fields import MONTH_NAMES
from ostinato.timing.explain import WEEKDAYS

__all__ = [
    "DATE",
    "DAY_OFF",
    "IN_MONTHS",
    "NAMED_DATE",
    "ONE_DAY_A_YEAR",
    "Parse",
    "Written",
    "write_date",
    "write_day_off",
    "write_in_months",
    "write_named_date",
    "write_one_day_a_year",
]

Parse = Callable[[str], object]


class Written(NamedTuple):
    """How it is written here, empty where it may mean two things, and what to say of it."""

    text: str
    message: str


_NUMBERS = {name.lower(): number for number, name in enumerate(MONTH_NAMES, start=1)}
_NUMBERS |= {name[:3]: number for name, number in _NUMBERS.items()} | {"sept": 9}
_MONTH = rf"(?:{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:19|20)\d\d"
_LEAP_YEAR = 2028
DATE = (
    rf"(?<![\w./-])(?:(?P<year>{_YEAR})(?P<way>[./])(?P<month>\d{{1,2}})(?P=way)(?P<day>\d{{1,2}})"
    rf"|(?P<first>\d{{1,2}})(?P<mark>[./-])(?P<second>\d{{1,2}})(?P=mark)(?P<last>{_YEAR}))(?![\w/.-])"
)
NAMED_DATE = (
    rf"\b(?:(?P<day>{_DAY})\s+(?:of\s+)?(?P<month>{_MONTH}),?|(?P<other>{_MONTH})\s+(?P<number>{_DAY}),?)"
    rf"\s+(?P<year>{_YEAR})(?![\w:.])"
)
_OF_YEAR = (
    rf"(?:(?P<day>{_DAY})\s+(?:of\s+)?(?P<month>{_MONTH})|(?P<other>{_MONTH})\s+(?P<number>{_DAY})"
    r"|(?P<first>\d{1,2})(?P<mark>[./])(?P<second>\d{1,2})\.?)(?![\w:./])"
)
DAY_OFF = rf"(?:(?<=\bexcept )|(?<=\bexcept on )|(?<=\d,)|(?<=\d, )|(?<=\d and ))(?<![\w/.-]){_OF_YEAR}"
ONE_DAY_A_YEAR = (
    r"^\s*(?:(?:yearly|annually|(?:every|each)(?:\s+year)?)(?:\s+on)?(?:\s+the)?)\s+"
    rf"(?:(?P<iso>\d{{1,2}}-\d{{1,2}})(?![\w-])|{_OF_YEAR})(?P<times>.*?)(?P<tail>(?:\s+in\s+\S+)?(?:\s+jitter\s.*)?)$"
)
IN_MONTHS = rf"(?P<head>^.*\S)\s+in\s+(?P<months>{_MONTH}(?:\s*(?:,|and|&)\s*{_MONTH})*)(?P<tail>(?:\s+in\s+\S+)?)\s*$"


def write_date(match: re.Match[str]) -> Written | None:
    if match["year"]:
        return _once(match, int(match["year"]), int(match["month"]), int(match["day"]))
    first, second, year = int(match["first"]), int(match["second"]), int(match["last"])
    pair = _month_and_day(first, second)
    if pair is None:
        if not (1 <= first <= 12 and 1 <= second <= 12):
            return None  # no day at all
        other = f"{year}-{first:02}-{second:02} or {year}-{second:02}-{first:02}"
        return Written("", f"{match[0]!r} may be {other}: write the year, the month and then the day")
    return _once(match, year, *pair)


def write_named_date(match: re.Match[str]) -> Written | None:
    return _once(match, int(match["year"]), *_named(match))


def write_day_off(match: re.Match[str]) -> Written | None:
    """`12/24` and `dec 24` behind `except`."""
    is_excepted = re.search(r"\bexcept\b[^()]*$", match.string[: match.start()], re.IGNORECASE)
    if is_excepted is None:
        return None
    pair = _of_year(match)
    if pair is None:
        first, second = int(match["first"]), int(match["second"])
        if not (1 <= first <= 12 and 1 <= second <= 12):
            return None  # a time of day
        other = f"{first:02}-{second:02} or {second:02}-{first:02}"
        return Written("", f"{match[0]!r} may be {other}: write the month and then the day")
    return _dated(match[0], 0, *pair)


def write_one_day_a_year(match: re.Match[str], parse: Parse) -> Written | None:
    """`yearly on 12-24 at 9`: cron says it."""
    if (match["iso"] or match["mark"]) and not re.search("year|annual", match[0], re.IGNORECASE):
        return None
    message = "one day of the year is written in cron, as '0 9 24 12 *' for 09:00 on December 24"
    if match["iso"]:
        month, day = (int(part) for part in match["iso"].split("-"))
        pair: tuple[int, int] | None = (month, day)
    else:
        pair = _of_year(match)
    if pair is None or not _exists(_LEAP_YEAR, *pair):
        return Written("", message)
    return Written(_cron(parse, f"daily {match['times']}", f"{pair[1]} {pair[0]}", match["tail"]), message)


def write_in_months(match: re.Match[str], parse: Parse) -> Written | None:
    """`daily 9 in december`: cron says it."""
    names = re.findall(_MONTH, match["months"], re.IGNORECASE)
    months = sorted({_NUMBERS[name.lower().rstrip(".")] for name in names})
    message = "months are written in cron, as '0 9 * 12 *' for 09:00 on every day of December"
    return Written(_cron(parse, match["head"], f"* {','.join(map(str, months))}", match["tail"]), message)


def _cron(parse: Parse, head: str, days: str, tail: str) -> str:
    """The line with the times and the weekdays of a timing, on these days and months; empty if no line can say them."""
    try:
        made = parse(head)
    except TimingError:
        return ""
    if not isinstance(made, DailyAt | Weekly) or made.every > 1 or made.names_zone or made.jitter:
        return ""
    hours = {second // 3600 for second in made.times.seconds}
    past = {second % 3600 for second in made.times.seconds}
    if len(past) > 1 or made.times.seconds[0] % 60:
        return ""
    weekdays = ",".join(WEEKDAYS[day] for day in made.days) if isinstance(made, Weekly) else "*"
    if weekdays == "mon,tue,wed,thu,fri":
        weekdays = "1-5"
    return f"{past.pop() // 60} {','.join(map(str, sorted(hours)))} {days} {weekdays}{tail}"


def _of_year(match: re.Match[str]) -> tuple[int, int] | None:
    """Month and day, if it is clear which is which."""
    if match["mark"]:
        first, second = int(match["first"]), int(match["second"])
        # With a dot the day comes first, or it is a time of day.
        return None if match["mark"] == "." and second > 12 else _month_and_day(first, second)
    return _named(match)


def _named(match: re.Match[str]) -> tuple[int, int]:
    month, day = match["month"] or match["other"], match["day"] or match["number"]
    return _NUMBERS[month.lower().rstrip(".")], int(re.sub(r"\D", "", day))


def _month_and_day(first: int, second: int) -> tuple[int, int] | None:
    """Two numbers in either order, if one alone can be the month."""
    if first == second or (first <= 12 < second):
        return first, second
    return (second, first) if second <= 12 < first else None


def _once(match: re.Match[str], year: int, month: int, day: int) -> Written | None:
    """A date; where it begins the text it is that of a timing that is due once."""
    made = _dated(match[0], year, month, day)
    return made if made is None or match.string[: match.start()].strip() else made._replace(text=f"at {made.text}")


def _dated(found: str, year: int, month: int, day: int) -> Written | None:
    if not _exists(year or _LEAP_YEAR, month, day):
        return None
    text = (f"{year}-" if year else "") + f"{month:02}-{day:02}"
    return Written(text, f"{found!r} is written {text}")


def _exists(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
