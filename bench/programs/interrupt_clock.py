"""How soon an interrupt reaches a process: from the call until the process has its SIGTERM."""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from link import quantile

PATIENCE = 60.0
STAND_IN_COMMAND = (sys.executable, "-S", str(Path(__file__).with_name("interrupt_stand_in.py")))
"""It takes the socket of its bench."""


def measure(
    start: Callable[[str], object],
    interrupt: Callable[[], object],
    end: Callable[[], object],
    n: int,
    warm_up: int,
) -> dict[str, float]:
    """Start the stand-in for this socket and interrupt it, again and again; milliseconds, without the first ones."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        path = str(Path(folder) / "s")
        heard.bind(path)
        heard.settimeout(PATIENCE)
        for _ in range(warm_up + n):
            start(path)
            assert float(heard.recv(64)) == 0, "the stand-in is there"
            begun = time.monotonic()
            interrupt()
            found.append((float(heard.recv(64)) - begun) * 1_000)
            end()
    late = sorted(found[warm_up:])
    return {"p50_ms": quantile(late, 0.50), "p99_ms": quantile(late, 0.99), "max_ms": late[-1], "interrupts": len(late)}
