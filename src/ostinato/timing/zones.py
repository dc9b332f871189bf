"""Zones and instants: IANA names, their offsets and their clock changes, in whole seconds since 1970.

The lowest step of a timing: `wallclock.py` asks here which instant a wall time is, everybody asks for names.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ostinato.errors import InvalidInput, TimingError

__all__ = [
    "DAY",
    "Transition",
    "Zone",
    "as_utc",
    "check_aware",
    "check_zone",
    "instant_of",
    "local_date",
    "local_text",
    "local_time",
    "microseconds_of",
    "next_transition",
    "offset_at",
    "seconds_of",
    "shown_zone",
    "start_of_day",
    "stretch_of_day",
    "stretches_of_day",
    "time_of",
    "transitions_between",
    "wall_of",
    "wall_time",
    "zone_info",
]

DAY = 86_400
Zone = str | tzinfo
"""An IANA name, or the ZoneInfo of one."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
# A year's margin at both ends of the calendar, where local time has no datetime any more.
_FIRST_SECOND = (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // _SECOND
_LAST_SECOND = (datetime(9998, 12, 31, tzinfo=UTC) - _EPOCH) // _SECOND
_ALIKE, _SURELY, _AHEAD = 0.8, 0.9, 0.04
"""How like a name must be to be named, to be meant, and how much more so than the next."""


class Transition(NamedTuple):
    """The instant at which the offset of a zone changes from `before` to `after`."""

    instant: int
    before: int
    after: int

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def walls(self) -> tuple[int, int]:
        """The wall times [first, end) that do not exist (a gap) or exist twice (a fold)."""
        low, high = sorted((self.before, self.after))
        return self.instant + low, self.instant + high


def check_aware(time: datetime, field: str) -> datetime:
    """A datetime as it is; a naive one is refused, since nobody knows which instant it means, and so is anything
    else."""
    is_time = isinstance(time, datetime)
    if not is_time or time.utcoffset() is None:
        wrong = f"{field} has no zone: {time.isoformat()}" if is_time else f"{field} cannot be {time!r}"
        raise InvalidInput(
            wrong, field=field, hint="pass an aware datetime, such as datetime(2026, 12, 24, 18, tzinfo=UTC)"
        )
    return time


def as_utc(time: datetime, field: str = "t") -> datetime:
    """The same instant in UTC."""
    check_aware(time, field)
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def seconds_of(time: datetime) -> int:
    """Whole seconds since 1970 of an aware datetime, rounded down."""
    return (time - _EPOCH) // _SECOND


def microseconds_of(time: datetime) -> int:
    """Microseconds since 1970 of an aware datetime."""
    return (time - _EPOCH) // _MICROSECOND


def time_of(instant: int) -> datetime:
    """The aware UTC datetime of whole seconds since 1970."""
    return _EPOCH + timedelta(seconds=instant)


def wall_of(naive: datetime) -> int:
    """A wall time as whole seconds since 1970-01-01T00:00 on the same wall."""
    return (naive - _WALL_EPOCH) // _SECOND


def wall_time(wall: int) -> datetime:
    """The naive datetime of a wall time in seconds."""
    return _WALL_EPOCH + timedelta(seconds=wall)


@lru_cache(maxsize=1024)
def check_zone(zone: Zone) -> str:
    """The IANA name as it is spelled, whatever the case it was typed in; an unknown one gets suggestions.

    Its file is read here and then kept: whatever has passed can be computed.
    """
    name = getattr(zone, "key", None) if isinstance(zone, ZoneInfo) else "UTC" if zone is UTC else zone
    if not isinstance(name, str):
        raise TimingError(f"a zone is an IANA name such as Europe/Berlin, or a ZoneInfo with one, not {zone!r}")
    if name in ("UTC", "utc"):
        return "UTC"
    spelled = _spelled_zones()
    if name.lower() in spelled:
        return zone_info(spelled[name.lower()]).key
    raise _unknown_zone(name, spelled)


@lru_cache(maxsize=1)
def _spelled_zones() -> dict[str, str]:
    """All names by their lower case; found once, since it walks through the zone files."""
    return {zone.lower(): zone for zone in available_timezones()}


def _unknown_zone(name: str, spelled: dict[str, str]) -> TimingError:
    """Names the zones that are spelled alike; the one that is meant is the hint, if it is clear."""
    wanted = name.strip().lower().replace(" ", "_")
    matcher = SequenceMatcher(None, b=wanted)
    # A number is an offset, and 'Etc/GMT+2' means -2. People type the city alone: compare with the last part, too.
    known = [] if any(map(str.isdigit, name)) else spelled
    judged = [(max(_likeness(matcher, zone), _likeness(matcher, zone.rpartition("/")[2])), zone) for zone in known]
    best = sorted(((alike, zone) for alike, zone in judged if alike >= _ALIKE), reverse=True)[:3]
    is_clear = bool(best) and best[0][0] >= _SURELY and (len(best) == 1 or best[0][0] - best[1][0] >= _AHEAD)
    similar = [spelled[zone] for _, zone in best]
    message = f"did you mean {' or '.join(similar)}?" if similar else "give an IANA name such as Europe/Berlin"
    return TimingError(f"unknown zone {name!r}: {message}", text=name, hint=similar[0] if is_clear else "")


def _likeness(matcher: SequenceMatcher[str], known: str) -> float:
    matcher.set_seq1(known)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE else 0.0


@lru_cache(maxsize=1024)
def zone_info(name: str) -> ZoneInfo:
    """The zone of this name; one whose file is missing or damaged is told with the fix."""
    try:
        return _read_zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        why = error.args[0] if isinstance(error, ZoneInfoNotFoundError) else error
        raise TimingError(
            f"zone {name!r} cannot be read on this machine: {why}; install or repair its zone files (the package "
            "tzdata of the system, or of PyPI)"
        ) from error


def shown_zone(name: str) -> tzinfo:
    """The zone in which people are told a time; UTC, where it cannot be read: whoever tells them must go on."""
    try:
        return zone_info(name)
    except TimingError:
        return UTC


def _read_zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def offset_at(zone: str, instant: int) -> int:
    """Seconds that the zone's wall clock is ahead of UTC at this instant."""
    if zone == "UTC":
        return 0
    offset = time_of(instant).astimezone(zone_info(zone)).utcoffset()
    return offset // _SECOND if offset is not None else 0


def instant_of(zone: str, wall: int) -> int:
    """The instant of a wall time: in a gap the end of the gap, in a fold the first of the two."""
    if zone == "UTC":
        return wall
    local = wall_time(wall).replace(tzinfo=zone_info(zone))
    first, second = local.utcoffset(), local.replace(fold=1).utcoffset()
    assert first is not None
    assert second is not None
    instant = wall - first // _SECOND
    if first >= second:
        return instant
    # Python's reading of a wall time inside a gap lies at most the gap's length after its end.
    return transitions_between(zone, instant - 2 * DAY, instant)[-1].instant


def transitions_between(zone: str, after: int, until: int) -> list[Transition]:
    """The clock changes in (after, until], oldest first."""
    return list(_changes(zone, after, until))


def next_transition(zone: str, after: int, until: int) -> Transition | None:
    """The first clock change in (after, until]."""
    return next(_changes(zone, after, until), None)


def _changes(zone: str, after: int, until: int) -> Iterator[Transition]:
    if zone == "UTC" or until <= after:
        return
    first = time_of(max(after, _FIRST_SECOND)).year
    last = time_of(min(until, _LAST_SECOND)).year
    for year in range(first, last + 1):
        for change in _transitions_of_year(zone, year):
            if after < change.instant <= until:
                yield change


@lru_cache(maxsize=4096)
def _transitions_of_year(zone: str, year: int) -> tuple[Transition, ...]:
    start = seconds_of(datetime(year, 1, 1, tzinfo=UTC)) - 1
    end = seconds_of(datetime(year + 1, 1, 1, tzinfo=UTC)) - 1
    found = []
    before = offset_at(zone, start)
    while start < end:
        step = min(start + DAY, end)
        after = offset_at(zone, step)
        if after != before:
            found.append(Transition(_change_within(zone, start, step), before, after))
        start, before = step, after
    return tuple(found)


def _change_within(zone: str, low: int, high: int) -> int:
    """The first second in (low, high] that has not the offset of `low`, by halving."""
    before = offset_at(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def local_date(zone: str, time: datetime) -> date:
    """The date on the wall of the zone at this instant."""
    return time.astimezone(zone_info(zone)).date()


def local_time(zone: str, time: datetime) -> datetime:
    """The same instant with the wall clock and the offset of the zone."""
    return time.astimezone(zone_info(zone))


def local_text(zone: str, time: datetime) -> str:
    """An instant in a sentence, by the wall clock of the zone: `2026-03-01 09:00:00 +01:00`, or `… UTC`."""
    local = local_time(zone, time)
    return f"{local:%Y-%m-%d %H:%M:%S} {'UTC' if zone == 'UTC' else local.isoformat()[-6:]}"


def start_of_day(zone: str, day: date) -> datetime:
    """The first instant of a local day; it is not midnight where a gap swallows midnight."""
    return time_of(instant_of(zone, wall_of(datetime(day.year, day.month, day.day))))


@lru_cache(maxsize=4096)
def stretches_of_day(zone: str, day: date) -> tuple[tuple[datetime, datetime], ...]:
    """The stretches of time [begin, end) in which the wall shows this day: usually one.

    Two where a clock goes back over midnight, and none where a day is left out.
    """
    midnight = wall_of(datetime(day.year, day.month, day.day))
    begin, last = midnight - 2 * DAY, midnight + 3 * DAY
    changes = transitions_between(zone, begin, last)
    offset = offset_at(zone, begin)
    found: list[tuple[int, int]] = []
    for end, following in [*((change.instant, change.after) for change in changes), (last, 0)]:
        first, stop = max(begin, midnight - offset), min(end, midnight + DAY - offset)
        if first < stop:
            joined = bool(found) and found[-1][1] == first
            found.append((found.pop()[0] if joined else first, stop))
        begin, offset = end, following
    return tuple((time_of(first), time_of(stop)) for first, stop in found)


def stretch_of_day(zone: str, day: date, time: datetime) -> tuple[datetime, datetime]:
    """The stretch of a local day in which an instant of it lies."""
    return next(stretch for stretch in stretches_of_day(zone, day) if stretch[0] <= time < stretch[1])
