"""A node that is killed without a goodbye: its commands do not live on beside the run that others rescue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from ostinato import Ostinato, RunState
from ostinato.config import Settings
from tests.processes import lives
from tests.unit.commands import PATIENCE, soon

NODE = """
import os, sys, time
from ostinato import Ostinato, Shell
from ostinato.config import Settings
from ostinato.execution import guard
from ostinato.tuning import Tuning

url, *commands = sys.argv[1:]
app = Ostinato(name="guarded", settings=Settings(db=url, tuning=Tuning(command_kill_seconds=0.5)))
app.start()
runs = [app.enqueue(Shell(command), retry=1) for command in commands]
{extra}
while len([run for run in runs if "ready" in app.runs.output(run.id)]) < len(runs):
    time.sleep(0.01)
words = [word for run in runs for word in app.runs.output(run.id).split()]
print(guard.GUARD.process, *[word for word in words if word.isdigit()], flush=True)
sys.stdin.read()
app.stop(grace=0)
"""


@contextmanager
def node(url: str, *commands: str, extra: str = "") -> Iterator[tuple[subprocess.Popen[str], int, list[int]]]:
    """A node that runs these commands: its process, its guard, and what the commands said they started."""
    script = NODE.format(extra=extra)
    process = subprocess.Popen(
        [sys.executable, "-c", script, url, *commands], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    started: list[int] = []
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words, "the node did not start"
        guard, *started = [int(word) for word in words]
        yield process, guard, started
    finally:
        process.kill()
        process.wait(10)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        for pid in started:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)


SLEEPER = "sleep 600 & echo $! $$; echo ready; wait"
STUBBORN = "trap '' TERM; echo $$; echo ready; while :; do sleep 0.05; done"
APART = "timeout 600 sleep 599 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done; echo $! $$; echo ready; wait"


FLED = (
    "(setsid sh -c 'echo $$; while :; do sleep 0.05; done') & "
    "python3 -c 'import os, time; r, w = os.pipe(); os.fork() and (os.read(r, 1), os._exit(0)); os.setsid(); "
    'os.fork() and os._exit(0); os.write(1, b"%d\\n" % os.getpid()); os.write(w, b"x"); time.sleep(600)\'; '
    "echo $$; echo ready; wait; sleep 600"
)
"""A session of its own, and a daemon that forks twice. Each names itself in one write: they share a pipe, and with
PYTHONUNBUFFERED `print` writes the number and the end of its line apart."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "command",
    [SLEEPER, STUBBORN, APART, FLED],
    ids=["polite", "stubborn", "in a group of its own", "in sessions of their own"],
)
def test_commands_do_not_outlive_a_kill_of_their_node(url: str, command: str) -> None:
    with node(url, command) as (process, guard, started):
        assert started
        assert [pid for pid in started if not lives(pid)] == []
        process.send_signal(signal.SIGKILL)
        assert soon(lambda: not any(lives(pid) for pid in started)), "a command outlived its node"
        assert soon(lambda: not lives(guard)), "the guard stayed"


@pytest.mark.timeout(120)
def test_a_rescued_run_is_alone(url: str, tmp_path: Path) -> None:
    app = Ostinato(settings=replace(Settings(), db=url, lease=timedelta(seconds=2)), name="guarded")
    alone = tmp_path / "alone"
    # The second attempt looks whether the first is still there.
    command = (
        f"if [ $OSTINATO_ATTEMPT = 1 ]; then echo $$ > {alone}; echo ready; sleep 600; "
        f"else ! kill -0 $(cat {alone}); fi"
    )
    with node(url, command) as (process, _, _):
        assert soon(alone.exists)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        app.start()
        try:
            (run,) = app.runs.list()
            assert app.runs.wait(run.id, timeout="60s").state is RunState.SUCCEEDED
        finally:
            app.stop(grace=0)


FORKED = """
import ctypes
while not app.runs.output(runs[0].id):  # its supervisor is there
    time.sleep(0.01)
if {fork} == 0:
    time.sleep(180)  # longer than the test waits
    os._exit(0)
"""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.PyDLL(None).fork()"], ids=["of Python", "of a library"])
def test_a_fork_of_the_node_does_not_hold_up_the_guard(url: str, fork: str) -> None:
    """One that Python knows nothing of holds every socket of the node."""
    with node(url, SLEEPER, extra=FORKED.format(fork=fork)) as (process, guard, started):
        forked = [child for child in psutil.Process(process.pid).children() if child.pid != guard]
        process.send_signal(signal.SIGKILL)
        try:
            assert soon(lambda: not any(lives(pid) for pid in started))
            assert soon(lambda: not lives(guard))
        finally:
            for child in forked:
                if child.is_running():
                    child.kill()


@pytest.mark.timeout(120)
def test_the_guard_goes_with_a_node_that_ends_by_itself(url: str) -> None:
    with node(url, "echo ready; sleep 0.01") as (process, guard, _):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert soon(lambda: not lives(guard))


@pytest.mark.timeout(120)
def test_signals_of_the_terminal_do_not_reach_the_guard(url: str) -> None:
    with node(url, SLEEPER) as (process, guard, started):
        assert soon(lambda: os.getsid(guard) == guard), "it has a session of its own"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(guard, number)
        process.send_signal(signal.SIGKILL)
        assert soon(lambda: not any(lives(pid) for pid in started)), "it was still there to do its work"


@pytest.mark.timeout(120)
def test_many_commands_of_one_node_are_all_ended(url: str) -> None:
    with node(url, *[SLEEPER] * 8) as (process, _, started):
        assert len(started) == 16
        process.send_signal(signal.SIGKILL)
        assert soon(lambda: not any(lives(pid) for pid in started))
