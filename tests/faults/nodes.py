"""Starting, killing and ending worker processes by their id; nothing is left when the block ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from ostinato import Ostinato

__all__ = ["Nodes", "nodes"]


class Nodes:
    """Worker processes on one database."""

    def __init__(self, url: str, log: Path, program: str, environment: dict[str, str]) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name(program)), url, str(log)]
        self._environment = {**os.environ, **environment}
        self.running: list[subprocess.Popen[str]] = []
        self.deaths: dict[int, float] = {}
        """When each that was killed was gone, by its process id."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """One more node; returns when its engine is started."""
        process = subprocess.Popen(
            [*self._command, *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "the node did not start"
        return process

    def kill(self, process: subprocess.Popen[str]) -> None:
        """SIGKILL: no goodbye."""
        self.running.remove(process)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        self.deaths[process.pid] = time.time()
        _close(process)

    def kill_one_at_work(self, app: Ostinato, chance: random.Random, schedules: Collection[str | None]) -> None:
        """SIGKILL for one of them while a run of these schedules (None is of none) is under way there: it stands still
        while we look."""
        for _ in range(1_000):
            process = chance.choice(self.running)
            process.send_signal(signal.SIGSTOP)
            under_way = app.runs.list(state="running", limit=1_000)
            if any(run.schedule in schedules and f"-{process.pid}-" in str(run.node) for run in under_way):
                self.kill(process)
                return
            process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
        raise AssertionError("no node was ever seen at work")

    def stop(self, process: subprocess.Popen[str]) -> int:
        """SIGTERM: drain; answers the exit status."""
        self.running.remove(process)
        process.terminate()
        status = process.wait(60)
        _close(process)
        return status


@contextmanager
def nodes(url: str, log: Path, *, program: str = "worker.py", **environment: str) -> Iterator[Nodes]:
    """Nodes that are all gone afterwards."""
    made = Nodes(url, log, program, environment)
    try:
        yield made
    finally:
        for process in list(made.running):
            made.kill(process)


def _close(process: subprocess.Popen[str]) -> None:
    if process.stdout is not None:
        process.stdout.close()
