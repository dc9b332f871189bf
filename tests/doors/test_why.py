"""Why: what the ledger answers when somebody asks why a schedule did or did not run."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, RunContext
from ostinato.errors import InvalidInput
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.doors.command_line import CommandLine
from tests.doors.conftest import at


def hourly(app: Ostinato, **policy: Any) -> None:
    app.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "every 1h", "job", **policy)


def test_why_it_ran(app: Ostinato) -> None:
    hourly(app)
    simulate(app, lasting="1h")
    why = app.why("job")
    assert why.answer.startswith("It ran: run 1, due 2026-01-01 01:00:00 UTC, succeeded in ")
    assert why.run is not None
    assert why.due_at == at(1)


def test_why_it_ran_with_errors(app: Ostinato) -> None:
    @app.task("job", retry=0)
    def job(run: RunContext) -> None:
        run.count("copied", 120)
        run.count("errors", 3)

    app.schedules.add("job", "every 1h", job)
    simulate(app, lasting="1h")
    answer = app.why("job").answer
    told = "It ran: run 1, due 2026-01-01 01:00:00 UTC, succeeded with 3 errors (copied 120, errors 3) in "
    assert answer.startswith(told)


def test_why_it_failed(app: Ostinato) -> None:
    @app.task("job", retry=0)
    def job() -> None:
        raise ValueError("no ink")

    app.schedules.add("job", "every 1h", job)
    simulate(app, lasting="1h")
    assert "It ran and failed" in app.why("job").answer
    assert "ValueError: no ink" in app.why("job").answer


def test_why_it_was_skipped(app: Ostinato) -> None:
    hourly(app)
    app.check("ink")(lambda: None)
    app.schedules.edit("job", checks=["ink"])
    app.registry.checks["ink"] = lambda: "empty"
    simulate(app, lasting="1h")
    assert "It did not run: run 1, due 2026-01-01 01:00:00 UTC was skipped; check failed: ink: empty" in (
        app.why("job").answer
    )


def test_why_it_was_missed(app: Ostinato, clock: FakeClock) -> None:
    hourly(app, catch_up="none")
    clock.advance("5h30m")
    drain(app)
    answer = app.why("job", at=at(3)).answer
    assert "was missed" in answer
    assert "and 4 more until 2026-01-01 05:00:00 UTC" in answer
    assert "due while no engine was running" in answer


def test_why_it_did_not_run_before_it_was_made_though_it_is_not_due_now(app: Ostinato) -> None:
    hourly(app)
    app.schedules.disable("job", note="holiday")
    answer = app.why("job", at=datetime(2025, 12, 31, 23, tzinfo=UTC)).answer
    assert answer == (
        "It was not due at 2025-12-31 23:00:00 UTC: the schedule was created at 2026-01-01 00:00:00 UTC. "
        "It is not due: disabled: holiday."
    )


def test_why_it_is_disabled(app: Ostinato, clock: FakeClock) -> None:
    hourly(app)
    app.schedules.disable("job", note="holiday")
    clock.advance("90m")
    drain(app)
    assert app.why("job").answer == "It did not run at 2026-01-01 01:00:00 UTC: disabled: holiday."


def test_why_it_is_broken(app: Ostinato, clock: FakeClock) -> None:
    @app.task("job", retry=0)
    def job() -> None:
        raise ValueError("no ink")

    app.schedules.add("job", "every 1h", job, break_after=1)
    simulate(app, lasting="2h30m")
    assert "broken: a scheduled run failed: ValueError: no ink" in app.why("job").answer


def test_why_it_was_not_due(app: Ostinato) -> None:
    hourly(app)
    why = app.why("job")
    assert why.answer.startswith("It was not due at 2026-01-01 00:00:00 UTC")
    assert "due next at 2026-01-01 01:00:00 UTC" in why.answer


def test_why_when_no_engine_runs(app: Ostinato, clock: FakeClock) -> None:
    hourly(app)
    clock.advance("70m")
    why = app.why("job")
    assert why.answer == ("It was due at 2026-01-01 01:00:00 UTC, but no engine is running.")
    assert why.blocked_by is not None
    assert why.blocked_by.command == "ostinato worker --app MODULE:APP"
    assert why.facts[1:] == (
        "due since 2026-01-01 01:00:00 UTC: no engine is running to start it",
        "no engine is running on this database",
    )


def test_a_due_time_that_passed_while_nobody_was_there_is_not_due_next(app: Ostinato, clock: FakeClock) -> None:
    hourly(app)
    clock.advance("70m")
    assert app.why("job", at=at(0, 30)).answer == (
        "It was not due at 2026-01-01 00:30:00 UTC: Every hour. "
        "It has been due since 2026-01-01 01:00:00 UTC: no engine is running to start it."
    )


def test_why_it_is_running_or_queued(app: Ostinato, clock: FakeClock, opened: threading.Event) -> None:
    app.task("job")(lambda: opened.wait(10))
    app.schedules.add("job", "every 5s", "job", overlap="queue_one")
    app.start()
    clock.advance("5s")  # less than a lease: its node is not lost
    settle(app)
    assert app.why("job").answer.startswith("It is running: run 1")
    clock.advance("5s")
    settle(app)
    assert app.why("job").answer.startswith("It is queued: run 2")


def test_why_takes_only_times_with_a_zone(app: Ostinato) -> None:
    hourly(app)
    with pytest.raises(InvalidInput, match="has no zone"):
        app.why("job", at=datetime(2026, 1, 1))


def test_why_of_a_paused_schedule_is_its_pause_only_for_what_it_leaves_out(app: Ostinato) -> None:
    hourly(app, tz="UTC", budget={"per_day_runs": 3})
    simulate(app, lasting="6h")
    paused = "paused: budget: 3 of 3 runs used today; it goes on at 2026-01-02 00:00 UTC."
    assert app.why("job").answer == f"It did not run at 2026-01-01 06:00:00 UTC: {paused}"
    assert app.why("job", at=at(4)).answer == f"It did not run at 2026-01-01 04:00:00 UTC: {paused}"
    assert app.why("job", at=at(23)).answer == f"It will not run at 2026-01-01 23:00:00 UTC: {paused}"
    assert app.why("job", at=at(3)).answer.startswith("It ran: run 3, due 2026-01-01 03:00:00 UTC")
    assert app.why("job", at=at(0, day=2)).answer == "It is due at 2026-01-02 00:00:00 UTC, which is yet to come."
    assert app.why("job", at=at(0, day=3)).answer == "It is due at 2026-01-03 00:00:00 UTC, which is yet to come."


def test_the_command_that_ends_a_pause_by_the_budget_lets_the_schedule_run_again(app: Ostinato) -> None:
    hourly(app, tz="UTC", budget={"per_day_runs": 3, "per_run_usd": 1})
    simulate(app, lasting="6h")
    blocked = app.why("job").blocked_by
    assert blocked is not None
    assert blocked.command == "ostinato schedule edit job --budget per_day_runs=6"
    app.schedules.edit("job", budget={"per_day_runs": 6, "per_run_usd": 1})
    simulate(app, lasting="2h")
    assert [run.state for run in app.runs.list(schedule="job", limit=2)] == ["succeeded", "succeeded"]


def test_why_of_a_due_time_before_a_pause_that_has_no_row_is_not_the_pause(app: Ostinato, clock: FakeClock) -> None:
    app.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "0 * * * *", "job", tz="UTC", budget={"per_day_runs": 3})
    simulate(app, lasting="2h")
    app.schedules.disable("job")
    clock.advance("3h")
    app.schedules.enable("job")
    simulate(app, lasting="2h")
    assert app.schedules.get("job").paused_since == at(7)
    assert app.why("job", at=at(4)).answer.startswith("There is no row for 2026-01-01 04:00:00 UTC")
    assert app.why("job", at=at(7)).answer.startswith("It did not run at 2026-01-01 07:00:00 UTC: paused")


def test_why_after_a_pause_was_ended_is_its_row(app: Ostinato) -> None:
    hourly(app, tz="UTC", budget={"per_day_runs": 3})
    simulate(app, lasting="6h")
    app.schedules.disable("job")
    answer = app.why("job", at=at(5)).answer
    assert "due 2026-01-01 04:00:00 UTC and 2 more until 2026-01-01 06:00:00 UTC was skipped; budget: 3 of 3" in answer


def test_why_of_a_due_time_to_come_says_so(app: Ostinato) -> None:
    hourly(app)
    assert app.why("job", at=at(2)).answer == "It is due at 2026-01-01 02:00:00 UTC, which is yet to come."
    app.schedules.disable("job", note="holiday")
    assert app.why("job", at=at(2)).answer == "It will not run at 2026-01-01 02:00:00 UTC: disabled: holiday."


def test_why_of_a_time_that_a_backfill_ran_is_its_run(app: Ostinato, clock: FakeClock) -> None:
    hourly(app, catch_up="none")
    simulate(app, lasting="1h")
    app.schedules.disable("job")
    clock.advance("9h30m")
    app.schedules.enable("job")
    found = app.schedules.backfill("job", at(4), at(7))
    drain(app)
    assert len(found.due) == 3
    for due, id in zip(found.due, found.runs, strict=True):
        why = app.why("job", at=due)
        assert why.answer.startswith(f"It ran: run {id}, due {due:%Y-%m-%d %H:%M:%S} UTC, succeeded in ")
        assert (why.run is not None and why.run.id, why.due_at) == (id, due)
    assert app.why("job", at=at(1)).answer.startswith("It ran: run 1, due 2026-01-01 01:00:00 UTC")


def test_a_backfill_of_long_ago_does_not_hide_the_latest_due_time(app: Ostinato, clock: FakeClock) -> None:
    app.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "0 * * * *", "job", tz="UTC", catch_up="none")
    clock.advance("29h30m")
    drain(app)
    simulate(app, lasting="1h")
    app.schedules.backfill("job", at(1), at(0, day=2))
    drain(app)
    assert "due 2026-01-02 06:00:00 UTC, succeeded" in app.why("job").answer


def test_why_of_a_time_after_a_run_by_hand_is_that_run(app: Ostinato, clock: FakeClock) -> None:
    hourly(app)
    clock.advance("1h")
    drain(app)
    clock.advance("10m")
    app.schedules.trigger("job")
    drain(app)
    clock.advance("10m")
    assert app.why("job", at=at(1, 15)).answer.startswith(
        "It ran: run 2, by hand at 2026-01-01 01:10:00 UTC, succeeded"
    )
    for asked in (app.why("job"), app.why("job", at=at(1))):
        assert asked.answer.startswith("It ran: run 1, due 2026-01-01 01:00:00 UTC")


def test_why_of_a_retry_is_its_own_reason_until_it_is_ready_and_then_also_what_it_waits_for(
    app: Ostinato, clock: FakeClock
) -> None:
    @app.task("job", retry=3)
    def job() -> None:
        raise ValueError("no ink")

    app.schedules.add("job", "every 1h", job)
    clock.advance("1h")
    drain(app)
    answer = app.why("job").answer
    assert answer.startswith("It is queued: run 1, due 2026-01-01 01:00:00 UTC; attempt 1 of 4 failed, next in ")
    assert answer.endswith(": ValueError: no ink.")
    clock.advance("5m")
    assert app.why("job").answer == f"{answer[:-1]}; no engine is running."


def test_why_tells_times_in_the_zone_of_the_settings(app: Ostinato, clock: FakeClock, cli: CommandLine) -> None:
    berlin = Ostinato(settings=replace(app.settings, db="sqlite:///jobs.db", tz="Europe/Berlin"), clock=clock)
    berlin.task("job", retry=0)(lambda: None)
    berlin.schedules.add("job", "daily 10:00", "job", tz="Asia/Tokyo")
    assert berlin.why("job", at=at(0, 30)).answer == (
        f"It was not due at 2026-01-01 01:30:00 +01:00: {berlin.schedules.get('job').sentence} "
        "It is due next at 2026-01-01 02:00:00 +01:00."
    )
    simulate(berlin, lasting="2h")
    assert berlin.why("job").answer.startswith("It ran: run 1, due 2026-01-01 02:00:00 +01:00, succeeded in ")
    assert berlin.why("job").facts[1:] == (
        "due next at 2026-01-02 02:00:00 +01:00",
        "no engine is running on this database",
    )
    assert berlin.why("job").due_at == at(1)
    berlin.stop()

    Path("ostinato.toml").write_text('db = "jobs.db"\ntz = "Europe/Berlin"\n')
    assert "run 1, due 2026-01-01 02:00:00 +01:00" in " ".join(
        cli.ok("why", "job", "--at", "2026-01-01 02:00").out.split()
    )
    assert cli.ok("why", "job", "--at", "2026-01-01 02:00", "--json").json["due_at"] == "2026-01-01T01:00:00Z"
