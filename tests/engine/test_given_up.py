"""Work that was given up and goes on: it occupies the name of its schedule until it ends, or its node is gone.

And a schedule that is being removed starts nothing while what runs of it is waited for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ostinato import Ostinato, RunState
from ostinato.engine.node import Engine
from ostinato.errors import AlreadyActive, Conflict, NotFound, VersionConflict
from ostinato.models.run import CANCELLED, Run
from ostinato.testing import FakeClock, settle
from ostinato.tuning import Tuning
from tests.conftest import tuned
from tests.engine.conftest import PATIENCE, Gate, eventually


@pytest.fixture
def tuning() -> Tuning:
    """What does not stop is given up at once."""
    return Tuning(function_stop_seconds=0.02)


def newest(app: Ostinato) -> Run:
    return app.runs.list(schedule="nightly", limit=1)[0]


def give_up(
    app: Ostinato, clock: FakeClock, gate: Gate, work: Callable[[], object] | None = None, **policy: Any
) -> Run:
    """A run of schedule `nightly` that was cancelled and given up, while its thread waits at the gate."""
    job = app.task("job", **{"retry": 0, **policy})(work or gate.wait)
    app.start()
    app.schedules.add("nightly", "every 1m", job)
    clock.advance("1m")
    gate.entered()
    run = newest(app)
    app.runs.cancel(run.id)
    eventually(lambda: app.runs.get(run.id).ended)
    return app.runs.get(run.id)


def told(app: Ostinato, id: int) -> str:
    """What the run says, as its page shows it."""
    return app._host.run(lambda container: container.services.runs.look(id)).reason or ""


def gone(app: Ostinato) -> bool:
    return bool(app.health()["given_up"] == 0)


def test_the_next_due_time_does_not_start_beside_it(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    run = give_up(app, fake_clock, gate)
    assert run.state is RunState.CANCELLED
    fake_clock.advance("1m")
    eventually(lambda: newest(app).id != run.id)
    skipped = newest(app)
    assert skipped.state is RunState.SKIPPED
    assert skipped.reason == f"the code of run {run.id}, which was given up, was still running (overlap is skip)"
    assert app.health()["given_up"] == 1
    answer = app.why("nightly").answer
    assert f"(overlap is skip). Run {run.id} was given up and its code still runs on node" in answer
    assert "still waits" not in answer
    with pytest.raises(AlreadyActive, match=f"run {run.id} was given up and its code still runs on node"):
        app.schedules.trigger("nightly")

    gate.open()
    eventually(lambda: told(app, run.id) == run.reason)
    assert gone(app)
    fake_clock.advance("1m")
    eventually(lambda: newest(app).state is RunState.SUCCEEDED)
    assert gate.most == 1


def test_a_coroutine_that_swallows_its_cancellation_occupies_the_name_too(
    app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    may_end = threading.Event()

    async def stubborn() -> None:
        gate._entered.release()
        while not may_end.is_set():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                continue

    run = give_up(app, fake_clock, gate, stubborn)
    fake_clock.advance("1m")
    eventually(lambda: newest(app).id != run.id)
    assert newest(app).state is RunState.SKIPPED
    may_end.set()
    eventually(lambda: gone(app))


@pytest.mark.parametrize("overlap", ["queue_one", "queue_all", "cancel_running"])
def test_a_due_time_that_is_queued_waits_for_its_end(
    app: Ostinato, fake_clock: FakeClock, gate: Gate, overlap: str
) -> None:
    run = give_up(app, fake_clock, gate, overlap=overlap)
    fake_clock.advance("1m")
    eventually(lambda: newest(app).id != run.id)
    waiting = newest(app)
    settle(app)
    assert app.runs.get(waiting.id).state is RunState.QUEUED
    assert f"run {run.id} was given up and its code still runs on node" in told(app, waiting.id)
    assert "was given up and its code still runs on node" in app.why("nightly").answer

    gate.open()
    eventually(lambda: app.runs.get(waiting.id).state is RunState.SUCCEEDED)
    assert gate.most == 1


def test_queue_one_keeps_one_waiting_for_it_and_no_more(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    run = give_up(app, fake_clock, gate, overlap="queue_one")
    for _ in range(3):
        before = newest(app).id
        fake_clock.advance("1m")
        eventually(lambda: newest(app).id != before)  # noqa: B023
    states = [one.state for one in app.runs.list(schedule="nightly") if one.id > run.id]
    assert states == [RunState.SKIPPED, RunState.SKIPPED, RunState.QUEUED]
    gate.open()


def test_a_forced_trigger_starts_beside_it(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    give_up(app, fake_clock, gate)
    app.schedules.trigger("nightly", force=True)
    gate.entered()
    assert gate.inside == 2


def test_a_task_that_was_given_up_without_a_schedule_is_told_and_holds_up_nobody(app: Ostinato, gate: Gate) -> None:
    job = app.task("job", retry=0)(gate.wait)
    app.start()
    run = job.enqueue()
    gate.entered()
    app.runs.cancel(run.id)
    eventually(lambda: run.get().ended)
    assert f"its code still runs on node {app.health()['node']}" in told(app, run.id)
    job.enqueue()
    gate.entered()
    gate.open()
    eventually(lambda: gone(app))


# Removal: nothing starts while what runs is waited for.


def removing(app: Ostinato, **options: Any) -> tuple[threading.Thread, list[object]]:
    """A removal of schedule `nightly` on another thread, which waits for what runs; and what came of it."""
    results: list[object] = []

    def remove() -> None:
        try:
            results.append(app.schedules.remove("nightly", **options))
        except Conflict as error:
            results.append(error)

    thread = threading.Thread(target=remove)
    thread.start()
    eventually(lambda: app.schedules.get("nightly").paused)
    return thread, results


def run_every_10s(app: Ostinato, clock: FakeClock, gate: Gate) -> None:
    """A schedule whose runs may overlap, with one under way that ends when the gate is opened."""
    app.schedules.add("nightly", "every 10s", app.task("job", retry=0, overlap="allow")(gate.wait))
    app.start()
    clock.advance("10s")
    gate.entered()


patient = tuned(removal_stop_seconds=60.0, function_stop_seconds=3_600)


@patient
def test_a_schedule_that_is_being_removed_starts_nothing(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    run_every_10s(app, fake_clock, gate)
    thread, results = removing(app)
    for _ in range(3):
        fake_clock.advance("10s")
        settle(app)
    assert len(app.runs.list(schedule="nightly")) == 1
    gate.open()
    thread.join(PATIENCE)
    assert (list(results), gate.most) == ([[]], 1)
    with pytest.raises(NotFound):
        app.schedules.get("nightly")


@patient
def test_the_due_times_of_a_removal_that_does_not_succeed_have_their_row(
    app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    run_every_10s(app, fake_clock, gate)
    thread, results = removing(app, version=app.schedules.get("nightly").version)
    for _ in range(3):
        fake_clock.advance("10s")
        settle(app)
    app.schedules.edit("nightly", note="keep it")
    gate.open()
    thread.join(PATIENCE)
    assert isinstance(results[0], VersionConflict)
    eventually(lambda: fake_clock.advance("10s") and not app.schedules.get("nightly").paused)
    (skipped,) = app.runs.list(schedule="nightly", state="skipped")
    assert skipped.count >= 3
    assert skipped.reason == "it is being removed: nothing starts while its active runs end"
    eventually(lambda: fake_clock.advance("10s") and app.runs.list(schedule="nightly", state="succeeded"))


@patient
def test_what_is_queued_of_a_schedule_that_is_being_removed_does_not_start(
    app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    app.schedules.add("nightly", "every 10s", app.task("job", retry=0, overlap="queue_all")(gate.wait))
    app.start()
    for count in (1, 2, 3):
        fake_clock.advance("10s")
        eventually(lambda: len(app.runs.list(schedule="nightly")) == count)  # noqa: B023
    gate.entered()
    thread, results = removing(app, version=app.schedules.get("nightly").version)
    eventually(lambda: len(app.runs.list(schedule="nightly", state="cancelled")) == 2)
    app.schedules.edit("nightly", note="keep it")
    gate.open()
    thread.join(PATIENCE)
    assert (isinstance(results[0], VersionConflict), gate.most) == (True, 1)
    reasons = {run.reason for run in app.runs.list(schedule="nightly", state="cancelled")}
    assert "its schedule is to be removed" in reasons


def test_a_coroutine_that_is_cancelled_before_its_first_turn_occupies_nothing(app: Ostinato) -> None:
    began: list[None] = []

    @app.task("job", retry=0)
    async def job() -> None:
        began.append(None)

    run = job.enqueue()

    async def cancel_at_once(engine: Engine) -> Any:
        await engine.dispatcher.claim()
        assert engine.runner.cancel(run.id, CANCELLED)
        await engine.runner.idle.wait()
        await engine.recorder.flush(claim=False)
        return engine.health()["given_up"]

    assert app.with_engine(cancel_at_once) == 0
    assert (run.get().state, run.get().reason) == (RunState.CANCELLED, CANCELLED.reason)
    assert began == []
