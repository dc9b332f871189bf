"""`Bounded` and `Limited`: a timing from a day on, until a day, or for so many runs.

Text forms `daily 09:00 from 2027-01-01 until 2027-06-30`, `every 5m until 10 runs`. Like `except`, a bound is of all
that stands before it. A timing cannot know how often it ran: whoever stores a schedule takes `runs` as its `remaining`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.at import At, moment_text
from ostinato.timing.base import Timing, store
from ostinato.timing.calendar import CalendarTiming
from ostinato.timing.combination import Combination, check_combinable, size_of
from ostinato.timing.dates import Dates
from ostinato.timing.every import Every
from ostinato.timing.explain import date_phrase, moment_phrase
from ostinato.timing.zones import Zone, as_utc, check_zone, start_of_day, stretches_of_day

__all__ = ["Bounded", "Limited"]

_TICK = timedelta(microseconds=1)
_FIRST, _LAST = datetime(1, 1, 4, tzinfo=UTC), datetime(9999, 12, 28, tzinfo=UTC)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Bounded(Combination):
    """Due when `base` is, from `start` on and until `end`: dates, which belong to it as a whole, or moments."""

    base: Timing
    start: date | None
    end: date | None
    tz: str | None
    names_zone: bool = field(compare=False)
    first: datetime = field(compare=False)
    last: datetime = field(compare=False)

    def __init__(
        self, base: Timing, start: date | str | None = None, end: date | str | None = None, tz: Zone | None = None
    ) -> None:
        if not isinstance(base, Timing):
            raise TimingError("a bound is of a timing, as in DailyAt(9).between('2027-01-01', '2027-06-30')")
        check_combinable(base)
        since, until = _edge(start), _edge(end)
        if isinstance(base, Bounded):
            inner = base
            if (inner.start is not None and since is not None) or (inner.end is not None and until is not None):
                raise TimingError("it is bounded twice")
            base, tz = inner.base, tz or inner.tz
            since, until = since or inner.start, until or inner.end
        names_zone = tz is not None
        if tz is not None:
            tz = check_zone(tz)
            base = base.in_zone(tz)
        self._store(base, since, until, tz, names_zone)
        if self.first > self.last:
            raise TimingError("it is never due: it ends before it begins")

    def _store(self, base: Timing, start: date | None, end: date | None, tz: Zone | None, names_zone: bool) -> None:
        zone = None if tz is None or base.zone or base.wants_zone else check_zone(tz)
        judged_in = base.zone or zone
        wants = base.wants_zone or (judged_in is None and any(_wants_zone(edge) for edge in (start, end)))
        store(self, base=base, start=start, end=end, tz=zone, jitter=base.jitter, stable=base.stable)
        store(self, names_zone=names_zone and zone is not None)
        own = None if wants else judged_in
        store(self, size=size_of(base), wants=wants, nameless=base.wants_name, own_zone=own)
        store(self, first=_first(start, judged_in or "UTC"), last=_last(end, judged_in or "UTC"))

    def _mapped(self, change: Callable[[Timing], Timing], tz: Zone | None) -> Bounded:
        copy = object.__new__(Bounded)
        copy._store(change(self.base), self.start, self.end, tz, self.names_zone)
        return copy

    @property
    def owns_zone(self) -> bool:
        return self.names_zone or self.base.owns_zone

    def at_home(self) -> Timing:
        return self.replaced(names_zone=False)

    def _timings(self) -> Sequence[Timing]:
        return (self.base,)

    def in_zone(self, tz: Zone) -> Timing:
        return self._mapped(lambda base: base.in_zone(tz), self.tz or tz)

    def anchored(self, at: datetime) -> Timing:
        return self._mapped(lambda base: base.anchored(at), self.tz)

    def with_jitter(self, jitter: Duration, stable: bool = False) -> Timing:
        return self._mapped(lambda base: base.with_jitter(jitter, stable), self.tz)

    def named(self, name: str) -> Timing:
        return self._mapped(lambda base: base.named(name), self.tz)

    def with_calendars(self, known: Mapping[str, Dates]) -> Timing:
        return self._mapped(lambda base: base.with_calendars(known), self.tz)

    def start_delay(self, name: str, due: datetime, random: Callable[[], float]) -> timedelta:
        return self.base.start_delay(name, due, random)

    def _next(self, t: datetime) -> datetime | None:
        return self.base.anchored(t).first_until(max(t, self.first - _TICK), self.last)

    def first_until(self, t: datetime, until: datetime) -> datetime | None:
        return self.base.anchored(t).first_until(max(as_utc(t), self.first - _TICK), min(until, self.last))

    def _previous(self, t: datetime) -> datetime | None:
        return self.base.last_since(min(t, self.last), self.first)

    def last_since(self, t: datetime, since: datetime) -> datetime | None:
        return self.base.last_since(min(as_utc(t), self.last), max(since, self.first))

    def is_due(self, t: datetime) -> bool:
        return self.first <= t <= self.last and self.base.is_due(t)

    def _count(self, after: datetime, until: datetime) -> int:
        return self.base.anchored(after).count_between(max(after, self.first - _TICK), min(until, self.last))

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        return self.base.anchored(after).stream(max(after, self.first - _TICK), min(until, self.last))

    def text_within(self, zone: str | None) -> str:
        words = self.base.text_within(zone)
        if self.start is not None and _takes_from(self.base):
            words = f"({words})"
        words += f" from {_edge_text(self.start)}" if self.start is not None else ""
        words += f" until {_edge_text(self.end)}" if self.end is not None else ""
        return words + (f" in {self.tz}" if self.tz and self.tz != zone else "")

    @property
    def alternatives(self) -> int:
        return self.base.alternatives

    @property
    def has_bound(self) -> bool:
        return True

    def phrase(self) -> str:
        since = f"from {_edge_phrase(self.start)}" if self.start is not None else ""
        until = f"until {_edge_phrase(self.end)}" if self.end is not None else ""
        # After several timings in a row, a bound would seem to belong to the last alone.
        of = {1: "", 2: "both "}.get(self.base.alternatives, "all ")
        return f"{self.base.phrase()}, {of}{', '.join(filter(None, (since, until)))}"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        return self.base.remarks(max(after, self.first - _TICK), n) if after <= self.last else []


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Limited(Combination):
    """Due when `base` is; a schedule with it runs so often. It stands around everything else."""

    base: Timing
    limit: int

    def __init__(self, base: Timing, runs: int) -> None:
        if not isinstance(base, Timing) or isinstance(base, Limited):
            raise TimingError("so many runs are of a timing, as in DailyAt(9).limited(10)")
        if base.follows:
            raise TimingError(f"{base.text!r} has no number of runs: give its schedule the policy remaining={runs!r}")
        if not isinstance(runs, int) or isinstance(runs, bool) or not 1 <= runs < 2**31:
            raise TimingError(f"it runs once or more often, not {runs!r} times")
        self._store(base, runs)

    def _store(self, base: Timing, runs: int) -> None:
        store(self, base=base, limit=runs, jitter=base.jitter, stable=base.stable)
        store(self, size=size_of(base), wants=base.wants_zone, nameless=base.wants_name, own_zone=base.zone)

    def _mapped(self, change: Callable[[Timing], Timing]) -> Limited:
        copy = object.__new__(Limited)
        copy._store(change(self.base), self.limit)
        return copy

    def _timings(self) -> Sequence[Timing]:
        return (self.base,)

    @property
    def runs(self) -> int | None:
        return self.limit

    @property
    def unlimited(self) -> Timing:
        return self.base

    @property
    def after_finish(self) -> timedelta | None:
        return self.base.after_finish

    def in_zone(self, tz: Zone) -> Timing:
        return self._mapped(lambda base: base.in_zone(tz))

    def anchored(self, at: datetime) -> Timing:
        return self._mapped(lambda base: base.anchored(at))

    def with_jitter(self, jitter: Duration, stable: bool = False) -> Timing:
        return self._mapped(lambda base: base.with_jitter(jitter, stable))

    def named(self, name: str) -> Timing:
        return self._mapped(lambda base: base.named(name))

    def with_calendars(self, known: Mapping[str, Dates]) -> Timing:
        return self._mapped(lambda base: base.with_calendars(known))

    def start_delay(self, name: str, due: datetime, random: Callable[[], float]) -> timedelta:
        return self.base.start_delay(name, due, random)

    def _next(self, t: datetime) -> datetime | None:
        return self.base.next_after(t)

    def first_until(self, t: datetime, until: datetime) -> datetime | None:
        return self.base.first_until(t, until)

    def _previous(self, t: datetime) -> datetime | None:
        return self.base.previous(t)

    def last_since(self, t: datetime, since: datetime) -> datetime | None:
        return self.base.last_since(t, since)

    def is_due(self, t: datetime) -> bool:
        return self.base.is_due(t)

    def _count(self, after: datetime, until: datetime) -> int:
        return self.base.count_between(after, until)

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        return self.base.stream(after, until)

    def text_within(self, zone: str | None) -> str:
        return f"{self.base.text_within(zone)} until {self.limit} run{'s' * (self.limit != 1)}"

    def phrase(self) -> str:
        return f"{self.base.phrase()}, until it has run {'once' if self.limit == 1 else f'{self.limit} times'}"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        return [f"A schedule with this timing gets the policy remaining {self.limit}.", *self.base.remarks(after, n)]


def _edge(given: date | str | None) -> date | None:
    if isinstance(given, datetime):
        return _normal(given)
    if given is None or isinstance(given, date):
        return given
    if not isinstance(given, str):
        raise TimingError(f"a bound is a date such as 2027-06-30 or a datetime, not {given!r}")
    try:
        return date.fromisoformat(given) if len(given) == 10 else _normal(datetime.fromisoformat(given.upper()))
    except ValueError as error:
        raise TimingError(f"{given!r} is not a date such as 2027-06-30", text=given) from error


def _normal(moment: datetime) -> datetime:
    return At(moment).when


def _wants_zone(edge: date | None) -> bool:
    return edge is not None and (not isinstance(edge, datetime) or edge.tzinfo is None)


def _day(edge: date) -> date:
    return edge.date() if isinstance(edge, datetime) else edge


def _first(edge: date | None, zone: str) -> datetime:
    # The first days of the calendar, as its last ones, have no instant in every zone.
    if edge is None or _day(edge) <= _FIRST.date():
        return _FIRST
    return At(edge, zone).instant if isinstance(edge, datetime) else start_of_day(zone, edge)


def _last(edge: date | None, zone: str) -> datetime:
    if edge is None or _day(edge) >= _LAST.date():
        return _LAST
    if isinstance(edge, datetime):
        return At(edge, zone).instant
    # Where a clock goes back over midnight, the day comes twice.
    stretches = stretches_of_day(zone, edge)
    return (stretches[-1][1] if stretches else start_of_day(zone, edge)) - _TICK


def _takes_from(base: Timing) -> bool:
    """Whether 'from' behind its text would belong to it, or to its last part."""
    if isinstance(base, CalendarTiming):
        return base.every > 1 and base.anchor is None
    return isinstance(base, Combination) or (isinstance(base, Every) and base.anchor is None)


def _edge_text(edge: date | None) -> str:
    return moment_text(edge) if isinstance(edge, datetime) else str(edge)


def _edge_phrase(edge: date | None) -> str:
    if isinstance(edge, datetime):
        return moment_phrase(edge).removeprefix("on ")
    return date_phrase(edge) if edge is not None else ""
