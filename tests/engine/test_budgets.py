"""Budgets at work: reserved at the start, settled at the end, and a schedule that is held until its next day."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from ostinato import Budget, Ostinato, RunState, current_run
from ostinato.testing import FakeClock, drain, simulate
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared


@pytest.fixture
def costly(app: Ostinato) -> list[float]:
    """A schedule each hour whose runs cost what the list says last; $1 a run, $3 a day."""
    costs = [1.0]

    @app.task("job", retry=0)
    def job() -> None:
        current_run().count("cost_usd", costs[-1])

    app.schedules.add("job", "every 1h", job, tz="UTC", budget=Budget(per_run_usd=1, per_day_usd=3))
    return costs


def test_a_used_up_budget_holds_the_schedule_until_its_next_day(app: Ostinato, costly: list[float]) -> None:
    assert simulate(app, lasting="10h") == 3
    schedule = app.schedules.get("job")
    assert schedule.enabled
    assert schedule.next_run_at is not None
    assert schedule.next_run_at.hour == 0
    assert schedule.next_run_reason == (
        f"paused: budget: $3.00 of $3.00 spent today; it goes on at {schedule.next_run_at:%Y-%m-%d} 00:00 UTC"
    )


def test_the_due_times_it_was_held_for_are_one_skipped_row(
    app: Ostinato, costly: list[float], fake_clock: FakeClock
) -> None:
    simulate(app, lasting="3h")
    resumes = app.schedules.get("job").next_run_at
    assert resumes is not None
    held_from = fake_clock.now_utc() + timedelta(hours=1)
    fake_clock.move_to(resumes)
    drain(app)
    newest, held, *_ = app.runs.list(schedule="job")
    assert (newest.state, newest.due_at) == (RunState.SUCCEEDED, resumes)
    assert (held.state, held.due_at, held.last_due_at) == (
        RunState.SKIPPED,
        held_from,
        resumes - timedelta(hours=1),
    )
    assert held.count == (resumes - held_from) // timedelta(hours=1)
    assert (held.reason or "").startswith("budget: $3.00 of $3.00 spent today")
    assert app.schedules.get("job").next_run_reason is None


def test_a_trigger_by_hand_is_bound_by_the_budget_too(app: Ostinato, costly: list[float]) -> None:
    simulate(app, lasting="3h")
    run = app.schedules.trigger("job")
    drain(app)
    run = app.runs.get(run.id)
    assert (run.state, run.reason) == (RunState.SKIPPED, "budget: $3.00 of $3.00 spent today")


def test_enabling_does_not_lift_the_bound_but_ends_the_pause(app: Ostinato, costly: list[float]) -> None:
    simulate(app, lasting="3h")
    assert app.schedules.get("job").paused
    assert app.schedules.enable("job").next_run_reason is None
    simulate(app, lasting="1h")
    assert app.runs.list(schedule="job")[0].state is RunState.SKIPPED
    assert (app.schedules.get("job").next_run_reason or "").startswith("paused")


def ledger(app: Ostinato) -> list[tuple[int, int | None, int, RunState]]:
    """The rows of the schedule, oldest first: the hours of the first and last due time, their count, the state."""
    return [
        (run.due_at.hour, run.last_due_at.hour if run.last_due_at else None, run.count, run.state)
        for run in reversed(app.runs.list(schedule="job"))
    ]


RAN = [(hour, None, 1, RunState.SUCCEEDED) for hour in (1, 2, 3)]
"""What ran before the budget was used up: an hour each, from midnight."""


@pytest.mark.parametrize("budget", [None, Budget(per_run_usd=1, per_day_usd=5)])
def test_another_budget_ends_a_pause_and_it_goes_on_at_its_next_due_time(
    app: Ostinato, costly: list[float], fake_clock: FakeClock, budget: Budget | None
) -> None:
    simulate(app, lasting="8h30m")
    before = app.schedules.get("job")
    edited = app.schedules.edit("job", budget=budget)
    assert (edited.paused, edited.next_run_reason) == (False, None)
    assert edited.next_run_at == fake_clock.now_utc() + timedelta(minutes=30)
    assert edited.anchor_at == before.anchor_at
    assert ledger(app) == [*RAN, (4, 8, 5, RunState.SKIPPED)]
    simulate(app, lasting="3h")
    went_on = 2 if budget else 3
    assert ledger(app)[4:] == [(9 + number, None, 1, RunState.SUCCEEDED) for number in range(went_on)]
    assert app.schedules.get("job").paused is (budget is not None)


def test_what_others_have_reserved_is_waited_for(app: Ostinato, gate: Gate, fake_clock: FakeClock) -> None:
    @app.task("job")
    def job() -> None:
        gate.wait()
        current_run().count("cost_usd", 0.25)

    app.schedules.add("job", "every 1h", job, tz="UTC", overlap="allow", budget=Budget(per_day_usd=1))
    app.start()
    first = app.schedules.trigger("job", force=True)
    gate.entered()
    second = app.schedules.trigger("job", force=True)
    eventually(lambda: app.runs.get(second.id).reason)
    waits = app.runs.get(second.id)
    assert (waits.state, waits.reason) == (
        RunState.QUEUED,
        "budget: $0.00 of $1.00 spent today, $1.00 more reserved by active runs",
    )
    gate.open()
    app.runs.wait(first.id, timeout="60s")
    fake_clock.advance("30s")
    assert app.runs.wait(second.id, timeout="60s").state is RunState.SUCCEEDED


def test_a_run_whose_budget_is_used_up_by_its_own_attempt_has_failed(app: Ostinato) -> None:
    @app.task("job", retry={"max": 3, "base": "1s", "spread": 0})
    def job() -> None:
        current_run().count("cost_usd", 5)
        raise ValueError("no good")

    app.schedules.add("job", "every 1h", job, tz="UTC", break_after=1, budget=Budget(per_day_usd=5))
    simulate(app, lasting="2h")
    (run,) = app.runs.list(schedule="job")
    assert (run.state, run.attempt) == (RunState.FAILED, 2)
    assert run.reason == (
        "attempt 1 failed, and the budget allows no further attempt: $5.00 of $5.00 spent today (attempt 2)"
    )
    assert "no good" in (run.attempts[0].error or "")
    assert (app.schedules.get("job").broken or "").startswith("a scheduled run failed: attempt 1 failed")


def test_work_that_never_told_its_cost_has_spent_what_it_reserved(app: Ostinato) -> None:
    @app.task("job", retry=0)
    def job() -> None:
        current_run().spends = True  # as an agent does when its process has begun
        raise ValueError("no good")

    app.schedules.add("job", "every 1h", job, tz="UTC", budget=Budget(per_run_usd=2, per_day_usd=5))
    simulate(app, lasting="2h")
    assert "$4.00 of $5.00 spent today, and a run may cost $2.00" in (app.schedules.get("job").next_run_reason or "")


@on_shared
def test_what_a_drain_cuts_off_has_spent_what_it_reserved_if_it_never_told(
    shared_db: str, make_app: MakeApp, gate: Gate
) -> None:
    """It was an attempt, and nobody knows what it cost."""
    app = make_app(shared_db)

    @app.task("job")
    async def job() -> None:
        current_run().spends = True
        gate.inside += 1
        await asyncio.sleep(60)

    app.schedules.add("job", "every 1h", job, tz="UTC", budget=Budget(per_day_usd=5))
    app.start()
    run = app.schedules.trigger("job")
    eventually(lambda: gate.inside)
    app.stop(grace=0)
    assert app.runs.get(run.id).state is RunState.QUEUED
    assert "$5.00 of $5.00 spent today" in (app.schedules.get("job").next_run_reason or "")


def test_a_budget_that_is_used_up_is_asked_before_the_gate(app: Ostinato, tmp_path: Path) -> None:
    @app.task("job")
    def job() -> None: ...

    seen = tmp_path / "seen"
    command = f"""echo x >> {seen}; echo '{{"wake": true}}'"""
    app.schedules.add("job", "every 1h", job, tz="UTC", gate=command, budget=Budget(per_day_runs=1))
    for _ in range(3):
        app.schedules.trigger("job")
        drain(app)
    assert [run.state for run in app.runs.list(schedule="job")] == ["skipped", "skipped", "succeeded"]
    assert seen.read_text() == "x\n"
