"""The forms of a simple timing, canonical ones and people's: `daily 03:00`, `every monday at 9`, `in 30 minutes`.

`text.py` hands over the words of one simple timing; `reading.py` reads the values in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ostinato.errors import TimingError
from ostinato.timing.at import At
from ostinato.timing.base import Timing
from ostinato.timing.calendar import DailyAt, Monthly, Weekly, weekday_numbers
from ostinato.timing.cron import Cron
from ostinato.timing.every import SHORTEST, Every
from ostinato.timing.explain import WEEKDAYS
from ostinato.timing.reading import UNITS, Words

__all__ = ["VOCABULARY", "read_simple"]

_MIDNIGHT = time(0)
_EVERY, _DAILY, _WEEKLY, _MONTHLY = "every 5m", "daily 09:00", "weekly mon,thu 09:00", "monthly 1 09:00"
_AFTER_INTERVAL = ("", "after", "from", "starting")
_AT = "at 2026-12-24T18:00"
_ORDINALS = {"first": 1, "1st": 1, "2nd": 2, "3rd": 3, "21st": 21, "22nd": 22, "23rd": 23, "31st": 31, "second": 2}
_ORDINALS |= {f"{day}th": day for day in range(4, 31) if day not in (21, 22, 23)} | {"third": 3}
VOCABULARY = sorted(
    {"every", "daily", "weekly", "monthly", "hourly", "weekdays", "weekends", "weekday", "weekend", "after"}
    | {"finish", "from", "today", "tomorrow", "noon", "midnight", "jitter", "stable", "except", "last", "first"}
    | {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "month", "cron", *WEEKDAYS}
    | {name for name in UNITS if len(name) > 2}
    | {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every"}
)


def read_simple(words: Words) -> Timing:
    """The timing that these words say; all of them must be used up."""
    first = words.peek()
    reader = _FORMS.get(first)
    if reader is not None:
        words.take()
        return reader(words)
    if words.at_date():
        return _moment(words)
    if first.startswith("@") or _looks_like_cron(words):
        return _cron(words)
    if _at_weekdays(words):
        return _on_weekdays(words, "weekly")
    if first in _ORDINALS:
        return _day_of_month(words)
    return _unknown(words)


def _every(words: Words) -> Timing:
    if _at_weekdays(words):
        return _on_weekdays(words, "every")
    unit = words.peek()
    if unit == "day" and words.peek(1) not in ("after", "from"):
        words.take()
        return _daily(words)
    if unit in ("week", "month"):
        words.take()
        words.skip("on")
        words.skip("the")
        return _weekly(words) if unit == "week" else _monthly(words)
    if unit == "last" or (unit in _ORDINALS and not (unit == "second" and words.peek(1) in _AFTER_INTERVAL)):
        return _day_of_month(words)
    if unit == "other":
        words.wrong("'every other' is not understood", f"every 2 {words.peek(1).removesuffix('s') or 'day'}s")
    begin = words.index
    if unit in UNITS and unit.isalpha():
        words.take()
        interval = timedelta(milliseconds=1) if UNITS[unit] == "ms" else _one(UNITS[unit])
    else:
        interval = words.duration(_EVERY)
    if interval < SHORTEST:
        words.index = begin
        words.wrong("an interval must be at least 1 ms", f"every 1{UNITS.get(_unit_of(words), 'm')}")
    return _interval(words, interval)


def _interval(words: Words, interval: timedelta) -> Timing:
    if words.skip("after"):
        words.skip("the")
        if not words.skip("finish", "finished", "finishing", "end", "completion"):
            words.wrong("after what?", "every 1h after finish")
        words.finished("every 1h after finish")
        return Every.of(interval, "finish")
    if words.skip("from", "starting"):
        anchor = words.moment("every 5m from 2026-01-01T10:00Z")
        words.finished("every 5m from 2026-01-01T10:00Z")
        return Every.of(interval, anchor if anchor.tzinfo else At(anchor, words.tz).instant)
    if words.peek() in ("at", "@", "on"):
        words.wrong("an interval has no time of day", "daily 09:00, or every 2d from 2026-01-01T09:00Z")
    words.finished(Every.of(interval).text)
    return Every.of(interval)


def _one(unit: str) -> timedelta:
    return timedelta(**{{"us": "microseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}[unit]: 1})


def _unit_of(words: Words) -> str:
    """The unit that was meant in a wrong interval such as `0m` or `0 minutes`."""
    letters = re.sub(r"[^a-z]", "", words.peek())
    return letters or words.peek(1)


def _daily(words: Words) -> Timing:
    at = words.clock(_DAILY, _MIDNIGHT)
    words.finished(_DAILY)
    return DailyAt(at.hour, at.minute, at.second, words.tz)


def _weekly(words: Words) -> Timing:
    words.skip("on")
    if words.peek() and words.peek() != "at" and not _at_weekdays(words):
        _check_weekdays(words)
    if not _at_weekdays(words):
        # As in ISO and systemd, a week begins on Monday.
        at = words.clock(_WEEKLY, _MIDNIGHT)
        words.finished(_WEEKLY)
        return Weekly("mon", at.hour, at.minute, at.second, words.tz)
    return _on_weekdays(words, "weekly")


def _check_weekdays(words: Words) -> None:
    """Point at the item of a list of days that is none."""
    offset = 0
    for item in words.words[words.index].raw.split(","):
        try:
            weekday_numbers(item)
        except KeyError:
            shift = len(item) - len(item.lstrip())
            words.wrong(f"{item.strip()!r} is not a weekday", _WEEKLY, offset + shift)
        offset += len(item) + 1


def _at_weekdays(words: Words) -> bool:
    first = re.split(r"[,-]", words.peek())[0]
    try:
        return bool(weekday_numbers(first))
    except KeyError:
        return False


def _on_weekdays(words: Words, form: str) -> Timing:
    names: list[str] = []
    while words.peek() and (_at_weekdays(words) or (words.peek() == "and" and names)):
        if not words.skip("and"):
            _check_weekdays(words)
            names += words.take().lower.split(",")
    hint = f"{form} {','.join(name.strip() for name in names)} 09:00"
    at = words.clock(hint, _MIDNIGHT)
    words.finished(hint)
    return Weekly(names, at.hour, at.minute, at.second, words.tz)


def _monthly(words: Words) -> Timing:
    words.skip("on")
    words.skip("the")
    if not words.peek() or words.peek() in ("at", "@"):
        return _on_day(words, 1)
    return _day_of_month(words)


def _day_of_month(words: Words) -> Timing:
    """`1`, `1st`, `last`, `first day of the month`, and the time of day after it."""
    word = words.peek()
    if word.isdecimal() and not 1 <= int(word) <= 31:
        words.wrong(f"there is no day {word} in any month", "monthly 31 09:00, or monthly last 09:00")
    if word not in _ORDINALS and word != "last" and not word.isdecimal():
        words.wrong(f"{word!r} is not a day of the month", "monthly 1 09:00, or monthly last 09:00")
    words.take()
    day = None if word == "last" else _ORDINALS.get(word) or int(word)
    words.skip("day")
    if _at_weekdays(words):
        number = (weekday_numbers(words.peek())[0] + 1) % 7
        nth = "L" if day is None else f"#{day}"
        words.wrong("the nth weekday of a month is written in cron", f"0 9 * * {number}{nth}")
    words.skip("of")
    words.skip("the", "every", "each")
    words.skip("month")
    return _on_day(words, day)


def _on_day(words: Words, day: int | None) -> Timing:
    hint = f"monthly {day or 'last'} 09:00"
    at = words.clock(hint, _MIDNIGHT)
    words.finished(hint)
    return Monthly(day or "last", at.hour, at.minute, at.second, words.tz)


def _hourly(words: Words) -> Timing:
    words.finished("every 1h, or 30 * * * *")
    return Cron("@hourly", words.tz)


def _moment(words: Words) -> Timing:
    words.skip("at", "on")
    if not words.at_date():
        return _next_clock(words)
    found = words.moment(_AT)
    words.finished(_AT)
    return At(found, words.tz)


def _next_clock(words: Words) -> Timing:
    """`at 15:00`: the next time the clock shows it."""
    at = words.clock("at 15:00")
    words.finished("at 15:00")
    found = _on_local_day(words, 0, at)
    return found if found.instant > words.now else _on_local_day(words, 1, at)


def _on_local_day(words: Words, days: int, at: time) -> At:
    today = words.now.astimezone(ZoneInfo(words.tz or "UTC")).date()
    wall = datetime.combine(today + timedelta(days=days), at)
    # Without a zone the relative forms count in UTC, and say so.
    return At(wall, words.tz) if words.tz else At(wall.replace(tzinfo=UTC))


def _today(words: Words) -> Timing:
    at = words.clock("today 18:00")
    words.finished("today 18:00")
    found = _on_local_day(words, 0, at)
    if found.instant <= words.now:
        words.index -= 1
        words.wrong("this time of today is already past", f"tomorrow {at:%H:%M}")
    return found


def _tomorrow(words: Words) -> Timing:
    at = words.clock("tomorrow 09:00")
    words.finished("tomorrow 09:00")
    return _on_local_day(words, 1, at)


def _in(words: Words) -> Timing:
    wait = words.duration("in 30m")
    words.finished("in 30m")
    instant = words.now.astimezone(UTC) + wait
    if words.tz is None:
        return At(instant)
    local = instant.astimezone(ZoneInfo(words.tz))
    found = At(local.replace(tzinfo=None, fold=0), words.tz)
    # The second pass of a fold has no wall time of its own, only an offset.
    return found if found.instant == instant else At(local)


def _looks_like_cron(words: Words) -> bool:
    first = words.peek()
    if not re.match(r"[\d*?]", first):
        return False
    return bool(re.search(r"[*?/]", first)) or len(words.words) >= 3


def _cron(words: Words) -> Timing:
    if words.skip("@every"):
        return _every(words)
    if not words.peek():
        words.wrong("a cron expression is missing", "cron 30 9 * * 1-5")
    rest = words.words[words.index :]
    start, end = rest[0].start, rest[-1].start + len(rest[-1].raw)
    try:
        return Cron(words.text[start:end], words.tz)
    except TimingError as error:
        position = start + error.position
        raise TimingError(error.message, text=words.text, position=position, hint=error.hint) from error


def _unknown(words: Words) -> Timing:
    """Say what might have been meant by words that begin like no form."""
    word = words.peek()
    if re.fullmatch(r"\d{1,2}(:\d{2}){0,2}(am|pm)?", word) or word in ("noon", "midnight"):
        at = words.clock(_DAILY)
        words.index = 0
        words.wrong("a time of day alone does not say which days", f"daily {at:%H:%M}, or at {at:%H:%M} for once")
    if words.at_duration():
        interval = words.duration(_EVERY)
        words.index = 0
        hint = f"every {words.text.strip()}, or in {words.text.strip()} for once"
        words.wrong("a duration alone is not a timing", hint if interval else _EVERY)
    words.wrong(
        f"{words.words[0].raw!r} does not begin a timing",
        f"{_EVERY}, {_DAILY}, {_WEEKLY}, {_MONTHLY}, 30 9 * * 1-5 or {_AT}",
    )


_FORMS: dict[str, Callable[[Words], Timing]] = {
    "every": _every,
    "each": _every,
    "daily": _daily,
    "everyday": _daily,
    "weekly": _weekly,
    "monthly": _monthly,
    "hourly": _hourly,
    "last": lambda words: _back(words, _day_of_month),
    "at": _moment,
    "on": _moment,
    "in": _in,
    "today": _today,
    "tomorrow": _tomorrow,
    "cron": _cron,
}


def _back(words: Words, form: Callable[[Words], Timing]) -> Timing:
    words.index -= 1
    return form(words)
