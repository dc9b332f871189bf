"""A slow and simple oracle: walks real time minute by minute and decides from first principles what is due.

Shares nothing with the code under test: no cronsim, no transitions, only what the wall clock shows each minute.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

__all__ = ["WINDOWS", "CronRule", "Window", "due_once", "due_when_shown", "walk"]

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Window:
    """Some days of a zone around one clock change (or none)."""

    zone: str
    start: datetime
    days: int = 3

    @property
    def end(self) -> datetime:
        return self.start + timedelta(days=self.days)

    def __str__(self) -> str:
        return f"{self.zone} {self.start:%Y-%m-%d}"


def _window(zone: str, month: int, day: int, year: int = 2026) -> Window:
    """Three days, the middle one being the named one."""
    return Window(zone, datetime(year, month, day, tzinfo=UTC) - timedelta(days=1))


WINDOWS = [
    _window("Europe/Berlin", 3, 29),
    _window("Europe/Berlin", 10, 25),
    _window("America/New_York", 3, 8),
    _window("America/New_York", 11, 1),
    _window("Australia/Lord_Howe", 4, 5),  # Half an hour back.
    _window("Australia/Lord_Howe", 10, 4),  # Half an hour forward.
    _window("Africa/Casablanca", 2, 15),  # Back for Ramadan,
    _window("Africa/Casablanca", 3, 22),  # and forward after it.
    _window("Asia/Kathmandu", 5, 1),  # 5:45 ahead, no changes.
    _window("UTC", 12, 31),
    _window("Asia/Beirut", 3, 29),  # Midnight does not exist.
    _window("America/Havana", 11, 1),  # Midnight happens twice.
    _window("Pacific/Apia", 12, 30, 2011),  # A whole day does not exist.
    _window("America/St_Johns", 2, 28, 2028),  # A leap day.
]


@lru_cache(maxsize=64)
def walk(window: Window) -> list[tuple[datetime, datetime]]:
    """Each whole minute of the window in UTC, with what the wall clock shows; begins three days early."""
    zone = ZoneInfo(window.zone)
    minutes = []
    time = window.start - timedelta(days=3)
    while time <= window.end:
        minutes.append((time, time.astimezone(zone).replace(tzinfo=None, fold=0)))
        time += MINUTE
    return minutes


def due_when_shown(window: Window, matches: Callable[[datetime], bool]) -> list[datetime]:
    """Due at each minute that shows a matching wall time, however often it shows it."""
    return [time for time, wall in walk(window) if matches(wall) and window.start < time <= window.end]


def due_once(window: Window, matches: Callable[[datetime], bool]) -> list[datetime]:
    """Each matching wall time once: the first time it shows, or when the clock has just jumped over it."""
    found, seen = [], set()
    previous: datetime | None = None
    for time, wall in walk(window):
        due = matches(wall) and wall not in seen
        skipped = previous + MINUTE if previous is not None else wall
        while skipped < wall:
            due = due or matches(skipped)
            skipped += MINUTE
        seen.add(wall)
        previous = wall
        if due and window.start < time <= window.end:
            found.append(time)
    return found


@dataclass(frozen=True)
class CronRule:
    """A cron expression as sets, with the text they were made from."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    month_days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0.
    last_day: bool = False
    nth_weekday: tuple[int, int] | None = None

    @property
    def fixed(self) -> bool:
        """Debian: neither the minute nor the hour begins with a star."""
        minute, hour = self.text.split()[:2]
        return not minute.startswith("*") and not hour.startswith("*")

    def matches(self, wall: datetime) -> bool:
        if wall.second or wall.minute not in self.minutes or wall.hour not in self.hours:
            return False
        return wall.month in self.months and self._day(wall.date())

    def _day(self, day: date) -> bool:
        _, _, month_day, _, weekday = self.text.split()
        in_month = day.day in self.month_days or (self.last_day and day.day == monthrange(day.year, day.month)[1])
        number = day.isoweekday() % 7
        in_week = number in self.weekdays
        if self.nth_weekday is not None:
            in_week = in_week or (number, (day.day - 1) // 7 + 1) == self.nth_weekday
        if month_day.startswith("*") or weekday.startswith("*"):
            return in_month and in_week
        return in_month or in_week
