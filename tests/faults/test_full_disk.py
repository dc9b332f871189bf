"""A worker that can write nothing more: a process with a limit on its files, as a disk without room is one.

The test looks at the same file from outside, where there is room.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, RunState
from tests.doors.command_line import eventually

NOTHING = 4_096
"""Less than the first page that any commit appends to the log."""


class Limited:
    """The process, and how to tell it what to do."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.acknowledged: list[int] = []

    def listen(self) -> list[list[Any]]:
        """What it says until it is done."""
        assert self._process.stdout is not None
        said: list[list[Any]] = []
        while True:
            said.append(json.loads(self._process.stdout.readline()))
            if said[-1] == ["done"]:
                self.acknowledged += [line[1] for line in said if line[0] == "acknowledged"]
                return said[:-1]

    def tell(self, line: str) -> list[list[Any]]:
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)
        return self.listen()

    @property
    def health(self) -> tuple[bool, str | None]:
        ((_, ok, paused),) = self.tell("health")
        return ok, paused


@contextmanager
def limited(path: Path, log: Path) -> Iterator[Limited]:
    program = [sys.executable, str(Path(__file__).with_name("limited.py")), str(path), str(log)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            made = Limited(process)
            made.listen()
            yield made
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def reader(path: Path) -> Iterator[Ostinato]:
    app = Ostinato(f"sqlite:///{path}", name="reader")
    yield app
    app.stop()


def test_a_worker_that_can_write_nothing_claims_nothing_says_why_and_goes_on_by_itself(
    path: Path, reader: Ostinato, tmp_path: Path
) -> None:
    log = tmp_path / "executions"
    work = reader.task("work", retry=0)(lambda: None)
    with limited(path, log) as worker:
        assert {line[0] for line in worker.tell("enqueue")} == {"acknowledged"}
        assert work.using(key="before").enqueue().wait(60).state is RunState.SUCCEEDED
        worker.tell(f"limit {NOTHING}")
        refused = worker.tell("enqueue")
        assert {line[0] for line in refused} == {"refused"}
        assert {"could not be written" in line[1] or "disk is full" in line[1] for line in refused} == {True}
        waiting = [work.using(key=f"meanwhile-{number}").enqueue() for number in range(5)]
        eventually(lambda: worker.health[1] is not None, "health says why nothing is claimed")
        ok, paused = worker.health
        assert (ok, "could not be written" in str(paused) or "disk is full" in str(paused)) == (False, True)
        assert {run.get().state for run in waiting} == {RunState.QUEUED}
        worker.tell("limit -1")
        assert {run.wait(60).result for run in waiting} == {"done"}
        eventually(lambda: worker.health == (True, None), "it is well again")
        assert {line[0] for line in worker.tell("enqueue")} == {"acknowledged"}
        worker.tell(f"limit {NOTHING}")
        worker.tell("enqueue")
    # It was killed just now.
    assert sorted(run.id for run in reader.runs.list(task="later", limit=100)) == worker.acknowledged
    assert len(worker.acknowledged) == 20
    assert Counter(log.read_text().split()) == {"before": 1, **{f"meanwhile-{number}": 1 for number in range(5)}}
    assert reader.with_engine(lambda engine: engine.store.upkeep.check()) == []
