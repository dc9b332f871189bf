"""A cursor over the words of one simple timing, and how to read clock times, a date, a duration from it.

Between `text.py`, which cuts the text into words, and `words.py`, which knows the forms. A hint here is what the words
of the whole simple timing should have been; none, where nobody knows what was meant.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple, NoReturn

from ostinato.durations import parse_duration
from ostinato.errors import InvalidInput, TimingError
from ostinato.timing.clock_times import MIDNIGHT, MOST_TIMES, ClockTimes, second_of

__all__ = ["UNITS", "NeedsNow", "Word", "Words", "read_times"]

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
_PIECE = re.compile(r"[^,\s–-]+|[,–-]")
_TO = ("-", "–", "to", "until", "till", "through", "thru")
_CLOCK_WORDS = ("noon", "midnight", "am", "pm", ",", "-", "–")
_LAST_SECOND = 86_399


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

    def __init__(
        self, text: str, words: list[Word], tz: str | None, now: datetime | None, stored: bool = False
    ) -> None:
        self.text, self.words, self.tz, self._now = text, words, tz, now
        self.stored = stored
        """Whether the text was taken once, by this version or one before."""
        self.index = 0

    @property
    def now(self) -> datetime:
        if self._now is None:
            raise NeedsNow(
                "this form counts from now, and 'now' was not given",
                text=self.text,
                position=self.words[0].start,
            )
        return self._now

    @property
    def given_now(self) -> datetime | None:
        """What counts as now, if anything does."""
        return self._now

    def after(self, index: int) -> str:
        """The text from a word on, as it was typed."""
        return self.text[self.words[index].start : self.words[-1].start + len(self.words[-1].raw)]

    def before(self, word: str) -> str:
        """The text up to the coming word, with this one in its place."""
        return self.text[self.words[0].start : self.words[self.index].start] + word

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

    def wrong(self, message: str, hint: str = "", offset: int = 0) -> NoReturn:
        """Raise an error that points at the coming word, or at the end when there is none."""
        if self.index < len(self.words):
            position = self.words[self.index].start + offset
        else:
            last = self.words[-1]
            position = last.start + len(last.raw)
        raise TimingError(message, text=self.text, position=position, hint=hint)

    def finished(self) -> None:
        if self.peek():
            self.wrong(f"{self.words[self.index].raw!r} is not understood here")

    def at_duration(self) -> bool:
        return bool(re.match(r"[-+]?\.?\d", self.peek()))

    def duration(self) -> timedelta:
        """`5m`, `1h30m`, `5 minutes`, `1 hour 30 minutes`, `1h 30m`."""
        begin, parts = self.index, ""
        while self._at_amount() if parts else self.at_duration():
            self.skip("and")
            parts += self._amounts()
        if not parts:
            self.wrong(f"{self.peek()!r} is not a duration" if self.peek() else "a duration such as 5m is missing")
        try:
            return parse_duration(parts)
        except (InvalidInput, OverflowError) as error:
            self.index = begin
            raise TimingError(
                f"{parts!r} is not a duration", text=self.text, position=self.words[begin].start
            ) from error

    def _at_amount(self) -> bool:
        """Whether more of a duration comes, and not a time of day."""
        ahead = int(self.peek() == "and")
        amount = _AMOUNT.match(self.peek(ahead))
        return amount is not None and (amount[2] or self.peek(ahead + 1)) in UNITS

    def _amounts(self) -> str:
        """One word of amounts with their units; the unit of the last may be the next word."""
        word = self.peek()
        if word.startswith("-"):
            self.wrong(f"a duration cannot be negative: {word!r}")
        found, position = "", 0
        while position < len(word):
            amount = _AMOUNT.match(word, position)
            if amount is None:
                self.wrong(f"{word!r} is not a duration", offset=position)
            unit = amount[2]
            if not unit and amount.end() == len(word) and self.peek(1):
                self.index += 1
                unit = self.peek()
            if unit not in UNITS:
                what = f"has no unit{f' {unit!r}' if unit else ''} (w, d, h, m, s or ms)"
                self.wrong(f"{amount[1]} {what}", offset=amount.start(2) if amount[2] else 0)
            found += amount[1] + UNITS[unit]
            position = amount.end()
        self.index += 1
        return found

    def at_clock(self, ahead: int = 0) -> bool:
        """Whether a time of day comes."""
        first = re.split("[,–-]", self.peek(ahead))[0].strip()
        return first in ("noon", "midnight") or bool(_CLOCK.fullmatch(first))

    def clock(self) -> time:
        """`9`, `09:30`, `09:30:15`, `9:30pm`, `9 pm`, `noon`, `midnight`, with or without `at` before it."""
        return self._clock()[0]

    def _clock(self) -> tuple[time, str]:
        """A time of day, and whether it was said to be am or pm, where that matters."""
        self.skip("at", "@")
        word = self.peek()
        if word in ("noon", "midnight"):
            self.take()
            return time(12 if word == "noon" else 0), "named"
        match = _CLOCK.fullmatch(word)
        if match is None:
            self.wrong(f"{word!r} is not a time of day" if word else "a time of day such as 09:30 is missing")
        half = match[4] or (self.peek(1) if self.peek(1) in ("am", "pm") else "")
        numbers = [int(match[group] or 0) for group in (1, 2, 3)]
        lowest, most = (1, 12) if half else (0, 23)
        if half and 13 <= numbers[0] <= 23:
            end = self.index + (1 if match[4] else 2)
            rest = f" {self.after(end)}" if end < len(self.words) else ""
            self.wrong(f"{word!r} is after noon without 'pm'", f"{self.before(f'{numbers[0]}:{numbers[1]:02}')}{rest}")
        for group, name, low, high in ((1, "hour", lowest, most), (2, "minute", 0, 59), (3, "second", 0, 59)):
            if not low <= numbers[group - 1] <= high:
                self.wrong(f"{name} {numbers[group - 1]} is not {low} to {high}", offset=match.start(group))
        self.index += 1 if match[4] or not half else 2
        self.skip("o'clock", "oclock")
        hour = numbers[0] % 12 + (12 if half == "pm" else 0) if half else numbers[0]
        # From one o'clock to half past twelve, a number alone may be meant as either.
        return time(hour, numbers[1], numbers[2]), half or ("open" if 1 <= numbers[0] <= 12 else "named")

    def times(self) -> ClockTimes:
        """The times of a day: `9`, `09:00, 17:00`, `9 and 17`, `9-17 every 30m`; midnight where none are given."""
        self.skip("at", "@")
        if not self.peek():
            return MIDNIGHT
        if self.at_window():
            return self.window(None)
        self._split()
        begin = self.index
        found = [self._clock()]
        while self.peek() in (",", "and", "&"):
            self.index += 1
            self.skip("and")
            found.append(self._clock())
        halves = {half for _, half in found}
        if "open" in halves and halves & {"am", "pm"}:
            self.index = begin
            self.wrong("am or pm has to be said of each of these times, or of none")
        return ClockTimes.listed(second_of(clock) for clock, _ in found)

    def at_window(self) -> bool:
        """Whether what comes is a span of the day, or how often within one."""
        if self.peek() in ("from", "between"):
            return self.at_clock(1)
        if self.peek() == "every":
            return True
        word = self.peek()
        is_range = bool(re.search(r"[\dmn]\s*[–-]\s*[\dnm]", word)) and "," not in word
        return self.at_clock() and (is_range or self.peek(1) in _TO or self.peek(2) in _TO)

    def window(self, step: timedelta | None) -> ClockTimes:
        """`9-17 every 30m`, `from 9 to 17`, `between 9am and 5pm`; the step may be known already, or come first."""
        if self.peek() == "every" and step is not None:
            self.wrong("how often is said twice")
        if self.skip("every"):
            step = self._step()
        self.skip("at")
        is_between = self.skip("between")
        if not is_between:
            self.skip("from")
        self._split()
        begin = self.index
        first, half = self._clock()
        if not self.skip(*_TO) and not (is_between and self.skip("and")):
            self.wrong("the end of the window is missing")
        start, last = second_of(first), self._end(first, half)
        if last <= start:
            self.index = begin
            self.wrong("a window begins and ends on the same day")
        if step is None:
            if not self.skip("every"):
                self.wrong("how often in this window is missing: 'every 30m'")
            step = self._step()
        return self._windowed(start, last, step, begin)

    def _step(self) -> timedelta:
        if UNITS.get(self.peek()) in ("m", "h") and self.peek().isalpha():
            return timedelta(minutes=1) if UNITS[self.take().lower] == "m" else timedelta(hours=1)
        return self.duration()

    def _windowed(self, start: int, last: int, step: timedelta, begin: int) -> ClockTimes:
        seconds = step // timedelta(seconds=1)
        if step % timedelta(seconds=1) or seconds < 1 or (last - start) // seconds >= MOST_TIMES:
            self.index = begin
            self.wrong(f"a window has whole seconds between its times, and {MOST_TIMES} of them at most")
        return ClockTimes.window(start, last, seconds)

    def _end(self, first: time, half: str) -> int:
        """The second on which a window ends."""
        if self.peek() in ("24", "24:00"):
            self.take()
            return _LAST_SECOND
        last, closing = self._clock()
        if last == time(0) and closing in ("named", "am"):
            return _LAST_SECOND
        # In '1-5pm' both are; in '9-5pm' the first cannot be.
        if half == "open" and closing == "pm" and first.hour % 12 + 12 < last.hour and first.hour < 12:
            self.wrong("am or pm has to be said of both ends of this window")
        return second_of(last)

    def _split(self) -> None:
        """Cut what comes at its commas and dashes."""
        cut = []
        for word in self.words[self.index :]:
            pieces = [Word(match[0], word.start + match.start()) for match in _PIECE.finditer(word.raw)]
            are_clocks = all(_CLOCK.fullmatch(piece.lower) or piece.lower in _CLOCK_WORDS for piece in pieces)
            cut += pieces if are_clocks else [word]
        self.words = self.words[: self.index] + cut

    def at_date(self, ahead: int = 0) -> bool:
        return bool(re.match(r"\d{4}-\d", self.peek(ahead)))

    def moment(self, *, whole_day: bool = False) -> datetime:
        """`2026-12-24T18:00` with or without seconds and offset, `2026-12-24 18:00`, `2026-12-24 at 6pm`."""
        word, raw = self.peek(), self.words[self.index].raw if self.peek() else ""
        if match := _MOMENT.fullmatch(word):
            try:
                found = datetime.fromisoformat(word.upper())
            except ValueError as error:
                self.wrong(f"{raw!r} does not exist: {error}")
            self.take()
            return found if not match[3] else _fixed(found)
        if not _DATE.fullmatch(word):
            self.wrong(f"{word!r} is not a date and time such as 2026-12-24T18:00")
        year, month, day = (int(number) for number in word.split("-"))
        try:
            on = date(year, month, day)
        except ValueError as error:
            self.wrong(f"{raw!r} does not exist: {error}")
        self.take()
        if _MOMENT.fullmatch(f"{on}t{self.peek()}"):
            return datetime.fromisoformat(f"{on}T{self.take().raw.upper()}")
        if whole_day and not (self.at_clock() or self.peek() in ("at", "@")):
            return datetime.combine(on, time(0))
        if not self.peek():
            self.wrong("a time of day is missing", f"at {on}T00:00")
        return datetime.combine(on, self.clock())


def _fixed(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if not moment.utcoffset() else moment


def read_times(text: str) -> ClockTimes:
    """The times of a day from their text alone: `09:00,17:00`, `9-17 every 30m`."""
    found = re.finditer(r"(?:[^\s,]|\s*,\s*)+", text)
    words = Words(text, [Word(match[0], match.start()) for match in found], None, None)
    if not words.words:
        raise TimingError("a time of day is missing", text=text)
    times = words.times()
    words.finished()
    return times
