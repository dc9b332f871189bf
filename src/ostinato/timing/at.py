"""`At`: due once, at an instant or at a wall time of a zone.

Text form `at 2026-12-24T18:00`; the relative forms (`in 30m`, `tomorrow 15:00`) become one in `words.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from ostinato.durations import Duration
from ostinato.errors import TimingError
from ostinato.timing.base import NO_JITTER, Timing, jitter_fields, store
from ostinato.timing.explain import change_remark, moment_phrase
from ostinato.timing.zones import (
    DAY,
    Transition,
    Zone,
    as_utc,
    check_zone,
    instant_of,
    seconds_of,
    time_of,
    transitions_between,
    wall_of,
)

__all__ = ["At", "moment_text"]


def moment_text(when: datetime) -> str:
    """ISO 8601 as short as it can be: no seconds where they are zero, `Z` for UTC, no offset for a wall time."""
    if when.microsecond:
        text = when.isoformat(timespec="microseconds" if when.microsecond % 1000 else "milliseconds")
    else:
        text = when.isoformat(timespec="seconds" if when.second else "minutes")
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


@dataclass(frozen=True, slots=True, init=False, repr=False)
class At(Timing):
    """Due once. An aware `when` is that instant; a naive one is the wall time of `tz`.

    A wall time in a gap is due at the first minute that exists, one in a fold the first time.
    """

    when: datetime
    tz: str | None
    names_zone: bool = field(compare=False)

    def __init__(
        self, when: datetime | str, tz: Zone | None = None, *, jitter: Duration = NO_JITTER, stable: bool = False
    ) -> None:
        if isinstance(when, str):
            when = _read_moment(when)
        if not isinstance(when, datetime):
            raise TimingError(f"At needs a datetime or text such as '2026-12-24T18:00', not {when!r}")
        zone = check_zone(tz) if tz is not None else None
        if (offset := when.utcoffset()) is not None:
            # A fixed offset prints; a ZoneInfo would print the same and compare differently in a fold.
            when, zone = when.astimezone(UTC if not offset else timezone(offset)), None
        else:
            when = when.replace(tzinfo=None, fold=0)
        store(self, when=when, tz=zone, names_zone=zone is not None, **jitter_fields(jitter, stable))

    @property
    def instant(self) -> datetime:
        """The one due time, in UTC."""
        if self.when.tzinfo is not None:
            return as_utc(self.when)
        wall, zone = wall_of(self.when), self.tz or "UTC"
        found = time_of(instant_of(zone, wall))
        in_gap = any(change.is_gap and change.walls[0] <= wall < change.walls[1] for change in self._changes())
        return found if in_gap else found + timedelta(microseconds=self.when.microsecond)

    def _changes(self) -> list[Transition]:
        instant = seconds_of(self.when.replace(tzinfo=UTC))
        return transitions_between(self.tz or "UTC", instant - 2 * DAY, instant + 2 * DAY)

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
        return self.tz is None and self.when.tzinfo is None

    def in_zone(self, tz: Zone) -> Timing:
        return self.replaced(tz=check_zone(tz)) if self.wants_zone else self

    def _next(self, t: datetime) -> datetime | None:
        return instant if (instant := self.instant) > t else None

    def _previous(self, t: datetime) -> datetime | None:
        return instant if (instant := self.instant) <= t else None

    def _count(self, after: datetime, until: datetime) -> int:
        return int(self.first_until(after, until) is not None)

    def _words(self) -> str:
        return f"at {moment_text(self.when)}"

    def phrase(self) -> str:
        return f"once, {moment_phrase(self.when)}"

    def days_phrase(self) -> str:
        return f"on {self.when:%Y-%m-%d}"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        if self.when.tzinfo is not None or self.instant <= after:
            return []
        wall, zone = wall_of(self.when), self.tz or "UTC"
        return [
            change_remark(change, zone, wall, 1, follows_clock=False)
            for change in self._changes()
            if change.walls[0] <= wall < change.walls[1]
        ]


def _read_moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip().upper())
    except ValueError as error:
        raise TimingError(f"{text!r} is not a date and time such as 2026-12-24T18:00", text=text) from error
