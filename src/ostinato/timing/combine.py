"""Combinations: `A or B` is due with either, `A except B` is not due on the days of B.

Text is read from left to right: `A or B except C` takes the days of C from both, `A except C or B` only from A.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from heapq import merge
from itertools import groupby

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, Timing, store
from ostinato.timing.combination import Combination, check_combinable, refuse_many, size_of
from ostinato.timing.dates import Dates, DaySet
from ostinato.timing.days_off import days_off_remarks
from ostinato.timing.searching import bounded, count_step, following, preceding
from ostinato.timing.unions import count_together, few_beside_one
from ostinato.timing.zones import Zone, as_utc, check_zone, local_date, stretch_of_day, stretches_of_day

__all__ = ["Except", "Or"]

_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)
# An exception may cover whole decades of due times; past this many days off in a row it is taken to cover all.
_MOST_DAYS_OFF = 3660
_LONGEST_SEARCH = timedelta(days=50 * 366)
# Of several parts that have to be searched, days near by are looked at first: so many of them.
_FIRST_LOOKS = (2, 16, 128, 1024)
# A line of cron may begin like a list of dates.
_LIKE_A_DATE = re.compile(r"\d{1,4}-\d")
_PROBE = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Or(Combination):
    """Due when any part is; an instant on which several are due counts once. Jitter belongs to the parts."""

    parts: tuple[Timing, ...]

    def __init__(self, *parts: Timing, jitter: Duration = NO_JITTER, stable: bool = False) -> None:
        flat: list[Timing] = []
        for part in parts:
            if not isinstance(part, Timing):
                raise TimingError(f"'or' joins timings, not {part!r}")
            flat.extend(part.parts if isinstance(part, Or) else (part,))
        if len(flat) < 2:
            raise TimingError("'or' needs at least two timings")
        refuse_many(sum(map(size_of, flat)))
        check_combinable(*flat)
        self._store(tuple(part.with_jitter(jitter, stable) for part in flat))

    def _store(self, parts: tuple[Timing, ...]) -> None:
        jittered = [part for part in parts if part.jitter]
        longest = max((part.jitter for part in parts), default=NO_JITTER)
        store(self, parts=parts, jitter=longest, stable=bool(jittered) and all(part.stable for part in jittered))
        wants = any(part.wants_zone for part in parts)
        zones = [] if wants else [part.zone for part in parts if part.zone is not None]
        store(self, size=sum(map(size_of, parts)), wants=wants, own_zone=next(iter(zones), None))
        store(self, nameless=any(part.wants_name for part in parts))

    def _timings(self) -> Sequence[Timing]:
        return self.parts

    @property
    def alternatives(self) -> int:
        return len(self.parts)

    def _mapped(self, change: Callable[[Timing], Timing]) -> Or:
        copy = object.__new__(Or)
        copy._store(tuple(change(part) for part in self.parts))
        return copy

    def in_zone(self, tz: Zone) -> Timing:
        return self._mapped(lambda part: part.in_zone(tz))

    def anchored(self, at: datetime) -> Timing:
        return self._mapped(lambda part: part.anchored(at))

    def named(self, name: str) -> Timing:
        return self._mapped(lambda part: part.named(name)) if self.nameless else self

    def with_calendars(self, known: Mapping[str, Dates]) -> Timing:
        return self._mapped(lambda part: part.with_calendars(known))

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
        return _count_parts([part.anchored(after) for part in self.parts], after, until)

    def text_within(self, zone: str | None) -> str:
        first, *rest = self.parts
        return " or ".join([first.text_within(zone), *(_nested(part, zone) for part in rest)])

    def phrase(self) -> str:
        first, *rest = [
            part.phrase() + (f" in {part.zone}" if part.zone and part.zone != self.zone else "") for part in self.parts
        ]
        # Unlike in the text, a bound of the last would seem to be of all.
        bracketed = [
            f"({phrase})" if part.has_bound else phrase for part, phrase in zip(self.parts[1:], rest, strict=True)
        ]
        return ", or ".join([first, *bracketed])

    def _remarks(self, after: datetime, n: int) -> list[str]:
        return list(dict.fromkeys(remark for part in self.parts for remark in part.remarks(after, n)))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Except(Combination):
    """Due when `base` is, but not on the days of `days`: dates, holidays, those of a calendar, or the days on which
    another timing is due.

    A day is a local day of the base's zone; `tz` is only asked where the base has none (`every 5m except 12-25`).
    """

    base: Timing
    days: DaySet | Timing
    tz: str | None
    names_zone: bool = field(compare=False)
    judged_in: str = field(compare=False)

    def __init__(
        self,
        base: Timing,
        days: DaySet | Timing,
        tz: Zone | None = None,
        *,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        if not isinstance(base, Timing) or not isinstance(days, DaySet | Timing):
            raise TimingError("'except' takes days from a timing, as in 'daily 09:00 except 2026-12-25,12-26'")
        refuse_many(size_of(base) + size_of(days))
        check_combinable(base, *([days] if isinstance(days, Timing) else []))
        base = base.with_jitter(jitter, stable)
        if isinstance(days, Timing) and days.jitter:
            # A day has no jitter; who writes it at the end of the text means the whole.
            base = base.with_jitter(days.jitter, days.stable)
            days = days.replaced(jitter=NO_JITTER, stable=False) if not isinstance(days, Combination) else days
        if isinstance(base, Except) and isinstance(base.days, Dates) and isinstance(days, Dates):
            days, tz, base = base.days.merged(days), base.tz or tz, base.base
        names_zone = tz is not None
        if tz is not None:
            tz, base = check_zone(tz), base.in_zone(tz)
            days = days.in_zone(tz) if isinstance(days, Timing) else days
        self._store(base, days, tz, names_zone)
        # Which dates a calendar has is another's word: what it takes may be all of them.
        is_open = self.nameless or bool(self.calendars)
        if not is_open and base.next_after(_PROBE) is not None and self._next(_PROBE) is None:
            raise TimingError(f"{self.text!r} is never due: all its days are excluded")

    def _store(self, base: Timing, days: DaySet | Timing, tz: str | None, names_zone: bool) -> None:
        # A zone of its own only where no part has one to judge the days in.
        if any(part.zone or part.wants_zone for part in (base, days) if isinstance(part, Timing)):
            tz = None
        store(self, names_zone=names_zone and tz is not None)
        store(self, base=base, days=days, tz=tz, jitter=base.jitter, stable=base.stable)
        zone = base.zone or tz or (days.zone if isinstance(days, Timing) else None)
        wants = zone is None or base.wants_zone or (isinstance(days, Timing) and days.wants_zone)
        own = None if wants else zone
        store(self, size=size_of(base) + size_of(days), wants=wants, own_zone=own, judged_in=zone or "UTC")
        store(self, nameless=base.wants_name or (isinstance(days, Timing) and days.wants_name))

    @property
    def calendars(self) -> tuple[str, ...]:
        own = self.days.calendars if isinstance(self.days, DaySet) else ()
        return tuple(dict.fromkeys((*Combination.calendars.__get__(self), *own)))

    @property
    def wants_calendars(self) -> tuple[str, ...]:
        own = self.days.calendars if isinstance(self.days, DaySet) and self.days.wants_dates else ()
        return tuple(dict.fromkeys((*Combination.wants_calendars.__get__(self), *own)))

    @property
    def alternatives(self) -> int:
        return self.base.alternatives

    @property
    def has_bound(self) -> bool:
        return self.base.has_bound

    @property
    def owns_zone(self) -> bool:
        return self.names_zone or Combination.owns_zone.__get__(self)

    def at_home(self) -> Timing:
        return self.replaced(names_zone=False)

    def _timings(self) -> Sequence[Timing]:
        return (self.base, self.days) if isinstance(self.days, Timing) else (self.base,)

    def _mapped(self, change: Callable[[Timing], Timing], tz: str | None) -> Except:
        copy = object.__new__(Except)
        days = change(self.days) if isinstance(self.days, Timing) else self.days
        copy._store(change(self.base), days, tz, self.names_zone)
        return copy

    def in_zone(self, tz: Zone) -> Timing:
        return self._mapped(lambda part: part.in_zone(tz), self.tz or check_zone(tz))

    def anchored(self, at: datetime) -> Timing:
        return self._mapped(lambda part: part.anchored(at), self.tz)

    def named(self, name: str) -> Timing:
        return self._mapped(lambda part: part.named(name), self.tz) if self.nameless else self

    def with_calendars(self, known: Mapping[str, Dates]) -> Timing:
        copy = self._mapped(lambda part: part.with_calendars(known), self.tz)
        if isinstance(copy.days, DaySet):
            store(copy, days=copy.days.with_calendars(known))
        return copy

    def with_jitter(self, jitter: Duration, stable: bool = False) -> Timing:
        copy = object.__new__(Except)
        copy._store(self.base.with_jitter(jitter, stable), self.days, self.tz, self.names_zone)
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
            t = stretch_of_day(*off, due)[1] - _TICK
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
            t = stretch_of_day(*off, due)[0] - _TICK
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
        for first, last in merge(*(level._stretches_off(after, until) for level in levels)):
            total -= base.count_between(max(first, done), min(last, until))
            done = max(done, last)
        return total

    def left_out(self, t: datetime) -> str | None:
        day = local_date(self.judged_in, t)
        if not isinstance(self.days, DaySet) or not self.days.covers(day):
            return self.base.left_out(t)
        begin, end = stretch_of_day(self.judged_in, day, t)
        is_taken = self.base.first_until(begin - _TICK, end - _TICK) is not None
        return f"it leaves out {day}, {self.days.day_phrase(day)}" if is_taken else self.base.left_out(t)

    def _levels(self) -> tuple[Timing, list[Except]]:
        """`A except B except C` in one: A, and whose days are taken off, the last first."""
        levels, root = [self], self.base
        while isinstance(root, Except):
            levels.append(root)
            root = root.base
        return root, levels

    def _covers(self, day: date) -> bool:
        if isinstance(self.days, DaySet):
            return self.days.covers(day)
        zone = self.days.zone or self.judged_in
        count_step()
        stretches = stretches_of_day(zone, day)
        return any(_is_due_within(self.days, begin - _TICK, end - _TICK) for begin, end in stretches)

    def _stretches_off(self, after: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
        """The days taken off around (after, until], each stretch as (before its first instant, its last], in order."""
        zone = self.judged_in
        # Where a clock goes back over midnight, the day of the later instant may be the earlier one.
        days = self._days_off(local_date(zone, after) - _DAY, local_date(zone, until) + _DAY)
        return sorted((begin - _TICK, end - _TICK) for day in days for begin, end in stretches_of_day(zone, day))

    def _days_off(self, first: date, last: date) -> Collection[date]:
        if isinstance(self.days, DaySet):
            return list(self.days.within(first, last))
        zone = self.days.zone or self.judged_in
        # In its own zone a day begins up to a day sooner or later.
        begin, end = (datetime(day.year, day.month, day.day, tzinfo=UTC) for day in (first - _DAY, last + 2 * _DAY))
        found: set[date] = set()
        due = self.days.first_until(begin, end)
        while due is not None:
            found.add(day := local_date(zone, due))
            due = self.days.first_until(stretch_of_day(zone, day, due)[1] - _TICK, end)
        return found

    def text_within(self, zone: str | None) -> str:
        days = self.days.text if isinstance(self.days, DaySet) else _nested(self.days, zone)
        if isinstance(self.days, Timing) and _LIKE_A_DATE.match(days):
            days = f"({days})"
        own = f" in {self.tz}" if self.tz and self.tz != zone else ""
        return f"{self.base.text_within(zone)} except {days}{own}"

    def phrase(self) -> str:
        # After several timings in a row, 'except' would seem to belong to the last alone.
        joiner = ", but never" if self.base.alternatives > 1 else " except"
        return f"{self.base.phrase()}{joiner} {self.days.days_phrase()}"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        own = days_off_remarks(self.base, self.days, self.judged_in, after) if isinstance(self.days, DaySet) else []
        return [*own, *self.base.remarks(after, n)]


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
    return f"({text})" if isinstance(part, Combination) else text


def _count_parts(parts: Sequence[Timing], after: datetime, until: datetime) -> int:
    """How many different instants in (after, until] these parts have. Where there are many, an exception is counted
    with the others in the time that it leaves, and the others alone in its days off."""
    filtered = next((part for part in parts if isinstance(part, Except)), None)
    if filtered is None or few_beside_one(parts, after, until):
        return count_together(parts, after, until)
    rest = [part for part in parts if part is not filtered]
    root, levels = filtered._levels()
    whole = [*(root.parts if isinstance(root, Or) else (root,)), *rest]
    total, done = 0, after
    for first, last in merge(*(level._stretches_off(after, until) for level in levels)):
        begin, end = max(first, done), min(last, until)
        if begin < end:
            total += _count_parts(whole, done, begin) if done < begin else 0
            total += _count_parts(rest, begin, end)
            done = end
    return total + (_count_parts(whole, done, until) if done < until else 0)
