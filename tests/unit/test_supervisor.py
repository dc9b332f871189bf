"""A supervisor at the other end of a plain socket: what is said about a command counts, whenever it comes."""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

from ostinato.execution.guard_child import HEADER, KILL, READY, TERMINATE
from tests.processes import lives
from tests.unit.commands import PATIENCE

SUPERVISOR = """
import os, signal, socket, sys
from ostinato.execution import guard_child

control, engine = (int(word) for word in sys.argv[1:])
signal.signal(signal.SIGCHLD, lambda *_: None)
guard_child.Supervisor(socket.socket(fileno=control), os.pidfd_open(engine)).run()
"""
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.01; done"


@dataclass
class Engine:
    """Our side of a supervisor: nobody but its words ends a command, for a fork of it holds the socket as well."""

    supervisor: subprocess.Popen[bytes]
    process: subprocess.Popen[bytes]
    """What the supervisor takes for the engine."""
    control: socket.socket
    said: bytes = b""

    def line(self) -> bytes:
        """What it says next; nothing if it is gone."""
        while b"\n" not in self.said:
            if not (more := self.control.recv(1_024)):
                return b""
            self.said += more
        line, _, self.said = self.said.partition(b"\n")
        return line + b"\n"

    def until_ready(self) -> list[bytes]:
        """All that it says about one command."""
        lines = [self.line()]
        while lines[-1] not in (READY, b""):
            lines.append(self.line())
        return lines


def request(command: str, *, kill_seconds: float = 600.0) -> bytes:
    """A grace so long that only a KILL ends what ignores SIGTERM."""
    data = marshal.dumps(
        {
            "command": [b"/bin/sh", b"-c", command.encode()],
            "folder": b"/",
            "environment": dict(os.environb),
            "identity": {},
            "stderr": False,
            "stdin": False,
            "pass_fds": [],
            "kill_seconds": kill_seconds,
        }
    )
    return len(data).to_bytes(HEADER, "big") + data


@pytest.fixture
def engine() -> Iterator[Engine]:
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    held = os.dup(ours.fileno())
    with ours, theirs, subprocess.Popen(["sleep", "600"]) as process:
        words = [sys.executable, "-c", SUPERVISOR, str(theirs.fileno()), str(process.pid)]
        with subprocess.Popen(words, pass_fds=[theirs.fileno()]) as supervisor:
            theirs.close()
            try:
                found = Engine(supervisor, process, ours)
                assert found.line() == READY
                yield found
            finally:
                process.kill()
                os.close(held)
                if supervisor.poll() is None:
                    left = psutil.Process(supervisor.pid).children(recursive=True)
                    supervisor.kill()
                    for each in left:
                        with contextlib.suppress(psutil.NoSuchProcess):
                            each.kill()


def start(engine: Engine, message: bytes) -> socket.socket:
    """Send it with an end of a pipe; the other end has an end of file when nobody is left who could write."""
    reading, writing = socket.socketpair()
    reading.settimeout(PATIENCE)
    with writing:
        socket.send_fds(engine.control, [message], [writing.fileno()])
    return reading


def said(output: socket.socket) -> bytes:
    """All of it, until nobody is left who could say more."""
    with output:
        heard = b""
        while more := output.recv(1_024):
            heard += more
        return heard


@pytest.mark.parametrize("words", [KILL, KILL + KILL, TERMINATE + KILL, KILL + TERMINATE])
@pytest.mark.parametrize("apart", [0, 1, -1], ids=["in one send", "after its first byte", "before its last byte"])
def test_a_word_that_comes_with_the_request_is_about_its_command(engine: Engine, words: bytes, apart: int) -> None:
    message = request(STUBBORN)
    apart = apart or len(message) + len(words)
    output = start(engine, (message[:apart] + words) if apart > len(message) else message[:apart])
    if apart < len(message):
        engine.control.sendall(message[apart:] + words)
    assert engine.until_ready()[-1] == READY, "all of it is gone, and the supervisor takes the next one"
    assert not any(lives(int(pid)) for pid in said(output).split())
    assert said(start(engine, request("echo the next one"))) == b"the next one\n"


def test_a_command_that_nobody_wants_any_more_is_not_started(engine: Engine) -> None:
    output = start(engine, request("echo started") + KILL)
    first, last = engine.until_ready()
    assert first.startswith(b"E ")
    assert last == READY
    assert said(output) == b""


@pytest.mark.parametrize("words", [KILL, TERMINATE + KILL])
def test_a_word_after_the_start_is_about_its_command(engine: Engine, words: bytes) -> None:
    output = start(engine, request(STUBBORN))
    pid = int(output.recv(1_024))
    engine.control.send(words)
    assert engine.until_ready()[-1] == READY
    assert not lives(pid)
    output.close()


@pytest.mark.parametrize("words", [KILL, TERMINATE, TERMINATE + KILL])
@pytest.mark.parametrize("is_apart", [True, False])
def test_a_word_about_the_last_command_is_not_about_the_next(engine: Engine, words: bytes, is_apart: bool) -> None:
    start(engine, request("exit 3")).close()
    assert engine.until_ready()[1:] == [b"X 3\n", READY]
    if is_apart:
        engine.control.send(words)
    output = start(engine, request("echo hi; exit 4") if is_apart else words + request("echo hi; exit 4"))
    assert engine.until_ready()[1:] == [b"X 4\n", READY]
    assert said(output) == b"hi\n"


@pytest.mark.parametrize("left_out", [1, 2, 100])
@pytest.mark.parametrize("word", [b"", KILL])
def test_half_a_request_starts_nothing(engine: Engine, left_out: int, word: bytes) -> None:
    """Its engine was cancelled before it had sent all of it."""
    output = start(engine, request("echo started")[:-left_out])
    engine.control.sendall(word)
    engine.control.shutdown(socket.SHUT_WR)
    assert engine.supervisor.wait(PATIENCE) == 0
    assert said(output) == b""


@pytest.mark.parametrize("before", [b"", KILL, request("echo started")[:100]], ids=["nothing", "a word", "a half"])
def test_no_supervisor_waits_for_an_engine_that_is_gone(engine: Engine, before: bytes) -> None:
    """The end of its socket does not come: a fork holds it."""
    engine.control.sendall(before)
    engine.process.kill()
    assert engine.supervisor.wait(PATIENCE) == 0


REUSED = """
import signal, socket, subprocess, sys
from ostinato.execution import guard_child

signal.signal(signal.SIGCHLD, lambda *_: None)
supervisor = guard_child.Supervisor(socket.socket(fileno=int(sys.argv[1])), None)
orphan = subprocess.Popen(["sh", "-c", "exit 9"])
orphan.returncode = 0  # as if it were the command, which has ended, and its number another's by now
while supervisor._bury(orphan):
    supervisor._waits.wait(None)
"""


def test_an_orphan_with_the_number_of_the_command_does_not_change_its_exit_status() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    with ours, theirs:
        words = [sys.executable, "-c", REUSED, str(theirs.fileno())]
        with subprocess.Popen(words, pass_fds=[theirs.fileno()]) as supervisor:
            theirs.close()
            assert ours.recv(1_024) == b""
            assert supervisor.wait(PATIENCE) == 0
