"""The forms of a simple timing, canonical ones and people's: `daily 03:00`, `every monday at 9`, `first monday 10:00`.

`text.py` hands over the words of one simple timing; `calendar_words.py` reads days and times, `every_words.py`
intervals, `once_words.py` what is due once, and `reading.py` the values in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

from ostinato.durations import duration_text
from ostinato.errors import TimingError
from ostinato.timing.base import Timing
from ostinato.timing.calendar_words import (
    on_month_days,
    on_weekdays,
    read_daily,
    read_hourly,
    read_monthly,
    read_quarterly,
    read_weekly,
    read_yearly,
)
from ostinato.timing.cron import Cron
from ostinato.timing.cron_lines import day_line, relaxed
from ostinato.timing.day_words import at_month_day, at_weekdays, read_ordinal
from ostinato.timing.every_words import read_every
from ostinato.timing.month_days import LAST, ORDINALS
from ostinato.timing.once_words import at_epoch, read_at_clock, read_in, read_moment, read_today, read_tomorrow
from ostinato.timing.reading import UNITS, Word, Words

__all__ = ["read_simple"]

_MACROS = {"@secondly": "every 1s", "@minutely": "every 1m", "@quarterly": "quarterly 1 00:00"}
_PACES = {"secondly": "every 1s", "minutely": "every 1m"}
_UNCLEAR = {
    "biweekly": "'every 2 weeks', or 'weekly mon,thu'",
    "bimonthly": "'every 2 months', or 'monthly 1,15'",
    "fortnightly": "'every 2 weeks'",
}
_SO_OFTEN = re.compile(r"(once|twice|thrice|(\d{1,2}) times|(\d{1,2}) ?x) (?:a|an|per|every|each) (day|hour|minute)")
_TIMES_A = {"once": 1, "twice": 2, "thrice": 3}
_LONG = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}


def read_simple(words: Words) -> Timing:
    """The timing that these words say; all of them must be used up."""
    first = words.peek()
    reader = _FORMS.get(first)
    if reader is not None:
        words.take()
        return reader(words)
    if words.at_date():
        return read_moment(words)
    if first.startswith("@") or _looks_like_cron(words):
        return _cron(words)
    if at_weekdays(words):
        return on_weekdays(words)
    if first == LAST or read_ordinal(first.split(",")[0].strip()) is not None:
        _refuse_ordinal(words)
        return on_month_days(words)
    if words.at_window() or (words.at_clock() and not _at_amount(words)):
        return _clock_first(words)
    return _unknown(words)


def _at_amount(words: Words) -> bool:
    """`5 minutes`, `3 times a day`: a number, but no time of day."""
    return words.peek(1) in UNITS or words.peek(1) in ("times", "x")


def _on(words: Words) -> Timing:
    """`on mondays`, `on the 1st`, `on 2026-12-24 at 18:00`."""
    if at_weekdays(words) or words.peek() in ("every", "each"):
        return read_simple(words)
    words.skip("the")
    return on_month_days(words) if at_month_day(words) else read_moment(words)


def _at(words: Words) -> Timing:
    words.skip("at", "on")
    if words.at_date() or at_epoch(words):
        return read_moment(words)
    return _clock_first(words)


def _clock_first(words: Words) -> Timing:
    """`at 15:00` for once, `9am every day` with the days behind the time."""
    begin = words.index
    found = words.window(None) if words.at_window() else words.times()
    rest = words.words[words.index :]
    if not rest:
        words.index = begin
        if begin and found.per_day == 1:
            return read_at_clock(words)
        # A number alone may as well be one of minutes.
        hint = "" if words.peek().isdecimal() else f"daily {found.text}"
        words.wrong(f"{found.text} alone does not say on which days, or 'at' for once", hint)
    if rest[0].lower not in _BEHIND and not at_weekdays(words):
        words.finished()
    # In full, for behind 'every month' a bare 9 is a day.
    times = [Word(part, words.words[begin].start) for part in found.text.split()]
    return read_simple(Words(words.text, [*rest, *times], words.tz, words.given_now))


def _looks_like_cron(words: Words) -> bool:
    first = words.peek()
    if re.match(r"h(\W|$)", first):
        return True
    if not re.match(r"[\d*?]", first):
        return False
    return bool(re.search(r"[*?/]", first)) or (len(words.words) >= 3 and not _reads_as_clock(words))


def _reads_as_clock(words: Words) -> bool:
    """`9 am every day`, `15th of the month`: numbers that no field of cron follows. `1 h 30 m` has too few for an H."""
    following = words.peek(1)
    return not re.match(r"[\d*?]", following) and not (re.match(r"h(\W|$)", following) and len(words.words) >= 5)


def _cron(words: Words) -> Timing:
    if words.peek() in _MACROS:
        words.wrong(f"cron has no {words.peek()}", _MACROS[words.peek()])
    if words.skip("@every"):
        return read_every(words)
    if not words.peek():
        words.wrong("a cron expression is missing")
    rest = words.words[words.index :]
    start, end = rest[0].start, rest[-1].start + len(rest[-1].raw)
    expression = words.text[start:end]
    try:
        return Cron(relaxed(expression) if words.stored else expression, words.tz)
    except TimingError as error:
        position = start + error.position
        raise TimingError(error.message, text=words.text, position=position, hint=error.hint) from error


def _refuse_duration(words: Words) -> None:
    """A duration alone: once, or again and again?"""
    try:
        words.duration()
    except TimingError:
        words.index = 0
        return
    if words.peek() == "after":
        hint = f"every {words.after(0)}"
        words.wrong("what runs after another begins when that one ends: 'after import' stands alone", hint)
    hint = f"every {words.after(0)}" if not words.peek() else ""
    words.index = 0
    words.wrong("a duration alone is not a timing: with 'in' it is due once, with 'every' again and again", hint)


def _refuse_ordinal(words: Words) -> None:
    """`second` alone may be a day of the month, or every second."""
    word = words.words[0].raw
    if len(words.words) == 1 and word.lower() in (LAST, *ORDINALS):
        words.wrong(f"the {word.lower()} of what? As in 'monthly {word.lower()}' or '{word.lower()} monday 09:00'")


def _refuse_day_of_cron(words: Words) -> None:
    """`FRIL 17:00`: the line of cron with this day, if it can have this time."""
    word, line = words.take().raw, ""
    try:
        times = words.times()
        words.finished()
    except TimingError:
        pass
    else:
        minutes, seconds = divmod(times.seconds[0], 60)
        line = day_line(word, minutes % 60, minutes // 60) if times.per_day == 1 and not seconds else ""
    words.index = 0
    words.wrong(f"{word!r} is a day of cron, which stands in a line of five fields", line)


def _unknown(words: Words) -> Timing:
    """Say what might have been meant by words that begin like no form."""
    whole = " ".join(word.lower for word in words.words)
    if found := _SO_OFTEN.fullmatch(whole):
        number = _TIMES_A.get(found[1]) or int(found[2] or found[3])
        if number and _LONG[found[4]] % (timedelta(seconds=1) * number) == timedelta(0):
            words.wrong("how often is written as an interval", f"every {duration_text(_LONG[found[4]] / number)}")
    if at_epoch(words) and len(words.words) == 1:
        words.wrong("an instant begins with 'at'", f"at {whole}")
    if day_line(words.words[0].raw):
        _refuse_day_of_cron(words)
    if whole in _PACES:
        words.wrong("how often is written as an interval", _PACES[whole])
    _refuse_duration(words)
    if whole in _UNCLEAR:
        words.wrong(f"{whole!r} is not understood: write {_UNCLEAR[whole]}", "every 2 weeks" if "fort" in whole else "")
    words.wrong(f"{words.words[0].raw!r} does not begin a timing, as 'every 5m', 'daily 09:00' or '30 9 * * 1-5' do")


_FORMS: dict[str, Callable[[Words], Timing]] = {
    "every": read_every,
    "each": read_every,
    "daily": read_daily,
    "everyday": read_daily,
    "weekly": read_weekly,
    "monthly": read_monthly,
    "quarterly": read_quarterly,
    "yearly": read_yearly,
    "annually": read_yearly,
    "hourly": read_hourly,
    "at": _at,
    "on": _on,
    "in": read_in,
    "today": read_today,
    "tomorrow": read_tomorrow,
    "cron": _cron,
}
_BEHIND = ("every", "each", "daily", "everyday", "on", "today", "tomorrow", "weekly", "monthly", "hourly")
