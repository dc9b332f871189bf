"""A cursor over the words of one simple timing, and how to read a clock time, a date, a duration from it.

Between `text.py`, which cuts the text into words, and `words.py`, which knows the forms.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple, NoReturn

from ostinato.durations import parse_duration
from ostinato.errors import InvalidInput, TimingError

__all__ = ["NeedsNow", "Word", "Words"]

_UNITS = {
    "us": ("us", "microsecond", "microseconds"),
    "ms": ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
UNITS = {name: unit for unit, names in _UNITS.items() for name in names}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?(am|pm)?")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})t(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(z|[+-]\d{2}:?\d{2}(?::\d{2}(?:\.\d+)?)?)?"
)


class NeedsNow(TimingError):
    """A relative form, read without knowing what time it is."""


class Word(NamedTuple):
    """A word as it was typed, and where."""

    raw: str
    start: int

    @property
    def lower(self) -> str:
        return self.raw.lower()


class Words:
    """The words of one simple timing, read from left to right."""

    def __init__(self, text: str, words: list[Word], tz: str | None, now: datetime | None) -> None:
        self.text, self.words, self.tz, self._now = text, words, tz, now
        self.index = 0

    @property
    def now(self) -> datetime:
        if self._now is None:
            raise NeedsNow(
                "this form counts from now, and 'now' was not given",
                text=self.text,
                position=self.words[0].start,
                hint="pass now=, or write at 2026-12-24T18:00",
            )
        return self._now

    def peek(self, ahead: int = 0) -> str:
        """The coming word in lower case, empty at the end."""
        index = self.index + ahead
        return self.words[index].lower if index < len(self.words) else ""

    def take(self) -> Word:
        word = self.words[self.index]
        self.index += 1
        return word

    def skip(self, *words: str) -> bool:
        """Go past the coming word if it is one of these."""
        found = bool(self.peek()) and self.peek() in words
        self.index += found
        return found

    def wrong(self, message: str, hint: str, offset: int = 0) -> NoReturn:
        """Raise an error that points at the coming word, or at the end when there is none."""
        if self.index < len(self.words):
            position = self.words[self.index].start + offset
        else:
            last = self.words[-1]
            position = last.start + len(last.raw)
        raise TimingError(message, text=self.text, position=position, hint=hint)

    def finished(self, hint: str) -> None:
        if self.peek():
            self.wrong(f"{self.words[self.index].raw!r} is not understood here", hint)

    def at_duration(self) -> bool:
        return bool(re.match(r"[-+]?\.?\d", self.peek()))

    def duration(self, hint: str) -> timedelta:
        """`5m`, `1h30m`, `5 minutes`, `1 hour 30 minutes`, `1h 30m`."""
        begin, parts = self.index, ""
        while self.at_duration() or (parts and self.peek() == "and"):
            if self.skip("and"):
                continue
            parts += self._amounts(hint)
        if not parts:
            self.wrong(f"{self.peek()!r} is not a duration" if self.peek() else "a duration is missing", hint)
        try:
            return parse_duration(parts)
        except (InvalidInput, OverflowError) as error:
            self.index = begin
            raise TimingError(
                f"{parts!r} is not a duration", text=self.text, position=self.words[begin].start, hint=hint
            ) from error

    def _amounts(self, hint: str) -> str:
        """One word of amounts with their units; the unit of the last may be the next word."""
        word = self.peek()
        if word.startswith("-"):
            self.wrong(f"a duration cannot be negative: {word!r}", hint)
        found, position = "", 0
        while position < len(word):
            amount = _AMOUNT.match(word, position)
            if amount is None:
                self.wrong(f"{word!r} is not a duration", hint, position)
            unit = amount[2]
            if not unit and amount.end() == len(word) and self.peek(1):
                self.index += 1
                unit = self.peek()
            if unit not in UNITS:
                what = "has no unit" if not unit else f"has no unit {unit!r} (w, d, h, m, s or ms)"
                self.wrong(f"{amount[1]} {what}", hint, amount.start(2) if amount[2] else 0)
            found += amount[1] + UNITS[unit]
            position = amount.end()
        self.index += 1
        return found

    def clock(self, hint: str, default: time | None = None) -> time:
        """`9`, `09:30`, `09:30:15`, `9:30pm`, `9 pm`, `noon`, `midnight`, with or without `at` before it."""
        self.skip("at", "@")
        word = self.peek()
        if not word and default is not None:
            return default
        if word in ("noon", "midnight"):
            self.take()
            return time(12 if word == "noon" else 0)
        match = _CLOCK.fullmatch(word)
        if match is None:
            self.wrong(f"{word!r} is not a time of day" if word else "a time of day is missing", hint)
        half = match[4] or (self.peek(1) if self.peek(1) in ("am", "pm") else "")
        numbers = [int(match[group] or 0) for group in (1, 2, 3)]
        lowest, most = (1, 12) if half else (0, 23)
        for group, name, low, high in ((1, "hour", lowest, most), (2, "minute", 0, 59), (3, "second", 0, 59)):
            if not low <= numbers[group - 1] <= high:
                self.wrong(f"{name} {numbers[group - 1]} is not {low} to {high}", hint, match.start(group))
        self.index += 1 if match[4] or not half else 2
        hour = numbers[0] % 12 + (12 if half == "pm" else 0) if half else numbers[0]
        return time(hour, numbers[1], numbers[2])

    def at_date(self) -> bool:
        return bool(re.match(r"\d{4}-\d", self.peek()))

    def moment(self, hint: str) -> datetime:
        """`2026-12-24T18:00` with or without seconds and offset, `2026-12-24 18:00`, `2026-12-24 at 6pm`."""
        word, raw = self.peek(), self.words[self.index].raw if self.peek() else ""
        if match := _MOMENT.fullmatch(word):
            try:
                found = datetime.fromisoformat(word.upper())
            except ValueError as error:
                self.wrong(f"{raw!r} does not exist: {error}", hint)
            self.take()
            return found if not match[3] else _fixed(found)
        if not _DATE.fullmatch(word):
            self.wrong(f"{word!r} is not a date and time", hint)
        year, month, day = (int(number) for number in word.split("-"))
        try:
            on = date(year, month, day)
        except ValueError as error:
            self.wrong(f"{raw!r} does not exist: {error}", hint)
        self.take()
        if _MOMENT.fullmatch(f"{on}t{self.peek()}"):
            return datetime.fromisoformat(f"{on}T{self.take().raw.upper()}")
        return datetime.combine(on, self.clock(f"at {on}T09:00"))


def _fixed(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if not moment.utcoffset() else moment
