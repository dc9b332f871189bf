"""Agreement with the minute-by-minute oracle around clock changes: next_after, previous and count_between."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import Cron, DailyAt, Monthly, Timing, Weekly
from tests.unit.timing.oracle import WINDOWS, CronRule, Window, due_once, due_when_shown
from tests.unit.timing.strategies import cron_rules, wall_timings

windows = pytest.mark.parametrize("window", WINDOWS, ids=str)
few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def _iterated(timing: Timing, start: datetime, end: datetime) -> list[datetime]:
    found = []
    due = timing.next_after(start)
    while due is not None and due <= end:
        found.append(due)
        due = timing.next_after(due)
    return found


def _agrees(timing: Timing, window: Window, expected: list[datetime], asked: list[datetime]) -> None:
    assert _iterated(timing, window.start, window.end) == expected
    places = sorted([window.start, *asked, window.end])
    for place in places:
        index = bisect_right(expected, place)
        if index:
            assert timing.previous(place) == expected[index - 1]
        if index < len(expected):
            assert timing.next_after(place) == expected[index]
    for first, last in pairwise(places):
        wanted = bisect_right(expected, last) - bisect_right(expected, first)
        assert timing.count_between(first, last) == wanted


def _places(window: Window) -> st.SearchStrategy[list[datetime]]:
    """Instants of the window, to the microsecond."""
    span = (window.end - window.start) // timedelta(microseconds=1)
    place = st.integers(0, span).map(lambda us: window.start + timedelta(microseconds=us))
    hour = st.integers(0, span // 3_600_000_000).map(lambda h: window.start + timedelta(hours=h))
    return st.lists(place | hour, min_size=2, max_size=6)


@windows
@few
@given(data=st.data())
def test_cron_is_due_when_the_oracle_says_so(window: Window, data: st.DataObject) -> None:
    rule: CronRule = data.draw(cron_rules())
    try:
        timing = Cron(rule.text, window.zone)
    except TimingError:
        assume(False)
        raise
    expected = (due_once if rule.fixed else due_when_shown)(window, rule.matches)
    _agrees(timing, window, expected, data.draw(_places(window)))


def _matcher(timing: Timing) -> Callable[[datetime], bool]:
    def matches(wall: datetime) -> bool:
        assert isinstance(timing, DailyAt | Weekly | Monthly)
        if (wall.hour, wall.minute) != (timing.hour, timing.minute):
            return False
        if isinstance(timing, Weekly):
            return wall.weekday() in timing.days
        if isinstance(timing, Monthly):
            tomorrow = wall + timedelta(days=1)
            return tomorrow.day == 1 if timing.day == "last" else wall.day == timing.day
        return True

    return matches


@windows
@few
@given(data=st.data())
def test_calendar_timings_are_due_when_the_oracle_says_so(window: Window, data: st.DataObject) -> None:
    timing = data.draw(wall_timings(window.zone))
    expected = due_once(window, _matcher(timing))
    _agrees(timing, window, expected, data.draw(_places(window)))


@windows
@pytest.mark.parametrize("clock", ["00:00", "00:30", "01:45", "02:00", "02:30", "03:00"])
def test_a_daily_time_near_the_change_is_due_when_the_oracle_says_so(window: Window, clock: str) -> None:
    hour, minute = map(int, clock.split(":"))
    timing = DailyAt(hour, minute, tz=window.zone)
    expected = due_once(window, _matcher(timing))
    hourly = [window.start + timedelta(hours=hour, seconds=1) for hour in range(72)]
    _agrees(timing, window, expected, hourly)


@windows
@pytest.mark.parametrize("expression", ["*/5 2 * * *", "*/10 3 * * *", "30 * * * *", "15 1-3 * * *", "0-59 2 * * *"])
def test_cron_near_the_change_is_due_when_the_oracle_says_so(window: Window, expression: str) -> None:
    minute, hour = expression.split()[:2]
    hours = {"*": range(24), "1-3": range(1, 4)}.get(hour) or [int(hour)]
    minutes = {"*/5": range(0, 60, 5), "*/10": range(0, 60, 10), "0-59": range(60)}.get(minute) or [int(minute)]
    rule = CronRule(
        expression,
        frozenset(minutes),
        frozenset(hours),
        frozenset(range(1, 32)),
        frozenset(range(1, 13)),
        frozenset(range(7)),
    )
    expected = (due_once if rule.fixed else due_when_shown)(window, rule.matches)
    hourly = [window.start + timedelta(minutes=30 * half) for half in range(144)]
    _agrees(Cron(expression, window.zone), window, expected, hourly)
