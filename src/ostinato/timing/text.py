"""`parse_timing`: from text to a timing. Cuts the text into words, reads combinations, zone and jitter around them.

`words.py` reads each simple timing; every error points at a place in the text as it was typed.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import NoReturn

from ostinato.errors import TimingError
from ostinato.timing.at import At
from ostinato.timing.base import Timing
from ostinato.timing.calendar import DailyAt, Monthly, Weekly
from ostinato.timing.combine import Except, Or, refuse_many
from ostinato.timing.cron import Cron
from ostinato.timing.dates import Dates, read_day
from ostinato.timing.every import Every
from ostinato.timing.reading import NeedsNow, Word, Words
from ostinato.timing.words import VOCABULARY, read_simple
from ostinato.timing.zones import as_utc, check_zone

__all__ = ["check_reads_back", "parse_timing"]

_TOKEN = re.compile(r"[()]|(?:[^\s(),]|\s*,\s*)+")
_JOINERS = ("or", "except", "(", ")")
_LONGEST, _DEEPEST = 20_000, 20
_READ_BACK = frozenset({At, Every, Cron, DailyAt, Weekly, Monthly})
"""Timings whose text says all of them. A combination may hold somebody's own."""
_EXAMPLE = "every 5m, daily 09:00, weekly mon,thu 09:00, monthly last 18:00, 30 9 * * 1-5 or at 2026-12-24T18:00"


def parse_timing(text: str, tz: str | None = None, *, now: datetime | None = None) -> Timing:
    """The timing that a text says, with `tz` as the zone of its wall clock.

    `now` is only asked by forms that count from it (`in 30m`, `tomorrow 15:00`, `at 15:00`).
    """
    if not isinstance(text, str):
        raise TimingError(f"a timing is text, not {text!r}", hint=_EXAMPLE)
    zone = check_zone(tz) if tz is not None else None
    try:
        return _parsed(text, zone)
    except NeedsNow:
        if now is None:
            raise
    return _parse(text, zone, as_utc(now, "now"))


def check_reads_back(timing: Timing, zone: str) -> None:
    """TimingError, unless this timing is what its text says in this zone: the text is what is stored of it."""
    if type(timing) in _READ_BACK:
        return
    kind = type(timing).__name__
    why = "use the timings of ostinato, and combine them with | and except_dates"
    try:
        bound = timing.in_zone(zone)
        text = bound.text
        read = parse_timing(text, tz=bound.zone or zone)
    except Exception as error:  # whatever the code of somebody else raises
        reason = error.message if isinstance(error, TimingError) else f"{type(error).__name__}: {error}"
        raise TimingError(f"a {kind} cannot be stored: its text cannot be read back ({reason})", hint=why) from error
    if type(read) is not type(bound) or read != bound:
        raise TimingError(f"a {kind} cannot be stored: its text {text!r} is read as another timing", hint=why)


@lru_cache(maxsize=4096)
def _parsed(text: str, tz: str | None) -> Timing:
    return _parse(text, tz, None)


def _parse(text: str, tz: str | None, now: datetime | None) -> Timing:
    try:
        return _Parser(text, tz, now).whole()
    except NeedsNow:
        raise
    except TimingError as error:
        hint = _corrected(error, tz, now)
        raise TimingError(
            error.message, text=text, position=min(error.position, len(text)), hint=hint or error.hint or _EXAMPLE
        ) from error.__cause__


def _corrected(error: TimingError, tz: str | None, now: datetime | None) -> str:
    """The text with the misspelled word at the error put right, if that makes it a timing."""
    word = re.match(r"@?[A-Za-z]+", error.text[error.position :])
    if word is None or word[0].lower() in VOCABULARY:
        return ""
    before, after = error.text[: error.position], error.text[error.position + len(word[0]) :]
    for candidate in get_close_matches(word[0].lower(), VOCABULARY, n=3, cutoff=0.6):
        fixed = f"{before}{candidate}{after}"
        try:
            _Parser(fixed, tz, now).whole()
        except NeedsNow:
            return " ".join(fixed.split())
        except TimingError:
            continue
        return " ".join(fixed.split())
    return ""


class _Parser:
    """Combinations from left to right: operand, then any number of `or operand` and `except days`."""

    def __init__(self, text: str, tz: str | None, now: datetime | None) -> None:
        self.text, self.tz, self.now = text, tz, now
        if len(text) > _LONGEST:
            raise TimingError(f"a text of {len(text)} characters is too long for a timing", hint=_EXAMPLE)
        self.words = [Word(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self.index, self.depth, self.parts = 0, 0, 1

    def whole(self) -> Timing:
        found = self._combination()
        if self.index < len(self.words):
            self._wrong(f"{self._peek()!r} closes nothing", _EXAMPLE)
        return found

    def _peek(self) -> str:
        return self.words[self.index].lower if self.index < len(self.words) else ""

    def _take(self) -> Word:
        self.index += 1
        return self.words[self.index - 1]

    def _wrong(self, message: str, hint: str) -> NoReturn:
        end = len(self.text.rstrip())
        position = self.words[self.index].start if self.index < len(self.words) else end
        raise TimingError(message, text=self.text, position=position, hint=hint)

    def _combination(self) -> Timing:
        left = self._operand()
        while self._peek() in ("or", "except"):
            joiner = self._take()
            self.parts += 1
            try:
                refuse_many(self.parts)
                if joiner.lower == "or":
                    left = Or(left, self._operand())
                else:
                    left = self._exception(left)
            except TimingError as error:
                if error.text == self.text:
                    raise
                # Raised by a combination that cannot be: point at its joining word.
                raise TimingError(error.message, text=self.text, position=joiner.start, hint=error.hint) from error
        return left

    def _operand(self) -> Timing:
        if self._peek() != "(":
            return self._simple(self._run())
        self.depth += 1
        if self.depth > _DEEPEST:
            self._wrong("too many parentheses", _EXAMPLE)
        self._take()
        inner = self._combination()
        if self._peek() != ")":
            self._wrong("a closing parenthesis is missing", f"{self.text.strip()})")
        self._take()
        self.depth -= 1
        run = self._run()
        rest, zone, jitter, stable = self._suffix(run)
        if rest or zone:
            self.index = self.words.index(run[0])
            what = "a zone is written with each part" if zone else f"{rest[0].raw!r} is not understood here"
            self._wrong(what, "(daily 09:00 or daily 15:00) jitter 5m except 2026-12-25")
        return inner.with_jitter(jitter, stable)

    def _run(self) -> list[Word]:
        """The words up to the next joining word or parenthesis."""
        begin = self.index
        while self.index < len(self.words) and self._peek() not in _JOINERS:
            self.index += 1
        return self.words[begin : self.index]

    def _simple(self, run: list[Word]) -> Timing:
        rest, zone, jitter, stable = self._suffix(run)
        if not rest:
            self.index -= len(run)
            self._wrong("a timing is missing", _EXAMPLE)
        made = read_simple(Words(self.text, rest, zone or self.tz, self.now))
        return made.with_jitter(jitter, stable)

    def _exception(self, base: Timing) -> Timing:
        if self._peek() == "(":
            return Except(base, self._operand(), self.tz)
        run = self._run()
        if run and run[0].lower == "on":
            run = run[1:]
        if not run or not re.match(r"\d{1,4}-\d", run[0].raw):
            return Except(base, self._simple(run), self.tz)
        rest, zone, jitter, stable = self._suffix(run)
        if len(rest) > 1:
            raise TimingError(
                "dates are separated by commas",
                text=self.text,
                position=rest[1].start,
                hint=f"except {','.join(word.raw for word in rest)}",
            )
        return Except(base, self._dates(rest[0]), zone or self.tz).with_jitter(jitter, stable)

    def _dates(self, word: Word) -> Dates:
        position = word.start
        for item in word.raw.split(","):
            if read_day(item) is None:
                position += len(item) - len(item.lstrip())
                raise TimingError(
                    f"{item.strip()!r} is not a date",
                    text=self.text,
                    position=position,
                    hint="except 2026-12-25,2026-12-26 or, for every year, except 12-25",
                )
            position += len(item) + 1
        return Dates(word.raw)

    def _suffix(self, run: list[Word]) -> tuple[list[Word], str | None, timedelta, bool]:
        """Cut `in ZONE` and `jitter 30s [stable]` from the end."""
        rest, jitter, stable = run, timedelta(0), False
        marks = [index for index, word in enumerate(run) if word.lower == "jitter"]
        if marks:
            rest = run[: marks[0]]
            words = Words(self.text, run[marks[0] :], None, None)
            words.take()
            jitter = words.duration("every 5m jitter 30s")
            stable = words.skip("stable")
            words.finished("daily 03:00 jitter 10m stable")
        # `in 30m` is a timing of its own; a zone begins with a letter.
        if len(rest) >= 2 and rest[-2].lower == "in" and rest[-1].raw[0].isalpha():
            return rest[:-2], self._zone(rest[-1]), jitter, stable
        return rest, None, jitter, stable

    def _zone(self, word: Word) -> str:
        try:
            return check_zone(word.raw)
        except TimingError as error:
            raise TimingError(error.message, text=self.text, position=word.start, hint=error.hint) from error
