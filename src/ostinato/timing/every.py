"""`Every`: due on a grid of real time, or so long after the last run finished.

Text forms `every 5m`, `every 1h after finish`, `every 5m from 2026-01-01T10:00Z`; the engine anchors the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import InvalidInput, TimingError
from ostinato.timing.at import moment_text
from ostinato.timing.base import NO_JITTER, Timing, jitter_fields, store
from ostinato.timing.explain import interval_phrase
from ostinato.timing.zones import as_utc, microseconds_of

__all__ = ["SHORTEST", "Every"]

SHORTEST = timedelta(milliseconds=1)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Every(Timing):
    """Due at anchor + k · interval for k = 1, 2, …: the first is one interval after the anchor. `Every()` is one hour.

    The interval is a duration, `Every("1h30m")`, or in parts, `Every(hours=1, minutes=30)`.
    Without an anchor (and with anchor="finish") the grid starts wherever one asks: `next_after(t)` is t + interval,
    and there is no previous due time. `every 1d` is 24 hours of real time, whatever the wall clock does.
    """

    interval: timedelta
    anchor: datetime | Literal["finish"] | None

    def __init__(
        self,
        interval: Duration | None = None,
        *,
        weeks: float | None = None,
        days: float | None = None,
        hours: float | None = None,
        minutes: float | None = None,
        seconds: float | None = None,
        milliseconds: float | None = None,
        anchor: datetime | Literal["finish"] | None = None,
        jitter: Duration = NO_JITTER,
        stable: bool = False,
    ) -> None:
        parts = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes}
        parts |= {"seconds": seconds, "milliseconds": milliseconds}
        given = {name: value for name, value in parts.items() if value is not None}
        found = _interval(interval, given)
        if found < SHORTEST:
            raise TimingError(f"an interval must be at least 1 ms, not {found.total_seconds():g} s")
        store(self, interval=found, anchor=_checked_anchor(anchor), **jitter_fields(jitter, stable))

    @property
    def zone(self) -> str | None:
        return None

    @property
    def after_finish(self) -> timedelta | None:
        return self.interval if self.anchor == "finish" else None

    def anchored(self, at: datetime) -> Timing:
        return self.replaced(anchor=as_utc(at, "anchor")) if self.anchor is None else self

    def _next(self, t: datetime) -> datetime | None:
        if not isinstance(self.anchor, datetime):
            return t + self.interval
        return self.anchor + self.interval * max(1, (t - self.anchor) // self.interval + 1)

    def _previous(self, t: datetime) -> datetime | None:
        if not isinstance(self.anchor, datetime):
            return None
        steps = (t - self.anchor) // self.interval
        return self.anchor + self.interval * steps if steps >= 1 else None

    def _count(self, after: datetime, until: datetime) -> int:
        if not isinstance(self.anchor, datetime):
            return (until - after) // self.interval
        return max(0, (until - self.anchor) // self.interval) - max(0, (after - self.anchor) // self.interval)

    def stream(self, after: datetime, until: datetime) -> Iterator[int]:
        first = self.next_after(after)
        if first is not None:
            yield from range(microseconds_of(first), microseconds_of(until) + 1, self.interval // _MICROSECOND)

    def _words(self) -> str:
        words = f"every {duration_text(self.interval)}"
        if self.anchor == "finish":
            return f"{words} after finish"
        return words if self.anchor is None else f"{words} from {moment_text(self.anchor)}"

    def phrase(self) -> str:
        words = f"every {interval_phrase(self.interval)}"
        if self.anchor == "finish":
            return f"{words}, counted from the end of the last run"
        return words if self.anchor is None else f"{words}, counted from {moment_text(self.anchor)}"

    def _remarks(self, after: datetime, n: int) -> list[str]:
        if self.interval % _DAY:
            return []
        return ["A day here is 24 hours, so the time on the clock moves when the clock changes; 'daily' keeps it."]


def _interval(duration: Duration | None, parts: Mapping[str, float]) -> timedelta:
    """One way or the other; an hour if nothing is given."""
    if duration is not None and parts:
        raise TimingError("give either a duration or its parts, not both: Every(minutes=5)")
    try:
        if duration is not None:
            return parse_duration(duration, field="interval")
        return timedelta(**parts) if parts else _HOUR
    except (InvalidInput, OverflowError, TypeError, ValueError) as error:
        raise TimingError(f"not an interval: {error}") from error


def _checked_anchor(anchor: object) -> datetime | Literal["finish"] | None:
    if anchor is None or anchor == "finish":
        return "finish" if anchor == "finish" else None
    if isinstance(anchor, datetime) and anchor.utcoffset() is not None:
        return as_utc(anchor)
    raise TimingError(
        f"an anchor is 'finish' or an aware datetime such as datetime(2026, 1, 1, 10, tzinfo=UTC), not {anchor!r}"
    )
