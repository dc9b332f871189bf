"""SIGTERM to a plain script with `app.start()`: it drains, unless the script handles the signal itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState
from ostinato.termination import FORCING, is_ours
from tests.doors.command_line import Process, eventually

SCRIPT = """
import asyncio, ctypes, logging, os, signal, sys, threading, time
from dataclasses import replace
from pathlib import Path
from ostinato import Ostinato
from ostinato.tuning import Tuning

logging.basicConfig()
app = Ostinato("sqlite:///jobs.db")
# Where the loop is blocked, the deadline is what ends it.
force_seconds = 0.5 if sys.argv[1] == "block" else 3600
app.settings = replace(app.settings, tuning=Tuning(force_seconds=force_seconds))


@app.task("work", retry=0)
def work():
    Path("begun").touch()
    while not Path("open").exists():
        time.sleep(0.01)
    logging.error("the work is done")
    return "done"


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


def wait_for_ever():
    # A lock that is taken twice. Unlike a sleep, no signal interrupts it: no handler of Python runs before its end.
    library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(lock)
    Path("deaf").touch()
    library.pthread_mutex_lock(lock)


def watch():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.01)
    Path("interrupted").touch()


threading.Thread(target=watch, daemon=True).start()
if sys.argv[2:] == ["own"]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
app.start()
{"work": work, "swallow": swallow, "block": block}[sys.argv[1]].enqueue()
match sys.argv[2:]:
    case ["deaf"]:
        wait_for_ever()
    case ["home" | "logging"]:
        with app._host._lock if sys.argv[2] == "home" else logging.getLogger().handlers[0].lock:
            while not Path("begun").exists():
                time.sleep(0.01)
            Path("open").touch()
            signal.raise_signal(signal.SIGTERM)
    case ["ends"]:
        while not Path("begun").exists():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        sys.exit()
    case ["forks"]:
        if (child := os.fork()) == 0:
            signal.raise_signal(signal.SIGTERM)
            os._exit(3)
        Path("ended").write_text(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    case ["stops"]:
        try:
            Path("ready").touch()
            time.sleep(3600)
        except KeyboardInterrupt:
            app.stop()
            Path("stopped").touch()
            sys.exit()
Path("ready").touch()
while True:
    time.sleep(3600)
"""


class Script(Process):
    """A script that has begun its work."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        (folder / "script.py").write_text(SCRIPT)
        super().__init__(folder, ("script.py", *arguments), "script", [sys.executable])
        eventually((folder / "begun").exists, "the work has begun")


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Whether a signal waits to be delivered: a second one of its kind would be lost."""
    waiting = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "Pnd:" in line]
    return any(int(each, 16) >> (number - 1) & 1 for each in waiting)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Ostinato]:
    """Reads what the script wrote."""
    app = Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield app
    app.stop()


def until_draining(app: Ostinato) -> None:
    eventually(lambda: [node.state for node in app.nodes.list()] == ["draining"], "it drains")


def assert_done(app: Ostinato) -> None:
    (run,) = app.runs.list()
    assert (run.state, run.result) == (RunState.SUCCEEDED, "done")


def test_a_script_drains_and_ends_as_the_signal_would_have_ended_it(tmp_path: Path, app: Ostinato) -> None:
    with Script(tmp_path, "work") as script:
        script.signal(signal.SIGTERM)
        until_draining(app)
        (tmp_path / "open").touch()
        assert script.wait() == -signal.SIGTERM
    assert_done(app)
    assert app.nodes.list() == []


def test_a_second_signal_forces_a_script_whatever_its_work_does(tmp_path: Path, app: Ostinato) -> None:
    with Script(tmp_path, "swallow") as script:
        script.signal(signal.SIGTERM)
        until_draining(app)
        script.signal(signal.SIGTERM)
        assert script.wait() == -signal.SIGTERM
    (run,) = app.runs.list()
    assert (run.state, run.reason) == (RunState.FAILED, "its node was stopped by force while it ran")


def test_a_script_drains_whatever_its_main_thread_does(tmp_path: Path, app: Ostinato) -> None:
    with Script(tmp_path, "work", "deaf") as script:
        eventually((tmp_path / "deaf").exists, "the main thread waits")
        (tmp_path / "open").touch()
        script.signal(signal.SIGTERM)
        assert script.wait() == -signal.SIGTERM
    assert_done(app)
    assert app.nodes.list() == []


@pytest.mark.parametrize("main", ["sleeps", "deaf"])
def test_a_second_signal_ends_a_script_whose_engine_is_blocked(tmp_path: Path, main: str) -> None:
    with Script(tmp_path, "block", main) as script:
        script.signal(signal.SIGTERM)
        eventually(lambda: not is_pending(script.pid, signal.SIGTERM), "the first one is delivered")
        script.signal(signal.SIGTERM)
        assert script.wait() == -signal.SIGTERM


@pytest.mark.parametrize("lock", ["home", "logging"])
def test_a_signal_that_comes_while_the_script_holds_a_lock_drains_all_the_same(
    tmp_path: Path, app: Ostinato, lock: str
) -> None:
    with Script(tmp_path, "work", lock) as script:
        assert script.wait() == -signal.SIGTERM
    assert_done(app)


def test_a_script_that_comes_to_its_end_while_it_drains_ends_after_that(tmp_path: Path, app: Ostinato) -> None:
    with Script(tmp_path, "work", "ends") as script:
        until_draining(app)
        (tmp_path / "open").touch()
        assert script.wait() == -signal.SIGTERM
    assert_done(app)


def test_a_forked_child_without_an_engine_ends_by_the_signal(tmp_path: Path) -> None:
    with Script(tmp_path, "work", "forks"):
        eventually((tmp_path / "ended").exists, "the child has ended")
        eventually(lambda: (tmp_path / "ended").read_text() == str(-signal.SIGTERM), "by the signal")


def test_every_started_app_is_drained(tmp_path: Path) -> None:
    script = (
        "import signal, time\nfrom ostinato import Ostinato\n"
        "apps = [Ostinato(f'sqlite:///{name}.db').start() for name in 'abc']\nsignal.raise_signal(signal.SIGTERM)\n"
        "time.sleep(3600)"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, timeout=60, check=False)
    assert ended.returncode == -signal.SIGTERM
    for name in "abc":
        app = Ostinato(f"sqlite:///{tmp_path / name}.db")
        assert app.nodes.list() == []
        app.stop()


def test_an_app_that_cannot_be_stopped_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    script = (
        "import logging, signal, time\nfrom ostinato import Ostinato\nlogging.basicConfig()\n"
        "apps = [Ostinato(f'sqlite:///{name}.db').start() for name in 'ab']\n"
        "def stop():\n    raise ValueError('no good')\n"
        "apps[0].stop = stop\nsignal.raise_signal(signal.SIGTERM)\ntime.sleep(3600)"
    )
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=tmp_path, timeout=60, check=False, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGTERM
    assert "an app could not be stopped" in ended.stderr
    app = Ostinato(f"sqlite:///{tmp_path / 'b.db'}")
    assert app.nodes.list() == []
    app.stop()


@pytest.mark.parametrize(("how", "code", "traces"), [("sleeps", -signal.SIGINT, 1), ("stops", 0, 0)])
def test_a_second_interrupt_forces_with_one_line(
    tmp_path: Path, app: Ostinato, how: str, code: int, traces: int
) -> None:
    with Script(tmp_path, "swallow", how) as script:
        eventually((tmp_path / "ready").exists, "the main thread waits")
        script.signal(signal.SIGINT)
        until_draining(app)
        script.signal(signal.SIGINT)
        assert script.wait() == code
    assert script.err.count("Traceback") == traces  # of the first one, where the script does not catch it
    assert "Exception ignored" not in script.err
    lines = script.err.splitlines()
    assert lines.count("waiting for run 1 of 'swallow' to end (Ctrl-C cuts off what is under way)") == 1
    assert lines.count(FORCING) == 1
    assert (tmp_path / "stopped").exists() == (how == "stops")
    (run,) = app.runs.list()
    assert (run.state, run.reason) == (RunState.FAILED, "its node was stopped by force while it ran")


@pytest.mark.parametrize("how", ["sleeps", "stops"])
def test_a_second_interrupt_ends_a_script_whose_engine_is_blocked(tmp_path: Path, how: str) -> None:
    with Script(tmp_path, "block", how) as script:
        eventually((tmp_path / "ready").exists, "the main thread waits")
        script.signal(signal.SIGINT)
        eventually((tmp_path / "interrupted").exists, "the next one is ours")
        script.signal(signal.SIGINT)
        assert script.wait() == -signal.SIGINT
    assert FORCING in script.err
    assert script.err.count("Traceback") <= 1


def test_an_interrupt_of_a_stop_that_nobody_interrupted_before_is_raised(tmp_path: Path) -> None:
    code = (
        "import os, signal, threading\nfrom ostinato import Ostinato\napp = Ostinato('sqlite:///a.db').start()\n"
        "leave = app._host.leave\n"
        "def interrupted(*arguments):\n    signal.raise_signal(signal.SIGINT)\n    leave(*arguments)\n"
        "app._host.leave = interrupted\n"
        "try:\n    app.stop()\nexcept KeyboardInterrupt:\n    os._exit(4)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60, check=False).returncode == 4


def test_a_handler_of_the_script_is_left_alone(tmp_path: Path) -> None:
    with Script(tmp_path, "work", "own") as script:
        (tmp_path / "open").touch()
        script.signal(signal.SIGTERM)
        assert script.wait() == 7


@pytest.fixture
def unhandled() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("unhandled")
def test_the_handler_is_there_from_the_first_start_to_the_last_stop(tmp_path: Path) -> None:
    apps = [Ostinato(f"sqlite:///{tmp_path / name}") for name in ("a.db", "b.db")]
    for app in apps:
        app.start()
        assert is_ours()
    apps[0].stop()
    assert is_ours()
    apps[1].stop()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("unhandled")
def test_another_thread_sets_no_handler(tmp_path: Path) -> None:
    app = Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}")
    starting = threading.Thread(target=app.start)
    starting.start()
    starting.join(60)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    app.stop()
