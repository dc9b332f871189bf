"""What becomes of an execution: retries, Abort, Snooze, timeouts, cancels, max age."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from ostinato import Ostinato, Retry, RunContext, RunState, Shell, Snooze, current_run
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.conftest import tuned
from tests.engine.conftest import Gate, eventually

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_failed_attempt_is_tried_again_after_its_delay_and_not_before(app: Ostinato, fake_clock: FakeClock) -> None:
    @app.task("job", retry=Retry(3, base="10s", longest="1m", spread=0))
    def job() -> str:
        if current_run().attempt < 3:
            raise ValueError(f"boom {current_run().attempt}")
        return "third time lucky"

    run = job.enqueue()
    drain(app)
    waiting = run.get()
    assert waiting.state is RunState.QUEUED
    assert waiting.ready_at == MIDNIGHT + timedelta(seconds=10)
    assert "attempt 1 of 4 failed, next in 10s: ValueError: boom 1" in (waiting.reason or "")

    fake_clock.advance("9s")
    assert drain(app) == 0
    fake_clock.advance("1s")
    assert drain(app) == 1
    fake_clock.advance("20s")
    assert drain(app) == 1

    ended = run.get()
    assert (ended.state, ended.result, ended.attempt) == (RunState.SUCCEEDED, "third time lucky", 3)
    assert [attempt.state for attempt in ended.attempts] == ["failed", "failed", "succeeded"]
    assert [("boom" in (attempt.error or "")) for attempt in ended.attempts] == [True, True, False]


def test_snooze_tries_later_without_counting(app: Ostinato, fake_clock: FakeClock) -> None:
    attempts: list[int] = []

    @app.task("job", retry=0)
    def job() -> None:
        attempts.append(current_run().attempt)
        if len(attempts) < 4:
            raise Snooze("5m", "not ready yet")

    run = job.enqueue()
    drain(app)
    assert (run.get().state, run.get().reason) == (RunState.QUEUED, "not ready yet")
    assert [attempt.state for attempt in run.get().attempts] == ["snoozed"], "it has started, though it does not count"
    assert run.get().ready_at == MIDNIGHT + timedelta(minutes=5)
    simulate(app, lasting="1h")
    ended = run.get()
    assert attempts == [1, 1, 1, 1]
    assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 1)
    assert [attempt.state for attempt in ended.attempts] == ["snoozed"] * 3 + ["succeeded"]


# Timeouts are on the engine's clock.


def test_an_async_task_that_times_out_is_stopped(app: Ostinato, fake_clock: FakeClock) -> None:
    ended: list[str] = []
    started: list[str] = []

    @app.task("job", timeout="5m", retry=0)
    async def job() -> None:
        started.append("x")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    app.start()
    run = job.enqueue()
    eventually(lambda: started)
    fake_clock.advance("4m59s")
    settle(app)
    assert run.get().state is RunState.RUNNING
    fake_clock.advance("1s")
    assert run.wait(timeout=60).state is RunState.FAILED
    assert (run.get().cause, run.get().reason) == ("timed_out", "timed out after 5m")
    assert ended == ["cleaned up"]


def test_a_timeout_is_retried_like_any_failure(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    attempts: list[int] = []

    @memory_app.task("job", timeout="5m", retry=Retry(1, base="1m", longest="1m", spread=0))
    async def job() -> None:
        attempts.append(current_run().attempt)
        if len(attempts) == 1:
            await asyncio.Event().wait()

    memory_app.start()
    run = job.enqueue()
    eventually(lambda: attempts)
    fake_clock.advance("5m")
    eventually(lambda: run.get().state is RunState.QUEUED)
    fake_clock.advance("1m")
    assert run.wait(timeout=60).state is RunState.SUCCEEDED
    assert attempts == [1, 2]


@tuned(function_stop_seconds=0.02)
def test_a_sync_task_that_times_out_and_does_not_look_is_given_up_with_a_readable_reason(
    memory_app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    @memory_app.task("job", timeout="5m", retry=0)
    def job() -> None:
        gate.wait()

    memory_app.start()
    run = job.enqueue()
    gate.entered()
    fake_clock.advance("5m")
    ended = run.wait(timeout=60)
    assert ended.state is RunState.FAILED
    assert (ended.reason or "").startswith("timed out after 5m; it did not end when told to")
    assert "isolation='process'" in (ended.reason or "")
    assert memory_app.health()["threads_busy"] == 1

    gate.open()
    eventually(lambda: memory_app.health()["threads_busy"] == 0)
    assert run.get().state is RunState.FAILED


def test_a_sync_task_that_looks_at_cancelled_ends_when_it_times_out(
    memory_app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    @memory_app.task("job", timeout="5m", retry=0)
    def job(run: RunContext) -> str:
        gate.wait()
        while not run.cancelled:
            time.sleep(0.001)
        return "I saw it"

    memory_app.start()
    run = job.enqueue()
    gate.open()
    gate.entered()
    fake_clock.advance("5m")
    assert (run.wait(timeout=60).state, run.get().reason) == (RunState.FAILED, "timed out after 5m")


# Cancelling.


def test_a_running_run_is_asked_to_stop_and_then_cancelled(app: Ostinato) -> None:
    started: list[int] = []

    @app.task("job")
    async def job() -> None:
        started.append(1)
        await asyncio.Event().wait()

    app.start()
    run = job.enqueue()
    eventually(lambda: started)
    run.cancel()
    ended = run.wait(timeout=60)
    assert (ended.state, ended.reason) == (RunState.CANCELLED, "cancelled by a program")


def test_a_run_held_for_its_instant_is_cancelled_before_it_starts(app: Ostinato, fake_clock: FakeClock) -> None:
    ran: list[int] = []
    job = app.task("job")(lambda: ran.append(1))
    app.start()
    run = job.using(delay="50ms").enqueue()
    eventually(lambda: app.health()["held"] == 1)
    assert run.get().state is RunState.RUNNING, "a held run is claimed already"
    run.cancel()
    eventually(lambda: run.get().state is RunState.CANCELLED)
    fake_clock.advance("1s")
    drain(app)
    assert ran == []


def test_work_that_ends_by_itself_at_the_same_moment_has_succeeded(app: Ostinato, gate: Gate) -> None:
    @app.task("job")
    def job() -> str:
        gate.wait()
        return "done"

    app.start()
    run = job.enqueue()
    gate.entered()
    run.cancel()
    gate.open()
    assert run.wait(timeout=60).state is RunState.SUCCEEDED


def test_a_cancelled_run_is_not_retried(app: Ostinato) -> None:
    started: list[int] = []

    @app.task("job", retry=5)
    async def job() -> None:
        started.append(1)
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("on the way out")

    app.start()
    run = job.enqueue()
    eventually(lambda: started)
    run.cancel()
    assert run.wait(timeout=60).state is RunState.CANCELLED
    drain(app)
    assert started == [1]


# Max age.


def test_runs_by_hand_expire_by_when_they_were_asked_for(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    begun = fake_clock.now_utc()
    app.schedules.add("job", "every 1h", "job", max_age="5m")
    app.schedules.disable("job")
    fake_clock.advance("2h30m")
    for wait, state in (("4m", RunState.SUCCEEDED), ("5m", RunState.EXPIRED)):
        by_hand = app.schedules.trigger("job", force=True)
        again = app.schedules.backfill("job", begun, begun + timedelta(hours=2), all=True).runs
        fake_clock.advance(wait)
        drain(app)
        assert {app.runs.get(id).state for id in (by_hand.id, *again)} == {state}


# What work reports.


def test_a_running_run_can_be_watched(app: Ostinato, gate: Gate) -> None:
    @app.task("job")
    def job(run: RunContext) -> None:
        run.progress(1, 2)
        run.log("half way")
        gate.wait()

    app.start()
    run = job.enqueue()
    gate.entered()
    eventually(lambda: app.runs.output(run.id) == "half way\n")
    progress = run.get().progress
    assert progress is not None
    assert progress.done == 1


def test_every_attempt_keeps_why_it_failed_also_where_there_is_no_traceback(app: Ostinato) -> None:
    run = app.enqueue(Shell("echo bad; exit 3"), retry={"max": 1, "base": "0s"})
    drain(app)
    first, last = run.get().attempts
    assert (first.error, last.error) == ("exited with status 3: bad", "exited with status 3: bad (attempt 2)")
