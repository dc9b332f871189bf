"""How tests call the command line: in this process for speed, or as a real process whose id they hold."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import apsw
import pytest

from ostinato.cli.main import run
from tests.leftovers import restored_logs

__all__ = [
    "HASTY",
    "JOBS",
    "PATIENT",
    "PROGRAM",
    "STUBBORN",
    "Answer",
    "CommandLine",
    "Process",
    "eventually",
    "inside",
    "on_a_terminal",
    "page_address",
    "use",
]

PROGRAM = [sys.executable, "-c", "import sys; from ostinato.cli.main import run; sys.exit(run())"]
"""What a shell would call `ostinato`."""

PATIENT = """
from dataclasses import replace
from ostinato.tuning import Tuning

app.settings = replace(app.settings, tuning=Tuning(force_seconds=3600, exec_write_seconds=3600))
"""
"""At the end of a program whose forced stop is to be recorded, however busy the machine is."""

HASTY = """
from dataclasses import replace
from datetime import timedelta

app.settings = replace(app.settings, lease=timedelta(seconds=2))
"""
"""At the end of a program of which others soon see that it was killed: settings allow no lease as short as that."""

JOBS = '''
import asyncio
import time

from ostinato import Ostinato

app = Ostinato()
not_an_app = 3
disk_is_full = False


@app.task("hello")
def hello(name="world"):
    """Greet somebody."""
    print("hello", name)
    return {"greeted": name}


@app.task("fail", retry=0)
def fail():
    raise ValueError("no good")


@app.task("slow", retry=0)
async def slow(seconds=60):
    await asyncio.sleep(seconds)


@app.check("disk")
def disk():
    return "the disk is full"
'''


STUBBORN = """
import asyncio, contextlib, ctypes, io, time
from dataclasses import replace
from pathlib import Path
from ostinato import Ostinato
from ostinato.tuning import Tuning
app = Ostinato()
hasty = Tuning(force_seconds=0.5, exec_write_seconds=0.3, function_stop_seconds=0.2)
app.settings = replace(app.settings, tuning=hasty)


@app.task("swallow", retry=0)
async def swallow():
    Path("begun").touch()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@app.task("block", retry=0)
async def block():
    Path("begun").touch()
    time.sleep(600)


@app.task("hidden", retry=0)
async def hidden():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        await block()


@app.task("deaf", retry=0)
async def deaf():
    # A lock that is taken twice. Unlike a sleep, no signal interrupts it: no handler of Python runs before its end.
    library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(lock)
    Path("begun").touch()
    library.pthread_mutex_lock(lock)


@app.task("beside", retry=0)
async def beside():
    Path("begun").touch()
    await asyncio.to_thread(time.sleep, 3600)
"""
"""Tasks that do not end when they are told to."""


@dataclass(frozen=True)
class Answer:
    """What a command left: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """In this folder, as a process of its own would be: what is imported from it is forgotten afterwards."""
    modules, path = set(sys.modules), list(sys.path)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if not name.startswith("ostinato") and str(folder) in (getattr(sys.modules[name], "__file__", "") or ""):
                del sys.modules[name]


class CommandLine:
    """`ostinato …` in one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *argv: str) -> Answer:
        """Call it in this process."""
        self._capsys.readouterr()
        with restored_logs():
            code = run(argv)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def ok(self, *argv: str) -> Answer:
        """The same, and it must succeed."""
        answer = self(*argv)
        assert answer.code == 0, answer
        return answer

    def start(self, *argv: str, name: str = "process", by: str | None = None) -> Process:
        """Call it as a process of its own, which goes on; two at once need two names. `by` is for a shell to do it."""
        return Process(self.folder, argv, name, [*(("sh", "-c", by, "sh") if by else ()), *PROGRAM])


class Process:
    """A real `ostinato …`, or another program, its output in files."""

    def __init__(self, folder: Path, argv: tuple[str, ...], name: str, program: Sequence[str] = PROGRAM) -> None:
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
        with self._out.open("w") as out, self._err.open("w") as err:
            self._process = subprocess.Popen(
                [*program, *argv],
                cwd=folder,
                env=environment,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, timeout: float = 60) -> int:
        """Its exit code."""
        return self._process.wait(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def eventually(holds: Callable[[], object], what: str, timeout: float = 60) -> None:
    """Wait until another process has made it so."""
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.05)


def on_a_terminal(folder: Path, *argv: str, **environment: str) -> str:
    """What a command prints when stdout is a terminal."""
    controller, terminal = os.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [*PROGRAM, *argv], cwd=folder, stdout=terminal, env={**kept, "TERM": "xterm-256color", **environment}
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
        while part := os.read(controller, 65_536):
            shown += part
    os.close(controller)
    assert process.wait(30) == 0
    return shown.decode()


def page_address(process: Process) -> str:
    """Where a server that has started says that its page is."""
    eventually(lambda: "Ctrl-C to stop" in process.err, "the server is ready")
    found = re.search(r"page +(https?://\S+?),?(\s|$)", process.err)
    assert found is not None, process.err
    return found[1]


def use(folder: Path, session: str, **used: int) -> None:
    """Let a session have used this much, as the columns of its row count it."""
    changes = ", ".join(f"{name} = {amount}" for name, amount in used.items())
    database = apsw.Connection(str(folder / "ostinato.db"))
    database.execute(f"UPDATE sessions SET {changes} WHERE key = ?", (session,))
    database.close()
