"""Work and checks that do what nobody expects: the run ends with a readable reason; the node goes on and can stop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ostinato import Ostinato, Retry, RunContext, RunState, Shell
from ostinato.execution.registry import Check
from ostinato.testing import FakeClock, drain
from tests.conftest import tuned


def stops(app: Ostinato) -> bool:
    """Whether stop() returns; on a thread of its own, so that a hang is a failure and not the end of the tests."""
    stopping = threading.Thread(target=app.stop, kwargs={"grace": 0}, daemon=True)
    stopping.start()
    stopping.join(10)
    return not stopping.is_alive()


def test_an_outcome_that_cannot_be_recorded_is_a_failure_and_not_a_run_for_ever(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: RunContext, *, final: bool = False) -> None:
        raise TypeError("what is this?")

    tasks = [memory_app.task("async", retry=0)(_async_talker), memory_app.task("sync", retry=0)(_talker)]
    memory_app.start()
    monkeypatch.setattr(RunContext, "take_report", broken)
    ended = [task.enqueue().wait(timeout=60) for task in tasks]
    assert [run.state for run in ended] == [RunState.FAILED] * 2
    assert {run.reason for run in ended} == {"its outcome could not be recorded: TypeError: what is this?"}
    assert memory_app.health()["running"] == 0
    assert stops(memory_app)


async def _async_talker(run: RunContext) -> None:
    run.count("rows")


def _talker(run: RunContext) -> None:
    run.count("rows")


def test_text_that_no_database_can_hold_is_kept_readable(app: Ostinato) -> None:
    name = os.fsdecode(b"caf\xe9") + "\0"

    @app.task("job", retry=0)
    def job(run: RunContext) -> None:
        run.progress(1, text=name)
        run.count(name)
        run.log(name)
        raise RuntimeError(f"cannot read {name}")

    run, fine = job.enqueue(), app.task("fine")(lambda: "a\0b").enqueue()
    drain(app)
    readable = "caf\\udce9\\x00"
    ended = run.get()
    assert (ended.state, ended.reason) == (RunState.FAILED, f"RuntimeError: cannot read {readable}")
    assert readable in (ended.error or "")
    assert app.runs.output(run.id) == readable + "\n"
    assert ended.totals == {readable: 1}
    assert ended.progress is not None
    assert ended.progress.text == readable
    assert fine.get().result == "a\0b"


def test_a_nul_that_is_printed_is_kept_readable(app: Ostinato) -> None:
    runs = [app.enqueue(Shell(r"printf 'a\0b\n'")), app.task("job")(lambda: print("a\0b")).enqueue()]
    drain(app)
    assert [(run.get().state, app.runs.output(run.id)) for run in runs] == [(RunState.SUCCEEDED, "a\\x00b\n")] * 2


def test_when_one_run_cannot_be_started_it_is_tried_again_and_the_others_go_on(
    memory_app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    start = threading.Thread.start

    def refuse_the_second(thread: threading.Thread) -> None:
        if thread.name.startswith("ostinato-worker"):
            tried.append(thread.name)
            if len(tried) == 2:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_the_second)
    together = threading.Barrier(3)
    job = memory_app.task("job", retry=Retry(1, base="30s", spread=0))(_meet(together))
    runs = [job.enqueue() for _ in range(4)]
    drain(memory_app)
    states = [run.get().state for run in runs]
    assert sorted(states) == [RunState.QUEUED] + [RunState.SUCCEEDED] * 3
    (refused,) = [run for run in runs if run.get().state is RunState.QUEUED]
    assert refused.get().reason == "this node had no room to start it: RuntimeError: can't start new thread"
    assert refused.get().attempt == 0, "a node's own want is no attempt"
    together.abort()
    fake_clock.advance("30s")
    drain(memory_app)
    assert refused.get().state is RunState.SUCCEEDED


def _meet(together: threading.Barrier) -> Callable[[], None]:
    def job() -> None:
        if not together.broken:
            together.wait(10)

    return job


# Checks. Each passes when the schedule is added, and misbehaves before its first run.


class Hanging:
    """A check that hangs once it is told to."""

    def __init__(self) -> None:
        self.hangs = False
        self.entered = threading.Event()
        self.released = threading.Event()

    async def on_the_loop(self) -> None:
        if self.hangs:
            self.entered.set()
            await asyncio.Event().wait()

    def on_a_thread(self) -> None:
        if self.hangs:
            self.entered.set()
            self.released.wait(60)

    async def deaf(self) -> None:
        """Does not hear that it should end."""
        while self.hangs and not self.released.is_set():
            self.entered.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.released.set()


def schedule(app: Ostinato, check: Check) -> None:
    app.check("slow")(check)
    app.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "every 1h", "job", checks=["slow"])


def hang(app: Ostinato, clock: FakeClock, hanging: Hanging) -> None:
    """Start, and return when the check of the first run hangs."""
    hanging.hangs = True
    app.start()
    clock.advance("1h")
    assert hanging.entered.wait(10)


@tuned(function_stop_seconds=0.02)
@pytest.mark.parametrize("kind", ["on_the_loop", "on_a_thread", "deaf"])
def test_a_run_whose_check_hangs_can_be_cancelled(
    memory_app: Ostinato, fake_clock: FakeClock, hanging: Hanging, kind: str
) -> None:
    schedule(memory_app, getattr(hanging, kind))
    hang(memory_app, fake_clock, hanging)
    (run,) = memory_app.runs.list()
    memory_app.runs.cancel(run.id)
    assert memory_app.runs.wait(run.id, timeout=60).state is RunState.CANCELLED


@pytest.mark.parametrize("kind", ["on_the_loop", "on_a_thread"])
def test_a_check_that_hangs_does_not_hold_up_a_stop(
    memory_app: Ostinato, fake_clock: FakeClock, hanging: Hanging, kind: str
) -> None:
    schedule(memory_app, getattr(hanging, kind))
    hang(memory_app, fake_clock, hanging)
    assert stops(memory_app)
