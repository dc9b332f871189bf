"""A command in a process group of its own: what it says, how it is stopped, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from ostinato.execution.executors import group as groups
from ostinato.execution.executors.group import UNKNOWN, NotStarted, end_of
from ostinato.execution.guard import Guard
from ostinato.execution.guard_child import READY
from tests.processes import lives
from tests.unit.commands import PATIENCE, Collected, bounded, closing, ended, soon, started

LONG_GRACE = 100.0
"""So long that no slow machine is taken for one that waited for its end."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guard]:
    with closing(Guard()) as guard:
        monkeypatch.setattr(groups, "GUARD", guard)
        yield guard


def test_both_streams_come_in_their_order() -> None:
    command = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
    assert ended(command) == (0, b"out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n")


def test_a_second_sink_gets_what_is_said_on_stderr() -> None:
    errors = Collected()
    assert ended("echo out; echo err >&2", stderr=errors) == (0, b"out\n")
    assert errors.data == b"err\n"


def test_it_reads_what_it_is_given_and_then_an_end_of_file() -> None:
    assert ended("cat") == (0, b"")
    data = os.urandom(1_000_000)
    assert ended("cat", stdin=data) == (0, data)


def test_what_it_does_not_read_is_nobodys_loss() -> None:
    assert ended("exec 0<&-; echo done", stdin=b"x" * 1_000_000) == (0, b"done\n")


async def test_an_stdin_that_is_kept_ends_only_with_the_group() -> None:
    heard = Collected()
    group = await started("read line; echo $line; read line || echo ended", heard, stdin=b"hello\n", keep_stdin=True)
    await heard.until(b"hello\n")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(group.wait(), 0.2)
    assert heard.data == b"hello\n"


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("exit 3", 3, "exited with status 3"),
        ("kill -9 $$", -9, "was killed by SIGKILL"),
        ("kill -TERM $$", -15, "was killed by SIGTERM"),
        ("kill -40 $$", -40, "was killed by signal 40"),
    ],
)
def test_its_end_is_told_in_words(command: str, status: int, words: str) -> None:
    assert ended(command)[0] == status
    assert end_of(status) == words


@pytest.mark.parametrize(
    "background",
    [
        "sleep 600 &",
        "sleep 600 >/dev/null 2>&1 &",
        "(trap '' TERM HUP; sleep 600) &",
        "timeout 600 sleep 599 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done;",
        "timeout 600 sleep 599 >/dev/null 2>&1 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done;",
        "set -m; sleep 600 >/dev/null 2>&1 &",
        "setsid sleep 600 & until [ $(ps -o sid= -p $!) = $! ]; do :; done;",
        "(trap '' TERM HUP; exec setsid sleep 600 >/dev/null 2>&1) & until [ $(ps -o sid= -p $!) = $! ]; do :; done;",
    ],
    ids=[
        "plain",
        "silent",
        "stubborn",
        "in a group of its own",
        "silent in a group of its own",
        "job control",
        "in a session of its own",
        "stubborn in a session of its own",
    ],
)
def test_what_it_leaves_in_the_background_goes_with_it(background: str) -> None:
    status, said = ended(["/bin/bash", "-c", f"{background} echo $!; exit 0"])
    assert status == 0
    assert not lives(int(said))


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0), os.close(1), os.close(2)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


def daemons(marker: str) -> list[int]:
    found = psutil.process_iter(["cmdline"])
    return [each.pid for each in found if marker in (each.info["cmdline"] or []) and lives(each.pid)]


def test_a_daemon_that_forks_twice_goes_with_its_command() -> None:
    marker = f"daemon-{os.getpid()}-{time.monotonic_ns()}"
    assert ended([sys.executable, "-c", DAEMON + "print('away', flush=True)", marker]) == (0, b"away\n")
    assert daemons(marker) == []


async def test_a_stop_reaches_what_fled() -> None:
    marker = f"daemon-{os.getpid()}-{time.monotonic_ns()}"
    begun = DAEMON + "print('ready', flush=True)\ntime.sleep(600)"
    heard = Collected()
    group = await started([sys.executable, "-c", begun, marker], heard)
    await heard.until(b"ready\n")
    assert len(daemons(marker)) == 2
    group.terminate()
    assert await group.wait() == -signal.SIGTERM
    assert daemons(marker) == []


HOPPING = """
import os, sys
sys.stdout.write("ready\\n")
sys.stdout.flush()
while True:  # each lives but a moment, and leaves a child in a session of its own
    if os.fork():
        os._exit(0)
    os.setsid()
"""


def test_what_forks_again_and_again_is_caught() -> None:
    marker = f"hopping-{os.getpid()}-{time.monotonic_ns()}"
    assert ended([sys.executable, "-c", HOPPING, marker]) == (0, b"ready\n")
    assert soon(lambda: daemons(marker) == [])


@pytest.fixture
def ignored_children() -> Iterator[None]:
    """The system buries them at once, and tells nobody how they ended."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("ignored_children", "fresh")
def test_an_application_that_ignores_its_children_loses_no_exit_status(
    monkeypatch: pytest.MonkeyPatch, fresh: Guard
) -> None:
    assert ended("echo hi; exit 7") == (7, b"hi\n")


async def test_an_application_that_buries_all_children_takes_no_exit_status() -> None:
    group = await started("read line; exit 7", Collected(), stdin=b"go\n")
    with contextlib.suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # noqa: ASYNC222 - it does not wait
    assert await group.wait() == 7


def supervisor_of(command: int) -> int:
    return psutil.Process(command).ppid()


def test_a_status_that_nobody_knows_is_no_success_and_nothing_is_left() -> None:
    """Somebody killed the supervisor: the guard ends what it left behind."""

    async def main() -> tuple[int, list[int]]:
        heard = Collected()
        away = "setsid sleep 600 & until [ $(ps -o sid= -p $!) = $! ]; do :; done; echo $! $$; echo ready; wait"
        group = await started(away, heard)
        await heard.until(b"ready\n")
        os.kill(supervisor_of(group.number), signal.SIGKILL)
        return await group.wait(), [int(word) for word in heard.data.split()[:2]]

    status, left = bounded(main())
    assert status == UNKNOWN
    assert "the process that supervised it was killed" in end_of(UNKNOWN)
    assert all(soon(lambda pid=pid: not lives(pid)) for pid in left)  # type: ignore[misc]
    assert ended("echo hi") == (0, b"hi\n")


def test_when_the_guard_and_the_supervisor_are_killed_the_group_is_ended_from_here() -> None:
    async def main() -> tuple[int, list[int]]:
        heard = Collected()
        group = await started("sleep 600 & echo $! $$; echo ready; wait", heard)
        await heard.until(b"ready\n")
        supervisor = supervisor_of(group.number)
        os.kill(supervisor_of(supervisor), signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
        return await group.wait(), [int(word) for word in heard.data.split()[:2]]

    status, left = bounded(main())
    assert status == UNKNOWN
    assert all(soon(lambda pid=pid: not lives(pid)) for pid in left)  # type: ignore[misc]


STUBBORN_CHILD = "sh -c 'trap \"\" TERM; echo $$; echo ready; while :; do sleep 0.01; done' & wait"
"""It names itself: were it the parent that names it, the child might be ready first."""


async def stopped(command: str, kill_seconds: float = LONG_GRACE) -> tuple[int, bytes, list[int]]:
    """Start it, wait until it has named its processes, tell it to stop, wait for its end."""
    heard = Collected()
    group = await started(command, heard, kill_seconds=kill_seconds)
    await heard.until(b"ready\n")
    named = [int(word) for word in heard.data.split() if word.isdigit()]
    group.terminate()
    assert group.was_terminated
    return await group.wait(), heard.data, named


def test_a_polite_command_ends_at_sigterm_and_its_last_words_are_heard() -> None:
    status, said, _ = bounded(stopped("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"))
    assert status == 0
    assert said.endswith(b"bye\n")


def test_what_ignores_sigterm_is_killed_after_the_grace() -> None:
    begun = time.monotonic()
    status, _, _ = bounded(stopped("trap '' TERM; echo ready; while :; do sleep 0.01; done", 0.3))
    assert status == -9
    assert time.monotonic() - begun >= 0.3


def test_a_grandchild_that_ignores_sigterm_has_its_grace_and_is_killed() -> None:
    begun = time.monotonic()
    status, _, (grandchild,) = bounded(stopped(STUBBORN_CHILD, 0.3))
    assert status == -15
    assert time.monotonic() - begun >= 0.3
    assert not lives(grandchild)


def test_a_grandchild_in_a_group_of_its_own_is_stopped_too() -> None:
    command = "timeout 600 sleep 599 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done; echo $!; echo ready; wait"
    begun = time.monotonic()
    _, _, (grandchild,) = bounded(stopped(command))
    assert not lives(grandchild)
    assert time.monotonic() - begun < LONG_GRACE / 2


def test_all_its_groups_are_told_to_stop_at_once() -> None:
    """A shell runs its trap only when what it waits for has ended."""
    command = "trap 'echo bye; exit 0' TERM; timeout 600 sh -c 'echo ready; exec sleep 599'"
    begun = time.monotonic()
    status, said, _ = bounded(stopped(command))
    assert status == 0
    assert said.endswith(b"bye\n")
    assert time.monotonic() - begun < LONG_GRACE / 2


STUBBORN_APART = "timeout 600 sh -c 'trap \"\" TERM; echo $$; echo ready; while :; do sleep 0.01; done'"


@pytest.mark.parametrize("is_told_before", [True, False])
def test_a_kill_reaches_all_its_groups_at_once(is_told_before: bool) -> None:
    async def main() -> int:
        heard = Collected()
        group = await started(f"{STUBBORN_APART}; exit 3", heard, kill_seconds=LONG_GRACE)
        await heard.until(b"ready\n")
        if is_told_before:
            group.terminate()
        group.kill()
        end = time.monotonic() + PATIENCE / 2
        pid = int(heard.data.split()[0])
        while lives(pid):
            assert time.monotonic() < end, "it outlived the kill"
            await asyncio.sleep(0.005)
        return await group.wait()

    begun = time.monotonic()
    assert bounded(main()) == (-signal.SIGTERM if is_told_before else -signal.SIGKILL)
    assert time.monotonic() - begun < LONG_GRACE / 2


async def test_what_was_stopped_hears_that_it_shall_end() -> None:
    heard = Collected()
    group = await started("trap 'echo bye; exit 3' TERM; kill -STOP $$; sleep 1", heard)
    end = time.monotonic() + PATIENCE
    while psutil.Process(group.number).status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < end
        await asyncio.sleep(0.005)
    group.terminate()
    assert (await group.wait(), heard.data) == (3, b"bye\n")


async def test_a_stop_needs_no_thread_of_the_application() -> None:
    release = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    blocking = loop.run_in_executor(None, release.wait, 30)
    try:
        await asyncio.wait_for(stopped("echo ready; sleep 600"), LONG_GRACE / 2)
    finally:
        release.set()
        await blocking


POOR = """
import os, signal, socket, sys
from ostinato.execution import guard_child

class NoTable:
    def __init__(self):
        raise FileNotFoundError("/proc")

guard_child.become_subreaper = lambda: False
if sys.argv[1] == "no table":
    guard_child.Table = NoTable
signal.signal(signal.SIGCHLD, lambda *_: None)
guard_child.Supervisor(socket.socket(fileno=int(sys.argv[2])), None).run()
"""


def process_with(number: int, kind: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", POOR, kind, str(number)], pass_fds=[number])


@pytest.mark.parametrize("kind", ["no table", "table"])
def test_without_a_subreaper_a_stop_reaches_the_session_or_at_least_the_group(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor: list[subprocess.Popen[bytes]] = []

    async def supervisor(_: Guard) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            poor.append(process_with(number, kind))
        ours.setblocking(False)
        assert await asyncio.get_running_loop().sock_recv(ours, 2) == READY
        return ours

    monkeypatch.setattr(Guard, "supervisor", supervisor)
    monkeypatch.setattr(Guard, "give_back", Guard.close)
    begun = time.monotonic()
    status, _, _ = bounded(stopped("echo ready; exec sleep 600"))
    assert status == -15
    status, said = ended("sleep 600 >/dev/null 2>&1 & echo $!", kill_seconds=LONG_GRACE)
    assert status == 0
    assert not lives(int(said))
    assert time.monotonic() - begun < LONG_GRACE / 2
    _, _, (grandchild,) = bounded(stopped(STUBBORN_CHILD, 0.3))
    assert soon(lambda: not lives(grandchild))
    for each in poor:
        assert each.wait(PATIENCE) == 0


@pytest.mark.parametrize("more", [0, 12], ids=["short", "longer than a socket takes at once"])
def test_a_cancel_while_it_starts_leaves_nothing_behind(more: int) -> None:
    marker = f"starting-{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-c", "import time; time.sleep(600)", marker, *["x" * 100_000] * more]

    async def main() -> None:
        await (await started("true", Collected())).wait()  # the guard is there
        for turns in range(12):
            starting = asyncio.ensure_future(started(command, Collected()))
            for _ in range(turns):
                await asyncio.sleep(0)
            if not starting.cancel():
                waiting = asyncio.ensure_future(starting.result().wait())
                await asyncio.sleep(0)
                waiting.cancel()

    bounded(main())
    assert soon(lambda: daemons(marker) == []), [psutil.Process(pid).parents() for pid in daemons(marker)]


def test_a_fork_that_holds_the_socket_keeps_no_supervisor_and_no_command(fresh: Guard) -> None:
    """Such as a library's own, in which nothing of ours is run."""

    async def main() -> tuple[int, int]:
        heard = Collected()
        await (await started("true", heard)).wait()
        stubborn = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
        group = await started(stubborn, heard, kill_seconds=LONG_GRACE)
        await heard.until(b"ready\n")
        held = os.dup(group._supervisor.fileno())
        waiting = asyncio.ensure_future(group.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        return held, group.number

    held, number = bounded(main())
    try:
        assert fresh.process is not None
        assert soon(lambda: not psutil.Process(fresh.process).children(recursive=True))
        assert not lives(number)
    finally:
        os.close(held)


def test_it_does_not_wait_for_the_dead() -> None:
    """Where nobody buries orphans, a killed grandchild stays in the group as a zombie."""
    begun = time.monotonic()
    bounded(stopped("sleep 600 & echo $!; echo ready; wait"))
    assert time.monotonic() - begun < LONG_GRACE / 2


def test_a_cancel_of_who_waits_kills_the_group_and_ends_when_it_is_gone() -> None:
    async def main() -> list[int]:
        heard = Collected()
        group = await started("sleep 600 & echo $! $$; echo ready; wait", heard)
        await heard.until(b"ready\n")
        waiting = asyncio.ensure_future(group.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return [pid for pid in map(int, heard.data.split()[:2]) if lives(pid)]

    assert bounded(main()) == []


async def test_to_tell_what_has_ended_to_stop_does_nothing() -> None:
    heard = Collected()
    group = await started("exit 3", heard)
    end = time.monotonic() + PATIENCE
    while not group._ended.done():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)
    group.terminate()
    group.kill()
    assert (await group.wait(), group.was_terminated) == (3, False)


@pytest.mark.usefixtures("fresh")
def test_no_descriptor_is_left_open_whatever_happens() -> None:
    async def main() -> tuple[int, int]:
        heard = Collected()
        await (await started("true", heard)).wait()  # the guard and the loop have theirs now
        before = psutil.Process().num_fds()
        for _ in range(5):
            await (await started("cat", heard, stdin=b"x" * 200_000, stderr=heard)).wait()
            with pytest.raises(NotStarted):
                await started(["no-such-program"], heard, stdin=b"x", stderr=heard)
            waiting = asyncio.ensure_future((await started("sleep 600", heard)).wait())
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.wait([waiting])
        await (await started("true", heard)).wait()  # as before, one supervisor is free
        return before, psutil.Process().num_fds()

    before, after = bounded(main())
    assert before == after
