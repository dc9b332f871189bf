"""Lanes: named pools with a limit on how many runs are under way at once, across all nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ostinato.clock import Micros, micros_of
from ostinato.durations import duration_text, parse_duration
from ostinato.errors import InvalidInput

__all__ = ["DEFAULT_LANES", "FALLBACK_LANE", "JUMPED", "Bucket", "Lane", "Rate", "parse_rate"]

DEFAULT_LANES: dict[str, int] = {"main": 30, "subagent": 50, "team": 100, "cron": 30}
FALLBACK_LANE = "main"

JUMPED: Micros = 60 * 1_000_000
"""Clocks of nodes differ by less than this, and a claim waits no longer; what is further ahead is a clock set back."""
_MOST_STARTS = 1_000_000
_LONGEST: Micros = 366 * 24 * 3_600 * 1_000_000
_UNITS = {"s": "1s", "m": "1m", "h": "1h", "d": "1d"}


@dataclass(frozen=True, slots=True)
class Rate:
    """So many starts in so much time, as a token bucket: it holds `count`, and that many come back evenly in `per`."""

    count: int
    per: Micros

    @property
    def interval(self) -> Micros:
        """How long it takes until the bucket holds one more."""
        return -(-self.per // self.count)

    @property
    def text(self) -> str:
        per = duration_text(timedelta(microseconds=self.per))
        return f"{self.count}/{per.removeprefix('1') if per in _UNITS.values() else per}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The tokens of a lane with a rate, told by the instant at which it was empty."""

    rate: Rate
    empty_at: Micros

    def at(self, now: Micros) -> Bucket:
        """The bucket as it is now; if it was empty long after that, a clock went back, and it is empty now."""
        return self if self.empty_at <= now + JUMPED else Bucket(self.rate, now)

    def holds(self, now: Micros) -> int:
        """How many runs may start now."""
        return max(0, min(self.rate.count, (now - self.empty_at) // self.rate.interval))

    def without(self, count: int, now: Micros) -> Bucket:
        """The bucket after so many starts."""
        full = now - self.rate.count * self.rate.interval
        return Bucket(self.rate, max(self.empty_at, full) + count * self.rate.interval)

    def next_at(self, now: Micros) -> Micros:
        """When the next run may start."""
        return max(now, self.empty_at + self.rate.interval)


def parse_rate(value: Any, field: str = "rate") -> Rate:
    """A rate from its text: `10/m`, `1/s`, `500/h`, `3/10s`."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d.*|[smhd])\s*", value) if isinstance(value, str) else None
    if match is not None:
        try:
            count, per = int(match[1]), micros_of(parse_duration(_UNITS.get(match[2], match[2]), field=field))
        except InvalidInput:
            count = per = 0
        if 0 < count <= _MOST_STARTS and 0 < per <= _LONGEST:
            return Rate(count, per)
    raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint="write starts per period, as in 10/m or 3/10s")


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane and how full it is."""

    name: str
    limit: int
    paused: bool = False
    note: str | None = None
    rate: str | None = None
    """How many runs may start in a time, such as 10/m."""
    used: int = 0
    """How many of its runs are under way, on all nodes."""
    queued: int = 0
    """How many wait in it, including those that wait for their turn in a session."""
    oldest_at: datetime | None = None
    """When the oldest run that could start became ready."""
    rate_from: Micros = 0
    """When the bucket of its rate was empty."""
    paused_by: str | None = None
    """Who paused it; null if nobody knows."""
    paused_at: datetime | None = None
    """When it was paused."""
