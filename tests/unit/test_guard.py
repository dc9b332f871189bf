"""The guard of an engine's commands, seen from the engine: it is restarted, and it never stands in the way."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ostinato.execution import guard
from ostinato.execution.executors import group as groups
from ostinato.execution.guard import GUARD, Guard
from tests.unit.commands import ended, is_gone, soon


def test_the_guard_is_restarted_with_the_next_command_when_it_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "RESTART_SECONDS", 0)
    monkeypatch.setattr(GUARD, "_not_before", 0)
    ended("true")
    first = GUARD.process
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert soon(lambda: is_gone(first))
    ended("true")
    ended("true")
    second = GUARD.process
    assert second is not None
    assert second != first
    assert not is_gone(second)
    assert not psutil.pid_exists(first), "the first was buried"


def test_a_guard_that_cannot_live_is_not_started_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[str] = []

    def dies(path: str, _: object, environment: dict[str, str], **more: Any) -> int:
        starts.append(path)
        return spawn("/bin/false", ["false"], environment, **more)

    spawn = os.posix_spawn
    monkeypatch.setattr(groups, "GUARD", Guard())
    monkeypatch.setattr(os, "posix_spawn", dies)
    for _ in range(5):
        assert ended("true")[0] == 0
        time.sleep(0.02)
    assert len(starts) == 1


def test_no_guard_is_no_reason_not_to_work(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(groups, "GUARD", Guard())
    monkeypatch.setattr(os, "posix_spawn", refuse)
    assert ended("echo hi") == (0, b"hi\n")
    assert "no guard could be started" in caplog.text


def test_whatever_is_wrong_with_the_guard_the_command_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(groups, "GUARD", Guard())
    monkeypatch.setattr(sys, "executable", None)
    assert ended("echo hi") == (0, b"hi\n")
    assert "no guard could be started" in caplog.text


FORK = """
import asyncio, os, signal, sys
from pathlib import Path
from ostinato.execution.executors.group import ProcessGroup
from ostinato.execution.executors.sessions import UNDERTAKER
from ostinato.execution.guard import GUARD

async def one():
    group = await ProcessGroup.start(["true"], folder=Path("/"), environment=os.environ, stdout=lambda data: None)
    assert await group.wait() == 0

asyncio.run(one())
guard = GUARD.process
with GUARD._lock, UNDERTAKER._lock:  # as another thread may, at any time
    fork = os.fork()
if fork == 0:
    signal.alarm(10)
    os.closerange(3, 1000)  # as daemons do
    files = [os.open("/dev/zero", os.O_RDONLY) for _ in range(20)]
    asyncio.run(one())
    asyncio.run(one())
    assert GUARD.process not in (None, guard), "it has a guard of its own"
    zero = os.stat("/dev/zero").st_ino
    assert all(os.fstat(file).st_ino == zero for file in files), "a file that was not ours was closed"
    os._exit(0)
sys.exit(os.waitpid(fork, 0)[1] != 0)
"""


def test_a_fork_has_a_guard_of_its_own_and_closes_nothing_that_is_not_its() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_guard_needs_nothing_of_ours() -> None:
    """It starts in a few milliseconds, because it imports next to nothing."""
    source = Path(sys.modules["ostinato.execution.guard_child"].__file__ or "").read_text()
    imported = [line for line in source.splitlines() if line.startswith(("import", "from"))]
    assert imported == [
        "from __future__ import annotations",
        "import os",
        "import select",
        "import signal",
        "import sys",
        "import time",
    ]
