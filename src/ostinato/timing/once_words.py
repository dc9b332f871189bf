"""The forms of what is due once: `at 2026-12-24T18:00`, `at 1798131600`, `in 30 minutes`, `tomorrow 15:00`.

Beside `words.py`, which hands over the words.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ostinato.timing.at import At
from ostinato.timing.base import Timing
from ostinato.timing.reading import Words

__all__ = ["at_epoch", "read_at_clock", "read_in", "read_moment", "read_today", "read_tomorrow"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at_epoch(words: Words) -> bool:
    """Whether seconds (9 or 10 digits) or milliseconds (12 or 13) since 1970 come: years from 1973 to 2286."""
    return bool(re.fullmatch(r"\d{9,10}|\d{12,13}", words.peek(), re.ASCII))


def read_moment(words: Words) -> Timing:
    """A date and time, or an instant in epoch seconds or milliseconds."""
    if at_epoch(words):
        digits = words.take().raw
        words.finished()
        return At(
            _EPOCH + (timedelta(seconds=int(digits)) if len(digits) < 12 else timedelta(milliseconds=int(digits)))
        )
    found = words.moment()
    words.finished()
    return At(found, words.tz)


def read_at_clock(words: Words) -> Timing:
    """`at 15:00`: the next time the clock shows it."""
    at = words.clock()
    words.finished()
    found = _on_local_day(words, 0, at)
    return found if found.instant > words.now else _on_local_day(words, 1, at)


def _on_local_day(words: Words, days: int, at: time) -> At:
    today = words.now.astimezone(ZoneInfo(words.tz or "UTC")).date()
    wall = datetime.combine(today + timedelta(days=days), at)
    # Without a zone the relative forms count in UTC, and say so.
    return At(wall, words.tz) if words.tz else At(wall.replace(tzinfo=UTC))


def read_today(words: Words) -> Timing:
    at = words.clock()
    words.finished()
    found = _on_local_day(words, 0, at)
    if found.instant <= words.now:
        words.index -= 1
        words.wrong("this time of today is already past")
    return found


def read_tomorrow(words: Words) -> Timing:
    at = words.clock()
    words.finished()
    return _on_local_day(words, 1, at)


def read_in(words: Words) -> Timing:
    wait = words.duration()
    words.finished()
    instant = words.now.astimezone(UTC) + wait
    if words.tz is None:
        return At(instant)
    local = instant.astimezone(ZoneInfo(words.tz))
    found = At(local.replace(tzinfo=None, fold=0), words.tz)
    # The second pass of a fold has no wall time of its own, only an offset.
    return found if found.instant == instant else At(local)
