"""History: how the runs of a schedule ended, day by day of its own zone. Pure; `schedules.py` asks the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from ostinato.clock import Micros, from_micros, to_micros
from ostinato.stores.base import StateCount
from ostinato.timing.zones import start_of_day, zone_info

__all__ = ["Day", "History", "days_of", "first_instant"]


@dataclass(frozen=True, slots=True)
class Day:
    """A day and how its runs ended."""

    date: date
    states: dict[str, int]
    """How many runs, by state."""
    seconds: float
    """How long they ran in total."""
    with_errors: int = 0
    """How many of those that succeeded counted errors."""


@dataclass(frozen=True, slots=True)
class History:
    """The days on which something was due, oldest first, in the zone of the schedule."""

    zone: str
    days: Sequence[Day]


def first_instant(now: Micros, days: int, zone: str) -> Micros:
    """Where the first of so many days begins, of which today is the last."""
    today = from_micros(now).astimezone(zone_info(zone)).date()
    return to_micros(start_of_day(zone, today - timedelta(days=days - 1)))


def days_of(tallies: Iterable[StateCount], zone: str) -> list[Day]:
    """Tallies by the quarter of an hour, folded into days: in every zone of today a day begins with one."""
    local = zone_info(zone)
    found: dict[date, Day] = {}
    for tally in tallies:
        day = from_micros(tally.at).astimezone(local).date()
        before = found.get(day) or Day(day, {}, 0.0)
        states = {**before.states, str(tally.state): before.states.get(str(tally.state), 0) + tally.count}
        found[day] = Day(day, states, before.seconds + tally.seconds, before.with_errors + tally.with_errors)
    return [found[day] for day in sorted(found)]
