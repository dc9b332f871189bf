"""Ends of holds, pure: the row of what was left out, on every grid and every kind of day."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.pause import due_again, ends_pause, paused_run, paused_runs
from ostinato.models.schedule import DueSchedule, ScheduleDraft
from ostinato.models.states import RunState
from ostinato.testing.store_suite.builders import draft as any_draft
from ostinato.timing import parse_timing
from tests.rows import HOUR, START, due_schedule


def at(text: str) -> Micros:
    return to_micros(datetime.fromisoformat(text))


def held(timing: str = "every 1h", zone: str = "UTC", *, since: Micros = START + HOUR, **fields: Any) -> DueSchedule:
    """A schedule since START that is held for the ten days after `since`."""
    paused = {"paused_since": since, "paused_reason": "budget: all of it is spent", "next_at": since + 240 * HOUR}
    return due_schedule(**{"timing": timing, "zone": zone, **paused, **fields})


def draft(of: DueSchedule, **fields: Any) -> ScheduleDraft:
    same = {name: getattr(of, name) for name in ("timing", "zone", "work", "kind", "task", "policy")}
    return any_draft(of.name, **{**same, "anchor_at": START + 1, "next_at": START + 1, **fields})


@pytest.mark.parametrize(
    ("timing", "since", "until", "count"),
    [
        ("0 * * * *", "2026-10-25T00:00+02:00", "2026-10-25T23:59+01:00", 25),
        ("0 * * * *", "2026-03-29T00:00+01:00", "2026-03-29T23:59+02:00", 23),
        ("every 1h", "2026-10-25T00:00+02:00", "2026-10-25T23:59+01:00", 25),
        ("daily at 02:30", "2026-10-24T02:30+02:00", "2026-10-26T02:30+01:00", 3),
        ("daily at 02:30", "2026-03-28T02:30+01:00", "2026-03-30T02:30+02:00", 3),
    ],
    ids=["a day of 25 hours", "a day of 23 hours", "an interval", "an hour that comes twice", "an hour that is not"],
)
def test_a_day_on_which_the_clock_changes_is_counted_as_it_was(timing: str, since: str, until: str, count: int) -> None:
    run = paused_run(held(timing, "Europe/Berlin", since=at(since)), at(until))
    assert run is not None
    assert (run.due_at, run.count, run.state) == (at(since), count, RunState.SKIPPED)
    assert run.last_due_at is not None
    assert run.last_due_at <= at(until)


@given(
    timing=st.sampled_from(
        ["every 7m", "*/20 * * * *", "daily at 02:30", "weekdays at 9", "every 1h or daily at 02:30"]
    ),
    begin=st.integers(0, 300 * 24),
    lasting=st.integers(0, 12 * 24 * 60),
)
def test_the_row_counts_what_the_timing_gives(timing: str, begin: int, lasting: int) -> None:
    grid = parse_timing(timing, tz="Europe/Berlin").anchored(from_micros(START))
    first = grid.next_after(from_micros(START + begin * HOUR))
    assert first is not None
    schedule = held(timing, "Europe/Berlin", since=to_micros(first))
    now = to_micros(first) + (lasting - 60) * 60 * SECOND
    expected = [to_micros(first)] if to_micros(first) <= now else []
    expected += list(grid.stream(first, from_micros(min(now, schedule.next_at - 1))))
    runs = paused_runs([schedule], now)
    assert [(run.due_at, run.last_due_at, run.count) for run in runs] == (
        [(expected[0], expected[-1], len(expected))] if expected else []
    )
    following = grid.next_after(from_micros(now))
    assert following is not None
    assert due_again(schedule, now) == max(to_micros(following), to_micros(first))


def test_what_is_not_held_has_no_row() -> None:
    assert paused_run(held(paused_since=None), START + 9 * HOUR) is None


def test_what_counts_from_its_end_is_due_an_interval_from_now_unless_it_was_due_later_anyway() -> None:
    schedule = held("every 2h after finish")
    assert paused_runs([schedule], START + 9 * HOUR) == []
    assert due_again(schedule, START + 9 * HOUR) == START + 11 * HOUR
    assert due_again(schedule, START) == START + HOUR


def test_what_cannot_be_computed_is_left_out_and_the_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    schedules = [held("moonrise"), held(policy="[]"), held()]
    assert [run.count for run in paused_runs(schedules, START + 9 * HOUR)] == [9]
    assert "schedule 'job': the due times it was paused for get no row" in caplog.text
    assert due_again(schedules[0], START + 9 * HOUR) == schedules[0].next_at


@pytest.mark.parametrize(
    ("fields", "ends"),
    [
        ({}, False),
        ({"work": '{"kind":"shell"}', "note": "n", "project": "blog", "remaining": 3}, False),
        ({"policy": '{"retry":{"max":7},"budget":{"per_day_runs":2}}'}, False),
        ({"policy": '{"budget":{"per_day_runs":3}}'}, True),
        ({"policy": "{}"}, True),
        ({"policy": "moonrise"}, True),
        ({"timing": "every 2h"}, True),
        ({"zone": "Asia/Tokyo"}, True),
    ],
    ids=["nothing", "what is done", "how often it is tried", "budget", "no budget", "unreadable", "timing", "zone"],
)
def test_another_timing_or_budget_ends_a_hold(fields: dict[str, Any], ends: bool) -> None:
    schedule = held(policy='{"budget":{"per_day_runs":2}}')
    assert ends_pause(schedule, draft(schedule, **fields)) is ends
