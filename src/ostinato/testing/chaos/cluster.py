"""A cluster of real processes, and what can be done to them: killed, stopped, drained, started again.

`ordeal.py` decides what is done when; `node.py` is what runs in each process. Everything that was started is ended by
its id, and whatever one of them started can be found by the variable that it inherits.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from ostinato.clock import Micros, SystemClock
from ostinato.errors import WaitTimeout
from ostinato.testing.chaos.evidence import ProcessLife, Span
from ostinato.testing.chaos.node import NODE, NodeSpec

__all__ = ["Cluster", "RealNode", "wall"]

_CLOCK = SystemClock()
_START_SECONDS = 60.0
_DRAIN_SECONDS = 60.0


def wall() -> Micros:
    """What time it is, by the clock of this machine, which all nodes share."""
    return _CLOCK.now()


class RealNode:
    """A node, over all the processes that it has been."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._starts = 0
        self._process: subprocess.Popen[str] | None = None
        self._life = ProcessLife("", 0)
        self._stopped_at: Micros | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has a process that goes on."""
        return self._process is not None and self._stopped_at is None

    def start(self, *, wait: bool = True) -> None:
        """A new process, if there is none; returns when its engine is started, or at once."""
        if self._process is not None:
            return
        self._starts += 1
        name = f"{self._name}{self._starts}"
        spec, folder = replace(self._cluster.spec, name=name), self._cluster.folder
        spec = replace(spec, witness=str(folder / f"{name}.witness"))
        self._life = self._cluster.lives[name] = ProcessLife(name, wall())
        with (folder / f"{name}.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ostinato.testing.chaos.node"],
                env={
                    **os.environ,
                    NODE: msgspec.json.encode(spec).decode(),
                    "OSTINATO_FAILPOINTS": self._cluster.failpoints,
                },
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        if wait:
            self._wait_until_ready(self._process, name)

    def _wait_until_ready(self, process: subprocess.Popen[str], name: str) -> None:
        assert process.stdout is not None
        able, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        if not able or process.stdout.readline() != "ready\n":
            log = (self._cluster.folder / f"{name}.log").read_text()
            self.kill()
            raise WaitTimeout(f"node {name} did not start:\n{log[-2_000:]}")

    def has_died(self) -> bool:
        """Whether its process has ended by itself since it was looked at last."""
        if self._process is None or self._process.poll() is None:
            return False
        self._ended()
        return True

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._ended()

    def pause(self) -> None:
        """SIGSTOP."""
        assert self._process is not None
        self._stopped_at = wall()
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        if self._process is not None and self._stopped_at is not None:
            self._process.send_signal(signal.SIGCONT)
            self._life.absences.append(Span(self._stopped_at, wall()))
            self._stopped_at = None

    def drain(self) -> int:
        """SIGTERM; answers the exit status. What does not end in time is killed."""
        assert self._process is not None
        self._process.terminate()
        try:
            status = self._process.wait(_DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._ended()
        return status

    def _ended(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.wait()
        self._process.stdout.close()
        self._life.ended_at = wall()
        if self._stopped_at is not None:
            self._life.absences.append(Span(self._stopped_at, self._life.ended_at))
        self._process = self._stopped_at = None


class Cluster:
    """Nodes of one app on one database."""

    def __init__(self, spec: NodeSpec, folder: Path, count: int) -> None:
        self.spec = spec
        self.folder = folder
        self.failpoints = ""
        """Those of processes that are started from now on."""
        self.lives: dict[str, ProcessLife] = {}
        self.nodes = [RealNode(self, name) for name in "abcdefghijklmnopqrstuvwxyz"[:count]]

    def close(self) -> None:
        """End whatever is left."""
        for node in self.nodes:
            node.kill()
        for process in self.left_over():
            os.kill(process, signal.SIGKILL)

    def witnesses(self) -> Iterator[Path]:
        """The logs of all processes that there were."""
        return self.folder.glob("*.witness")

    def left_over(self) -> list[int]:
        """Processes of this cluster that live on, by the variable that all of them have; on Linux."""
        mark, found = f'"ordeal":"{self.spec.ordeal}"'.encode(), []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (place / "environ").read_bytes():
                    found.append(int(place.name))
            except OSError:  # gone, or somebody else's
                continue
        return found
