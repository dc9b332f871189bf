"""Quarters of an hour folded into the days of a zone."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from ostinato.clock import from_micros, to_micros
from ostinato.models.states import RunState
from ostinato.service.schedules.history import days_of, first_instant
from ostinato.stores.base import StateCount


def _at(day: int, hour: int, minute: int = 0) -> int:
    return to_micros(datetime(2026, 3, day, hour, minute, tzinfo=UTC))


def test_quarters_are_folded_into_the_days_of_the_zone() -> None:
    tallies = [
        StateCount(_at(1, 22), RunState.SUCCEEDED, 2, 1.5),
        StateCount(_at(1, 23), RunState.SUCCEEDED, 3, 2.0),
        StateCount(_at(2, 1), RunState.SUCCEEDED, 1, 0.5),
        StateCount(_at(2, 1), RunState.FAILED, 1, 0.25),
    ]
    days = [(day.date, day.states, day.seconds) for day in days_of(tallies, "Europe/Berlin")]
    assert days == [
        (date(2026, 3, 1), {"succeeded": 2}, 1.5),
        (date(2026, 3, 2), {"succeeded": 4, "failed": 1}, 2.75),
    ]
    assert [day.date.day for day in days_of(tallies, "America/New_York")] == [1]


def test_a_day_says_how_many_of_what_succeeded_had_errors() -> None:
    tallies = [
        StateCount(_at(2, 1), RunState.SUCCEEDED, 3, 0.0, with_errors=2),
        StateCount(_at(2, 2), RunState.FAILED, 1),
        StateCount(_at(2, 3), RunState.SUCCEEDED, 1, 0.0, with_errors=1),
    ]
    (day,) = days_of(tallies, "UTC")
    assert (day.states, day.with_errors) == ({"succeeded": 4, "failed": 1}, 3)


@pytest.mark.parametrize(
    ("zone", "last"),
    [("Asia/Kolkata", (9, 18, 15)), ("Asia/Kathmandu", (9, 18, 0)), ("Europe/Berlin", (9, 22, 45))],
)
def test_a_day_begins_at_midnight_in_every_zone(zone: str, last: tuple[int, int, int]) -> None:
    """The last quarter of the 9th there, and the first of the 10th."""
    tallies = [StateCount(_at(*last) + quarter * 900_000_000, RunState.SUCCEEDED, 1, 0.0) for quarter in (0, 1)]
    assert [day.date.day for day in days_of(tallies, zone)] == [9, 10]


def test_the_days_around_a_clock_change_are_as_long_as_they_are() -> None:
    quarters = [StateCount(_at(27, 23) + 900_000_000 * n, RunState.SUCCEEDED, 1, 0.0) for n in range(3 * 96)]
    days = days_of(quarters, "Europe/Berlin")
    # The clock goes forward on the 29th.
    assert [(day.date.day, day.states["succeeded"]) for day in days] == [(28, 96), (29, 92), (30, 96), (31, 4)]


def test_nothing_makes_no_days() -> None:
    assert days_of([], "UTC") == []


def test_the_first_of_so_many_days_begins_at_its_local_midnight() -> None:
    now = _at(30, 12)
    assert from_micros(first_instant(now, 1, "Europe/Berlin")) == datetime(2026, 3, 29, 22, tzinfo=UTC)
    # The clock went forward on the 29th: that day had 23 hours.
    assert from_micros(first_instant(now, 2, "Europe/Berlin")) == datetime(2026, 3, 28, 23, tzinfo=UTC)
