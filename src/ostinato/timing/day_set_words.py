"""Reads `holidays(DE-BY)` and `calendar(office)` behind `except`. `text.py` calls it with such a word."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ostinato.errors import TimingError
from ostinato.timing.calendar_days import CalendarDays, calendar_dates
from ostinato.timing.dates import DaySet, read_day
from ostinato.timing.public_holidays import Holidays
from ostinato.timing.reading import Word

__all__ = ["DAY_SET", "read_day_sets", "says_day_set"]

DAY_SET = r'\b(?:holidays?|calendars?)\s*\((?:"(?:[^"\\]|\\.)*"|[^()"])*\)'
"""A word with parentheses that group nothing."""
_HEAD = re.compile(r"(holidays?|calendars?)\b", re.IGNORECASE)
_WHOLE = re.compile(r"(holidays?|calendars?)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_CALENDAR = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^":]*?)\s*(?::(.*))?', re.DOTALL)


def says_day_set(word: Word) -> bool:
    """Whether this word begins a set of days that has a name."""
    return _HEAD.match(word.raw) is not None


def read_day_sets(text: str, words: Sequence[Word]) -> DaySet:
    """The set of days that these words say, which is one word."""
    found = _WHOLE.fullmatch(words[0].raw)
    if found is None:
        raise _incomplete(text, words[0])
    if len(words) > 1:
        raise TimingError(
            "each set of days has an 'except' of its own",
            text=text,
            position=words[1].start,
            hint=_joined(text, words),
        )
    start = words[0].start + found.start(2)
    try:
        return _calendar(found[2]) if found[1].lower().startswith("calendar") else Holidays(found[2])
    except TimingError as error:
        hint = f"{text[: words[0].start]}{error.hint}{text[start + len(found[2]) + 1 :]}" if error.hint else ""
        raise TimingError(error.message, text=text, position=start + error.position, hint=hint) from error


def _incomplete(text: str, word: Word) -> TimingError:
    """Why a word alone is no set of days."""
    end = word.start + len(word.raw)
    if text[end:].lstrip().startswith("("):
        return TimingError("its parenthesis is not closed", text=text, position=end, hint=f"{text.rstrip()})")
    if word.lower.startswith("calendar"):
        what = "which calendar? As in calendar(office)"
    else:
        what = "holidays of which country or market? As in holidays(DE), holidays(US-CA), holidays(NYSE)"
    return TimingError(what, text=text, position=word.start)


def _joined(text: str, words: Sequence[Word]) -> str:
    pieces = [piece for word in words for piece in re.split(r",\s*(?![^(]*\))", word.raw)]
    listed = [piece.strip() for piece in pieces if piece.strip() and piece.strip().lower() not in ("and", "or", "&")]
    last = words[-1]
    return f"{text[: words[0].start]}{' except '.join(listed)}{text[last.start + len(last.raw) :]}"


def _calendar(inner: str) -> CalendarDays:
    """`office`, `"sales team"`, and as it is stored `office: 12-24,2026-12-31`."""
    found = _CALENDAR.fullmatch(inner)
    if found is None:
        raise TimingError(f"{inner.strip()} is not the name of a calendar, as in calendar(office)")
    name = found[1]
    if name[:1] == '"':
        try:
            name = str(json.loads(name))
        except ValueError:
            raise TimingError(f"{name} is not a name in quotes") from None
    if not name:
        raise TimingError("which calendar? As in calendar(office)")
    if found[2] is None:
        return CalendarDays(name)
    dates = found[2].strip()
    position = found.start(2) + len(found[2]) - len(found[2].lstrip())
    for item in dates.split(",") if dates else ():
        if read_day(item) is None:
            place = position + len(item) - len(item.lstrip())
            raise TimingError(f"{item.strip()!r} is not a date such as 2026-12-25 or 12-25", position=place)
        position += len(item) + 1
    return CalendarDays(name, calendar_dates(dates))
