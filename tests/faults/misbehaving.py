"""Tasks that do what tasks should not. At the top of a module, so that a process of their own can import them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from ostinato import Ostinato, RunContext

app = Ostinato("sqlite://:memory:", name="misbehaving")
released = threading.Event()
"""Lets hung threads go at the end of the tests."""


@app.task(retry=0)
async def fine() -> str:
    return "fine"


@app.task(retry=0)
def raises() -> None:
    raise ValueError("the disk\nis on fire")


@app.task(retry=0, timeout="100ms")
async def hangs() -> None:
    await asyncio.Event().wait()


@app.task(retry=0, timeout="100ms")
def hangs_in_a_thread() -> None:
    released.wait(60)


@app.task(retry=0, timeout="3s", isolation="process")
def hangs_in_a_process() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(600)


@app.task
async def returns_an_object() -> Any:
    return object()


@app.task(retry=0, isolation="process")
def prints_100_megabytes() -> str:
    line = b"x" * 999 + b"\n"
    for _ in range(100_000):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.write(b"not \xff utf-8\n")
    return "printed"


@app.task(retry=0, isolation="process")
def exits_the_interpreter() -> None:
    os._exit(7)


@app.task(retry=0, isolation="process")
def kills_itself(run: RunContext) -> None:
    run.progress(1, 2, "about to")
    run.count("errors")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(retry=0)
async def exits() -> None:
    raise SystemExit(3)


@app.task(retry=0)
def exits_in_a_thread() -> None:
    sys.exit(3)
