"""`parse_timing`: from text to a timing. Cuts the text into words, reads combinations, zone and jitter around them.

`words.py` reads each simple timing; every error points at a place in the text as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NoReturn

from ostinato.errors import TimingError
from ostinato.timing.after import After, read_after
from ostinato.timing.at import At
from ostinato.timing.base import Timing
from ostinato.timing.bounds import Bounded, Limited
from ostinato.timing.calendar import CalendarTiming, DailyAt, Monthly, Quarterly, Weekly
from ostinato.timing.calendar_days import folded
from ostinato.timing.clock_times import MIDNIGHT, ClockTimes
from ostinato.timing.combination import refuse_many
from ostinato.timing.combine import Except, Or
from ostinato.timing.cron import Cron
from ostinato.timing.dates import Dates, read_day
from ostinato.timing.day_set_words import DAY_SET, read_day_sets, says_day_set
from ostinato.timing.every import Every
from ostinato.timing.every_words import FROM
from ostinato.timing.habits import find_habit
from ostinato.timing.hints import right_text
from ostinato.timing.reading import NeedsNow, Word, Words
from ostinato.timing.text_cache import TextCache
from ostinato.timing.words import read_simple
from ostinato.timing.zones import Zone, as_utc, check_zone

__all__ = ["check_reads_back", "parse_timing"]

# The parentheses of `H(0-29)` in cron and of `holidays(DE)` group nothing.
_TOKEN = re.compile(rf"{DAY_SET}|[()]|(?:\b[hH]\(\d+-\d+\)|[^\s(),]|\s*,\s*)+", re.IGNORECASE)
_DATE, _WHOLE_DATE = re.compile(r"\d{4}-\d"), re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_UNTIL, _RUNS = ("until", "till", "to"), ("run", "runs", "time", "times", "executions")
_MOST_DIGITS, _MOST_TIME_WORDS = 12, 12
_JOINERS = ("or", "except", "(", ")")
_ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ=(\S+)", re.IGNORECASE)
_LONGEST, _DEEPEST = 20_000, 20
_READ_BACK = frozenset({After, At, Every, Cron, DailyAt, Weekly, Monthly, Quarterly})
"""Timings whose text says all of them. A combination may hold somebody's own."""


def parse_timing(
    text: str,
    tz: Zone | None = None,
    *,
    name: str | None = None,
    now: datetime | None = None,
    stored: bool = False,
) -> Timing:
    """The timing that a text says, with `tz` as the zone of its wall clock.

    `name` is that of the schedule, which chooses what an `H` of cron stands for.
    `now` is only asked by forms that count from it (`in 30m`, `tomorrow 15:00`, `at 15:00`).
    `stored` is for what was taken once: cron that is refused by now keeps the meaning that it had.
    """
    if not isinstance(text, str):
        raise TimingError(f"a timing is text such as 'every 5m', not {text!r}")
    zone = check_zone(tz) if tz is not None else None
    try:
        found = _parsed(text, zone, stored)
    except NeedsNow:
        if now is None:
            raise
        found = _parse(text, zone, as_utc(now, "now"), stored)
    return found if name is None else found.named(name)


def check_reads_back(timing: Timing, zone: str) -> None:
    """TimingError, unless this timing is what its text says in this zone: the text is what is stored of it."""
    if isinstance(timing, Cron) and timing.name is not None:
        raise TimingError(
            f"the H in {timing.text!r} is chosen by the schedule's name, and not by {timing.name!r}", hint=timing.text
        )
    if type(timing) in _READ_BACK:
        return
    kind = type(timing).__name__
    advice = "use the timings of ostinato, and combine them with | and except_dates"
    try:
        bound = timing.in_zone(zone)
        text = bound.text
        read = parse_timing(text, tz=bound.zone or zone)
    except Exception as error:  # whatever the code of somebody else raises
        reason = error.message if isinstance(error, TimingError) else f"{type(error).__name__}: {error}"
        raise TimingError(f"a {kind} cannot be stored: its text cannot be read back ({reason}); {advice}") from error
    if type(read) is not type(bound) or read != bound:
        raise TimingError(f"a {kind} cannot be stored: its text {text!r} is read as another timing; {advice}")


def _parse(text: str, tz: str | None, now: datetime | None, stored: bool) -> Timing:
    try:
        return _Parser(text, tz, now, stored).whole()
    except NeedsNow:
        raise
    except TimingError as error:
        raise _advised(error, text, lambda fixed: _Parser(fixed, tz, now).whole()) from error.__cause__


def _advised(error: TimingError, text: str, parse: Callable[[str], Timing]) -> TimingError:
    """The error with a hint that is a timing, or with none."""
    habit = find_habit(text, parse)
    if habit is None:
        return TimingError(
            error.message, text=text, position=min(error.position, len(text)), hint=right_text(error, parse)
        )
    fixed = right_text(TimingError(habit.message, text=habit.text, hint=habit.text), parse)
    return TimingError(habit.message, text=text, position=habit.position, hint=fixed)


_parsed = TextCache(lambda text, tz, stored: _parse(text, tz, None, stored), 4_096)


class _Parser:
    """Combinations from left to right: operand, then any number of `or operand` and `except days`."""

    def __init__(self, text: str, tz: str | None, now: datetime | None, stored: bool = False) -> None:
        self.text, self.tz, self.now, self.stored = text, tz, now, stored
        if len(text) > _LONGEST and len(folded(text)) > _LONGEST:
            raise TimingError(f"a text of {len(text)} characters is too long for a timing")
        self.words = [Word(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self.index, self.depth, self.parts = 0, 0, 1
        self.simple: list[tuple[list[Word], Timing]] = []
        """The simple timings so far, with their words."""

    def whole(self) -> Timing:
        if self._peek() == "after":
            return read_after(self.text, self.stored)  # names may have any characters, and it combines with nothing
        try:
            found = self._combination()
        except OverflowError as error:
            raise TimingError("it lies before the year 1 or after the year 9999", text=self.text) from error
        if self.index < len(self.words):
            start = self.words[self.index].start
            self._wrong(f"{self._peek()!r} closes nothing", f"{self.text[:start]}{self.text[start + 1 :]}")
        return found

    def _peek(self) -> str:
        return self.words[self.index].lower if self.index < len(self.words) else ""

    def _take(self) -> Word:
        self.index += 1
        return self.words[self.index - 1]

    def _wrong(self, message: str, hint: str = "") -> NoReturn:
        end = len(self.text.rstrip())
        position = self.words[self.index].start if self.index < len(self.words) else end
        raise TimingError(message, text=self.text, position=position, hint=hint)

    def _combination(self) -> Timing:
        begin = len(self.simple)
        left = self._operand()
        while self._peek() in ("or", "except") or self._at_bound():
            joiner = self._take()
            try:
                if joiner.lower not in ("or", "except"):
                    left = self._bound(left, joiner)
                    continue
                self.parts += 1
                refuse_many(self.parts)
                if joiner.lower == "or":
                    left = Or(left, self._operand())
                else:
                    left = self._exception(left, begin)
            except TimingError as error:
                if error.text == self.text:
                    raise
                # Raised by a combination that cannot be: point at its joining word.
                raise TimingError(error.message, text=self.text, position=joiner.start) from error
        return left

    def _operand(self) -> Timing:
        if self._peek() != "(":
            return self._simple(self._run())
        self.depth += 1
        if self.depth > _DEEPEST:
            self._wrong("too many parentheses")
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
            self._wrong(what)
        return inner.with_jitter(jitter, stable)

    def _run(self) -> list[Word]:
        """The words up to the next joining word or parenthesis."""
        begin = self.index
        while self.index < len(self.words) and self._peek() not in _JOINERS:
            if self._at_bound() and not (self._peek() in FROM and self._counts_from(self.words[begin : self.index])):
                break
            self.index += 1
        return self.words[begin : self.index]

    def _at_bound(self) -> bool:
        """Whether `from DATE`, `until DATE` or `until 10 runs` comes."""
        word, following, last = (
            "" if at >= len(self.words) else self.words[at].lower for at in range(self.index, self.index + 3)
        )
        if following == "on":
            following = last
        is_runs = following.isdecimal() and last in _RUNS
        return (word in FROM or word in _UNTIL) and (bool(_DATE.match(following)) or (is_runs and word in _UNTIL))

    def _counts_from(self, run: list[Word]) -> bool:
        """Whether these words are an interval, which counts from what follows."""
        if not run or run[0].lower not in ("every", "each", "@every") or any(word.lower in FROM for word in run):
            return False
        found = self._read(run)
        return isinstance(found, Every) or (isinstance(found, CalendarTiming) and found.every > 1)

    def _bound(self, left: Timing, joiner: Word) -> Timing:
        """What `from` and `until` say, of all that stands before them."""
        if self.index + 1 < len(self.words) and self.words[self.index + 1].lower in _RUNS:
            number = int(self._take().raw[:_MOST_DIGITS])
            self._take()
            run = self._run()
            rest, zone, jitter, stable = self._suffix(run)
            if zone is not None and not rest:
                self._misplaced_zone(left, joiner, run, zone)
            if rest or self.index < len(self.words):
                self.index = self.words.index(rest[0]) if rest else self.index
                self._wrong("so many runs are of the whole timing, and stand at its end")
            return Limited(left.with_jitter(jitter, stable), number)
        run = self._run()
        rest, zone, jitter, stable = self._suffix(run[1:] if run[0].lower == "on" else run)
        words = Words(self.text, rest, self.tz, self.now)
        if len(rest) == 1 and _WHOLE_DATE.fullmatch(rest[0].raw):
            edge: date = words.moment(whole_day=True).date()
        else:
            edge = words.moment()
        words.finished()
        judged = left.base if isinstance(left, Bounded) else left
        if zone and judged.zone is not None:
            self._misplaced_zone(left, joiner, run, zone)
        is_start = joiner.lower in FROM
        made = Bounded(left, edge if is_start else None, None if is_start else edge, zone or self.tz)
        return (made if zone else made.at_home()).with_jitter(jitter, stable)

    def _misplaced_zone(self, left: Timing, joiner: Word, run: list[Word], zone: str) -> NoReturn:
        """Refuse a zone behind a bound or behind dates, and say it where it belongs, if that is one timing."""
        place = next(index for index, word in enumerate(run) if word.lower == "in")
        start, named = joiner.start, run[place : place + 2]
        hint = f"{self.text[:start]}in {zone} {self._replaced(named, '')[start:]}" if left.alternatives == 1 else ""
        raise TimingError("a zone is written with the timing", text=self.text, position=named[0].start, hint=hint)

    def _simple(self, run: list[Word]) -> Timing:
        rest, zone, jitter, stable = self._suffix(run)
        if not rest:
            self.index -= len(run)
            self._wrong("a timing is missing")
        rest, zone = self._prefixed(rest, zone)
        try:
            made = read_simple(Words(self.text, rest, zone or self.tz, self.now, self.stored))
        except NeedsNow:
            raise
        except TimingError as error:
            # Its hint is for these words alone.
            hint = self._replaced(rest, error.hint) if error.hint else ""
            raise TimingError(error.message, text=self.text, position=error.position, hint=hint) from error
        self.simple.append((rest, made))
        made = made.with_jitter(jitter, stable)
        return made if zone is not None else made.at_home()

    def _prefixed(self, rest: list[Word], zone: str | None) -> tuple[list[Word], str | None]:
        """The words without the `CRON_TZ=ZONE` that some crons have in front, and the zone."""
        found = _ZONE_PREFIX.fullmatch(rest[0].raw)
        if found is None:
            return rest, zone
        named = Word(found[1], rest[0].start + found.start(1))
        if len(rest) == 1 or zone is not None:
            what = "a timing is missing" if len(rest) == 1 else "its zone is named twice"
            raise TimingError(what, text=self.text, position=named.start)
        return rest[1:], self._zone(named)

    def _replaced(self, words: list[Word], by: str) -> str:
        """The whole text with something else in the place of these words."""
        last = words[-1]
        return f"{self.text[: words[0].start]}{by}{self.text[last.start + len(last.raw) :]}"

    def _exception(self, base: Timing, begin: int) -> Timing:
        first, bases = self.index, self.simple[begin:]
        is_nested = self._peek() == "("
        run = [] if is_nested else self._run()
        if run and run[0].lower == "on":
            run = run[1:]
        is_named = bool(run) and says_day_set(run[0])
        if not is_named and (not run or not re.match(r"\d{1,4}-\d", run[0].raw)):
            days = self._operand() if is_nested else self._simple(run)
            del self.simple[begin + len(bases) :]
            self._check_days_off(days, bases, self.words[first : self.index])
            return Except(base, days, self.tz).at_home()
        rest, zone, jitter, stable = self._suffix(run)
        if zone and base.zone not in (None, zone) and not self.stored:
            self._misplaced_zone(base, self.words[first - 1], run, zone)
        if is_named:
            made = Except(base, read_day_sets(self.text, rest), zone or self.tz).with_jitter(jitter, stable)
            return made if zone is not None else made.at_home()
        if len(rest) > 1:
            times = self._times(rest[1:])
            if times is not None:
                self._refuse_time(bases, rest[1:], times, "")
            raise TimingError(
                "dates are separated by commas",
                text=self.text,
                position=rest[1].start,
                hint=self._replaced(rest, ",".join(word.raw for word in rest if word.lower not in ("and", "&"))),
            )
        made = Except(base, self._dates(rest[0]), zone or self.tz).with_jitter(jitter, stable)
        return made if zone is not None else made.at_home()

    def _check_days_off(self, days: Timing, bases: list[tuple[list[Word], Timing]], run: list[Word]) -> None:
        """Refuse days of an exception with a time that was meant for what stands before them."""
        if isinstance(days, CalendarTiming) and days.times != MIDNIGHT:
            rest = self._suffix(run)[0]
            ends = range(max(1, len(rest) - _MOST_TIME_WORDS), len(rest))
            behind = next((rest[at:] for at in ends if self._times(rest[at:]) == days.times), None)
            by = "" if behind else days.replaced(times=MIDNIGHT).text
            self._refuse_time(bases, behind or run, days.times, by)

    def _refuse_time(
        self, bases: list[tuple[list[Word], Timing]], words: list[Word], times: ClockTimes, by: str
    ) -> None:
        """Refuse words with a time of day behind `except`, if the timing before it has room for one."""
        at = [Word(part, 0) for part in ("at", *times.text.split())]
        ends = [
            base[-1].start + len(base[-1].raw)
            for base, made in bases
            if (isinstance(made, CalendarTiming) or base[-1].raw.isalpha())
            and isinstance(self._read([*base, *at]), CalendarTiming)
        ]
        if not ends:
            return
        hint = self._replaced(words, by) if len(ends) == len(bases) else ""
        for end in reversed(ends if hint else []):
            hint = f"{hint[:end]} at {times.text}{hint[end:]}"
        raise TimingError(
            "what is excepted are whole days: a time of day belongs to the timing before 'except'",
            text=self.text,
            position=words[0].start,
            hint=hint,
        )

    def _times(self, words: list[Word]) -> ClockTimes | None:
        try:
            found = Words(self.text, words, None, None)
            times = found.times()
            found.finished()
        except TimingError:
            return None
        return times

    def _read(self, words: list[Word]) -> Timing | None:
        try:
            return read_simple(Words(self.text, words, self.tz, self.now))
        except TimingError:
            return None

    def _dates(self, word: Word) -> Dates:
        position = word.start
        for item in word.raw.split(","):
            if read_day(item) is None:
                position += len(item) - len(item.lstrip())
                raise TimingError(
                    f"{item.strip()!r} is not a date such as 2026-12-25 or, for every year, 12-25",
                    text=self.text,
                    position=position,
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
            jitter = words.duration()
            stable = words.skip("stable")
            words.finished()
        # `in 30m` is a timing of its own; a zone begins with a letter.
        if len(rest) >= 2 and rest[-2].lower == "in" and rest[-1].raw[0].isalpha():
            return rest[:-2], self._zone(rest[-1]), jitter, stable
        return rest, None, jitter, stable

    def _zone(self, word: Word) -> str:
        try:
            return check_zone(word.raw)
        except TimingError as error:
            hint = self._replaced([word], error.hint) if error.hint else ""
            raise TimingError(error.message, text=self.text, position=word.start, hint=hint) from error
