"""The policy `silent`: work that prints and reports nothing for so long is stuck, is told, ended, and tried again."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from pathlib import Path

import pytest

from ostinato import Agent, Http, InvalidInput, Ostinato, Retry, Run, RunContext, RunState, Shell
from ostinato.config import AgentCli
from ostinato.testing import FakeClock, settle
from tests.conftest import tuned
from tests.engine import process_tasks
from tests.engine.conftest import Gate, MakeApp, engine_of, eventually
from tests.engine.stand_in import StandIn
from tests.processes import lives

REPORT = f"{sys.executable} -c 'import sys; from ostinato.cli.main import run; sys.exit(run())' report"


def heard(app: Ostinato, clock: FakeClock, run_id: int) -> None:
    """Wait until the node has heard of the run at the time that it is now."""
    active = engine_of(app).runner._active
    eventually(lambda: any(id == run_id and one.context.heard_at == clock.steady() for id, one in active.items()))


def outlives(app: Ostinato, clock: FakeClock, run_id: int, length: str) -> None:
    """Let this much time pass; the run goes on."""
    clock.advance(length)
    settle(app)
    assert app.runs.get(run_id).state is RunState.RUNNING


def stuck(run: Run) -> tuple[object, ...]:
    return run.state, run.cause, run.reason


SILENT = (RunState.FAILED, "silent", "said nothing for 10m")


def test_a_function_that_says_nothing_is_ended_after_that_time(
    app: Ostinato, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[str] = []

    @app.task("job", silent="10m", retry=0)
    async def job() -> None:
        begun.append("x")
        await asyncio.Event().wait()

    app.start()
    run = job.enqueue()
    eventually(lambda: begun)
    outlives(app, fake_clock, run.id, "9m59s")
    with caplog.at_level(logging.WARNING):
        fake_clock.advance("1s")
        assert stuck(run.wait(timeout=60)) == SILENT
    assert app.runs.output(run.id) == (
        "ostinato: this attempt said nothing for 10m: it counts as stuck, and is ended\n"
    )
    assert f"run {run.id} of 'job' said nothing for 10m: it counts as stuck, and is ended" in caplog.messages


@pytest.mark.parametrize("say", ["log", "progress", "count", "set_total", "heartbeat"])
def test_whatever_a_function_reports_counts(memory_app: Ostinato, fake_clock: FakeClock, say: str) -> None:
    go, end = asyncio.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    @memory_app.task("job", silent="10m", retry=0)
    async def job(run: RunContext) -> None:
        loops.append(asyncio.get_running_loop())
        await go.wait()
        said: dict[str, list[object]] = {
            "log": ["x"],
            "progress": [1],
            "count": ["x"],
            "set_total": ["x", 1],
            "heartbeat": [],
        }
        getattr(run, say)(*said[say])
        await end.wait()

    memory_app.start()
    run = job.enqueue()
    eventually(lambda: loops)
    outlives(memory_app, fake_clock, run.id, "6m")
    loops[0].call_soon_threadsafe(go.set)
    heard(memory_app, fake_clock, run.id)
    outlives(memory_app, fake_clock, run.id, "9m")
    fake_clock.advance("1m")
    assert stuck(run.wait(timeout=60)) == SILENT


def test_a_silent_attempt_is_tried_again_as_its_retry_says(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    attempts: list[int] = []

    @memory_app.task("job", silent="10m", retry=Retry(1, base="1s", spread=0))
    async def job(run: RunContext) -> None:
        attempts.append(run.attempt)
        if run.attempt == 1:
            await asyncio.Event().wait()

    memory_app.start()
    run = job.enqueue()
    eventually(lambda: attempts)
    fake_clock.advance("10m")
    eventually(lambda: run.get().state is RunState.QUEUED)
    assert run.get().reason == "attempt 1 of 2 failed, next in 1s: said nothing for 10m"
    fake_clock.advance("1s")
    assert run.wait(timeout=60).state is RunState.SUCCEEDED
    assert attempts == [1, 2]


def test_a_timeout_stays_the_bound_of_the_whole(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    contexts: list[RunContext] = []

    @memory_app.task("job", silent="10m", timeout="15m", retry=0)
    async def job(run: RunContext) -> None:
        contexts.append(run)
        await asyncio.Event().wait()

    memory_app.start()
    run = job.enqueue()
    eventually(lambda: contexts)
    outlives(memory_app, fake_clock, run.id, "9m")
    contexts[0].heartbeat()
    fake_clock.advance("6m")
    assert run.wait(timeout=60).reason == "timed out after 15m"


def test_a_clock_that_jumps_is_no_silence(memory_app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    @memory_app.task("job", silent="10m", retry=0)
    def job() -> str:
        gate.wait()
        return "done"

    memory_app.start()
    run = job.enqueue()
    gate.entered()
    for moment in ("2026-01-02T00:00:00Z", "2025-12-31T00:00:00Z"):
        fake_clock.jump_to(moment)
        outlives(memory_app, fake_clock, run.id, "1m")
    gate.open()
    assert run.wait(timeout=60).result == "done"


@tuned(function_stop_seconds=0.02)
def test_a_sync_function_that_goes_on_is_given_up(memory_app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    @memory_app.task("job", silent="10m", retry=0)
    def job() -> None:
        gate.wait()

    memory_app.start()
    run = job.enqueue()
    gate.entered()
    fake_clock.advance("10m")
    assert (run.wait(timeout=60).reason or "").startswith("said nothing for 10m; it did not end when told to")


def test_a_function_in_its_own_process_is_heard_and_ended(
    memory_app: Ostinato, fake_clock: FakeClock, tmp_path: Path
) -> None:
    beat = memory_app.task("beat", silent="10m", retry=0, isolation="process")(process_tasks.beat)
    memory_app.start()
    run = beat.enqueue(str(tmp_path))
    eventually((tmp_path / "begun").exists)
    outlives(memory_app, fake_clock, run.id, "6m")
    (tmp_path / "go").touch()
    heard(memory_app, fake_clock, run.id)
    outlives(memory_app, fake_clock, run.id, "9m")
    fake_clock.advance("1m")
    assert stuck(run.wait(timeout=60)) == SILENT
    assert not lives(int((tmp_path / "begun").read_text()))


# Commands and agents: real processes.


def test_a_command_that_prints_and_then_hangs_is_ended_with_all_that_it_started(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    app.start()
    run = app.enqueue(
        Shell("sleep 600 & echo $$ $!; printf 'Overwrite? [y/N] '; wait"), silent="10m", timeout=None, retry=0
    )
    eventually(lambda: "[y/N]" in app.runs.output(run.id))
    first, second = map(int, app.runs.output(run.id).split()[:2])
    outlives(app, fake_clock, run.id, "9m59s")
    fake_clock.advance("1s")
    assert stuck(run.wait(timeout=60)) == SILENT
    assert app.runs.output(run.id).splitlines()[1:] == [
        "Overwrite? [y/N] ",
        "ostinato: this attempt said nothing for 10m: it counts as stuck, and is ended",
    ]
    eventually(lambda: not lives(first) and not lives(second))


def test_a_command_that_goes_on_printing_is_not_ended(app: Ostinato, fake_clock: FakeClock, tmp_path: Path) -> None:
    app.start()
    wait = "until [ -e {0} ]; do sleep 0.02; done; echo {0} >&2; "
    names = ["one", "two", "three"]
    command = "".join(wait.format(name) for name in names)
    run = app.enqueue(Shell(command, folder=str(tmp_path)), silent="10m", timeout=None, retry=0)
    eventually(lambda: run.get().state is RunState.RUNNING)
    settle(app)
    for name in names:
        outlives(app, fake_clock, run.id, "9m")
        (tmp_path / name).touch()
        if name != names[-1]:
            heard(app, fake_clock, run.id)
    assert run.wait(timeout=60).state is RunState.SUCCEEDED


def test_a_command_that_only_sends_heartbeats_is_not_ended(
    app: Ostinato, fake_clock: FakeClock, tmp_path: Path
) -> None:
    app.start()
    beats = f"until [ -e end ]; do {REPORT} || exit 1; done"
    run = app.enqueue(Shell(beats, folder=str(tmp_path)), silent="10m", timeout=None, retry=0)
    eventually(lambda: run.get().state is RunState.RUNNING)
    for _ in range(3):
        outlives(app, fake_clock, run.id, "9m")
        heard(app, fake_clock, run.id)
    (tmp_path / "end").touch()
    assert run.wait(timeout=60).state is RunState.SUCCEEDED
    assert app.runs.output(run.id) == ""


def test_an_agent_that_hangs_is_ended_with_all_that_it_started(
    make_app: MakeApp, fake_clock: FakeClock, tmp_path: Path
) -> None:
    app = make_app("sqlite://:memory:", agents={"claude": StandIn(tmp_path / "bin").cli})
    app.projects.add("blog", tmp_path)
    app.start()
    run = app.enqueue(Agent("play:hang"), project="blog", silent="10m", retry=0)
    eventually((tmp_path / "pids").exists)
    eventually(lambda: "I wait." in app.runs.output(run.id))
    outlives(app, fake_clock, run.id, "9m59s")
    fake_clock.advance("1s")
    assert stuck(run.wait(timeout=60)) == SILENT
    eventually(lambda: not any(lives(int(pid)) for pid in (tmp_path / "pids").read_text().split()))


def test_what_an_agent_prints_and_is_not_shown_counts(make_app: MakeApp, fake_clock: FakeClock, tmp_path: Path) -> None:
    command = (
        'touch begun; until [ -e go ]; do sleep 0.02; done; echo \'{"type": "keep_alive"}\';'
        'until [ -e end ]; do sleep 0.02; done; echo \'{"type": "result", "is_error": false, "result": "done"}\''
    )
    cli = AgentCli(command=("sh", "-c", command), output="stream-json")
    app = make_app("sqlite://:memory:", agents={"quiet": cli})
    app.projects.add("blog", tmp_path)
    app.start()
    run = app.enqueue(Agent("go", cli="quiet"), project="blog", silent="10m", timeout=None, retry=0)
    eventually((tmp_path / "begun").exists)
    outlives(app, fake_clock, run.id, "6m")
    (tmp_path / "go").touch()
    heard(app, fake_clock, run.id)
    outlives(app, fake_clock, run.id, "6m")
    (tmp_path / "end").touch()
    ended = run.wait(timeout=60)
    assert (ended.state, ended.result["text"], app.runs.output(run.id)) == (RunState.SUCCEEDED, "done", "")


def test_a_request_cannot_be_watched(memory_app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="http work says nothing until its answer is there"):
        memory_app.schedules.add("ping", "every 1h", Http("GET", "https://example.com"), silent="10m")
    with pytest.raises(InvalidInput, match="give a timeout instead"):
        memory_app.enqueue(Http("GET", "https://example.com"), silent="10m")


def test_an_agent_that_never_spoke_had_not_begun_and_is_tried_again(
    make_app: MakeApp, fake_clock: FakeClock, tmp_path: Path
) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\necho x >> begun\nexec sleep 600\n")
    mute.chmod(0o755)
    cli = AgentCli((str(mute),), output="stream-json", speaks_claude=True)
    app = make_app("sqlite://:memory:", agents={"claude": cli})
    app.projects.add("desk", tmp_path)
    app.start()
    run = app.enqueue(Agent("look"), project="desk", silent="10m")
    eventually((tmp_path / "begun").exists)
    fake_clock.advance("10m")
    eventually(lambda: run.get().state is RunState.QUEUED)
    assert (run.get().cause, run.get().attempt) == ("silent", 1)
    run.cancel()


@pytest.mark.parametrize("say", ["log", "heartbeat"])
def test_what_is_heard_of_a_run_that_it_executes_counts_too(
    memory_app: Ostinato, fake_clock: FakeClock, say: str
) -> None:
    app, begun, says = memory_app, threading.Event(), threading.Semaphore(0)

    @app.task("inner")
    def inner(run: RunContext) -> str:
        begun.set()
        for _ in range(3):
            assert says.acquire(timeout=60)
            run.log("at work") if say == "log" else run.heartbeat()
        return "done"

    @app.task("middle")
    def middle() -> str:
        return str(app.execute("inner", session="q").result)

    @app.task("outer", silent="10m", retry=0)
    def outer() -> str:
        return str(app.execute("middle").result)

    app.start()
    run = outer.enqueue()
    assert begun.wait(60)
    for _ in range(2):
        outlives(app, fake_clock, run.id, "9m")
        says.release()
        heard(app, fake_clock, run.id)
    says.release()
    assert run.wait(timeout=60).result == "done"
