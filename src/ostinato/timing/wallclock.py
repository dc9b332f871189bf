"""From wall times to instants: what a clock change does to a pattern, and the base of all wall-clock timings.

Above `pattern.py` and `zones.py`; `calendar.py` and `cron.py` only supply a pattern and the words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ostinato.timing.base import Timing
from ostinato.timing.explain import change_remark
from ostinato.timing.pattern import WallPattern
from ostinato.timing.zones import (
    DAY,
    Zone,
    check_zone,
    instant_of,
    next_transition,
    offset_at,
    seconds_of,
    time_of,
    transitions_between,
)

__all__ = ["WallClockTiming"]

_REMARK_HORIZON = timedelta(days=400)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class WallClockTiming(Timing):
    """A timing that reads a wall clock.

    Usually every wall time is due once: in a gap at its end, in a fold the first time. A timing with
    `follows_clock` (cron with wildcards) is due whenever the clock shows a match: never in a gap, twice in a fold.
    """

    tz: str | None
    names_zone: bool = field(compare=False)

    @property
    def zone(self) -> str | None:
        return self.tz

    @property
    def owns_zone(self) -> bool:
        return self.names_zone

    def at_home(self) -> Timing:
        return self.replaced(names_zone=False)

    @property
    def wants_zone(self) -> bool:
        return self.tz is None

    @property
    @abstractmethod
    def pattern(self) -> WallPattern: ...

    @property
    def follows_clock(self) -> bool:
        return False

    def in_zone(self, tz: Zone) -> Timing:
        return self.replaced(tz=check_zone(tz)) if self.tz is None else self

    def _next(self, t: datetime) -> datetime | None:
        find = _next_shown if self.follows_clock else _next_once
        found = find(self.pattern, self.tz or "UTC", seconds_of(t))
        return None if found is None else time_of(found)

    def _previous(self, t: datetime) -> datetime | None:
        find = _previous_shown if self.follows_clock else _previous_once
        found = find(self.pattern, self.tz or "UTC", seconds_of(t))
        return None if found is None else time_of(found)

    def _count(self, after: datetime, until: datetime) -> int:
        count = _count_shown if self.follows_clock else _count_once
        return count(self.pattern, self.tz or "UTC", seconds_of(after), seconds_of(until))

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        if not self.follows_clock:
            yield from Timing.stream(self, after, until)
            return
        for low, high, offset in _spans(self.tz or "UTC", seconds_of(after), seconds_of(until)):
            yield from ((wall - offset) * 1_000_000 for wall in self.pattern.walls(low + offset, high + offset))

    def _remarks(self, after: datetime, n: int) -> list[str]:
        zone, pattern = self.tz or "UTC", self.pattern
        remarks = []
        for change in transitions_between(zone, seconds_of(after), seconds_of(after + _REMARK_HORIZON)):
            first, end = change.walls
            touched = pattern.count_walls(first - 1, end - 1)
            wall = pattern.next_wall(first - 1)
            # A pattern of every hour keeps its pace in real time when the clock moves by whole hours.
            keeps_pace = self.follows_clock and len(pattern.times.hours) == 24 and (end - first) % 3600 == 0
            if touched and wall is not None and not keeps_pace:
                remarks.append(change_remark(change, zone, wall, touched, self.follows_clock))
        return remarks


def _next_once(pattern: WallPattern, zone: str, t: int) -> int | None:
    wall = pattern.next_wall(t + offset_at(zone, t))
    while wall is not None:
        instant = instant_of(zone, wall)
        # In the second pass of a fold the wall times to come were already due in the first.
        if instant > t:
            return instant
        wall = pattern.next_wall(wall)
    return None


def _last_wall_until(pattern: WallPattern, zone: str, t: int) -> int | None:
    """The last matching wall time whose instant is at or before t."""
    offset = offset_at(zone, t)
    wall = pattern.previous_wall(t + offset)
    changes = transitions_between(zone, t - 2 * DAY, t)
    if changes and not changes[-1].is_gap:
        # In the second pass of a fold, the first pass has already been through wall times that are still to come.
        _, end = changes[-1].walls
        wall = pattern.previous_wall(max(t + offset, end - 1))
    return wall


def _previous_once(pattern: WallPattern, zone: str, t: int) -> int | None:
    wall = _last_wall_until(pattern, zone, t)
    return None if wall is None else instant_of(zone, wall)


def _count_once(pattern: WallPattern, zone: str, after: int, until: int) -> int:
    start, end = _last_wall_until(pattern, zone, after), _last_wall_until(pattern, zone, until)
    if end is None:
        return 0
    if start is None:
        start = after + offset_at(zone, after)
    total = pattern.count_walls(start, end)
    for change in transitions_between(zone, after, until):
        if change.is_gap:
            # All wall times of the gap, and the one at its end, fall on one instant.
            first, gap_end = change.walls
            total -= max(0, pattern.count_walls(first - 1, gap_end) - 1)
    return total


def _next_shown(pattern: WallPattern, zone: str, t: int) -> int | None:
    offset, crossed = offset_at(zone, t), t
    while (wall := pattern.next_wall(t + offset)) is not None:
        instant = wall - offset
        change = next_transition(zone, crossed, instant)
        if change is None:
            return instant
        # The wall time at the change itself may match, so the search begins a second before it.
        t, offset, crossed = change.instant - 1, change.after, change.instant
    return None


def _previous_shown(pattern: WallPattern, zone: str, t: int) -> int | None:
    offset = offset_at(zone, t)
    while (wall := pattern.previous_wall(t + offset)) is not None:
        instant = wall - offset
        changes = transitions_between(zone, instant, t)
        if not changes:
            return instant
        t, offset = changes[-1].instant - 1, changes[-1].before
    return None


def _count_shown(pattern: WallPattern, zone: str, after: int, until: int) -> int:
    return sum(pattern.count_walls(low + offset, high + offset) for low, high, offset in _spans(zone, after, until))


def _spans(zone: str, after: int, until: int) -> Iterator[tuple[int, int, int]]:
    """(after, until] cut at the clock changes, each piece with its offset."""
    offset = offset_at(zone, after)
    for change in transitions_between(zone, after, until):
        yield after, change.instant - 1, offset
        after, offset = change.instant - 1, change.after
    yield after, until, offset
