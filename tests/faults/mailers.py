"""Three senders of messages that are killed and started anew, at any moment or in the middle of a run."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psutil

from tests.faults.mail import SENDERS, Plan, is_in_a_run, plan_text, wait_until
from tests.faults.nodes import Nodes

__all__ = ["Mailers"]


class Mailers:
    """The three senders, each a process that is killed and started anew."""

    def __init__(self, cluster: Nodes, plans: Sequence[Plan], seed: int) -> None:
        self._cluster = cluster
        self._plans = plan_text(plans)
        self._chance = random.Random(seed)
        self._processes = [cluster.start(str(sender), self._plans) for sender in range(SENDERS)]

    def storm(self, is_over: Callable[[], bool], look: Callable[[], None] = lambda: None, seconds: float = 100) -> None:
        """Kill one after the other until it is over, and have a look as often as time allows."""
        end = time.monotonic() + seconds
        while not is_over():
            assert time.monotonic() < end, "the storm does not end"
            pause = time.monotonic() + self._chance.uniform(0.3, 1.0)
            while time.monotonic() < pause:
                look()
                time.sleep(0.02)
            self._kill(self._chance.randrange(SENDERS))

    def hit(self, log: Path, seconds: float = 60) -> None:
        """Kill one in the middle of a run: it is stopped first, and let go on if it is between two of them."""
        end = time.monotonic() + seconds
        for victim in itertools.cycle(range(SENDERS)):
            assert time.monotonic() < end, "nobody is ever in the middle of a run"
            process = psutil.Process(self._processes[victim].pid)
            process.suspend()
            wait_until(partial(is_stopped, process), "it is stopped")
            if is_in_a_run(log, process.pid):
                self._kill(victim)
                return
            process.resume()

    def _kill(self, victim: int) -> None:
        self._cluster.kill(self._processes[victim])
        self._processes[victim] = self._cluster.start(str(victim), self._plans)

    def stop(self) -> None:
        for process in self._processes:
            assert self._cluster.stop(process) == 0


def is_stopped(process: psutil.Process) -> bool:
    return process.status() == psutil.STATUS_STOPPED
