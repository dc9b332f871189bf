"""Starting, killing and ending worker processes by their id; nothing is left when the block ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Nodes", "nodes"]

WORKER = Path(__file__).with_name("worker.py")


class Nodes:
    """Worker processes on one database."""

    def __init__(self, url: str, log: Path, environment: dict[str, str]) -> None:
        self._url = url
        self._log = log
        self._environment = {**os.environ, **environment}
        self.running: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        """One more node; returns when its engine is started."""
        process = subprocess.Popen(
            [sys.executable, str(WORKER), self._url, str(self._log)],
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
        _close(process)

    def stop(self, process: subprocess.Popen[str]) -> int:
        """SIGTERM: drain; answers the exit status."""
        self.running.remove(process)
        process.terminate()
        status = process.wait(60)
        _close(process)
        return status


@contextmanager
def nodes(url: str, log: Path, **environment: str) -> Iterator[Nodes]:
    """Nodes that are all gone afterwards."""
    made = Nodes(url, log, environment)
    try:
        yield made
    finally:
        for process in list(made.running):
            made.kill(process)


def _close(process: subprocess.Popen[str]) -> None:
    if process.stdout is not None:
        process.stdout.close()
