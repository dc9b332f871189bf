"""Tasks that do what tasks should not. At the top of a module, so that a process of their own can import them."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ostinato import Ostinato, RunContext
from ostinato.config import Settings
from ostinato.tuning import Tuning

SOON = Tuning(function_stop_seconds=0.5, command_kill_seconds=0.2)
app = Ostinato(name="misbehaving", settings=Settings(db="sqlite://:memory:", tuning=SOON))
released = threading.Event()
"""Lets hung threads go at the end of the tests."""
SLEEPS = "import time; time.sleep(600)"
"""What tasks start that hang or leave something behind: longer than anybody waits."""


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


@app.task(retry=0, isolation="process")
def hangs_for_ever_in_a_process() -> None:
    subprocess.Popen([sys.executable, "-c", SLEEPS])
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


def recurse(depth: int = 0) -> int:
    return recurse(depth + 1) + 1


def interrupt() -> None:
    raise KeyboardInterrupt


def want_more_memory_than_there_is() -> int:
    return len(bytearray(2**62))


RAISED: dict[str, Callable[[], object]] = {
    "SystemExit": sys.exit,
    "KeyboardInterrupt": interrupt,
    "RecursionError": recurse,
    "MemoryError": want_more_memory_than_there_is,
}


@app.task(retry=0)
async def raises_on_the_loop(name: str) -> None:
    RAISED[name]()


@app.task(retry=0)
def raises_in_a_thread(name: str) -> None:
    RAISED[name]()


@app.task(retry=0, isolation="process")
def raises_in_a_process(name: str) -> None:
    RAISED[name]()


@app.task(retry=0, isolation="process")
def exhausts_its_memory() -> None:
    """As far as its limit, which is a small one: a container or a machine has one, too."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 30_000_000,) * 2)
    kept = []
    while True:
        kept.append(bytearray(1_000_000))


@app.task(retry=0, isolation="process")
def ignores_sigterm(run: RunContext) -> None:
    """And so does the process that it forks."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child:
        run.progress(1, text=f"{os.getpid()} {child}")
    while True:
        time.sleep(600)


@app.task(retry=0, isolation="process")
def leaves_a_process_behind() -> str:
    """One that holds the output open, for longer than anybody waits."""
    subprocess.Popen([sys.executable, "-c", SLEEPS])
    return "done"


@app.task(retry=0, isolation="process")
def leaves_a_fork_that_fled_behind() -> str:
    """One that holds every pipe open and that a kill of the group does not reach."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
    print("said before")
    return "done"


@app.task(retry=0, isolation="process")
def talks_nonsense(nonsense: str) -> None:
    """Write on the pipe that is not its own, then wait for the end."""
    os.write(int(sys.argv[1]), nonsense.encode() + b"\n")
    time.sleep(600)


@app.task(retry=0, isolation="process")
def counts_nonsense(run: RunContext) -> None:
    run.count("rows", "three")  # type: ignore[arg-type]


@app.task(retry=0, isolation="process")
def raises_a_file_name(run: RunContext) -> None:
    name = os.fsdecode(b"caf\xe9")
    run.log(name)
    run.progress(1, text=name)
    raise RuntimeError(name)


@app.task(retry=0, isolation="process")
def reads_stdin() -> str:
    return sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True, check=True).stdout
