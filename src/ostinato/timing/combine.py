"""Combinations: `A or B` is due with either, `A except B` is not due on the days of B.

Text is read from left to right: `A or B except C` takes the days of C from both, `A except C or B` only from A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from heapq import merge
from itertools import groupby

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, Timing, store
from ostinato.timing.dates import Dates
from ostinato.timing.every import Every
from ostinato.timing.grids import Grid, count_union
from ostinato.timing.searching import bounded, count_step, following, preceding
from ostinato.timing.zones import as_utc, check_zone, end_of_day, local_date, microseconds_of, start_of_day

__all__ = ["Except", "Or", "refuse_many"]

_MOST_PARTS = 20
"""A combination joins so many timings and lists of dates at most."""

_TICK = timedelta(microseconds=1)
# Asking whether one instant is due costs as much as streaming so many; a few are asked in any case.
_QUESTION, _FEW = 30, 500
# An exception may cover whole decades of due times; past this many days off in a row it is taken to cover all.
_MOST_DAYS_OFF = 3660
_LONGEST_SEARCH = timedelta(days=50 * 366)
# Of several parts that have to be searched, days near by are looked at first: so many of them.
_FIRST_LOOKS = (2, 16, 128, 1024)
_PROBE = datetime(2000, 1, 1, tzinfo=UTC)


def _refuse_after_finish(*timings: Timing) -> None:
    for timing in timings:
        if timing.after_finish is not None:
            raise TimingError(
                f"{timing.text!r} counts from the end of a run and cannot be combined",
                hint=timing.text.replace(" after finish", ""),
            )


def refuse_many(parts: int) -> None:
    """Refuse a combination of more parts than anybody reads."""
    if parts > _MOST_PARTS:
        raise TimingError(
            f"more than {_MOST_PARTS} timings are joined",
            hint="several schedules, or lists in one part: weekly mon,thu 09:00, except 12-24,12-25,12-26",
        )


def _size(part: Timing | Dates) -> int:
    return part.size if isinstance(part, _Combination) else 1


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _Combination(Timing):
    """What follows from its parts, found once: a combination of combinations would ask them over and over."""

    size: int = field(compare=False)
    wants: bool = field(compare=False)
    own_zone: str | None = field(compare=False)

    @property
    def zone(self) -> str | None:
        return self.own_zone

    @property
    def wants_zone(self) -> bool:
        return self.wants

    def _words(self) -> str:
        return self.text_within(self.zone)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Or(_Combination):
    """Due when any part is; an instant on which several are due counts once. Jitter belongs to the parts."""

    parts: tuple[Timing, ...]

    def __init__(self, *parts: Timing, jitter: Duration = NO_JITTER, stable: bool = False) -> None:
        flat: list[Timing] = []
        for part in parts:
            if not isinstance(part, Timing):
                raise TimingError(f"'or' joins timings, not {part!r}", hint="daily 09:00 or monthly last 18:00")
            flat.extend(part.parts if isinstance(part, Or) else (part,))
        if len(flat) < 2:
            raise TimingError("'or' needs at least two timings", hint="daily 09:00 or monthly last 18:00")
        refuse_many(sum(map(_size, flat)))
        _refuse_after_finish(*flat)
        self._store(tuple(part.with_jitter(jitter, stable) for part in flat))

    def _store(self, parts: tuple[Timing, ...]) -> None:
        jittered = [part for part in parts if part.jitter]
        longest = max((part.jitter for part in parts), default=NO_JITTER)
        store(self, parts=parts, jitter=longest, stable=bool(jittered) and all(part.stable for part in jittered))
        wants = any(part.wants_zone for part in parts)
        zones = [] if wants else [part.zone for part in parts if part.zone is not None]
        store(self, size=sum(map(_size, parts)), wants=wants, own_zone=next(iter(zones), None))

    def _mapped(self, change: Callable[[Timing], Timing]) -> Or:
        copy = object.__new__(Or)
        copy._store(tuple(change(part) for part in self.parts))
        return copy

    def in_zone(self, tz: str) -> Timing:
        return self._mapped(lambda part: part.in_zone(tz))

    def anchored(self, at: datetime) -> Timing:
        return self._mapped(lambda part: part.anchored(at))

    def with_jitter(self, jitter: Duration, stable: bool = False) -> Timing:
        return self._mapped(lambda part: part.with_jitter(jitter, stable))

    def start_delay(self, name: str, due: datetime, random: Callable[[], float]) -> timedelta:
        owner = next((part for part in self.parts if part.is_due(due)), None)
        return (owner or max(self.parts, key=lambda part: part.jitter)).start_delay(name, due, random)

    def _next(self, t: datetime) -> datetime | None:
        return self._nearest(t, None, 1)

    def first_until(self, t: datetime, until: datetime) -> datetime | None:
        return self._nearest(t, until, 1)

    def _previous(self, t: datetime) -> datetime | None:
        return self._nearest(t, None, -1)

    def last_since(self, t: datetime, since: datetime) -> datetime | None:
        return self._nearest(t, since, -1)

    def _nearest(self, t: datetime, end: datetime | None, way: int) -> datetime | None:
        """The due time next to `t` this way. Nobody searches the years behind one that is due tomorrow."""
        simple = [part for part in self.parts if not isinstance(part, Except)]
        found = _nearest_of(simple, t, end, way)
        searched = [part for part in self.parts if isinstance(part, Except)]
        if not searched:
            return found
        end = end if found is None else found
        for days in _FIRST_LOOKS:
            near = _days_away(t, days * way)
            if near is None or (end is not None and (end - near) * way <= NO_JITTER):
                break
            if (due := _nearest_of(searched, t, near, way)) is not None:
                return due
        return _nearest_of(searched, t, end, way) or found

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        return (due for due, _ in groupby(merge(*(part.stream(after, until) for part in self.parts))))

    def _count(self, after: datetime, until: datetime) -> int:
        parts = [part.anchored(after) for part in self.parts]
        grids = [part for part in parts if isinstance(part, Every)]
        together = _count_grids(grids, after, until) if len(grids) > 1 else None
        if together is None:
            return _count_apart([(part.count_between(after, until), part) for part in parts], after, until)
        # From here on all grids are one part, which is counted.
        others = [(part.count_between(after, until), part) for part in parts if not isinstance(part, Every)]
        return _count_apart([(together, Or(*grids)), *others], after, until)

    def text_within(self, zone: str | None) -> str:
        first, *rest = self.parts
        return " or ".join([first.text_within(zone), *(_nested(part, zone) for part in rest)])

    def phrase(self) -> str:
        return ", or ".join(
            part.phrase() + (f" in {part.zone}" if part.zone and part.zone != self.zone else "") for part in self.parts
        )

    def _remarks(self, after: datetime, n: int) -> list[str]:
        return list(dict.fromkeys(remark for part in self.parts for remark in part.remarks(after, n)))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Except(_Combination):
    """Due when `base` is, but not on the days of `days`: dates, or the days on which another timing is due.

    A day is a local day of the base's zone; `tz` is only asked where the base has none (`every 5m except 12-25`).
    """

    base: Timing
    days: Dates | Timing
    tz: str | None
    judged_in: str = field(compare=False)

    def __init__(
        self,
        base: Timing,
        days: Dates | Timing,
        tz: str | None = None,
        *,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        if not isinstance(base, Timing) or not isinstance(days, Dates | Timing):
            raise TimingError("'except' takes days from a timing", hint="daily 09:00 except 2026-12-25,12-26")
        refuse_many(_size(base) + _size(days))
        _refuse_after_finish(base, *([days] if isinstance(days, Timing) else []))
        base = base.with_jitter(jitter, stable)
        if isinstance(days, Timing) and days.jitter:
            # A day has no jitter; who writes it at the end of the text means the whole.
            base = base.with_jitter(days.jitter, days.stable)
            days = days.replaced(jitter=NO_JITTER, stable=False) if not isinstance(days, _Combination) else days
        if isinstance(base, Except) and isinstance(base.days, Dates) and isinstance(days, Dates):
            days, tz, base = base.days.merged(days), base.tz or tz, base.base
        if tz is not None:
            tz, base = check_zone(tz), base.in_zone(tz)
            days = days.in_zone(tz) if isinstance(days, Timing) else days
        self._store(base, days, tz)
        if base.next_after(_PROBE) is not None and self._next(_PROBE) is None:
            raise TimingError(
                f"{self.text!r} is never due: all its days are excluded", hint="daily 09:00 except weekly sat,sun 00:00"
            )

    def _store(self, base: Timing, days: Dates | Timing, tz: str | None) -> None:
        # A zone of its own only where no part has one to judge the days in.
        if any(part.zone or part.wants_zone for part in (base, days) if isinstance(part, Timing)):
            tz = None
        store(self, base=base, days=days, tz=tz, jitter=base.jitter, stable=base.stable)
        zone = base.zone or tz or (days.zone if isinstance(days, Timing) else None)
        wants = zone is None or base.wants_zone or (isinstance(days, Timing) and days.wants_zone)
        own = None if wants else zone
        store(self, size=_size(base) + _size(days), wants=wants, own_zone=own, judged_in=zone or "UTC")

    def _mapped(self, change: Callable[[Timing], Timing], tz: str | None) -> Except:
        copy = object.__new__(Except)
        copy._store(change(self.base), change(self.days) if isinstance(self.days, Timing) else self.days, tz)
        return copy

    def in_zone(self, tz: str) -> Timing:
        return self._mapped(lambda part: part.in_zone(tz), self.tz or check_zone(tz))

    def anchored(self, at: datetime) -> Timing:
        return self._mapped(lambda part: part.anchored(at), self.tz)

    def with_jitter(self, jitter: Duration, stable: bool = False) -> Timing:
        copy = object.__new__(Except)
        copy._store(self.base.with_jitter(jitter, stable), self.days, self.tz)
        return copy

    def start_delay(self, name: str, due: datetime, random: Callable[[], float]) -> timedelta:
        return self.base.start_delay(name, due, random)

    def _next(self, t: datetime) -> datetime | None:
        return bounded(lambda: self._search(t, None))

    def first_until(self, t: datetime, until: datetime) -> datetime | None:
        try:
            return bounded(lambda: self._search(as_utc(t), until))
        except OverflowError:
            return None

    def _search(self, t: datetime, until: datetime | None) -> datetime | None:
        root, levels = self._levels()
        base, limit = root.anchored(t), until
        for _ in range(_MOST_DAYS_OFF):
            due = base.next_after(t) if limit is None else base.first_until(t, limit)
            if due is None:
                return None
            off = _day_off(levels, due)
            if off is None:
                return due
            limit = limit or due + _LONGEST_SEARCH
            # The rest of an excepted day is jumped over, however many due times it holds.
            t = max(due, end_of_day(*off) - _TICK)
            if t >= limit:
                return None
        return None

    def _previous(self, t: datetime) -> datetime | None:
        return bounded(lambda: self._search_back(t, None))

    def last_since(self, t: datetime, since: datetime) -> datetime | None:
        try:
            return bounded(lambda: self._search_back(as_utc(t), since))
        except OverflowError:
            return None

    def _search_back(self, t: datetime, since: datetime | None) -> datetime | None:
        root, levels = self._levels()
        for _ in range(_MOST_DAYS_OFF):
            due = root.previous(t) if since is None else root.last_since(t, since)
            if due is None:
                return None
            off = _day_off(levels, due)
            if off is None:
                return due
            t = min(due, start_of_day(*off)) - _TICK
            if since is not None and t < since:
                return None
        return None

    def is_due(self, t: datetime) -> bool:
        try:
            return self.base.is_due(t) and not self._covers(local_date(self.judged_in, t))
        except OverflowError:
            return False

    def _count(self, after: datetime, until: datetime) -> int:
        root, levels = self._levels()
        base = root.anchored(after)
        total = base.count_between(after, until)
        # A day may be off for several reasons, in several zones: each instant is taken off once.
        done = after
        for first, last in merge(*(level._spans_off(after, until) for level in levels)):
            total -= base.count_between(max(first, done), min(last, until))
            done = max(done, last)
        return total

    def _levels(self) -> tuple[Timing, list[Except]]:
        """`A except B except C` in one: A, and whose days are taken off, the last first."""
        levels, root = [self], self.base
        while isinstance(root, Except):
            levels.append(root)
            root = root.base
        return root, levels

    def _covers(self, day: date) -> bool:
        if isinstance(self.days, Dates):
            return self.days.covers(day)
        zone = self.days.zone or self.judged_in
        count_step()
        return _is_due_within(self.days, start_of_day(zone, day) - _TICK, end_of_day(zone, day) - _TICK)

    def _spans_off(self, after: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """The days taken off that touch (after, until], each as (after its first instant, its last]."""
        zone = self.judged_in
        for day in self._days_off(local_date(zone, after), local_date(zone, until)):
            yield start_of_day(zone, day) - _TICK, end_of_day(zone, day) - _TICK

    def _days_off(self, first: date, last: date) -> Iterator[date]:
        if isinstance(self.days, Dates):
            yield from self.days.within(first, last)
            return
        zone = self.days.zone or self.judged_in
        end = end_of_day(zone, last) - _TICK
        due = self.days.first_until(start_of_day(zone, first) - _TICK, end)
        while due is not None:
            yield (day := local_date(zone, due))
            due = self.days.first_until(max(due, end_of_day(zone, day) - _TICK), end)

    def text_within(self, zone: str | None) -> str:
        days = self.days.text if isinstance(self.days, Dates) else _nested(self.days, zone)
        own = f" in {self.tz}" if self.tz and self.tz != zone else ""
        return f"{self.base.text_within(zone)} except {days}{own}"

    def phrase(self) -> str:
        # After several timings in a row, 'except' would seem to belong to the last alone.
        joiner = ", but never" if isinstance(self.base, Or) else " except"
        return f"{self.base.phrase()}{joiner} {self.days.days_phrase()}"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        return self.base.remarks(after, n)


def _is_due_within(days: Timing, after: datetime, until: datetime) -> bool:
    """Whether anything is due in (after, until]; of several timings, the first that is says so."""
    if isinstance(days, Or):
        return any(_is_due_within(part, after, until) for part in days.parts)
    if isinstance(days, Except):
        return days.first_until(after, until) is not None
    due = following(days, after)
    return due is not None and due <= until


def _nearest_of(parts: Iterable[Timing], t: datetime, end: datetime | None, way: int) -> datetime | None:
    """The due time of these parts that is next to `t`, after it up to `end` or at it and before it down to `end`."""
    found = (_next_to(part, t, end, way) for part in parts)
    known = (due for due in found if due is not None)
    return min(known, default=None) if way > 0 else max(known, default=None)


def _next_to(part: Timing, t: datetime, end: datetime | None, way: int) -> datetime | None:
    if isinstance(part, Except):
        if way > 0:
            return part.next_after(t) if end is None else part.first_until(t, end)
        return part.previous(t) if end is None else part.last_since(t, end)
    due = following(part, t) if way > 0 else preceding(part, t)
    return due if due is None or end is None or (end - due) * way >= NO_JITTER else None


def _days_away(t: datetime, days: int) -> datetime | None:
    try:
        return t + timedelta(days=days)
    except OverflowError:
        return None


def _day_off(levels: list[Except], due: datetime) -> tuple[str, date] | None:
    """The zone and day for which a due time is taken off; None if it stays."""
    for level in levels:
        day = local_date(level.judged_in, due)
        count_step()
        if level._covers(day):
            return level.judged_in, day
    return None


def _nested(part: Timing, zone: str | None) -> str:
    text = part.text_within(zone)
    return f"({text})" if isinstance(part, _Combination) else text


def _count_grids(grids: list[Every], after: datetime, until: datetime) -> int | None:
    """How many instants in (after, until] these grids hold together; None when that is not to be had cheaply."""
    firsts = [(part.next_after(after), part.interval // _TICK) for part in grids]
    known = [Grid(microseconds_of(first), step) for first, step in firsts if first is not None]
    return count_union(known, microseconds_of(until))


def _count_apart(counted: list[tuple[int, Timing]], after: datetime, until: datetime) -> int:
    """How many different instants in (after, until] these parts have, of which each is counted already."""
    counted.sort(key=lambda pair: -pair[0])
    densest, others = counted[0][0], sum(count for count, _ in counted[1:])
    if others * _QUESTION > densest + others and others > _FEW:
        streams = merge(*(part.stream(after, until) for _, part in counted))
        return sum(1 for _ in groupby(streams))
    # The densest part is counted by arithmetic; only the sparser ones are walked, to find coinciding instants.
    alone = 0
    for index, (_, part) in enumerate(counted[1:], start=1):
        due = part.first_until(after, until)
        while due is not None:
            alone += not any(denser.is_due(due) for _, denser in counted[:index])
            due = part.first_until(due, until)
    return densest + alone
