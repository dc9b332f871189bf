"""Work that raises, hangs, returns nonsense, prints without end or ends its process: a readable reason each, and
others go on."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from ostinato import Ostinato, Run, RunState
from ostinato.tasks import Task
from tests.doors.command_line import eventually
from tests.faults import misbehaving


@pytest.fixture(scope="module")
def app() -> Iterator[Ostinato]:
    misbehaving.released.clear()
    misbehaving.app.start()
    yield misbehaving.app
    misbehaving.released.set()
    misbehaving.app.stop("1s")


def outcome_of(task: Task[..., object], *args: str) -> Run:
    """Run it, and prove that a well-behaved task next to it still runs."""
    run = task.enqueue(*args)
    assert misbehaving.fine.enqueue().wait(30).state is RunState.SUCCEEDED
    return run.wait(60)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (misbehaving.raises, "ValueError: the disk is on fire"),
        (misbehaving.hangs, "timed out after 100ms"),
        (misbehaving.hangs_in_a_thread, "timed out after 100ms; it did not end when told to and may still be running"),
        (misbehaving.returns_an_object, "returned an object that is not JSON"),
        (misbehaving.exits_the_interpreter, "its process exited with status 7 before the function returned"),
        (misbehaving.kills_itself, "its process was killed by SIGKILL before the function returned"),
        (misbehaving.exits, "SystemExit: 3"),
        (misbehaving.exits_in_a_thread, "SystemExit: 3"),
    ],
    ids=lambda value: value.name if isinstance(value, Task) else None,
)
def test_misbehaving_work_ends_failed_with_a_readable_reason(
    app: Ostinato, task: Task[..., object], reason: str
) -> None:
    run = outcome_of(task)
    assert run.state is RunState.FAILED
    assert run.reason is not None
    assert reason in run.reason
    assert run.attempt == 1
    assert app.health()["ok"]


@pytest.mark.parametrize("name", misbehaving.RAISED)
@pytest.mark.parametrize(
    "task",
    [misbehaving.raises_on_the_loop, misbehaving.raises_in_a_thread, misbehaving.raises_in_a_process],
    ids=lambda task: task.name,
)
def test_nothing_that_work_raises_ends_more_than_its_run(app: Ostinato, task: Task[..., object], name: str) -> None:
    run = outcome_of(task, name)
    assert run.state is RunState.FAILED
    assert (run.reason or "").startswith(name)
    assert name in (run.error or "")
    assert app.health()["ok"]
    assert app.health()["starved"] == 0, "it is the work that wants too much, not the node"


def test_a_task_that_exhausts_its_memory_has_failed(app: Ostinato) -> None:
    run = outcome_of(misbehaving.exhausts_its_memory)
    assert (run.state, run.reason) == (RunState.FAILED, "MemoryError")


def test_a_task_that_ignores_sigterm_is_killed_with_what_it_forked(app: Ostinato) -> None:
    run = misbehaving.ignores_sigterm.enqueue()
    eventually(lambda: run.get().progress is not None, "it has told who it is")
    progress = run.get().progress
    assert progress is not None
    family = [psutil.Process(int(pid)) for pid in progress.text.split()]
    run.cancel()
    assert run.wait(60).state is RunState.CANCELLED
    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert misbehaving.fine.enqueue().wait(30).state is RunState.SUCCEEDED


def sleepers(process: psutil.Process) -> list[psutil.Process]:
    """What the function that this process runs has started."""
    found: list[psutil.Process] = []
    for each in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ends just now
            if misbehaving.SLEEPS in each.cmdline():
                found.append(each)
    return found


def test_what_a_killed_process_reported_before_is_kept(app: Ostinato) -> None:
    run = misbehaving.kills_itself.enqueue().wait(60)
    assert run.totals == {"errors": 1}
    assert run.progress is not None
    assert run.progress.text == "about to"


def test_a_task_that_prints_100_megabytes_keeps_the_first_and_the_last_half(app: Ostinato) -> None:
    run = outcome_of(misbehaving.prints_100_megabytes)
    assert (run.state, run.result) == (RunState.SUCCEEDED, "printed")
    output = app.runs.output(run.id)
    assert len(output) < 1_001_000
    assert output.startswith("x" * 999 + "\n")
    assert "bytes cut" in output
    assert output.endswith("not \\xff utf-8\n")


@pytest.mark.parametrize("task", [misbehaving.leaves_a_process_behind, misbehaving.leaves_a_fork_that_fled_behind])
def test_what_a_process_leaves_behind_does_not_hold_up_its_end(app: Ostinato, task: Task[..., object]) -> None:
    run = task.enqueue().wait(60)
    assert (run.state, run.result) == (RunState.SUCCEEDED, "done")


def test_what_was_printed_before_is_kept_though_the_pipe_never_ends(app: Ostinato) -> None:
    run = misbehaving.leaves_a_fork_that_fled_behind.enqueue().wait(60)
    assert app.runs.output(run.id) == "said before\n"


@pytest.mark.parametrize("nonsense", ["nonsense", '{"progress": {"far": 1}}', '{"kind": "RETURNED"}'])
def test_a_process_that_talks_nonsense_is_killed_and_its_run_fails(app: Ostinato, nonsense: str) -> None:
    run = misbehaving.talks_nonsense.enqueue(nonsense).wait(30)
    assert run.state is RunState.FAILED
    assert (run.reason or "").startswith("its process could not be understood: ")


def test_a_wrong_number_is_told_in_the_process(app: Ostinato) -> None:
    run = misbehaving.counts_nonsense.enqueue().wait(30)
    assert run.state is RunState.FAILED
    assert "InvalidInput: total 'rows' cannot be 'three'" in (run.reason or "")
    assert "counts_nonsense" in (run.error or "")


def test_a_file_name_that_is_not_utf8_comes_out_of_a_process(app: Ostinato) -> None:
    run = misbehaving.raises_a_file_name.enqueue().wait(30)
    assert (run.state, run.reason) == (RunState.FAILED, "RuntimeError: caf\\udce9")
    assert app.runs.output(run.id) == "caf\\udce9\n"
    assert run.progress is not None
    assert run.progress.text == "caf\\udce9"


def test_for_a_process_and_what_it_starts_stdin_is_empty(app: Ostinato) -> None:
    run = misbehaving.reads_stdin.enqueue().wait(30)
    assert (run.state, run.result) == (RunState.SUCCEEDED, "")


def test_a_process_does_not_outlive_a_kill_of_its_node() -> None:
    script = (
        "from tests.faults import misbehaving as m; m.app.start(); m.hangs_for_ever_in_a_process.enqueue().wait(600)"
    )
    node = subprocess.Popen([sys.executable, "-c", script])
    try:
        end = time.monotonic() + 60
        while not sleepers(psutil.Process(node.pid)):
            assert time.monotonic() < end, "the process did not start its own"
            time.sleep(0.02)
        family = psutil.Process(node.pid).children(recursive=True)
    finally:
        node.kill()
        node.wait(10)
    _, alive = psutil.wait_procs(family, timeout=60)
    for survivor in alive:
        survivor.kill()
    assert not alive, "a process outlived its node"
