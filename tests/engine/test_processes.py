"""isolation="process": a function in an interpreter of its own, which can be killed with all that it started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState
from ostinato.models.run import Progress
from ostinato.testing import FakeClock, drain
from tests.engine import process_tasks
from tests.engine.conftest import eventually
from tests.processes import lives


def test_it_answers_from_another_process(memory_app: Ostinato) -> None:
    run = memory_app.task("job", isolation="process")(process_tasks.answer).enqueue(2, b=3)
    drain(memory_app)
    result = run.get().result
    assert result["sum"] == 5
    assert result["pid"] != os.getpid()


def test_what_it_reports_is_the_runs_report(memory_app: Ostinato) -> None:
    run = memory_app.task("job", isolation="process")(process_tasks.tally).enqueue()
    drain(memory_app)
    assert (run.get().totals, run.get().progress) == ({"copied": 3}, Progress(3, 10, "c.txt"))


def test_on_timeout_it_is_killed_with_all_that_it_started(
    memory_app: Ostinato, fake_clock: FakeClock, tmp_path: Path
) -> None:
    note = tmp_path / "pids"
    job = memory_app.task("job", isolation="process", timeout="5m", retry=0)(process_tasks.hang)
    memory_app.start()
    run = job.enqueue(str(note))
    eventually(note.exists)
    fake_clock.advance("5m")
    ended = run.wait(timeout=60)
    assert (ended.state, ended.cause, ended.reason) == (RunState.FAILED, "timed_out", "timed out after 5m")
    pids = [int(pid) for pid in note.read_text().split()]
    eventually(lambda: not any(lives(pid) for pid in pids))


def test_a_cancel_kills_it_too(memory_app: Ostinato, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    job = memory_app.task("job", isolation="process")(process_tasks.hang)
    memory_app.start()
    run = job.enqueue(str(note))
    eventually(note.exists)
    run.cancel()
    assert run.wait(timeout=60).state is RunState.CANCELLED
    eventually(lambda: not any(lives(int(pid)) for pid in note.read_text().split()))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (process_tasks.die, "its process was killed by SIGKILL before the function returned"),
        (process_tasks.leave, "its process exited with status 3 before the function returned"),
    ],
)
def test_a_process_that_ends_without_an_answer_is_a_readable_failure(
    memory_app: Ostinato, function: object, reason: str
) -> None:
    run = memory_app.task("job", isolation="process", retry=0)(function).enqueue()  # type: ignore[call-overload]
    drain(memory_app)
    assert (run.get().state, run.get().cause, run.get().reason) == (RunState.FAILED, "crashed", reason)


def test_a_function_that_the_process_cannot_import_says_where_to_put_it(memory_app: Ostinato) -> None:
    run = memory_app.task("job", isolation="process")(lambda: None).enqueue()
    drain(memory_app)
    assert run.get().state is RunState.FAILED
    assert "define the task at the top of a module" in (run.get().reason or "")
