"""What every timing is: a frozen value with `next_after(t)` as its heart; time is passed in, never read.

The kinds are in `at.py`, `every.py`, `cron.py`, `calendar.py` and `combine.py`; `text.py` reads them from text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import InvalidInput, TimingError
from ostinato.timing.explain import interval_phrase
from ostinato.timing.zones import Zone, as_utc, microseconds_of

if TYPE_CHECKING:
    from ostinato.timing.bounds import Bounded, Limited
    from ostinato.timing.combine import Except, Or
    from ostinato.timing.dates import Dates, DaySet

__all__ = ["NO_JITTER", "Timing", "jitter_fields", "store"]

NO_JITTER = timedelta(0)
_EARLIEST, _LATEST = datetime(1, 1, 4, tzinfo=UTC), datetime(9999, 12, 28, tzinfo=UTC)


def store(timing: Timing, **values: object) -> None:
    """Set the fields of a frozen timing; only for constructors."""
    for name, value in values.items():
        object.__setattr__(timing, name, value)


@lru_cache
def _field_names(kind: type[Timing]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def jitter_fields(jitter: Duration, stable: bool) -> dict[str, Any]:
    """The two fields of a jitter, checked; a wrong one is a TimingError like all that is wrong with a timing."""
    try:
        amount = parse_duration(jitter, field="jitter")
    except (InvalidInput, OverflowError) as error:
        raise TimingError(f"jitter {jitter!r} is not a duration", hint="jitter 30s") from error
    # Without a jitter there is nothing to be stable about, and two equal timings must have equal texts.
    return {"jitter": amount, "stable": bool(stable and amount)}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Timing(ABC):
    """When something is due. All results are aware in UTC; all arguments must be aware.

    A wall-clock timing that was built without a zone counts in UTC until `in_zone` gives it one.
    """

    jitter: timedelta
    stable: bool

    def next_after(self, t: datetime) -> datetime | None:
        """The first due time strictly after `t`, None when there is none."""
        try:
            return self._next(as_utc(t))
        except OverflowError:  # Past the year 9999.
            return None

    def first_until(self, t: datetime, until: datetime) -> datetime | None:
        """The first due time in (t, until]; a combination looks no further than that."""
        due = self.next_after(t)
        return due if due is not None and due <= until else None

    def previous(self, t: datetime) -> datetime | None:
        """The last due time at or before `t`, None when there is none."""
        try:
            return self._previous(as_utc(t))
        except OverflowError:
            return None

    def last_since(self, t: datetime, since: datetime) -> datetime | None:
        """The last due time in [since, t]; a combination looks no further back than that."""
        due = self.previous(t)
        return due if due is not None and due >= since else None

    def count_between(self, after: datetime, until: datetime) -> int:
        """How many due times lie in (after, until], by arithmetic and not by walking over them."""
        # The last days of the calendar are cut off, where local time has no datetime any more.
        start, end = max(as_utc(after, "after"), _EARLIEST), min(as_utc(until, "until"), _LATEST)
        return self._count(start, end) if start < end else 0

    def is_due(self, t: datetime) -> bool:
        """Whether `t` is exactly a due time."""
        return self.previous(t) == t

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        """All due times in (after, until] as microseconds since 1970; faster than asking one by one where it can be."""
        due = self.first_until(after, until)
        while due is not None:
            yield microseconds_of(due)
            due = self.first_until(due, until)

    @abstractmethod
    def _next(self, t: datetime) -> datetime | None: ...

    @abstractmethod
    def _previous(self, t: datetime) -> datetime | None: ...

    @abstractmethod
    def _count(self, after: datetime, until: datetime) -> int: ...

    @property
    @abstractmethod
    def zone(self) -> str | None:
        """The IANA name of its zone; None when it has none yet, or does not care for one."""

    @property
    def owns_zone(self) -> bool:
        """Whether its zone is its own, and not that of the place where it was read."""
        return False

    @property
    def wants_zone(self) -> bool:
        """Whether it (or a part of it) reads a wall clock and has no zone yet."""
        return False

    @property
    def wants_name(self) -> bool:
        """Whether it (or a part of it) is chosen by the name of its schedule, and has none yet."""
        return False

    @property
    def calendars(self) -> tuple[str, ...]:
        """The calendars on whose days it is not due."""
        return ()

    @property
    def wants_calendars(self) -> tuple[str, ...]:
        """Those of them whose dates it has not: until it gets them, nobody can say when it is due."""
        return ()

    def left_out(self, t: datetime) -> str | None:
        """Why it is not due on the day of `t`, if that is one of the days that are taken from it."""
        return None

    @property
    def after_finish(self) -> timedelta | None:
        """The interval when it counts from the end of the last run, else None."""
        return None

    @property
    def follows(self) -> tuple[str, ...]:
        """The schedules whose runs it follows, instead of having due times."""
        return ()

    @property
    def runs(self) -> int | None:
        """How many runs a schedule with it has at most, where it says so."""
        return None

    @property
    def unlimited(self) -> Timing:
        """The same, for any number of runs."""
        return self

    @property
    def text(self) -> str:
        """The canonical text form: `parse_timing(timing.text, tz=timing.zone) == timing`.

        It names a zone of its own (`DailyAt(9, tz=…)`, `daily 09:00 in …`), and so says the same wherever it is read;
        not one that it was given by the place where it was read.
        """
        return self.text_within("" if self.owns_zone else self.zone)

    def text_within(self, zone: str | None) -> str:
        """The text as a part of a larger text that is read in `zone`."""
        words = self._words()
        if self.zone is not None and self.zone != zone:
            words += f" in {self.zone}"
        if self.jitter:
            words += f" jitter {duration_text(self.jitter)}" + (" stable" if self.stable else "")
        return words

    @abstractmethod
    def _words(self) -> str:
        """The text form without zone and jitter."""

    def explain(self) -> str:
        """One English sentence."""
        phrase = self.phrase()
        zone = f" ({self.zone})" if self.zone else ""
        return f"{phrase[0].upper()}{phrase[1:]}{self._jitter_phrase()}{zone}."

    @abstractmethod
    def phrase(self) -> str:
        """The sentence without capital, zone and full stop, to stand in a larger one."""

    def days_phrase(self) -> str:
        """The phrase for the days on which it is due, as in 'except on Sunday'."""
        return f"on days when it is due {self.phrase()}"

    def _jitter_phrase(self) -> str:
        if not self.jitter:
            return ""
        spread = ", spread by name" if self.stable else ""
        return f", started up to {interval_phrase(self.jitter, counted=True)} later{spread}"

    def remarks(self, after: datetime, n: int = 5) -> list[str]:
        """What a person should know about the coming `n` times: clock changes, months left out. [] when nothing."""
        try:
            return self._remarks(as_utc(after, "after"), n)[: max(n, 1)]
        except OverflowError:
            return []

    def _remarks(self, after: datetime, n: int) -> list[str]:
        return []

    def anchored(self, at: datetime) -> Timing:
        """An interval without an anchor gets this one; combinations pass it on; all others stay as they are."""
        return self

    def at_home(self) -> Timing:
        """The same with its zone as that of the place where it is read: its text does not name it."""
        return self

    def in_zone(self, tz: Zone) -> Timing:
        """Give a zone to what was built without one; explicit zones stay."""
        return self

    def named(self, name: str) -> Timing:
        """What is chosen by the name of a schedule (`H` in cron) gets this one; all others stay as they are."""
        return self

    def with_calendars(self, known: Mapping[str, Dates]) -> Timing:
        """Give these calendars the dates that they have now; all others stay as they are."""
        return self

    def with_jitter(self, jitter: Duration, stable: bool = False) -> Timing:
        """The same timing with this jitter, where it has none yet."""
        added = jitter_fields(jitter, stable)
        return self if self.jitter or not added["jitter"] else self.replaced(**added)

    def start_delay(self, name: str, due: datetime, random: Callable[[], float]) -> timedelta:
        """How much later than due to start: 0..jitter. Stable jitter depends on the schedule's name alone."""
        if not self.jitter:
            return NO_JITTER
        if self.stable:
            # Not hash(): that one differs between processes.
            digest = blake2b(name.encode(), digest_size=8).digest()
            return self.jitter * (int.from_bytes(digest, "big") / 2**64)
        return self.jitter * random()

    def replaced(self, **changes: Any) -> Self:
        """A copy with some fields changed, without the checks of the constructor."""
        copy = object.__new__(type(self))
        for name in _field_names(type(self)):
            object.__setattr__(copy, name, changes[name] if name in changes else getattr(self, name))
        return copy

    def __or__(self, other: Timing) -> Or:
        from ostinato.timing.combine import Or

        return Or(self, other)

    def __sub__(self, days: Timing | DaySet) -> Except:
        from ostinato.timing.combine import Except

        return Except(self, days)

    def between(self, start: date | str | None = None, end: date | str | None = None) -> Bounded:
        """From a day or moment on and until another, which both belong to it: `2027-01-01`, `2027-06-30T18:00`."""
        from ostinato.timing.bounds import Bounded

        return Bounded(self, start, end)

    def limited(self, runs: int) -> Limited:
        """The timing of a schedule that is to run so often: stored with it as `remaining`."""
        from ostinato.timing.bounds import Limited

        return Limited(self, runs)

    def except_dates(self, days: Iterable[str | date] | str | DaySet) -> Except:
        """Not on these local dates: `2026-12-25`, or `12-25` for every year; `Holidays("DE-BY")`, those of a
        calendar."""
        from ostinato.timing.combine import Except
        from ostinato.timing.dates import Dates, DaySet

        return Except(self, days if isinstance(days, DaySet) else Dates(days))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text_within(self.zone)!r}{f' {self.zone}' if self.zone else ''}>"
