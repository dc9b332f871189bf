"""How many different instants several timings have together, by arithmetic and not by walking over all of them.

`combine.py` counts an `or` with it. What reads a wall clock is counted by days: the seconds of a day as the bits of a
number, which are joined with `|`; `grids.py` counts what is due on grids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from ostinato.timing.base import Timing
from ostinato.timing.every import Every
from ostinato.timing.grids import Grid, count_union
from ostinato.timing.pattern import DayTimes, TimesOfDay, WallPattern
from ostinato.timing.wallclock import WallClockTiming
from ostinato.timing.zones import DAY, microseconds_of, offset_at, seconds_of, time_of, transitions_between

__all__ = ["count_together", "few_beside_one"]

_TICK, _EPOCH = timedelta(microseconds=1), datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
# Asking whether one instant is due costs as much as streaming so many; a few are asked in any case.
_QUESTION, _FEW = 30, 500
_ALL_DAY = (1 << DAY) - 1
_MOST_KINDS = 64
"""So many kinds of days are remembered while one counts, each of which takes 10 kB."""


def few_beside_one(parts: Sequence[Timing], after: datetime, until: datetime) -> bool:
    """Whether so few instants stand beside those of the densest part that they are asked for one by one."""
    counts = sorted(part.count_between(after, until) for part in parts)
    return sum(counts[:-1]) <= _FEW


def count_together(parts: Sequence[Timing], after: datetime, until: datetime) -> int:
    """How many different instants in (after, until] these parts have; a grid among them has its anchor."""
    # Those that are due at other fractions of a second never meet.
    families: dict[int | None, list[Timing]] = {}
    for part in parts:
        families.setdefault(_fraction(part), []).append(part)
    finer = families.pop(None, [])
    grids = [part for part in finer if isinstance(part, Every) and isinstance(part.anchor, datetime)]
    if len(grids) < len(finer):
        return _count_family(parts, after, until)
    total = _count_family(grids, after, until)
    for fraction, family in families.items():
        # Of grids that are finer than a second, only these instants can meet those of the family.
        meeting = [found for grid in grids if (found := _once_a_second(grid, fraction)) is not None]
        total += _count_family([*family, *meeting], after, until) - _count_family(meeting, after, until)
    return total


def _once_a_second(grid: Every, microsecond: int | None) -> Every | None:
    """The instants of a grid at this microsecond of a second, which are a grid again."""
    assert isinstance(grid.anchor, datetime)
    begin = microseconds_of(grid.anchor)
    step = grid.interval // _TICK
    second = begin - begin % 1_000_000 + (microsecond or 0)
    found = Grid(begin + step, step).meet(Grid(second, 1_000_000))
    if found is None:
        return None
    return Every(_TICK * found.step, anchor=_EPOCH + _TICK * (found.first - found.step))


def _count_family(parts: Sequence[Timing], after: datetime, until: datetime) -> int:
    if not parts:
        return 0
    groups = [_Group((part,), part.count_between(after, until)) for part in parts]
    if sum(sorted(group.number for group in groups)[:-1]) > _FEW:
        groups = _gathered(parts, after, until)
    return _count_apart(groups, after, until)


def _fraction(part: Timing) -> int | None:
    """At which microsecond of a second it is due; None where there are several, or nobody knows."""
    if isinstance(part, WallClockTiming):
        return 0
    if isinstance(part, Every) and isinstance(part.anchor, datetime) and not part.interval % _SECOND:
        return part.anchor.microsecond
    return None


class _Group(NamedTuple):
    """Timings that were counted together."""

    parts: Sequence[Timing]
    number: int

    def is_due(self, t: datetime) -> bool:
        return any(part.is_due(t) for part in self.parts)

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        return _merged(self.parts, after, until)


def _merged(parts: Iterable[Timing], after: datetime, until: datetime) -> Iterator[int]:
    """All their instants in order, each once."""
    return (due for due, _ in groupby(merge(*(part.stream(after, until) for part in parts))))


def _gathered(parts: Sequence[Timing], after: datetime, until: datetime) -> list[_Group]:
    """The parts in groups, each of which can be counted by arithmetic."""
    daily = [part for part in parts if _is_daily(part, after)]
    if all(isinstance(part, Every) for part in daily):
        daily = []  # grids are counted among themselves
    grids = [part for part in parts if isinstance(part, Every) and part not in daily]
    others = [part for part in parts if part not in daily and part not in grids]
    groups = [_Group((part,), part.count_between(after, until)) for part in others]
    if daily:
        groups.append(_Group(daily, _count_daily(daily, after, until)))
    counted = _count_grids(grids, after, until) if grids else None
    if counted is not None:
        groups.append(_Group(grids, counted))
    else:
        groups += [_Group((part,), part.count_between(after, until)) for part in grids]
    return groups


def _count_grids(grids: Sequence[Every], after: datetime, until: datetime) -> int | None:
    """How many instants in (after, until] these grids hold together; None when that is not to be had cheaply."""
    firsts = [(part.next_after(after), part.interval // _TICK) for part in grids]
    known = [Grid(microseconds_of(first), step) for first, step in firsts if first is not None]
    return count_union(known, microseconds_of(until))


def _count_apart(groups: list[_Group], after: datetime, until: datetime) -> int:
    """How many different instants in (after, until] these groups have."""
    groups.sort(key=lambda group: -group.number)
    densest, others = groups[0].number, sum(group.number for group in groups[1:])
    if others * _QUESTION > densest + others and others > _FEW:
        return sum(1 for _ in groupby(merge(*(group.stream(after, until) for group in groups))))
    # The densest part is counted by arithmetic; only the sparser ones are walked, to find coinciding instants.
    alone = 0
    for index, group in enumerate(groups[1:], start=1):
        for earlier, part in enumerate(group.parts):
            denser = [*groups[:index], _Group(group.parts[:earlier], 0)]
            due = part.first_until(after, until)
            while due is not None:
                alone += not any(one.is_due(due) for one in denser)
                due = part.first_until(due, until)
    return densest + alone


def _is_daily(part: Timing, after: datetime) -> bool:
    """Whether it can be counted by days: it is due at whole seconds, and a grid has begun."""
    if isinstance(part, Every) and isinstance(part.anchor, datetime) and part.anchor > after:
        return False
    return _fraction(part) == 0


def _count_daily(parts: Sequence[Timing], after: datetime, until: datetime) -> int:
    """The quiet stretches between the clock changes by days; what a clock change touches, by walking over it."""
    position, end = seconds_of(after), seconds_of(until)
    zones = {part.zone or "UTC" for part in parts if isinstance(part, WallClockTiming)}
    touched = sorted(
        (change.instant - 1, change.instant + abs(change.after - change.before))
        for zone in zones
        for change in transitions_between(zone, position - 2 * DAY, end)
    )
    total = 0
    for first, last in touched:
        if first > position:
            total += _count_quiet(parts, position, first)
            position = first
        if last > position:
            stop = min(last, end)
            total += sum(1 for _ in _merged(parts, time_of(position), time_of(stop)))
            position = stop
    return total + _count_quiet(parts, position, end)


def _count_quiet(parts: Sequence[Timing], after: int, until: int) -> int:
    """The same for whole seconds in (after, until] between which no clock changes, a day of UTC at a time."""
    if until <= after:
        return 0
    days = [_DaysOf(part, after) for part in parts]
    known: dict[tuple[int, ...], int] = {}
    total = 0
    first_day, last_day = (after + 1) // DAY, until // DAY
    for day in range(first_day, last_day + 1):
        kind = tuple(one.kind(day) for one in days)
        bits = known.get(kind)
        if bits is None:
            bits = 0
            for one, its_kind in zip(days, kind, strict=True):
                bits |= one.bits(its_kind)
            if len(known) < _MOST_KINDS:
                known[kind] = bits
        if day == last_day:
            bits &= (1 << (until - day * DAY + 1)) - 1
        if day == first_day:
            bits >>= after + 1 - day * DAY
        total += bits.bit_count()
    return total


class _DaysOf:
    """The seconds of a day of UTC at which one part is due, as bits, while its offset is that of an instant."""

    def __init__(self, part: Timing, instant: int) -> None:
        self.pattern: WallPattern | None = None
        if isinstance(part, WallClockTiming):
            self.pattern = part.pattern
            # The local day in which one of UTC begins, and how many seconds of it are past by then.
            self.ahead, self.begin = divmod(offset_at(part.zone or "UTC", instant), DAY)
        else:
            assert isinstance(part, Every)
            assert isinstance(part.anchor, datetime)
            self.anchor, self.step = seconds_of(part.anchor), part.interval // _SECOND

    def kind(self, day: int) -> int:
        """Days of one kind have the same bits: by the first second of a grid, or by which of both local days match."""
        if self.pattern is None:
            return (self.anchor - day * DAY) % self.step
        local = day + self.ahead
        return self.pattern.matches_day(local) + 2 * (self.begin > 0 and self.pattern.matches_day(local + 1))

    def bits(self, kind: int) -> int:
        if self.pattern is None:
            return _grid_bits(kind, self.step)
        of_day = _bits_of(self.pattern.times)
        today = of_day >> self.begin if kind & 1 else 0
        tomorrow = of_day << (DAY - self.begin) if kind & 2 else 0
        return (today | tomorrow) & _ALL_DAY


@lru_cache(maxsize=64)
def _bits_of(times: DayTimes) -> int:
    if not isinstance(times, TimesOfDay):
        return sum(1 << times.select(rank) for rank in range(times.per_day))
    minute = sum(1 << second for second in times.seconds)
    hour = sum(minute << 60 * number for number in times.minutes)
    return sum(hour << 3600 * number for number in times.hours)


@lru_cache(maxsize=64)
def _grid_bits(first: int, step: int) -> int:
    return sum(1 << second for second in range(first, DAY, step))
