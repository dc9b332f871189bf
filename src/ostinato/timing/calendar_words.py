"""The forms of calendar timings: `daily 09:00, 17:00`, `weekdays 9-17 every 30m`, `monthly 1,15`, `quarterly`.

`words.py` hands over the words behind the first; `day_words.py` and `reading.py` read the days and the times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from ostinato.timing.base import Timing
from ostinato.timing.calendar import DailyAt, Monthly, Quarterly, Weekly
from ostinato.timing.clock_times import ClockTimes
from ostinato.timing.cron import Cron
from ostinato.timing.day_words import at_month_day, at_weekdays, read_month_days, read_weekdays
from ostinato.timing.reading import Words

__all__ = [
    "on_month_days",
    "on_weekdays",
    "read_daily",
    "read_hourly",
    "read_monthly",
    "read_quarterly",
    "read_weekly",
    "read_within",
    "read_yearly",
]

_DAY = timedelta(days=1)


def read_daily(words: Words) -> Timing:
    times = words.times()
    if words.peek():
        return _with_days(words, times)
    return DailyAt(times.text, tz=words.tz)


def _with_days(words: Words, times: ClockTimes) -> Timing:
    """`daily 9:00 on weekdays`: the days come last."""
    if not words.skip("on") and not at_weekdays(words):
        words.finished()
    days = read_weekdays(words)
    words.finished()
    if not days:
        words.wrong("a weekday is missing")
    return Weekly(days, times.text, tz=words.tz)


def read_weekly(words: Words) -> Timing:
    words.skip("on")
    if not at_weekdays(words):
        if words.peek() and words.peek() not in ("at", "@") and not words.at_clock():
            words.wrong(f"{words.peek()!r} is not a weekday")
        # As in ISO and systemd, a week begins on Monday.
        times = words.times()
        return _with_days(words, times) if words.peek() else Weekly("mon", times.text, tz=words.tz)
    return on_weekdays(words)


def on_weekdays(words: Words) -> Timing:
    days = read_weekdays(words)
    if words.peek() == "every" and not words.at_clock(2) and words.peek(2) not in ("from", "between"):
        words.take()
        return read_within(words, words.duration(), days)
    times = words.times()
    words.finished()
    return Weekly(days, times.text, tz=words.tz)


def read_monthly(words: Words) -> Timing:
    words.skip("on")
    words.skip("the")
    if not words.peek() or words.peek() in ("at", "@") or (words.at_clock() and not at_month_day(words)):
        times = words.times()
        words.finished()
        return Monthly(1, times.text, tz=words.tz)
    return on_month_days(words)


def on_month_days(words: Words) -> Timing:
    days = read_month_days(words)
    times = words.times()
    words.finished()
    return Monthly(days, times.text, tz=words.tz)


def read_quarterly(words: Words) -> Timing:
    words.skip("on")
    words.skip("the")
    days = read_month_days(words) if at_month_day(words) else "1 day"
    times = words.times()
    words.finished()
    return Quarterly(days, times.text, tz=words.tz)


def read_yearly(words: Words) -> Timing:
    words.finished()
    return Cron("@yearly", words.tz)


def read_hourly(words: Words) -> Timing:
    if not words.peek():
        return Cron("@hourly", words.tz)
    if past := re.fullmatch(r"(?:at )?:?([0-5]?\d)(?: past)?", " ".join(word.lower for word in words.words[1:])):
        words.wrong("a minute of every hour is written in cron", f"{int(past[1])} * * * *")
    return read_within(words, timedelta(hours=1))


def read_within(words: Words, step: timedelta, days: Sequence[str] = ()) -> Timing:
    """`every 30m between 9 and 17 on weekdays`: on these days, in this window, either of which may be left out."""
    found = list(days)
    times: ClockTimes | None = None
    begin = words.index
    while words.peek():
        if times is None and words.at_window():
            times = words.window(step)
        elif words.peek() in ("each", "every") and words.peek(1) == "day" and times is not None:
            words.index += 2
        elif times is not None and words.skip("daily", "everyday"):
            continue
        elif not found and (at_weekdays(words) or (words.peek() in ("on", "each", "every") and at_weekdays(words, 1))):
            words.skip("on", "each", "every")
            found = read_weekdays(words)
        else:
            words.finished()
    if times is None:
        if step > _DAY / 2 or _DAY % step or step < timedelta(minutes=1):
            words.index = begin
            words.wrong("on some days alone, an interval is a part of a day, such as 30m")
        times = ClockTimes.window(0, _DAY // timedelta(seconds=1), step // timedelta(seconds=1))
    return Weekly(found, times.text, tz=words.tz) if found else DailyAt(times.text, tz=words.tz)
