"""Stops that do not wait: what can be killed is dead before its run is handed on, and what cannot holds nobody up."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from ostinato import Ostinato, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.execution.executors.base import Call
from ostinato.execution.runner import ActiveRun
from ostinato.stores.base import Claim
from tests.conftest import tuned
from tests.engine.conftest import PATIENCE, MakeApp, eventually, on_shared
from tests.processes import lives

STUBBORN = "trap '' TERM; echo $$ > pid.part; mv pid.part pid; sleep 60"


def stubborn(make_app: MakeApp, db: str, folder: Path) -> tuple[Ostinato, int, int]:
    """A node that runs a command which ignores SIGTERM; its run, and the command's process."""
    node = make_app(db)
    node.projects.add("p", folder)
    node.start()
    run = node.enqueue(Shell(STUBBORN), project="p").id
    eventually((folder / "pid").exists)
    return node, run, int((folder / "pid").read_text())


def forced(node: Ostinato) -> threading.Thread:
    """Force a stop that is under way; the thread ends with it."""
    stopping = threading.Thread(target=node.stop)
    stopping.start()
    eventually(lambda: node.health().get("draining"))
    node.force()
    return stopping


@contextmanager
def unsupervised(process: int) -> Iterator[None]:
    """For a while nobody attends to this command: neither its supervisor nor the guard, who would notice that."""
    supervisor = psutil.Process(process).ppid()
    with suspended(psutil.Process(supervisor).ppid()), suspended(supervisor):
        yield


@contextmanager
def suspended(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        eventually(lambda: psutil.Process(process).status() == psutil.STATUS_STOPPED)
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@on_shared
def test_a_command_is_dead_before_a_forced_stop_hands_its_run_on(
    shared_db: str, make_app: MakeApp, tmp_path: Path
) -> None:
    node, run, process = stubborn(make_app, shared_db, tmp_path)
    stopping = forced(node)
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert not lives(process)
    assert node.runs.get(run).state is RunState.QUEUED


@on_shared
@tuned(command_gone_seconds=PATIENCE)
def test_a_forced_stop_waits_for_a_slow_supervisor_to_kill_its_command(
    shared_db: str, make_app: MakeApp, tmp_path: Path
) -> None:
    node, run, process = stubborn(make_app, shared_db, tmp_path)
    with unsupervised(process):
        stopping = forced(node)
        stopping.join(0.3)
        assert node.runs.get(run).state is RunState.RUNNING
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert not lives(process)
    assert node.runs.get(run).state is RunState.QUEUED


@on_shared
@tuned(command_gone_seconds=0.2)
def test_a_forced_stop_hands_on_what_nobody_can_kill_when_it_has_waited_long_enough(
    shared_db: str, make_app: MakeApp, tmp_path: Path
) -> None:
    node, run, process = stubborn(make_app, shared_db, tmp_path)
    with unsupervised(process):
        stopping = forced(node)
        stopping.join(PATIENCE)
        assert not stopping.is_alive()
        shown = node.runs.get(run)
        assert shown.state is RunState.QUEUED
        assert "may still be running" in (shown.reason or "")
    eventually(lambda: not lives(process))


@on_shared
def test_a_claim_under_way_at_a_forced_stop_does_not_start_again_what_was_put_back(
    shared_db: str, make_app: MakeApp
) -> None:
    node, reader = make_app(shared_db), make_app(shared_db)
    started: list[int] = []

    @node.task("job", retry=1)
    async def job() -> None:
        started.append(1)
        await asyncio.Event().wait()

    async def begin(engine: Engine) -> Claim | None:
        await engine.dispatcher.rest()
        return engine.dispatcher.request()

    node.start()
    run = job.enqueue()
    eventually(lambda: started)
    claim = node.with_engine(begin)
    assert claim is not None
    stopping = forced(node)
    eventually(lambda: reader.runs.get(run.id).state is RunState.QUEUED)

    async def end(engine: Engine) -> int:
        claimed = await engine.store.runs.claim_runs(claim)
        engine.dispatcher.accept(claimed)
        return len(claimed.runs)

    assert node.with_engine(end) == 1, "the claim takes what was put back"
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    back = reader.runs.get(run.id)
    assert (back.state, back.attempt, started) == (RunState.QUEUED, 1, [1])


@on_shared
def test_a_node_that_lost_its_lease_kills_its_commands_at_once(
    shared_db: str, make_app: MakeApp, tmp_path: Path
) -> None:
    node, _, process = stubborn(make_app, shared_db, tmp_path)

    async def lose(engine: Engine) -> None:
        engine._lost()

    node.with_engine(lose)
    eventually(lambda: not lives(process))


def test_a_command_that_is_killed_before_its_first_turn_was_never_begun(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = memory_app.enqueue(Shell("echo begun"), retry=1)

    async def kill_at_once(engine: Engine) -> Any:
        execute = engine.runner._execute

        def execute_and_kill(active: ActiveRun, call: Call) -> None:
            execute(active, call)
            engine.runner.cut_off(at_once=True)

        monkeypatch.setattr(engine.runner, "_execute", execute_and_kill)
        await engine.dispatcher.claim()
        await engine.runner.idle.wait()
        await engine.recorder.flush(claim=False)
        return engine.health()["given_up"]

    assert memory_app.with_engine(kill_at_once) == 0
    assert run.get().state is RunState.QUEUED
    assert "may still be running" not in (run.get().reason or "")
