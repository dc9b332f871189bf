"""A command in a process group of its own: what it says, how it is stopped, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from ostinato.execution import guard
from ostinato.execution.executors import group as groups
from ostinato.execution.executors.group import NotStarted, ProcessGroup, end_of
from ostinato.execution.guard import GUARD, Guard

T = TypeVar("T")
PATIENCE = 10.0


class Heard:
    """What came, and a way to wait for it."""

    def __init__(self) -> None:
        self.data = b""

    def __call__(self, data: bytes) -> None:
        self.data += data

    async def until(self, words: bytes) -> None:
        end = time.monotonic() + PATIENCE
        while words not in self.data:
            assert time.monotonic() < end, f"never heard {words!r}, only {self.data!r}"
            await asyncio.sleep(0.005)


async def started(command: str | list[str], heard: Heard, folder: Path = Path("/"), **more: Any) -> ProcessGroup:
    tokens = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    return await ProcessGroup.start(tokens, folder=folder, environment=dict(os.environ), stdout=heard, **more)


def ended(command: str | list[str], **more: Any) -> tuple[int, bytes]:
    """Run it to its end."""

    async def main() -> tuple[int, bytes]:
        heard = Heard()
        status = await (await started(command, heard, **more)).wait()
        return status, heard.data

    return bounded(main())


def bounded(work: Coroutine[Any, Any, T]) -> T:
    async def main() -> T:
        return await asyncio.wait_for(work, 30)

    return asyncio.run(main())


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def soon(look: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not look() and time.monotonic() < end:
        time.sleep(0.005)
    return look()


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
    ],
    ids=["plain", "silent", "stubborn", "in a group of its own"],
)
def test_what_it_leaves_in_the_background_goes_with_it(background: str) -> None:
    status, said = ended(f"{background} echo $!; exit 0")
    assert status == 0
    assert is_gone(int(said))


def test_what_fled_does_not_hold_up_the_end_though_it_holds_the_pipe() -> None:
    command = "setsid sleep 600 & until [ $(ps -o sid= -p $!) = $! ]; do :; done; echo $!"
    begun = time.monotonic()
    status, said = ended(command)
    pid = int(said)
    try:
        assert status == 0
        assert time.monotonic() - begun < groups.DRAIN_SECONDS + 5
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


def test_a_grandchild_in_a_group_of_its_own_is_stopped_too() -> None:
    command = "timeout 600 sleep 599 & until [ $(ps -o pgid= -p $!) = $! ]; do :; done; echo $!; echo ready; wait"
    begun = time.monotonic()
    _, _, (grandchild,) = bounded(stopped(command))
    assert is_gone(grandchild)
    assert time.monotonic() - begun < groups.KILL_SECONDS


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
        return before, psutil.Process().num_fds()

    before, after = bounded(main())
    assert before == after


def test_without_pidfds_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert ended("echo hi; exit 3") == (3, b"hi\n")
    assert ended("sleep 600 & exit 0")[0] == 0


def test_many_starts_at_once_let_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0
    starts: list[int] = []
    spawn = groups._spawn

    def noted(*command: Any, **places: Any) -> Any:
        starts.append(turns)
        return spawn(*command, **places)

    async def one() -> int:
        return await (await started("true", Heard())).wait()

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(turn)

        loop.call_soon(turn)
        cancelled = [asyncio.ensure_future(one()) for _ in range(20)]
        working = [asyncio.ensure_future(one()) for _ in range(30)]
        await asyncio.sleep(0)
        for task in cancelled[10:]:
            task.cancel()
        return await asyncio.gather(*cancelled[:10], *working)

    monkeypatch.setattr(groups, "_spawn", noted)
    assert bounded(main()) == [0] * 40
    assert len(starts) == 40
    assert max(starts.count(turn) for turn in starts) <= 8


@pytest.fixture
def things(tmp_path: Path) -> Path:
    (tmp_path / "plain").write_text("echo hi\n")
    (tmp_path / "headless").write_text("echo hi\n")
    (tmp_path / "headless").chmod(0o755)
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o755)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["no-such-program"], "there is no program 'no-such-program'; looked in PATH (/usr/bin:/bin): install it"),
        (["./none"], "/none does not exist"),
        (["./plain"], "'./plain' cannot be started: permission denied; chmod +x it"),
        (["./headless"], "begin a script with a line such as #!/bin/sh"),
        (["./orphan"], "the interpreter that its first line names is not there"),
        (["./folder"], "/folder is a folder, not a program"),
        (["true", "x" * 3_000_000], "its arguments and environment are too long"),
    ],
    ids=["unknown", "missing", "not executable", "no first line", "no interpreter", "folder", "too long"],
)
def test_what_cannot_be_started_says_why(things: Path, command: list[str], reason: str) -> None:
    async def main() -> None:
        environment = {"PATH": "/usr/bin:/bin"}
        await ProcessGroup.start(command, folder=things, environment=environment, stdout=Heard())

    with pytest.raises(NotStarted) as error:
        bounded(main())
    assert reason in str(error.value)
    assert not error.value.may_pass


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=f"its folder {tmp_path}/none does not exist: make it"):
        ended("true", folder=tmp_path / "none")


def test_an_unknown_user_is_named() -> None:
    with pytest.raises(NotStarted, match="there is no user 'nobody-of-this-name' on this machine"):
        ended("true", user="nobody-of-this-name")


def test_only_root_can_be_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(NotStarted, match="only root can run it as user 'root', and the engine runs as uid 12345"):
        ended("true", user="root")


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_a_machine_without_room_may_have_some_later(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(NotStarted, match="the machine has no room for another process") as error:
        ended("true")
    assert error.value.may_pass


def test_a_descriptor_can_be_passed_on() -> None:
    reading, writing = os.pipe()
    try:
        ended(f"echo through > /dev/fd/{writing}", pass_fds=[writing])
        assert os.read(reading, 100) == b"through\n"
    finally:
        os.close(reading)
        os.close(writing)


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
