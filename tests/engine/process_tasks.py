"""Functions for isolation="process": the child imports this module and calls them by name."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ostinato import Ostinato, Shell, current_run


def answer(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b, "pid": os.getpid()}


def hang(note: str) -> None:
    """Say where it and a child of its own run, then ignore SIGTERM's little brother and wait."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    path = Path(note)
    path.with_suffix(".part").write_text(f"{os.getpid()} {child.pid}")
    path.with_suffix(".part").rename(path)
    time.sleep(600)


def execute(db: str, command: list[str], session: str | None = None) -> str:
    """Execute a command from here, as a process that has nothing to do with the engine but the database."""
    with contextlib.ExitStack() as stack:
        app = Ostinato(db)
        stack.callback(app.stop)
        return str(app.execute(Shell(command), session=session).state)


def until_drained(note: str) -> str:
    """Say that it runs, and go on until its node drains."""
    Path(note).touch()
    run = current_run()
    while not run.draining:
        time.sleep(0.005)
    return "stopped early"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(3)


def tally() -> None:
    """Count, and then say what the total is."""
    run = current_run()
    run.count("copied", 5)
    run.set_total("copied", 2)
    run.count("copied")
    run.progress(3, 10, "c.txt")


def beat(folder: str) -> None:
    """Wait for a word, send one heartbeat, and say nothing more."""
    place = Path(folder)
    (place / "begun.part").write_text(str(os.getpid()))
    (place / "begun.part").rename(place / "begun")
    while not (place / "go").exists():
        time.sleep(0.01)
    current_run().heartbeat()
    time.sleep(600)


def where() -> list[str]:
    """Its zone, and when it was due there."""
    run = current_run()
    return [run.zone, run.due_local.isoformat()]


def spend() -> None:
    """Use something up, and fail."""
    current_run().count("cost_usd", 0.25)
    current_run().count("copied")
    raise ValueError("no good")


def speak() -> None:
    """Print and log, with whatever logging this process has."""
    print("printed")
    logging.getLogger("shop").info("told %s", "something")
    logging.getLogger("shop").debug("a detail")
    print("wrong", file=sys.stderr, flush=True)


def current_span() -> list[str]:
    """The span that this process is part of, as OpenTelemetry and as what is enqueued see it."""
    from opentelemetry import trace

    from ostinato.trace_context import current_trace

    context = trace.get_current_span().get_span_context()
    seen = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    return [seen, current_trace() or ""]


def look_up(name: str) -> None:
    """Raise the builtin exception of this name."""
    raise {"KeyError": KeyError, "ValueError": ValueError}[name]


def until_cancelled(note: str) -> None:
    """Say that it runs, and end when it should."""
    Path(note).touch()
    while not current_run().cancelled:
        time.sleep(0.01)
