"""A command in a process group of its own: what it says, how it is stopped, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from ostinato.execution.executors import group as groups
from ostinato.execution.executors import sessions
from ostinato.execution.executors.group import UNKNOWN, NotStarted, ProcessGroup, end_of
from ostinato.execution.guard import GUARD
from ostinato.execution.guard_child import running
from tests.unit.commands import PATIENCE, Heard, bounded, ended, is_gone, soon, started

LONG_GRACE = 100.0
"""So long that no slow machine is taken for one that waited for its end."""


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "KILL_SECONDS", LONG_GRACE)


@pytest.fixture(autouse=True)
def an_undertaker_at_rest() -> None:
    """It looks around on a thread of its own for what earlier tests left: no look of this test's is meant by that."""
    assert soon(lambda: not sessions.UNDERTAKER._is_at_work)


def test_both_streams_come_in_their_order() -> None:
    command = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
    assert ended(command) == (0, b"out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n")


def test_a_second_sink_gets_what_is_said_on_stderr() -> None:
    errors = Heard()
    assert ended("echo out; echo err >&2", stderr=errors) == (0, b"out\n")
    assert errors.data == b"err\n"


def test_it_reads_what_it_is_given_and_then_an_end_of_file() -> None:
    assert ended("cat") == (0, b"")
    data = os.urandom(1_000_000)
    assert ended("cat", stdin=data) == (0, data)


def test_what_it_does_not_read_is_nobodys_loss() -> None:
    assert ended("exec 0<&-; echo done", stdin=b"x" * 1_000_000) == (0, b"done\n")


def test_an_stdin_that_is_kept_ends_only_with_the_group() -> None:
    async def main() -> bytes:
        heard = Heard()
        group = await started(
            "read line; echo $line; read line || echo ended", heard, stdin=b"hello\n", keep_stdin=True
        )
        await heard.until(b"hello\n")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(group.wait(), 0.2)
        return heard.data

    assert bounded(main()) == b"hello\n"


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
    ],
    ids=["plain", "silent", "stubborn", "in a group of its own", "silent in a group of its own", "job control"],
)
def test_what_it_leaves_in_the_background_goes_with_it(background: str) -> None:
    status, said = ended(["/bin/bash", "-c", f"{background} echo $!; exit 0"])
    assert status == 0
    assert is_gone(int(said))


@pytest.fixture
def ignored_children() -> Iterator[None]:
    """The system buries them at once, and tells nobody how they ended."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("ignored_children")
@pytest.mark.parametrize("with_descriptors", [True, False])
def test_a_status_that_nobody_knows_is_no_success(with_descriptors: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_descriptors:
        monkeypatch.delattr(os, "pidfd_open")
    assert ended("echo hi; exit 7") == (UNKNOWN, b"hi\n")
    assert "somebody else in this process collected its exit status" in end_of(UNKNOWN)


def test_what_somebody_else_buried_gets_no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, _: sent.append(group))

    async def main() -> int:
        group = await started("exit 7", Heard())
        os.waitid(os.P_PID, group.number, os.WEXITED)  # noqa: ASYNC222 - it ends at once
        group.terminate()
        group.kill()
        return await group.wait()

    assert bounded(main()) == UNKNOWN
    assert sent == []


def test_what_fled_does_not_hold_up_the_end_though_it_holds_the_pipe() -> None:
    command = "setsid sleep 600 & until [ $(ps -o sid= -p $!) = $! ]; do :; done; echo $!"
    begun = time.monotonic()
    status, said = ended(command)
    pid = int(said)
    try:
        assert status == 0
        assert time.monotonic() - begun < PATIENCE / 2, "it waited for the end of what holds it"
        assert not is_gone(pid), "it left the group on purpose"
    finally:
        os.kill(pid, signal.SIGKILL)


async def stopped(command: str) -> tuple[int, bytes, list[int]]:
    """Start it, wait until it has named its processes, tell it to stop, wait for its end."""
    heard = Heard()
    group = await started(command, heard)
    await heard.until(b"ready\n")
    named = [int(word) for word in heard.data.split() if word.isdigit()]
    group.terminate()
    assert group.was_terminated
    return await group.wait(), heard.data, named


def test_a_polite_command_ends_at_sigterm_and_its_last_words_are_heard() -> None:
    status, said, _ = bounded(stopped("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"))
    assert status == 0
    assert said.endswith(b"bye\n")


def test_what_ignores_sigterm_is_killed_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "KILL_SECONDS", 0.3)
    begun = time.monotonic()
    status, _, _ = bounded(stopped("trap '' TERM; echo ready; while :; do sleep 0.01; done"))
    assert status == -9
    assert time.monotonic() - begun >= 0.3


def test_a_grandchild_that_ignores_sigterm_has_its_grace_and_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "KILL_SECONDS", 0.3)
    stubborn = "(trap '' TERM; echo ready; while :; do sleep 0.01; done) & echo $!; wait"
    begun = time.monotonic()
    status, _, (grandchild,) = bounded(stopped(stubborn))
    assert status == -15
    assert time.monotonic() - begun >= 0.3
    assert is_gone(grandchild)


@pytest.mark.usefixtures("long_grace")
def test_a_grandchild_in_a_group_of_its_own_is_stopped_too() -> None:
    command = "timeout 600 sleep 599 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done; echo $!; echo ready; wait"
    begun = time.monotonic()
    _, _, (grandchild,) = bounded(stopped(command))
    assert is_gone(grandchild)
    assert time.monotonic() - begun < groups.KILL_SECONDS / 2


@pytest.mark.usefixtures("long_grace")
def test_all_its_groups_are_told_to_stop_at_once() -> None:
    """A shell runs its trap only when what it waits for has ended."""
    command = "trap 'echo bye; exit 0' TERM; timeout 600 sh -c 'echo ready; exec sleep 599'"
    begun = time.monotonic()
    status, said, _ = bounded(stopped(command))
    assert status == 0
    assert said.endswith(b"bye\n")
    assert time.monotonic() - begun < groups.KILL_SECONDS / 2


STUBBORN_APART = "timeout 600 sh -c 'trap \"\" TERM; echo $$; echo ready; while :; do sleep 0.01; done'"


@pytest.mark.usefixtures("long_grace")
@pytest.mark.parametrize("is_told_before", [True, False])
def test_a_kill_reaches_all_its_groups_at_once(is_told_before: bool) -> None:
    async def main() -> int:
        heard = Heard()
        group = await started(f"{STUBBORN_APART}; exit 3", heard)
        await heard.until(b"ready\n")
        if is_told_before:
            group.terminate()
        group.kill()
        end = time.monotonic() + PATIENCE / 2
        pid = int(heard.data.split()[0])
        while not is_gone(pid):
            assert time.monotonic() < end, "it outlived the kill"
            await asyncio.sleep(0.005)
        return await group.wait()

    begun = time.monotonic()
    assert bounded(main()) == (-signal.SIGTERM if is_told_before else -signal.SIGKILL)
    assert time.monotonic() - begun < groups.KILL_SECONDS / 2


def test_what_was_stopped_hears_that_it_shall_end() -> None:
    async def main() -> tuple[int, bytes]:
        heard = Heard()
        group = await started("trap 'echo bye; exit 3' TERM; kill -STOP $$; sleep 1", heard)
        end = time.monotonic() + PATIENCE
        while psutil.Process(group.number).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < end
            await asyncio.sleep(0.005)
        group.terminate()
        return await group.wait(), heard.data

    assert bounded(main()) == (3, b"bye\n")


@pytest.mark.usefixtures("long_grace")
def test_a_stop_needs_no_thread_of_the_application() -> None:
    async def main() -> None:
        release = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        blocking = loop.run_in_executor(None, release.wait, 30)
        try:
            await asyncio.wait_for(stopped("echo ready; sleep 600"), groups.KILL_SECONDS / 2)
        finally:
            release.set()
            await blocking

    bounded(main())


def test_without_a_table_of_processes_a_stop_waits_for_nobody_but_the_living(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "running", lambda: None)
    monkeypatch.setattr(groups, "KILL_SECONDS", LONG_GRACE)
    begun = time.monotonic()
    status, _, _ = bounded(stopped("echo ready; exec sleep 600"))
    assert status == -15
    assert time.monotonic() - begun < groups.KILL_SECONDS / 2
    monkeypatch.setattr(groups, "KILL_SECONDS", 0.3)
    _, _, (grandchild,) = bounded(stopped("(trap '' TERM; echo ready; while :; do sleep 0.01; done) & echo $!; wait"))
    assert soon(lambda: is_gone(grandchild))


def test_one_look_answers_all_who_ask_and_none_is_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    lookers: list[threading.Thread] = []

    def noted() -> sessions.Sessions | None:
        lookers.append(threading.current_thread())
        return running()

    monkeypatch.setattr(sessions, "running", noted)

    async def main() -> list[int]:
        answers = await asyncio.gather(*[sessions.look() for _ in range(20)])
        assert all(answer and os.getsid(0) in answer for answer in answers)
        assert len(lookers) == 1
        heard = Heard()
        left = [await started("echo $$; exec sleep 600", heard) for _ in range(5)]
        waiting = [asyncio.ensure_future(group.wait()) for group in left]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        return [group.number for group in left]

    assert all(soon(lambda pid=pid: not psutil.pid_exists(pid)) for pid in bounded(main()))  # type: ignore[misc]
    assert threading.main_thread() not in lookers


def test_a_cancel_in_the_last_moment_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first process is buried already, and another group of it is looked for."""
    looking, cancelled = threading.Event(), threading.Event()

    def slow() -> sessions.Sessions | None:
        looking.set()
        cancelled.wait(PATIENCE)
        return running()

    monkeypatch.setattr(sessions, "running", slow)

    async def main() -> int:
        heard = Heard()
        away = "timeout 600 sleep 599 >/dev/null 2>&1 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done; echo $!"
        waiting = asyncio.ensure_future((await started(away, heard)).wait())
        assert await asyncio.to_thread(looking.wait, PATIENCE)
        waiting.cancel()
        await asyncio.wait([waiting])
        cancelled.set()
        return int(heard.data)

    pid = bounded(main())
    assert soon(lambda: is_gone(pid))


def test_a_command_that_ends_like_most_costs_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "running", lambda: pytest.fail("it looked around"))
    assert ended("echo hi") == (0, b"hi\n")


def test_an_error_after_the_start_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def fails(group: ProcessGroup) -> None:
        begun.append(group.number)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ProcessGroup, "_watch", fails)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        ended("sleep 600")
    assert soon(lambda: not psutil.pid_exists(begun[0])), "it was neither killed nor buried"
    assert soon(lambda: begun[0] not in GUARD._places)


@pytest.mark.usefixtures("long_grace")
def test_it_does_not_wait_for_the_dead() -> None:
    """Where nobody buries orphans, a killed grandchild stays in the group as a zombie."""
    begun = time.monotonic()
    bounded(stopped("sleep 600 & echo $!; echo ready; wait"))
    assert time.monotonic() - begun < groups.KILL_SECONDS / 2


def test_a_cancel_of_who_waits_kills_the_group() -> None:
    async def main() -> list[int]:
        heard = Heard()
        group = await started("sleep 600 & echo $! $$; echo ready; wait", heard)
        await heard.until(b"ready\n")
        waiting = asyncio.ensure_future(group.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return [int(word) for word in heard.data.split()[:2]]

    assert all(soon(lambda pid=pid: is_gone(pid)) for pid in bounded(main()))  # type: ignore[misc]


def test_to_tell_what_has_ended_to_stop_does_nothing() -> None:
    async def main() -> tuple[int, bool]:
        heard = Heard()
        group = await started("exit 3", heard)
        end = time.monotonic() + PATIENCE
        while not group.has_ended:
            assert time.monotonic() < end
            await asyncio.sleep(0.005)
        group.terminate()
        group.kill()
        return await group.wait(), group.was_terminated

    assert bounded(main()) == (3, False)


def test_no_descriptor_is_left_open_whatever_happens() -> None:
    async def main() -> tuple[int, int]:
        heard = Heard()
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
        soon(lambda: psutil.Process().num_fds() == before)  # the undertaker is still looking around
        return before, psutil.Process().num_fds()

    before, after = bounded(main())
    assert before == after


def test_without_pidfds_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert ended("echo hi; exit 3") == (3, b"hi\n")
    assert ended("sleep 600 & exit 0")[0] == 0
