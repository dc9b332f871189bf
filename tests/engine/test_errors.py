"""Succeeded with errors: work that returns and has counted `errors` is done, and says so wherever it is told."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Cause, Ostinato, RunContext, RunState, Shell
from ostinato.models.app_event import AppEvent
from ostinato.testing import FakeClock, drain, simulate


def copying(app: Ostinato, *counts: float, **policy: Any) -> None:
    """A schedule each hour that counts so many errors in its first run, its second one, and so on."""
    left = list(counts)

    @app.task("copy", retry=0)
    def copy(run: RunContext) -> None:
        run.count("copied", 120)
        if errors := left.pop(0):
            run.count("errors", errors)

    app.schedules.add("copy", "every 1h", copy, **policy)


def test_a_run_that_counts_errors_has_succeeded_with_them(app: Ostinato) -> None:
    copying(app, 3, 0)
    simulate(app, lasting="2h")
    plain, errors = app.runs.list(schedule="copy")
    assert (errors.state, errors.cause, errors.reason) == (RunState.SUCCEEDED, Cause.ERRORS, "3 errors")
    assert (errors.error, errors.totals) == (None, {"copied": 120, "errors": 3})
    assert [attempt.state for attempt in errors.attempts] == ["succeeded"]
    assert (plain.state, plain.cause, plain.reason) == (RunState.SUCCEEDED, None, None)
    assert app.runs.list(cause="errors") == [errors]


def test_the_breaker_counts_them_in_a_row_and_forgets_them(app: Ostinato) -> None:
    copying(app, 1, 0, 2, 3, break_after=2)
    simulate(app, lasting="3h")
    assert (app.schedules.get("copy").failures, app.schedules.get("copy").broken) == (1, None)
    simulate(app, lasting="1h")
    assert app.schedules.get("copy").broken == "2 scheduled runs failed in a row; the last: it counted 3 errors"


def test_who_listens_is_told_of_a_success_that_has_a_cause(app: Ostinato) -> None:
    told: list[AppEvent] = []
    app.on("run.succeeded", told.append)
    app.on("run.failed", told.append)
    copying(app, 2)
    simulate(app, lasting="1h")
    (event,) = told
    assert (event.kind, event.state, event.cause, event.reason) == ("run.succeeded", "succeeded", "errors", "2 errors")


@pytest.mark.parametrize("work", ["function", "shell"])
def test_it_is_the_same_for_a_run_without_a_schedule(app: Ostinato, work: str) -> None:
    @app.task
    def count(run: RunContext) -> str:
        run.count("errors", 0.5)
        return "done"

    shell = Shell("""echo '{"count": {"errors": 0.5}}' > $OSTINATO_REPORT""")
    run = app.enqueue(shell) if work == "shell" else count.enqueue()
    drain(app)
    ended = run.get()
    assert (ended.state, ended.cause, ended.reason) == (RunState.SUCCEEDED, Cause.ERRORS, "0.5 errors")
    assert ended.result == "done" if work == "function" else ended.result is not None


def test_it_is_not_tried_again_and_errors_of_a_failed_attempt_do_not_stay(app: Ostinato, fake_clock: FakeClock) -> None:
    counted = [2, 0]

    @app.task("copy", retry=3)
    def copy(run: RunContext) -> None:
        if errors := counted.pop(0):
            run.count("errors", errors)
            raise ValueError("the disk is full")

    run = copy.enqueue()
    drain(app)
    fake_clock.advance("1m")
    drain(app)
    ended = run.get()
    assert (ended.state, ended.attempt, ended.cause, ended.totals) == (RunState.SUCCEEDED, 2, None, {})


def test_what_is_to_be_deleted_after_its_run_stays_off_with_its_errors(app: Ostinato) -> None:
    left = [3, 0]

    @app.task("copy")
    def copy(run: RunContext) -> None:
        run.count("errors", left.pop(0))

    app.schedules.add("copy", "in 30m", copy, delete_after_run=True)
    simulate(app, lasting="1d")
    schedule = app.schedules.get("copy")
    assert (schedule.enabled, schedule.broken) == (False, "its last run succeeded with 3 errors")
    app.schedules.edit("copy", timing="in 1h")
    assert app.schedules.get("copy").enabled
    simulate(app, lasting="1d")
    assert app.schedules.list() == []
