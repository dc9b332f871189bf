"""The yardstick of interrupts: a bare kill of the same process, by who started it."""

from __future__ import annotations

import os
import signal
import subprocess

from interrupt_clock import STAND_IN_COMMAND, measure
from link import arguments, tell


def main() -> None:
    """No ledger, no node: a process and its id."""
    asked = arguments()
    processes: list[subprocess.Popen[bytes]] = []

    def start(bench: str) -> None:
        processes.append(subprocess.Popen([*STAND_IN_COMMAND, bench], stdin=subprocess.DEVNULL))

    def interrupt() -> None:
        os.kill(processes[-1].pid, signal.SIGTERM)

    def end() -> None:
        processes[-1].wait()

    tell(**measure(start, interrupt, end, asked["n"], asked["warm_up"]))


if __name__ == "__main__":
    main()
