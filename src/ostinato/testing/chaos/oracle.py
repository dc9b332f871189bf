"""Due times by counting: what is due when, found without the code that plans it, and without that of timings.

A grid is arithmetic. Times of the day are looked for minute by minute on the wall clock of their zone. Simple on
purpose: it is what the engine is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.schedule import Schedule

__all__ = ["Daily", "Grid", "Minutes", "Oracle", "oracle_of"]

Oracle = Callable[[Micros], Micros | None]
"""The first due time after an instant."""

_MINUTE: Micros = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Grid:
    """Every so often, counted from an instant."""

    anchor: Micros
    step: Micros

    def __call__(self, instant: Micros) -> Micros:
        return self.anchor + ((instant - self.anchor) // self.step + 1) * self.step


@dataclass(frozen=True, slots=True)
class Minutes:
    """At these minutes of every hour: the hours of a zone begin when its clock shows full ones."""

    minutes: Collection[int]
    zone: ZoneInfo

    def __call__(self, instant: Micros) -> Micros:
        found = instant - instant % _MINUTE
        while True:
            found += _MINUTE
            if datetime.fromtimestamp(found // SECOND, self.zone).minute in self.minutes:
                return found


@dataclass(frozen=True, slots=True)
class Daily:
    """Once a day at a time of the wall clock: where that is skipped, at the first minute that exists; where it comes
    twice, the first time."""

    hour: int
    minute: int
    zone: ZoneInfo

    def __call__(self, instant: Micros) -> Micros:
        day = datetime.fromtimestamp(instant // SECOND, self.zone).date() - timedelta(days=1)
        while (found := self._of(day)) <= instant:
            day += timedelta(days=1)
        return found

    def _of(self, day: date) -> Micros:
        wall = datetime(day.year, day.month, day.day, self.hour, self.minute)
        while True:
            moment = wall.replace(tzinfo=self.zone).astimezone(UTC)
            if moment.astimezone(self.zone).replace(tzinfo=None) == wall:
                return round(moment.timestamp()) * SECOND
            wall += timedelta(minutes=1)


_EVERY = re.compile(r"every (\d+)(s|m|h)")
_SECONDS = re.compile(r"\*(?:/(\d+))? \* \* \* \* \*")
_MINUTES = re.compile(r"\*(?:/(\d+))? \* \* \* \*")
_DAILY = re.compile(r"daily (\d\d):(\d\d)")
_UNITS = {"s": SECOND, "m": _MINUTE, "h": 60 * _MINUTE}


def oracle_of(schedule: Schedule) -> Oracle | None:
    """For a schedule as it is stored: counted here for the forms that are most common, asked of the timing for others.

    None where the due times depend on runs.
    """
    text, zone = schedule.timing, ZoneInfo(schedule.zone)
    if schedule.follows or "after finish" in text:
        return None
    if found := _EVERY.fullmatch(text):
        return Grid(to_micros(schedule.anchor_at), int(found[1]) * _UNITS[found[2]])
    if (found := _SECONDS.fullmatch(text)) and 60 % (step := int(found[1] or 1)) == 0:
        return Grid(0, step * SECOND)
    if (found := _MINUTES.fullmatch(text)) and 60 % (step := int(found[1] or 1)) == 0:
        return Minutes(range(0, 60, step), zone)
    if found := _DAILY.fullmatch(text):
        return Daily(int(found[1]), int(found[2]), zone)
    timing = schedule.anchored_timing

    def ask(instant: Micros) -> Micros | None:
        following = timing.next_after(from_micros(instant))
        return None if following is None else to_micros(following)

    return ask
