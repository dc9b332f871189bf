"""What comes: the soonest due times, and how many each of the next 24 hours has, by arithmetic and within bounds.

`overview.py` and `timeline.py` ask; the store tells which schedules are due, their timings tell the rest.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from ostinato.clock import MICROSECOND, SECOND, Micros, from_micros, to_micros
from ostinato.errors import OstinatoError
from ostinato.models.schedule import DueSchedule, Schedule
from ostinato.stores.base import Store
from ostinato.timing import Timing, parse_timing
from ostinato.timing.searching import at_most
from ostinato.timing.text_cache import TextCache

__all__ = [
    "DueTime",
    "Forecast",
    "Hours",
    "ScheduleForecast",
    "coming_until",
    "count_due",
    "first_due",
    "following_due",
    "of_schedule",
    "soonest",
    "soonest_of",
    "times_from",
]

HOUR: Micros = 3_600 * SECOND
_HOURS = 24
_MOST = 3_000
"""So many schedules are counted, those that are due first."""
_FRESH: Micros = 10 * SECOND
"""So long what was counted is told again."""
_BUDGET = 0.04
"""Seconds that one look may spend on counting; what it did not come to is estimated, and counted by the next."""
_BREATH = 50
_OVERDUE = 300
_DAYS = 20_000
"""No more days are looked at for the next times of a schedule: about a second, for what nobody means."""
_FEW = 48


Pattern = tuple[str, str, Micros | None, str | None]
"""What due times depend on: text, zone, and the anchor and the name where they have a part in it."""


@dataclass(frozen=True, slots=True)
class DueTime:
    """A schedule and when it is due."""

    schedule: str
    at: datetime
    zone: str
    """Of the schedule."""


@dataclass(frozen=True, slots=True)
class Hours:
    """How many due times each hour has, from the one that it is; at least so many, if estimated."""

    counts: Sequence[tuple[datetime, int]]
    estimated: bool


@dataclass(slots=True)
class ScheduleForecast:
    """What is known of a schedule's future. Not frozen: it is made by the thousand."""

    name: str
    next_at: Micros
    remaining: int | None
    times: Timing | None
    """How it goes on from there; None if nothing but the next due time is known."""
    pattern: Pattern

    @property
    def zone(self) -> str:
        return self.pattern[1]


def of_schedule(schedule: Schedule) -> ScheduleForecast | None:
    """What comes of a schedule; None if it is not due."""
    if schedule.next_run_at is None:
        return None
    times, pattern = _anchored(schedule.name, schedule.stored_timing, schedule.zone, to_micros(schedule.anchor_at))
    return ScheduleForecast(schedule.name, to_micros(schedule.next_run_at), schedule.remaining, times, pattern)


def _of_due(due: DueSchedule) -> ScheduleForecast:
    times, pattern = _anchored(due.name, due.timing, due.zone, due.anchor_at)
    # A probe: whether more comes is known once it has succeeded.
    return ScheduleForecast(due.name, due.next_at, due.remaining, None if due.broken else times, pattern)


def _anchored(name: str, timing: str, zone: str, anchor_at: Micros) -> tuple[Timing | None, Pattern]:
    """A timing with its grid, and what its due times depend on: the anchor only where a grid begins there."""
    found = _parsed(timing, zone)
    return _of_pattern(timing, zone, anchor_at, name if found is not None and found.wants_name else None)


def _with_pattern(timing: str, zone: str, anchor_at: Micros, name: str | None) -> tuple[Timing | None, Pattern]:
    found = _parsed(timing, zone)
    if found is None:
        return None, (timing, zone, None, None)
    found = found if name is None else found.named(name)
    anchored = found.anchored(from_micros(anchor_at))
    return anchored, (timing, zone, None if anchored is found else anchor_at, name)


def _read(timing: str, zone: str) -> Timing | None:
    try:
        found = parse_timing(timing, tz=zone, stored=True)
    except OstinatoError:
        return None  # the next tick will say that it is broken
    return None if found.after_finish is not None else found


_of_pattern = TextCache(_with_pattern, 16_384)
_parsed = TextCache(_read, 16_384)


def times_from(schedule: Schedule, first: datetime, n: int) -> list[datetime]:
    """The first of so many due times and those that follow, as the engine computes them."""
    timing = schedule.anchored_timing
    times = [first][:n]
    with at_most(_DAYS + n):
        while len(times) < n and timing.after_finish is None:
            following = timing.next_after(times[-1])
            if following is None:
                break
            times.append(following)
    return times


async def coming_until(store: Store, until: Micros) -> tuple[list[ScheduleForecast], bool]:
    """All schedules that are due by then, those that are first; and whether there are more than are read."""
    found = (await store.schedules.due_schedules(until, _MOST + 1, shown=True)).schedules
    return [_of_due(due) for due in found[:_MOST]], len(found) > _MOST


async def soonest(
    store: Store, now: Micros, until: Micros, limit: int, *, since: Micros | None = None
) -> tuple[list[DueTime], bool]:
    """The first due times in (since, until], of all schedules; and whether there may be more of them."""
    asked = max(limit + 1, _OVERDUE)
    while True:
        schedules = (await store.schedules.due_schedules(until, asked, shown=True)).schedules
        times, more = await soonest_of(map(_of_due, schedules), now, until, limit, since=since)
        if len(schedules) < asked:
            return times, more
        # Who was not read is due no earlier than the last who was: what was found up to there is all there is.
        if len(times) == limit and times[-1].at <= from_micros(schedules[-1].next_at):
            return times, True
        if asked >= _MOST:
            return times, True
        # Overdue schedules stand in front while no engine runs, and those that are due before the span begins.
        asked = _MOST


async def soonest_of(
    coming: Iterable[ScheduleForecast], now: Micros, until: Micros, limit: int, *, since: Micros | None = None
) -> tuple[list[DueTime], bool]:
    """The first due times of these schedules in (since, until], and whether there are more."""
    begin = now if since is None else max(now, since)
    heap: list[tuple[Micros, int, ScheduleForecast, int | None]] = []
    for number, one in enumerate(coming):
        first = first_due(one, now, begin)
        if first is not None and first[0] <= until:
            heap.append((first[0], number, one, first[1]))
        if number % _BREATH == 0:
            await asyncio.sleep(0)  # an engine on this loop must not start late because of us
    heapq.heapify(heap)
    times: list[DueTime] = []
    while heap and len(times) <= limit:
        at, number, one, left = heap[0]
        times.append(DueTime(one.name, from_micros(at), one.zone))
        left = None if left is None else left - 1
        following = None if left == 0 else following_due(one, at)
        if following is not None and following <= until:
            heapq.heapreplace(heap, (following, number, one, left))
        else:
            heapq.heappop(heap)
        if len(times) % _BREATH == 0:
            await asyncio.sleep(0)
    return times[:limit], len(times) > limit


def first_due(one: ScheduleForecast, now: Micros, begin: Micros) -> tuple[Micros, int | None] | None:
    """The first due time after `begin`, and how many remain with it; what is due before it uses them up."""
    at: Micros | None = one.next_at
    left = one.remaining
    if one.next_at <= now:
        # However many are overdue, they are made up for by one.
        at, left = following_due(one, now), None if left is None else left - 1
    if at is not None and at <= begin:
        if left is not None and one.times is not None:
            left -= count_due(one.times, at, begin + 1)
        at = following_due(one, begin)
    return None if at is None or (left is not None and left <= 0) else (at, left)


def following_due(one: ScheduleForecast, at: Micros) -> Micros | None:
    """Its next due time after `at`, by its timing."""
    following = None if one.times is None else one.times.next_after(from_micros(at))
    return None if following is None else to_micros(following)


class Forecast:
    """Counts the due times of the next hours. What it has counted of an hour stays true, so it remembers that."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at: Micros | None = None
        self._coming: Sequence[ScheduleForecast] = ()
        self._is_cut = False
        self._beyond: Mapping[Micros, int] = {}
        """The next due times of schedules that were not read, by the hour."""
        self._told: Hours | None = None
        self._counted: dict[Pattern, dict[Micros, int]] = {}

    async def hours(self, now: Micros) -> Hours:
        """How many due times the next 24 hours have."""
        first = now // HOUR * HOUR
        end = first + _HOURS * HOUR
        if self._read_at is None or not 0 <= now - self._read_at < _FRESH or self._read_at < first:
            await self._read(now, end)
        elif self._told is not None:
            return self._told
        counted = _Sum(now, end)
        budget = _BUDGET
        for index, one in enumerate(self._coming):
            hours = self._counted.setdefault(one.pattern, {})
            if budget > 0:
                budget -= _complete(one, hours, counted.first_whole(one), end)
            counted.add(one, hours)
            if index % _BREATH == 0:
                await asyncio.sleep(0)  # an engine on this loop must not start late because of us
        counts = [(from_micros(at), count + self._beyond.get(at, 0)) for at, count in counted.total().items()]
        told = Hours(counts, self._is_cut or not counted.is_whole)
        # What time was too short for is counted by the next look.
        self._told = told if counted.is_whole else None
        return told

    async def _read(self, now: Micros, end: Micros) -> None:
        """Which schedules are due, and what of the hours that were counted is still ahead."""
        coming, is_cut = await coming_until(self._store, end - 1)
        beyond = await self._count_beyond(coming, now, end) if is_cut else {}
        # All at once: somebody else may ask meanwhile.
        self._read_at, self._told = now, None
        self._coming, self._is_cut, self._beyond = coming, is_cut, beyond
        known = {one.pattern for one in self._coming}
        self._counted = {
            key: {hour: count for hour, count in hours.items() if hour >= now // HOUR * HOUR}
            for key, hours in self._counted.items()
            if key in known
        }

    async def _count_beyond(self, read: Sequence[ScheduleForecast], now: Micros, end: Micros) -> Mapping[Micros, int]:
        first = now // HOUR * HOUR
        counts = await self._store.schedules.count_due((now + 1, *range(first + HOUR, end + 1, HOUR)))
        of_all = Counter(dict(zip(range(first, end, HOUR), counts, strict=True)))
        return of_all - Counter(one.next_at // HOUR * HOUR for one in read if one.next_at > now)


class _Sum:
    """The due times of many schedules, by the hour. Those that have the same ones are counted together."""

    def __init__(self, now: Micros, end: Micros) -> None:
        self._now = now
        self._end = end
        self._this = now // HOUR * HOUR
        self._counts = dict.fromkeys(range(self._this, end, HOUR), 0)
        self._alike: dict[tuple[Pattern, Micros], tuple[Mapping[Micros, int], int]] = {}
        self._rest: dict[tuple[Pattern, Micros], int] = {}
        self.is_whole = True
        """Whether the due times of all of them were counted."""

    def first_whole(self, one: ScheduleForecast) -> Micros:
        """The first hour of which all due times count: what is due after this hour is due first in its own."""
        return max(one.next_at // HOUR * HOUR, self._this + HOUR)

    def add(self, one: ScheduleForecast, hours: Mapping[Micros, int]) -> None:
        """Add a schedule, whose whole hours are counted; if they are not, only its next due time."""
        whole = self.first_whole(one)
        if one.times is None or not _has(hours, whole, self._end):
            self._counts[max(one.next_at, self._now) // HOUR * HOUR] += one.next_at > self._now
            self.is_whole &= one.times is None
            return
        left, begin = one.remaining, max(one.next_at, self._now + 1)
        if begin < whole:
            number = self._rest.get((one.pattern, begin))
            if number is None:
                number = self._rest[one.pattern, begin] = count_due(one.times, begin, whole)
            number, left = _take(number, left)
            self._counts[self._this] += number
        if left is None:
            _, others = self._alike.get((one.pattern, whole), (hours, 0))
            self._alike[one.pattern, whole] = hours, others + 1
            return
        for at in range(whole, self._end, HOUR):
            number, left = _take(hours[at], left)
            self._counts[at] += number

    def total(self) -> dict[Micros, int]:
        """How many each hour has."""
        for (_, whole), (hours, schedules) in self._alike.items():
            for at in range(whole, self._end, HOUR):
                self._counts[at] += schedules * hours[at]
        return self._counts


def _take(number: int, left: int | None) -> tuple[int, int | None]:
    """So many of what is left, and what is left then."""
    if left is None:
        return number, None
    taken = max(0, min(number, left))
    return taken, left - taken


def _has(hours: Mapping[Micros, int], begin: Micros, end: Micros) -> bool:
    """Whether all of these hours are counted."""
    return begin >= end or (begin in hours and end - HOUR in hours)


def _complete(one: ScheduleForecast, hours: dict[Micros, int], begin: Micros, end: Micros) -> float:
    """Count the hours of a schedule that nobody has counted; answers how many seconds of work that was."""
    if one.times is None or _has(hours, begin, end):
        return 0
    started = time.thread_time()
    _count_hours(one.times, hours, begin, end)
    return time.thread_time() - started


def _count_hours(timing: Timing, hours: dict[Micros, int], begin: Micros, end: Micros) -> None:
    """Count what is not counted yet of these hours: a few due times are walked over, many are counted by the hour."""
    missing = dict.fromkeys([at for at in range(begin, end, HOUR) if at not in hours], 0)
    if not missing:
        return
    first, last = from_micros(min(missing)) - MICROSECOND, from_micros(max(missing) + HOUR) - MICROSECOND
    times = list(islice(timing.stream(first, last), _FEW + 1))
    if len(times) <= _FEW:
        for at in times:
            if (hour := at // HOUR * HOUR) in missing:
                missing[hour] += 1
    else:
        missing = {at: count_due(timing, at, at + HOUR) for at in missing}
    hours.update(missing)


def count_due(timing: Timing, begin: Micros, end: Micros) -> int:
    """How many due times are in [begin, end)."""
    return timing.count_between(from_micros(begin) - MICROSECOND, from_micros(end) - MICROSECOND)
