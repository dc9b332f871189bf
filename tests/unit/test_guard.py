"""The guard of an engine's commands, seen from the engine: it is restarted, and it never stands in the way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ostinato.execution.executors import group as groups
from ostinato.execution.executors.group import UNKNOWN, NotStarted
from ostinato.execution.guard import GUARD, Guard
from tests.processes import lives
from tests.unit.commands import PATIENCE, Collected, bounded, closing, ended, soon, started


@pytest.fixture
def fresh(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guard]:
    """A guard of the test's own; `made_with` says how it is made."""
    with closing(Guard(**getattr(request, "param", {}))) as guard:
        monkeypatch.setattr(groups, "GUARD", guard)
        yield guard


def made_with(**numbers: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fresh", [numbers], indirect=True, ids=["tuned"])


@made_with(restart_seconds=0, most_idle=0)
def test_the_guard_is_restarted_with_the_next_command_when_it_died(fresh: Guard) -> None:
    ended("true")
    first = fresh.process
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert soon(lambda: not lives(first))
    ended("true")
    ended("true")
    second = fresh.process
    assert second is not None
    assert second != first
    assert lives(second)
    assert not psutil.pid_exists(first), "the first was buried"


async def test_commands_go_on_when_the_guard_dies() -> None:
    heard = Collected()
    group = await started("echo ready; read line; setsid sleep 600 & echo on; exit 3", heard, stdin=b"x\n")
    await heard.until(b"ready\n")
    assert GUARD.process is not None
    os.kill(GUARD.process, signal.SIGKILL)
    assert (await group.wait(), heard.data) == (3, b"ready\non\n")


@made_with(restart_seconds=0.3)
def test_a_guard_that_cannot_live_is_not_started_again_and_again(monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    starts: list[tuple[float, float]] = []

    def dies(_: str, __: object, environment: dict[str, str], **more: Any) -> int:
        starts.append((time.monotonic(), fresh._not_before))
        return spawn("/bin/false", ["false"], environment, **more)

    spawn = os.posix_spawn
    monkeypatch.setattr(os, "posix_spawn", dies)
    with pytest.raises(NotStarted, match="'/bin/sh' cannot be started: the guard of commands ends as soon as") as error:
        ended("true")
    assert not error.value.may_pass, "a run that is put off for it would be put off for ever"
    (first, not_before), (second, _) = starts
    assert first < not_before <= second


@made_with(restart_seconds=0, most_idle=0)
def test_a_guard_that_is_stopped_is_replaced(monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    ended("true")
    first = fresh.process
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    assert soon(lambda: psutil.Process(first).status() == psutil.STATUS_STOPPED)
    kill = fresh._kill

    def killed(asked: int | None) -> None:
        fresh._answer_seconds = PATIENCE  # the next one has its time to start
        kill(asked)

    fresh._answer_seconds = 0.5
    monkeypatch.setattr(fresh, "_kill", killed)
    assert ended("echo hi") == (0, b"hi\n")
    assert fresh.process != first
    assert not psutil.pid_exists(first), "the first was buried"


@made_with(restart_seconds=0, answer_seconds=0.2)
def test_a_guard_that_never_answers_is_no_fault_of_the_command(monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    def hangs(_: str, __: object, environment: dict[str, str], **more: Any) -> int:
        hanging.append(spawn("/bin/sleep", ["sleep", "600"], environment, **more))
        return hanging[-1]

    hanging: list[int] = []
    spawn = os.posix_spawn
    monkeypatch.setattr(os, "posix_spawn", hangs)
    with pytest.raises(NotStarted, match=r"no room .*: the guard of commands does not answer") as error:
        ended("true")
    assert error.value.may_pass
    assert len(hanging) == 2
    assert not any(psutil.pid_exists(each) for each in hanging)


WITHOUT_ROOM = """
import os, runpy, sys
def fork():
    raise BlockingIOError(11, "no room")
os.fork = fork
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_guard_that_cannot_fork_says_so(monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    """That passes, and is no fault of the command."""

    def full(program: str, words: list[str], environment: dict[str, str], **more: Any) -> int:
        return spawn(program, [program, "-I", "-S", "-c", WITHOUT_ROOM, *words[3:]], environment, **more)

    spawn = os.posix_spawn
    monkeypatch.setattr(os, "posix_spawn", full)
    for _ in range(2):
        with pytest.raises(NotStarted, match=r"no room .*: the guard of commands has no room to fork") as error:
            ended("true")
        assert error.value.may_pass
    first = fresh.process
    ours, theirs = fresh._pair()
    fresh.close(ours)  # a start that was cancelled
    bounded(fresh._send(ours, theirs))
    theirs.close()
    with pytest.raises(NotStarted, match="has no room to fork"):
        ended("true")
    assert fresh.process == first, "it is not the guard that ends"


@made_with(restart_seconds=0)
async def test_no_supervisor_outlives_its_guard_for_another_command(fresh: Guard) -> None:
    """Nobody would end what it leaves if it were killed."""
    ends_later = await started("read line", Collected(), stdin=b"", keep_stdin=True)
    await (await started("true", Collected())).wait()
    assert fresh.process is not None
    old = {each.pid for each in psutil.Process(fresh.process).children()}
    assert len(old) == 2
    os.kill(fresh.process, signal.SIGKILL)
    while lives(fresh.process):  # noqa: ASYNC110  # the system ends it
        await asyncio.sleep(0.005)
    for _ in range(2):
        group = await started("sleep 600", Collected())
        assert psutil.Process(group.number).ppid() not in old
        ends_later.kill()
        await ends_later.wait()
        ends_later = group
    ends_later.kill()
    assert await ends_later.wait() == -signal.SIGKILL


def test_a_command_that_stops_its_supervisor_is_ended(fresh: Guard) -> None:
    marker = f"stopped-{os.getpid()}-{time.monotonic_ns()}"
    status, _ = ended(["/bin/sh", "-c", "setsid sleep 600 & kill -STOP $PPID; wait", marker])
    assert status == UNKNOWN
    assert fresh.process is not None
    assert soon(lambda: not psutil.Process(fresh.process).children(recursive=True))


def test_a_killed_supervisor_is_not_given_the_next_command(fresh: Guard) -> None:
    ended("true")
    assert fresh.process is not None
    (idle,) = psutil.Process(fresh.process).children()
    idle.kill()
    assert soon(lambda: not lives(idle.pid))
    assert ended("echo hi") == (0, b"hi\n")


@made_with(most_idle=3)
async def test_supervisors_are_used_again_and_most_of_them_go(fresh: Guard) -> None:
    for _ in range(2):
        begun = [await started("read line; exit 0", Collected(), stdin=b"", keep_stdin=True) for _ in range(6)]
        assert fresh.process is not None
        assert len(psutil.Process(fresh.process).children()) == 6
        for group in begun:
            group.kill()
        for group in begun:
            await group.wait()
        assert soon(lambda: len(psutil.Process(fresh.process).children()) == 3)


def test_a_server_that_embeds_python_finds_an_interpreter(monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/sbin/some-server")
    assert ended("echo hi") == (0, b"hi\n")


def test_without_an_interpreter_the_reason_says_so(monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    monkeypatch.setattr(sys, "executable", None)
    monkeypatch.setattr(sys, "exec_prefix", "/nowhere")
    monkeypatch.setattr(sys, "base_exec_prefix", "/nowhere")
    with pytest.raises(NotStarted, match="its guard needs a Python interpreter, and there is none at /nowhere"):
        ended("echo hi")


FORK = """
import asyncio, os, signal, sys
from pathlib import Path
from ostinato.execution.executors.group import ProcessGroup
from ostinato.execution.guard import GUARD

async def one():
    group = await ProcessGroup.start(["true"], folder=Path("/"), environment=os.environ, stdout=lambda data: None)
    assert await group.wait() == 0

asyncio.run(one())
guard = GUARD.process
with GUARD._lock:  # as another thread may, at any time
    fork = os.fork()
if fork == 0:
    signal.alarm(50)
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
    """It starts in some milliseconds, and a fork of it is small."""
    source = Path(sys.modules["ostinato.execution.guard_child"].__file__ or "").read_text()
    imported = [line.split()[1] for line in source.splitlines() if line.startswith(("import", "from"))]
    assert set(imported) <= {"__future__", *sys.stdlib_module_names}
    assert not {"asyncio", "logging", "typing", "re", "json"} & set(imported)
