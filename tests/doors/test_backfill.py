"""Backfill: which due times of a span are run after all, how, and what the command line and Python say of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from ostinato import Ostinato, RunContext
from ostinato.errors import Conflict, InvalidInput, NotFound
from ostinato.testing import FakeClock, drain
from tests.doors.command_line import CommandLine
from tests.doors.conftest import at

DAY = timedelta(days=1)


def _add(app: Ostinato, timing: str = "every 1h", **options: object) -> None:
    @app.task("note")
    def note() -> None: ...

    app.schedules.add("a", timing, "note", **options)  # type: ignore[arg-type]  # policies of any type


def test_they_run_one_after_the_other_the_oldest_first(app: Ostinato, clock: FakeClock) -> None:
    started: list[datetime] = []
    together: list[int] = []
    running = 0

    @app.task("note")
    async def note(run: RunContext) -> None:
        nonlocal running
        running += 1
        together.append(running)
        started.append(run.due_at)
        await asyncio.sleep(0.01)
        running -= 1

    app.schedules.add("a", "daily 03:00", "note", tz="UTC", catch_up="none")
    clock.advance("10d")
    app.start()
    found = app.schedules.backfill("a", at(0, day=2), at(12, day=6), all=True)
    for id in found.runs:
        assert app.runs.wait(id, timeout=60).state == "succeeded"
    assert started == list(found.due) == [at(3, day=day) for day in range(2, 7)]
    assert max(together) == 1


def test_with_overlap_allow_nothing_waits_for_its_turn(app: Ostinato, clock: FakeClock) -> None:
    _add(app, overlap="allow")
    clock.advance("5h")
    found = app.schedules.backfill("a", at(1), at(3))
    runs = [app.runs.get(id) for id in found.runs]
    assert [(run.session, run.trigger) for run in runs] == [(None, "manual")] * 3
    assert {run.ready_at for run in runs} == {at(5)}


def test_a_trigger_and_a_backfill_wait_for_their_max_age_from_when_they_were_asked_for(
    app: Ostinato, clock: FakeClock
) -> None:
    _add(app, max_age="10m", overlap="allow", lane="main", catch_up="none")
    app.lanes.set("main", 5)
    app.lanes.pause("main")
    clock.advance("5h")
    ids = [*app.schedules.backfill("a", at(1), at(2)).runs, app.schedules.trigger("a", force=True).id]
    clock.advance("9m")
    drain(app)
    app.lanes.resume("main")
    drain(app)
    assert [app.runs.get(id).state for id in ids] == ["succeeded"] * 3
    app.lanes.pause("main")
    late = [*app.schedules.backfill("a", at(3), at(3)).runs, app.schedules.trigger("a", force=True).id]
    clock.advance("10m")
    drain(app)
    assert [app.runs.get(id).state for id in late] == ["expired"] * 2


def test_others_wait_in_the_schedules_own_turn_or_in_its_session(app: Ostinato, clock: FakeClock) -> None:
    _add(app)
    clock.advance("5h")
    assert app.runs.get(app.schedules.backfill("a", at(1), at(1)).runs[0]).session == "schedule:a"
    app.schedules.edit("a", session="mine")
    assert app.runs.get(app.schedules.backfill("a", at(2), at(2)).runs[0]).session == "mine"


def test_both_ends_of_the_span_belong_to_it(app: Ostinato, clock: FakeClock) -> None:
    _add(app)
    clock.advance("5h")
    assert app.schedules.backfill("a", at(2), at(4), dry_run=True).due == [at(2), at(3), at(4)]
    assert app.schedules.backfill("a", at(2, 1), at(3, 59), dry_run=True).due == [at(3)]
    assert app.schedules.backfill("a", at(2, 1), at(2, 59), dry_run=True).due == []


def test_a_dry_run_queues_nothing(app: Ostinato, clock: FakeClock) -> None:
    _add(app)
    clock.advance("5h")
    assert app.schedules.backfill("a", at(1), at(4), dry_run=True).runs == ()
    assert app.runs.list() == []


def test_what_ran_or_is_queued_is_left_out_unless_all_is_said(app: Ostinato, clock: FakeClock) -> None:
    _add(app)
    clock.advance("5h")
    first = app.schedules.backfill("a", at(1), at(2))
    app.runs.cancel(first.runs[0])
    again = app.schedules.backfill("a", at(1), at(3))
    assert (again.due, again.left_out) == ([at(1), at(3)], 1)
    every = app.schedules.backfill("a", at(1), at(3), all=True)
    assert (len(every.due), every.left_out) == (3, 0)
    assert every.runs[1] == first.runs[1], "the due time that is queued already gets no second run"


def test_the_grid_of_an_every_is_carried_on_to_before_it_was_enabled(app: Ostinato, clock: FakeClock) -> None:
    clock.advance("10m")
    _add(app)
    found = app.schedules.backfill("a", at(21, day=1) - DAY, at(0, 10), dry_run=True)
    assert list(found.due) == [at(hour, 10) - DAY for hour in (21, 22, 23)] + [at(0, 10)]


def test_every_second_week_is_carried_on_to_before_it_was_enabled(app: Ostinato, clock: FakeClock) -> None:
    _add(app, "every 2 weeks on wed at 03:00", tz="UTC")
    enabled = app.schedules.get("a").next_run_at
    assert enabled is not None
    now = clock.now_utc()
    found = app.schedules.backfill("a", now - 40 * DAY, now, dry_run=True)
    assert list(found.due) == [enabled - 42 * DAY, enabled - 28 * DAY, enabled - 14 * DAY]


def test_a_schedule_that_is_off_can_be_filled_in_too(app: Ostinato, clock: FakeClock) -> None:
    _add(app, "daily 03:00", tz="UTC")
    app.schedules.disable("a")
    clock.advance("3d")
    assert len(app.schedules.backfill("a", at(0), at(0, day=3)).runs) == 2


def test_so_is_the_grid_of_an_every_in_a_combination(app: Ostinato) -> None:
    _add(app, "every 6h or at 2025-12-31T13:00Z except 12-30", tz="UTC")
    found = app.schedules.backfill("a", at(0, day=1) - 3 * DAY, at(0), dry_run=True)
    hours = [f"{due:%d %H}" for due in found.due]
    assert hours == ["29 00", "29 06", "29 12", "29 18", "31 00", "31 06", "31 12", "31 13", "31 18", "01 00"]


@pytest.mark.parametrize("timing", ["every 1ms", "* * * * * *", "every 1s or * * * * *", "every 2s except 12-25"])
def test_far_too_many_are_refused_at_once(app: Ostinato, clock: FakeClock, timing: str) -> None:
    """Counting them one by one would not end within the bound of a test."""
    _add(app, timing)
    with pytest.raises(InvalidInput, match="due times from 1990-01-01 00:00 to 2026-01-01 00:00 UTC") as caught:
        app.schedules.backfill("a", datetime(1990, 1, 1, tzinfo=UTC), at(0))
    assert caught.value.field == "from"


def test_a_span_from_the_first_day_of_the_calendar_is_looked_at_too(app: Ostinato, clock: FakeClock) -> None:
    _add(app, "daily 03:00", tz="Europe/Berlin")
    clock.advance("1d")
    with pytest.raises(InvalidInput, match="more than 1,000 due times"):
        app.schedules.backfill("a", datetime(1, 1, 1, tzinfo=UTC), at(0))
    app.schedules.edit("a", timing="at 2025-12-31T13:00Z or at 1999-01-01T00:00Z or at 2030-01-01T00:00Z")
    found = app.schedules.backfill("a", datetime(1, 1, 1, tzinfo=UTC), at(0), dry_run=True)
    assert [due.year for due in found.due] == [1999, 2025]
    long_ago = datetime(2, 1, 1, tzinfo=UTC)
    assert app.schedules.backfill("a", datetime(1, 1, 1, tzinfo=UTC), long_ago, dry_run=True).due == []


def test_exactly_a_thousand_are_taken(app: Ostinato, clock: FakeClock) -> None:
    _add(app, "every 1s")
    clock.advance("1h")
    start = at(0) + timedelta(seconds=1)
    assert len(app.schedules.backfill("a", start, start + timedelta(seconds=999)).runs) == 1_000
    with pytest.raises(InvalidInput, match="has 1,001 due times"):
        app.schedules.backfill("a", start, start + timedelta(seconds=1_000))


def test_what_cannot_be_filled_in_says_why(app: Ostinato, clock: FakeClock) -> None:
    _add(app, "every 1h after finish")
    with pytest.raises(Conflict, match="counts from the end"):
        app.schedules.backfill("a", at(0) - DAY, at(0))
    app.schedules.edit("a", timing="at 2027-01-01T00:00Z")
    with pytest.raises(Conflict, match="yet to come"):
        app.schedules.backfill("a", at(0) - DAY, at(0))
    with pytest.raises(InvalidInput, match="in the future"):
        app.schedules.backfill("a", at(0), at(1))
    with pytest.raises(InvalidInput, match="is after"):
        app.schedules.backfill("a", at(0), at(0) - DAY)
    with pytest.raises(InvalidInput, match="has no zone"):
        app.schedules.backfill("a", datetime(2025, 1, 1), at(0))
    with pytest.raises(NotFound):
        app.schedules.backfill("none", at(0) - DAY, at(0))


def test_the_command_line_prints_numbers_or_due_times(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "daily 03:00", "--task", "hello", "--tz", "UTC")
    span = ("--from", "2026-01-01", "--until", "2026-01-03")
    dry = cli.ok("schedule", "backfill", "a", *span, "--dry-run")
    assert dry.out.splitlines() == ["Thu 2026-01-01 03:00:00 +00:00", "Fri 2026-01-02 03:00:00 +00:00"]
    assert "2 due times of 'a' would be queued" in dry.err
    assert cli.ok("schedule", "backfill", "a", *span).out.split() == ["1", "2"]
    again = cli.ok("schedule", "backfill", "a", *span)
    assert (again.out, "0 due times of 'a' queued; 2 left out, which ran or are active" in again.err) == ("", True)
    forced = cli.ok("schedule", "backfill", "a", *span, "--all", "--json").json
    assert forced == {"due": ["2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"], "runs": [1, 2], "left_out": 0}


def test_the_command_line_refuses_what_is_not_a_span(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "daily 03:00", "--task", "hello")
    wrong = cli("schedule", "backfill", "a", "--from", "yesterday", "--until", "2026-01-03", "--json")
    assert (wrong.code, "from 'yesterday' is not a time" in wrong.err) == (2, True)
    assert cli("schedule", "backfill", "a", "--from", "2026-01-03", "--until", "2999-01-01").code == 2
