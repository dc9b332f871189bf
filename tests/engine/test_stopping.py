"""Stopping and losing: a drain, a cut-off, held runs, a lost lease, a rescue, and the token that decides."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from ostinato import Abort, Ostinato, Retry, RunContext, RunState, Snooze
from ostinato.engine.node import Engine
from ostinato.tasks import Task
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.conftest import tuned
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared


def other_node(make_app: MakeApp, db: str, clock: FakeClock | None = None) -> Ostinato:
    """Another process, which knows the task by the same name."""
    app = make_app(db, clock=clock)
    app.task("job")(lambda: "by the other node")
    return app


@on_shared
def test_on_stop_running_work_may_finish(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    app, reader = make_app(shared_db), make_app(shared_db)
    job = app.task("job", retry=0)(lambda: gate.passed("finished"))
    app.start()
    run = job.enqueue()
    later = job.using(delay="1h").enqueue()
    gate.entered()
    stopping = threading.Thread(target=app.stop)
    stopping.start()
    eventually(lambda: [node.state for node in reader.nodes.list()] == ["draining"])
    new = reader.task("job")(lambda: None).enqueue()
    gate.open()
    stopping.join(10)
    assert reader.runs.get(run.id).result == "finished"
    assert reader.runs.get(later.id).state is RunState.QUEUED
    assert reader.runs.get(new.id).state is RunState.QUEUED, "a node that drains claims nothing new"
    assert reader.nodes.list() == []


def endless(app: Ostinato, started: list[int], **options: Any) -> Task[[], Any]:
    """A task that never ends by itself."""

    @app.task("job", **options)
    async def job() -> None:
        started.append(1)
        await asyncio.Event().wait()

    return job


@on_shared
def test_without_retries_a_run_is_started_once_however_often_its_node_is_drained(
    shared_db: str, make_app: MakeApp
) -> None:
    started: list[int] = []
    app = make_app(shared_db)
    job = endless(app, started, retry=0)
    app.start()
    run = job.enqueue()
    eventually(lambda: started)
    app.stop(grace=0)

    for _ in range(3):
        app.start()
        settle(app)
        app.stop(grace=0)
    ended = app.runs.get(run.id)
    assert (ended.state, ended.cause) == (RunState.FAILED, "cut_off")
    assert ended.reason == "its node was stopped while it ran"
    assert [attempt.state for attempt in ended.attempts] == ["failed"]
    assert started == [1]


@on_shared
def test_work_that_is_cut_off_may_say_itself_what_becomes_of_it(shared_db: str, make_app: MakeApp) -> None:
    app = make_app(shared_db)
    started: list[str] = []

    @app.task("job", retry=0)
    async def job(error: str) -> None:
        started.append(error)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Snooze("1h", "half done") if error == "snooze" else Abort("undone") from None

    app.start()
    later, never = job.enqueue("snooze"), job.enqueue("abort")
    eventually(lambda: len(started) == 2)
    app.stop(grace=0)
    assert (later.get().state, later.get().reason) == (RunState.QUEUED, "half done")
    assert (never.get().state, never.get().reason) == (RunState.FAILED, "undone")


@on_shared
def test_a_run_whose_work_had_not_begun_goes_back_without_an_attempt(
    shared_db: str, make_app: MakeApp, tmp_path: Path
) -> None:
    """Its gate was being asked: the work itself is still to be done."""
    app = make_app(shared_db)
    ran: list[int] = []
    job = app.task("job", retry=0)(lambda: ran.append(1))
    app.start()
    run = job.using(gate=f"touch {tmp_path}/asked; sleep 60").enqueue()
    eventually((tmp_path / "asked").exists)  # its row says that it runs before this node knows of it
    app.stop(grace=0)
    back = app.runs.get(run.id)
    assert (back.state, back.attempt, back.attempts, ran) == (RunState.QUEUED, 0, (), [])
    assert back.reason == "its node was stopped before the work began"


@on_shared
@tuned(function_stop_seconds=0.02)
def test_a_thread_that_does_not_end_is_cut_off_too(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(shared_db)
    job = app.task("job", retry=0)(gate.wait)
    app.start()
    run = job.enqueue()
    gate.entered()
    app.stop(grace=0)
    ended = other_node(make_app, shared_db).runs.get(run.id)
    assert (ended.state, ended.attempt) == (RunState.FAILED, 1)
    assert "may still be running" in (ended.reason or "")


@on_shared
def test_held_runs_are_put_back_on_stop(shared_db: str, make_app: MakeApp, fake_clock: FakeClock) -> None:
    app = make_app(shared_db)
    ran: list[int] = []
    job = app.task("job", retry=0)(lambda: ran.append(1))
    app.start()
    run = job.using(delay="50ms").enqueue()
    eventually(lambda: app.health()["held"] == 1)
    app.stop()
    other = other_node(make_app, shared_db)
    back = other.runs.get(run.id)
    assert (back.state, back.attempt, ran) == (RunState.QUEUED, 0, [])
    fake_clock.advance("1s")
    drain(other)
    assert other.runs.get(run.id).state is RunState.SUCCEEDED


@on_shared
def test_a_run_enqueued_while_the_node_stops_is_never_claimed_and_forgotten(shared_db: str, make_app: MakeApp) -> None:
    """A claim that is under way when the node stops must not leave runs that nobody executes."""
    for _ in range(5):
        app = make_app(shared_db)
        job = app.task("job", retry=0)(lambda: "by this node")
        app.start()
        job.enqueue_many([()] * 50)
        app.stop()
    other = other_node(make_app, shared_db)
    assert {run.state for run in other.runs.list(limit=1000)} <= {RunState.QUEUED, RunState.SUCCEEDED}
    drain(other)
    assert {run.state for run in other.runs.list(limit=1000)} == {RunState.SUCCEEDED}
    assert {run.attempt for run in other.runs.list(limit=1000)} == {1}


# Losing a node. The other one has its own clock: to it, the first is silent for too long.


@on_shared
def test_what_a_lost_node_ran_is_rescued_and_counts_as_a_failed_attempt(
    shared_db: str, make_app: MakeApp, gate: Gate
) -> None:
    app, other = make_app(shared_db), other_node(make_app, shared_db, later := FakeClock())
    job = app.task("job", retry=Retry(3, base="1h", longest="1h"))(gate.wait)
    app.start()
    run = job.enqueue()
    gate.entered()
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("100ms") and other.runs.get(run.id).state is RunState.QUEUED)
    rescued = other.runs.get(run.id)
    assert rescued.attempt == 1
    assert "was lost while it ran this" in (rescued.reason or "")
    assert rescued.attempts[0].state == "failed"


@on_shared
def test_a_schedule_whose_last_run_was_lost_is_not_deleted_with_the_row_that_says_so(
    shared_db: str, make_app: MakeApp, gate: Gate, fake_clock: FakeClock
) -> None:
    app, other = make_app(shared_db), other_node(make_app, shared_db, later := FakeClock())
    app.schedules.add("once", "in 1ms", app.task("job", retry=0)(gate.wait), delete_after_run=True)
    app.start()
    fake_clock.advance("100ms")
    gate.entered()
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("100ms") and other.runs.list(schedule="once", state=RunState.FAILED))
    once = other.schedules.get("once")
    assert (once.next_run_at, once.enabled) == (None, False)
    assert "was lost while it ran this" in (once.broken or "")


@pytest.mark.parametrize("keeps", [False, True])
def test_who_switches_a_schedule_off_ends_what_waits_for_another_attempt_or_keeps_it(
    app: Ostinato, fake_clock: FakeClock, keeps: bool
) -> None:
    fails = [True]

    @app.task("job", retry=Retry(3, base="10m", longest="10m"))
    def job() -> None:
        if fails[-1]:
            raise ValueError("no")

    app.schedules.add("job", "every 1h", job)
    simulate(app, lasting="1h")
    (run,) = app.runs.list(schedule="job")
    assert (run.state, run.attempt) == (RunState.QUEUED, 1)
    fails.append(False)
    app.schedules.disable("job", keep_retries=keeps)
    simulate(app, lasting="1h")
    (run,) = app.runs.list(schedule="job")
    if keeps:
        assert (run.state, run.attempt) == (RunState.SUCCEEDED, 2)
    else:
        assert (run.state, run.cause, run.attempt) == (RunState.CANCELLED, "cancelled", 1)
        assert run.reason == "its schedule was switched off while it waited for another attempt"


def test_a_run_that_has_had_no_attempt_goes_on_when_its_schedule_is_switched_off(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job")
    run = app.schedules.trigger("job")
    app.schedules.disable("job")
    drain(app)
    assert app.runs.get(run.id).state is RunState.SUCCEEDED


def rescue(app: Ostinato) -> int:
    """One look of a started node for runs of nodes that are gone."""

    async def look(engine: Engine) -> int:
        return await engine.rescuer.rescue()

    return app.with_engine(look)


@on_shared
def test_a_node_within_its_lease_is_left_alone(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    app, other = make_app(shared_db), other_node(make_app, shared_db, later := FakeClock())
    job = app.task("job")(gate.wait)
    app.start()
    run = job.enqueue()
    gate.entered()
    other.start()
    later.advance("14s")
    assert rescue(other) == 0
    assert other.runs.get(run.id).state is RunState.RUNNING


@on_shared
def test_a_wrong_clock_declares_nobody_lost(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    """Another node's clock is a year ahead: what counts is for how long nothing was heard."""
    app, other = make_app(shared_db), other_node(make_app, shared_db, FakeClock("2027-01-01T00:00:00Z"))
    job = app.task("job", retry=0)(gate.wait)
    app.start()
    run = job.enqueue()
    gate.entered()
    other.start()
    assert rescue(other) == 0
    assert other.runs.get(run.id).state is RunState.RUNNING


@on_shared
def test_a_node_that_lost_its_lease_writes_nothing_of_what_it_ran(
    shared_db: str, make_app: MakeApp, gate: Gate
) -> None:
    """The token decides: the first node ends its work after another took the run over."""
    app, other = make_app(shared_db), other_node(make_app, shared_db, later := FakeClock())
    job = app.task("job", retry=1)(lambda: gate.passed("too late"))
    app.start()
    run = job.enqueue()
    gate.entered()
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("1s") and other.runs.get(run.id).result == "by the other node")

    gate.open()
    eventually(lambda: app.health()["lost_runs"] == 1)
    after = other.runs.get(run.id)
    assert (after.result, after.attempt) == ("by the other node", 2)


@on_shared
def test_a_node_that_learns_of_its_lost_lease_stops_its_work_and_goes_on_under_a_new_name(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    app, other = make_app(shared_db), other_node(make_app, shared_db, later := FakeClock())
    stopped: list[str] = []
    started: list[int] = []

    @app.task("job", retry=0)
    async def job(run: RunContext) -> str:
        started.append(1)
        if len(started) > 1:
            return "as a new node"
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("stopped")
        return "never"

    app.start()
    name = app.health()["node"]
    run = job.enqueue()
    eventually(lambda: started)
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("100ms") and other.runs.get(run.id).state is RunState.FAILED)
    other.stop()

    eventually(lambda: fake_clock.advance("5s") and stopped)
    eventually(lambda: app.health()["node"] != name)
    assert app.runs.get(run.id).state is RunState.FAILED
    assert app.health()["running"] == 0
    assert job.enqueue().wait(timeout=60).result == "as a new node"


def test_a_node_that_slept_does_not_take_itself_for_lost(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    job = app.task("job", retry=0)(lambda: gate.passed("slept well"))
    app.start()
    run = job.enqueue()
    gate.entered()
    fake_clock.advance("8h")
    settle(app)
    assert run.get().state is RunState.RUNNING
    gate.open()
    assert run.wait(timeout=60).result == "slept well"


# Tasks that nobody knows, and rows that nobody can read.


def test_a_run_whose_task_nobody_knows_says_so_and_waits_for_a_node_that_does(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    app.schedules.add("job", "every 1h", "vanished")
    fake_clock.advance("1h")
    drain(app)
    fake_clock.advance("61s")
    drain(app)
    (run,) = app.runs.list(schedule="job")
    assert run.state is RunState.QUEUED
    assert "task 'vanished' is not registered on any running node" in (run.reason or "")
    assert "not registered on any running node" in app.why("job").answer
    app.task("vanished")(lambda: "back again")
    drain(app)
    (run,) = app.runs.list(schedule="job")
    assert (run.result, run.reason) == ("back again", None)


# Nobody told the node that is left: it looks by itself.


no_jumps = tuned(clock_jump_seconds=1e9)
"""A moved FakeClock is no jump: a jump wakes everybody, and hides who would have slept."""


@on_shared
@no_jumps
def test_a_rescued_run_is_executed_although_nothing_else_happens(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    app, later = make_app(shared_db), FakeClock()
    job = app.task("job", retry=Retry(1, base="1s", spread=0))(gate.wait)
    app.start()
    run = job.enqueue()
    gate.entered()
    other = other_node(make_app, shared_db, later).start()
    settle(other)
    eventually(lambda: later.advance("5s") and other.runs.get(run.id).result == "by the other node")
    assert [attempt.state for attempt in other.runs.get(run.id).attempts] == ["failed", "succeeded"]


@on_shared
def test_what_a_stopping_node_puts_back_is_taken_by_the_next_one_at_once(shared_db: str, make_app: MakeApp) -> None:
    app, other = make_app(shared_db), make_app(shared_db)
    started: list[int] = []
    job = endless(app, started, retry=1)
    app.start()
    run = job.enqueue()
    eventually(lambda: started)
    other.start()
    other.task("job")(lambda: "by the other node")
    app.stop(grace=0)
    assert other.runs.wait(run.id, timeout=60).result == "by the other node"


@on_shared
@no_jumps
def test_a_retry_whose_node_died_meanwhile_is_seen_by_another_within_a_few_seconds(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    app, other = make_app(shared_db), make_app(shared_db)

    @app.task("job", retry=Retry(1, base="1m", longest="1m", spread=0))
    def job() -> None:
        raise ValueError

    other.start()
    run = job.enqueue()
    drain(app)  # and then it is gone, and tells nobody
    other.registry.add_task("job", lambda: "by the other node", {})
    other.with_engine(_knows_its_tasks)
    fake_clock.advance("1m")
    eventually(lambda: fake_clock.advance("5s") and other.runs.get(run.id).result == "by the other node")


async def _knows_its_tasks(engine: Engine) -> None:
    engine.dispatcher.know(sorted(engine.registry.tasks))
