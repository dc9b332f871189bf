"""The forms that begin with `every`: real time (`every 5m`), days of the calendar (`every 2 weeks on monday 9:00`).

Beside `words.py`, which hands over the words behind `every`; `calendar_words.py` reads days and times.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from ostinato.errors import TimingError
from ostinato.timing.at import At
from ostinato.timing.base import Timing
from ostinato.timing.calendar import DailyAt, Monthly, Weekly
from ostinato.timing.calendar_words import (
    on_month_days,
    on_weekdays,
    read_daily,
    read_monthly,
    read_quarterly,
    read_weekly,
    read_within,
    read_yearly,
)
from ostinato.timing.day_words import at_month_day, at_weekdays, read_month_days, read_ordinal, read_weekdays
from ostinato.timing.every import SHORTEST, Every
from ostinato.timing.month_days import LAST
from ostinato.timing.reading import UNITS, Words

__all__ = ["FROM", "read_every"]

FROM = ("from", "starting", "beginning", "since")
_PERIODS = {"day": "day", "d": "day", "week": "week", "w": "week", "month": "month", "mo": "month", "fortnight": "week"}
_CALENDAR = re.compile(r"(\d{1,4})(d|days?|w|weeks?|fortnights?|mo|months?)?")
_CALENDAR_READERS = {"week": read_weekly, "month": read_monthly, "quarter": read_quarterly, "year": read_yearly}


def read_every(words: Words) -> Timing:
    """What follows `every`."""
    words.skip("single")
    if at_weekdays(words):
        return on_weekdays(words)
    unit = words.peek()
    if unit == "day" and (words.peek(1) not in ("after", *FROM) or words.at_clock(2)):
        words.take()
        return read_daily(words)
    if unit in _CALENDAR_READERS and words.peek(1) not in ("after", *FROM):
        words.take()
        words.skip("on")
        words.skip("the")
        return _CALENDAR_READERS[unit](words)
    nth = 2 if unit == "other" else read_ordinal(unit)
    if unit == LAST or (nth is not None and not _is_one_second(words)):
        return _every_nth(words, nth)
    if (periods := _calendar_periods(words)) is not None:
        return _every_periods(words, *periods)
    return _interval(words)


def _is_one_second(words: Words) -> bool:
    return words.peek() == "second" and words.peek(1) in ("", "after", "between", "on", *FROM)


def _every_nth(words: Words, nth: int | None) -> Timing:
    """`every other day`, `every third week`, `every 15th`, `every last friday`."""
    begin = words.index
    following = words.peek(1).removesuffix("s")
    if (nth is not None and following in UNITS) or following in ("month", "fortnight"):
        words.index += 2
        if following in _PERIODS and words.peek() not in ("of", "in"):
            weeks = 2 if following == "fortnight" else 1
            return _every_periods(words, (nth or 1) * weeks, _PERIODS[following], is_said=bool(words.peek()))
        if following in UNITS and words.peek() not in ("of", "in"):
            return _from_interval(words, (nth or 1) * _one(UNITS[following]))
        words.index = begin
        return on_month_days(words)
    words.take()
    if nth is not None and nth > 1 and at_weekdays(words):
        if words.words[begin].lower == "other":
            return _every_periods(words, 2, "week", is_said=True)
        if not any(words.peek(ahead) in ("of", "in") for ahead in (1, 2)):
            words.index = begin
            words.wrong("this may mean every so many weeks, or a weekday of the month; say 'of the month' for that")
    words.index = begin
    if words.peek() == "other":
        words.wrong("every other what?")
    return on_month_days(words)


def _calendar_periods(words: Words) -> tuple[int, str, bool] | None:
    """`3 days`, `2w`, `2 months`, if days of the calendar are meant and not real time; past them."""
    match = _CALENDAR.fullmatch(words.peek())
    if match is None:
        return None
    unit, ahead = (match[2], 1) if match[2] else (words.peek(1), 2)
    name = unit if unit in _PERIODS else unit.removesuffix("s")
    following = words.peek(ahead)
    is_said = following in ("at", "@", "on", "every", "between") or words.at_clock(ahead) or at_weekdays(words, ahead)
    is_said = is_said or (following == "from" and words.at_clock(ahead + 1))
    if name not in _PERIODS or (name not in ("month", "mo") and not is_said) or int(match[1]) < 1:
        return None
    words.index += ahead
    return int(match[1]) * (2 if name == "fortnight" else 1), _PERIODS[name], is_said


def _every_periods(words: Words, number: int, unit: str, is_said: bool) -> Timing:
    """On which days of every so many periods, when, and from which day on they are counted."""
    if not is_said and unit != "month":
        return _from_interval(words, timedelta(**{f"{unit}s": number}))
    begin = words.index - 1
    has_days = words.skip("on") or at_weekdays(words) or (unit == "month" and at_month_day(words))
    words.skip("the")
    weekdays = read_weekdays(words) if has_days and unit == "week" else []
    month_days = read_month_days(words) if has_days and unit == "month" else "1 day"
    if has_days and (unit == "day" or (unit == "week" and not weekdays)):
        words.wrong("on which weekday is missing" if unit == "week" else "every so many days has no weekday")
    times = "00:00" if words.peek() in FROM and not words.at_clock(1) else words.times().text
    anchor = _anchor(words) if words.skip(*FROM) else None
    words.finished()
    try:
        if unit == "month":
            return Monthly(month_days, times, tz=words.tz, every=number, anchor=anchor)
        if weekdays:
            return Weekly(weekdays, times, tz=words.tz, every=number, anchor=anchor)
        return DailyAt(times, tz=words.tz, every=number * (7 if unit == "week" else 1), anchor=anchor)
    except TimingError as error:
        words.index = begin
        words.wrong(error.message)


def _anchor(words: Words) -> date:
    words.skip("on")
    found = words.words[words.index].raw
    moment = words.moment(whole_day=True)
    if moment.tzinfo is not None or moment.time() != moment.time().min:
        words.index -= 1
        words.wrong("this is counted from a day", words.before(f"{found[:10]}"))
    return moment.date()


def _interval(words: Words) -> Timing:
    begin, unit = words.index, words.peek()
    if unit == "fortnight":
        words.take()
        return _every_periods(words, 2, "week", is_said=words.peek() not in ("", "after", *FROM))
    if unit in UNITS and unit.isalpha():
        words.take()
        interval = _one(UNITS[unit])
    else:
        interval = words.duration()
    if interval < SHORTEST:
        words.index = begin
        words.wrong("an interval must be at least 1 ms")
    return _from_interval(words, interval)


def _from_interval(words: Words, interval: timedelta) -> Timing:
    if words.skip("after"):
        words.skip("the")
        if not words.skip("finish", "finished", "finishing", "end", "completion"):
            words.wrong("after what? 'after finish' counts from the end of the last run")
        words.finished()
        return Every(interval, anchor="finish")
    if words.peek() in FROM and words.at_date(1):
        words.take()
        anchor = words.moment(whole_day=True)
        words.finished()
        return Every(interval, anchor=anchor if anchor.tzinfo else At(anchor, words.tz).instant)
    if words.peek() in FROM and not words.at_window() and not at_weekdays(words, 1):
        words.take()
        words.wrong("an interval counts from a date and time such as 2026-01-01T10:00Z")
    if words.peek() and words.peek() not in ("at", "@"):
        return read_within(words, interval)
    if words.peek():
        words.wrong("an interval has no time of day")
    return Every(interval)


def _one(unit: str) -> timedelta:
    names = {"us": "microseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
    return timedelta(**{names.get(unit, "days" if unit == "d" else "weeks"): 1})
