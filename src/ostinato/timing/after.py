"""`After`: not due by the clock, but when runs of other schedules end: `after import`, `after a and b within 1h`.

It has no due times of its own: the engine (engine/after.py) decides by the ends that the ledger has recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn

from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import InvalidInput, TimingError
from ostinato.timing.base import NO_JITTER, Timing, jitter_fields, store
from ostinato.timing.explain import WEEKDAY_NAMES, interval_phrase, joined

__all__ = ["After", "On", "read_after"]

_DAY = timedelta(days=1)
_MOST = 50
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s",()]+|[",()]')
_PLAIN = re.compile(r'[^\s",()]+')
_RESERVED = frozenset({"or", "and", "on", "within", "jitter", "stable", "except", "finish", "any", "all", "of", "in"})


_TIMINGS = frozenset({"weekdays", "weekends", "daily", "weekly", "monthly", "quarterly", "yearly", "hourly", "every"})
_TIMINGS |= {name.lower() for name in WEEKDAY_NAMES}
"""Words that begin a timing: behind `and` and `or`, whether a schedule is called so is not clear."""
_ALONE = "what runs after another begins when that one ends, and 'after' combines with no other timing"


class On(StrEnum):
    """Which ends of another schedule's runs are followed."""

    SUCCESS = "success"
    FAILURE = "failure"
    """Failed, or expired before they could start."""
    END = "end"
    """All of them, cancelled ones too."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class After(Timing):
    """Due when a run of one of these schedules succeeds; with `all`, when a run of each has, `within` that time."""

    upstreams: tuple[str, ...]
    on: On
    within: timedelta | None
    """For all of them: the time from the first end to the last. None: any of them will do."""

    def __init__(
        self,
        *upstreams: str,
        on: On | str = On.SUCCESS,
        all: bool = False,
        within: Duration | None = None,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        for name in upstreams:
            if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
                raise TimingError(f"{name!r} is not the name of a schedule")
        if not upstreams or len(set(upstreams)) < len(upstreams) or len(upstreams) > _MOST:
            raise TimingError(f"name 1 to {_MOST} schedules, each once")
        if within is not None and not all:
            raise TimingError("within is for all of several schedules, as in 'after import and export within 1h'")
        window = None
        if all and len(upstreams) > 1:
            window = _window(_DAY if within is None else within)
        store(self, upstreams=tuple(upstreams), on=_on(on), within=window, **jitter_fields(jitter, stable))

    @property
    def follows(self) -> tuple[str, ...]:
        return self.upstreams

    @property
    def zone(self) -> str | None:
        return None

    def _next(self, t: datetime) -> datetime | None:
        return None

    def _previous(self, t: datetime) -> datetime | None:
        return None

    def _count(self, after: datetime, until: datetime) -> int:
        return 0

    def _words(self) -> str:
        first, *more = self.upstreams
        joiner = " or " if self.within is None else " and "
        words = "after " + joiner.join([_quoted(first), *(_quoted(name, _TIMINGS) for name in more)])
        if self.within is not None:
            words += f" within {duration_text(self.within)}"
        return words if self.on is On.SUCCESS else f"{words} on {self.on}"

    def phrase(self) -> str:
        names = [f"'{name}'" for name in self.upstreams]
        verb = {On.SUCCESS: "succeeded", On.FAILURE: "failed", On.END: "ended, however that was"}[self.on]
        if self.within is not None:
            last = f"within {interval_phrase(self.within, counted=True)} of the first"
            return f"after a run of each of {joined(names)} has {verb}, the last {last}"
        return f"after each run of {joined(names, 'or')} that {verb}"


def _on(on: Any) -> On:
    try:
        return On(on)
    except ValueError:
        raise TimingError(f"on cannot be {on!r}: it is success, failure or end") from None


def _window(within: Duration) -> timedelta:
    try:
        found = parse_duration(within, field="within")
    except (InvalidInput, OverflowError) as error:
        raise TimingError(f"within {within!r} is not a duration such as 1h") from error
    if found <= timedelta(0):
        raise TimingError("within must be longer than nothing, such as 1h")
    return found


def _quoted(name: str, unclear: frozenset[str] = frozenset()) -> str:
    """The name as it stands in a text: in quotes where it would be read as something else."""
    if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED | unclear:
        return name
    return json.dumps(name, ensure_ascii=False)


_VALUES: dict[str, Callable[[str], object]] = {
    "on": _on,
    "within": _window,
    "jitter": lambda amount: jitter_fields(amount, False),
}


class _Token(NamedTuple):
    raw: str
    start: int

    @property
    def is_name(self) -> bool:
        return self.raw not in ('"', ",", "(", ")")


def read_after(text: str, stored: bool = False) -> After:
    """The timing of a text that begins with `after`; one that is stored was taken when it was written."""
    return _Reader(text, stored).whole()


class _Reader:
    """`after NAME [or NAME …] [and NAME … [within 1h]] [on success|failure|end] [jitter 30s [stable]]`."""

    def __init__(self, text: str, stored: bool) -> None:
        self.text, self.stored = text, stored
        self.tokens = [_Token(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self.index = 1

    def whole(self) -> After:
        names, joiner = [self._name()], ""
        while self._peek() in ("or", "and", ","):
            word = self._peek().replace(",", "or")
            if joiner not in ("", word):
                self._wrong("either any of them or all of them")
            joiner = word
            self.index += 1
            self._refuse_timing()
            names.append(self._name())
        options: dict[str, Any] = {}
        while (word := self._peek()) in ("within", "on", "jitter"):
            start = self.index
            self.index += 1
            if word in options:
                self.index = start
                self._wrong(f"{word} is given twice")
            options[word] = self._value(word)
            if word == "jitter" and self._peek() == "stable":
                self.index += 1
                options["stable"] = True
        if self.index < len(self.tokens):
            self._refuse_rest()
        try:
            return After(*names, all=joiner == "and", **options)
        except TimingError as error:
            raise TimingError(error.message, text=self.text, position=self.tokens[1].start) from error

    def _refuse_timing(self) -> None:
        if self._peek() in _TIMINGS and not self.stored:
            name = self.tokens[self.index].raw
            self._wrong(f"{_ALONE}; the name of a schedule that is called so stands in quotes: {json.dumps(name)}")

    def _refuse_rest(self) -> NoReturn:
        found = self.tokens[self.index].raw
        opened = next((at for at, token in enumerate(self.tokens[: self.index]) if token.raw[0] == "'"), None)
        if opened is not None:
            self.index = opened
            self._wrong("a name with spaces stands in double quotes", re.sub(r"'([^'\"]*)'", r'"\1"', self.text))
        if found.lower() in ("except", "from", "until", "at", "every") or found in "()" or found[0].isdecimal():
            self._wrong(f"{found!r} is not understood here: {_ALONE}")
        self._wrong(f"{found!r} is not understood here")

    def _peek(self) -> str:
        return self.tokens[self.index].raw.lower() if self.index < len(self.tokens) else ""

    def _name(self) -> str:
        if self.index >= len(self.tokens):
            self._wrong("after which schedule? As in 'after import'")
        token = self.tokens[self.index]
        if token.raw.lower() == "finish":
            self._wrong("after which schedule? Its own finish needs an interval, as in 'every 1h after finish'")
        if not token.is_name or token.raw.lower() in _RESERVED:
            # `all` and `any` before a name say what the word between the names says.
            hint = "" if token.raw.lower() in ("all", "any") else f"after {json.dumps(token.raw)}"
            self._wrong(f"{token.raw!r} is not the name of a schedule", hint)
        self.index += 1
        if token.raw[0] != '"':
            return token.raw
        try:
            return str(json.loads(token.raw))
        except ValueError:
            self.index -= 1
            self._wrong(f"{token.raw} is not a name in quotes")

    def _value(self, word: str) -> str:
        if self.index >= len(self.tokens):
            self._wrong(f"{word} what?")
        token = self.tokens[self.index]
        try:
            _VALUES[word](token.raw.lower())
        except TimingError as error:
            self._wrong(error.message)
        self.index += 1
        return token.raw.lower()

    def _wrong(self, message: str, hint: str = "") -> NoReturn:
        end = len(self.text.rstrip())
        position = self.tokens[self.index].start if self.index < len(self.tokens) else end
        raise TimingError(message, text=self.text, position=position, hint=hint)
