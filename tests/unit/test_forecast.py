"""What comes: the soonest due times of many schedules, and how many each hour has, against a plain walk over them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from ostinato.clock import Micros, from_micros, to_micros
from ostinato.models.schedule import DueSchedule
from ostinato.service.forecast import Forecast, soonest
from ostinato.stores.base import Due
from ostinato.timing import parse_timing
from tests.rows import due_schedule

NOW = to_micros(datetime(2026, 3, 28, 10, 20, 30, tzinfo=UTC))
HOUR: Micros = 3_600_000_000
BERLIN = "Europe/Berlin"


class _Schedules:
    """The two questions that a forecast asks of a store."""

    def __init__(self, *timings: str, remaining: int | None = None, overdue: Micros = 0) -> None:
        self.reads = 0
        self.due = [_due(f"{number}", text, remaining, overdue) for number, text in enumerate(timings)]

    @property
    def schedules(self) -> _Schedules:
        return self

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        self.reads += 1
        found = sorted((one for one in self.due if one.next_at <= horizon), key=lambda one: one.next_at)
        return Due(found[:limit], None)

    async def count_due(self, edges: Sequence[Micros]) -> list[int]:
        return [sum(start <= one.next_at < stop for one in self.due) for start, stop in pairwise(edges)]


def _due(name: str, text: str, remaining: int | None, overdue: Micros) -> DueSchedule:
    anchor = NOW - overdue
    next_at = parse_timing(text, tz=BERLIN).anchored(from_micros(anchor)).next_after(from_micros(anchor))
    assert next_at is not None
    return due_schedule(
        name=name, timing=text, zone=BERLIN, anchor_at=anchor, next_at=to_micros(next_at), remaining=remaining
    )


def _walked(store: _Schedules, until: Micros) -> list[tuple[datetime, str]]:
    """Every due time in (now, until], one by one."""
    found: list[tuple[datetime, str]] = []
    for one in store.due:
        timing = parse_timing(one.timing, tz=one.zone).anchored(from_micros(one.anchor_at))
        due, left = from_micros(one.next_at), one.remaining
        while due is not None and due <= from_micros(until) and left != 0:
            if due > from_micros(NOW):
                found.append((due, one.name))
            left = None if left is None else left - 1
            after = timing.next_after(max(due, from_micros(NOW)))
            assert after is not None or one.timing.startswith("at")
            due = after  # type: ignore[assignment]  # None ends the loop
    return sorted(found)


def _hours(forecast: Forecast, now: Micros) -> list[int]:
    hours = asyncio.run(forecast.hours(now))
    assert not hours.estimated
    first = from_micros(now // HOUR * HOUR)
    assert [at for at, _ in hours.counts] == [first + timedelta(hours=hour) for hour in range(24)]
    return [count for _, count in hours.counts]


KINDS = [
    "every 5s",
    "every 7m",
    "every 25h",
    "daily 02:30",
    "*/5 * * * *",
    "0 */2 * * *",
    "weekly sat,sun 12:00",
    "at 2026-03-28T23:15",
    "every 40m or daily 12:00",
    "every 10m except 03-29",
    "30 9 * * 1-5",
]


@pytest.mark.parametrize("text", KINDS)
def test_hours_are_counted_as_a_walk_would(text: str) -> None:
    store = _Schedules(text)
    expected = [0] * 24
    for due, _ in _walked(store, NOW // HOUR * HOUR + 24 * HOUR - 1):
        expected[(to_micros(due) - NOW // HOUR * HOUR) // HOUR] += 1
    assert _hours(Forecast(store), NOW) == expected  # type: ignore[arg-type]  # asks only what is there


def test_many_schedules_add_up_and_those_of_the_same_timing_count_each() -> None:
    single = [_hours(Forecast(_Schedules(text)), NOW) for text in KINDS]  # type: ignore[arg-type]
    together = _hours(Forecast(_Schedules(*KINDS, *KINDS)), NOW)  # type: ignore[arg-type]
    assert together == [2 * sum(counts) for counts in zip(*single, strict=True)]


def test_what_is_overdue_counts_from_now_on() -> None:
    assert _hours(Forecast(_Schedules("every 10m", overdue=5 * HOUR)), NOW)[:2] == [3, 6]  # type: ignore[arg-type]


def test_no_more_are_counted_than_remain() -> None:
    assert sum(_hours(Forecast(_Schedules("every 7m", remaining=9)), NOW)) == 9  # type: ignore[arg-type]


def test_it_looks_at_the_store_every_few_seconds_and_remembers_what_it_counted() -> None:
    store = _Schedules("every 5m", "daily 02:30")
    forecast = Forecast(store)  # type: ignore[arg-type]
    first = _hours(forecast, NOW)
    assert _hours(forecast, NOW + 9_000_000) == first
    assert store.reads == 1
    assert _hours(forecast, NOW + HOUR)[:-1][1:] == first[2:]
    assert store.reads == 2


def test_with_too_many_schedules_it_says_that_it_is_an_estimate() -> None:
    store = _Schedules(*["every 10m"] * 3_000, *["every 3h"] * 20, *["every 25h"] * 7)
    hours = asyncio.run(Forecast(store).hours(NOW))  # type: ignore[arg-type]
    assert (hours.estimated, hours.counts[1][1]) == (True, 18_000)
    # Of those that were not read, only the next due time is known.
    assert [hours.counts[hour][1] - 18_000 for hour in (2, 3, 4, 6)] == [0, 20, 0, 0]


def test_overdue_schedules_that_were_not_read_make_it_an_estimate_too() -> None:
    hours = asyncio.run(Forecast(_Schedules(*["every 10m"] * 3_001, overdue=HOUR)).hours(NOW))  # type: ignore[arg-type]
    assert (hours.estimated, hours.counts[1][1]) == (True, 18_000)


def test_a_timing_that_counts_from_a_finish_and_one_that_cannot_be_read_count_once() -> None:
    store = _Schedules("every 10m after finish", "every 20m")
    store.due[1] = replace(store.due[1], timing="nonsense")
    assert sum(_hours(Forecast(store), NOW)) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_the_soonest_due_times_are_those_of_a_walk(limit: int) -> None:
    store = _Schedules(*KINDS)
    until = NOW + 3 * HOUR
    found, more = asyncio.run(soonest(store, NOW, until, limit))  # type: ignore[arg-type]
    walked = _walked(store, until)
    assert [(due.at, due.schedule) for due in found] == walked[:limit]
    assert more == (len(walked) > limit)


def test_the_soonest_of_what_is_overdue_are_after_now() -> None:
    store = _Schedules("every 10m", "every 15m", overdue=2 * HOUR)
    found, more = asyncio.run(soonest(store, NOW, NOW + HOUR, 50))  # type: ignore[arg-type]
    assert (len(found), more) == (6 + 4, False)
    assert min(due.at for due in found) > from_micros(NOW)


def test_what_is_due_before_the_span_uses_up_what_remains() -> None:
    store = _Schedules("every 1h", remaining=5)
    span = {"since": NOW + 3 * HOUR + 1, "until": NOW + 10 * HOUR}
    found, more = asyncio.run(soonest(store, NOW, limit=50, **span))  # type: ignore[arg-type]
    assert ([to_micros(due.at) for due in found], more) == ([NOW + 4 * HOUR, NOW + 5 * HOUR], False)
    store = _Schedules("every 1h", remaining=3)
    assert asyncio.run(soonest(store, NOW, limit=50, **span)) == ([], False)  # type: ignore[arg-type]


def test_however_many_are_overdue_they_use_up_one() -> None:
    store = _Schedules("every 1h", remaining=3, overdue=10 * HOUR)
    found, _ = asyncio.run(soonest(store, NOW, NOW + 24 * HOUR, 50))  # type: ignore[arg-type]
    assert [to_micros(due.at) for due in found] == [NOW + HOUR, NOW + 2 * HOUR]


@pytest.mark.parametrize("overdue", [0, 2 * HOUR])
def test_many_that_are_due_before_the_span_hide_nobody_behind_them(overdue: Micros) -> None:
    store = _Schedules(*["at 2026-03-28T12:00"] * 305, "weekly tue 12:00", overdue=overdue)
    since, until = NOW + 24 * HOUR, NOW + 96 * HOUR
    found, more = asyncio.run(soonest(store, NOW, until, 50, since=since))  # type: ignore[arg-type]
    assert ([due.schedule for due in found], more) == (["305"], False)


def test_with_more_schedules_than_are_looked_at_it_says_that_there_may_be_more() -> None:
    store = _Schedules(*["at 2026-03-28T12:00"] * 3_000, "weekly tue 12:00")
    since, until = NOW + 24 * HOUR, NOW + 96 * HOUR
    assert asyncio.run(soonest(store, NOW, until, 50, since=since)) == ([], True)  # type: ignore[arg-type]
