"""The start of a command: its turn, the user, and in words why it cannot be."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import pwd
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.execution.executors import group as groups
from ostinato.execution.executors.group import NotStarted, ProcessGroup
from ostinato.execution.executors.starting import look_for
from ostinato.execution.guard import Guard
from tests.unit.commands import Collected, bounded, closing, ended, started


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guard]:
    with closing(Guard()) as guard:
        monkeypatch.setattr(groups, "GUARD", guard)
        yield guard


def test_many_starts_at_once_let_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0
    starts: list[int] = []
    spawn = groups._spawn

    def noted(*command: Any, **places: Any) -> Any:
        starts.append(turns)
        return spawn(*command, **places)

    async def one() -> int:
        return await (await started("true", Collected())).wait()

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
        await ProcessGroup.start(command, folder=things, environment=environment, stdout=Collected())

    with pytest.raises(NotStarted) as error:
        bounded(main())
    assert reason in str(error.value)
    assert not error.value.may_pass


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=f"its folder {tmp_path}/none does not exist: make it"):
        ended("true", folder=tmp_path / "none")


def test_only_root_can_be_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(NotStarted, match="only root can run it as user 'root', and the engine runs as uid 12345"):
        ended("true", user=pwd.getpwnam("root"))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["no-such-program"], "there is no program 'no-such-program'; looked in PATH (/usr/bin:/bin): install it"),
        (["./none"], "/none does not exist"),
        (["./plain"], "'./plain' cannot be started: permission denied; chmod +x it"),
        (["./folder"], "/folder is a folder, not a program"),
    ],
    ids=["unknown", "missing", "not executable", "folder"],
)
def test_a_program_can_be_looked_for_before_the_start(things: Path, command: list[str], reason: str) -> None:
    environment = {"PATH": "/usr/bin:/bin"}
    with pytest.raises(NotStarted) as error:
        look_for(command, things, environment)
    assert reason in str(error.value)
    look_for(["true"], things, environment)
    look_for(["./headless"], things, environment)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_a_machine_without_room_may_have_some_later(number: int, monkeypatch: pytest.MonkeyPatch, fresh: Guard) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_spawn", refuse)
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


def test_descriptors_keep_their_numbers_whatever_the_supervisor_has_there() -> None:
    reading, writing = os.pipe()
    copies = [fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, 40) for _ in range(4)]  # what others have there stays theirs
    try:
        low = [fcntl.fcntl(writing, fcntl.F_DUPFD_CLOEXEC, 3) for _ in range(3)]
        copies += low
        for each in copies:
            ended(f"echo through {each} > /dev/fd/{each}", pass_fds=[each])
            assert os.read(reading, 100) == f"through {each}\n".encode()
        ended("; ".join(f"echo {each} > /dev/fd/{each}" for each in copies), pass_fds=copies)
        assert os.read(reading, 100).split() == [str(each).encode() for each in copies]
        assert ended("echo the next one") == (0, b"the next one\n")
    finally:
        for each in (reading, writing, *copies):
            os.close(each)


def test_a_command_has_the_signals_and_descriptors_of_one_that_is_started_plainly() -> None:
    look = ["/bin/sh", "-c", "cat /proc/self/status | grep ^Sig[BIC]; ls /proc/self/fd | wc -l; umask; ulimit -a"]
    plain = subprocess.run(look, capture_output=True, check=True, stdin=subprocess.DEVNULL, cwd="/")
    status, said = ended(look)
    assert (status, usual(said)) == (0, usual(plain.stdout))


def usual(said: bytes) -> bytes:
    """Without signals 32 and 33: they are the C library's own, and its posix_spawn leaves them ignored."""
    return re.sub(rb"(?<=SigIgn:\t)\w+", lambda found: b"%016x" % (int(found[0], 16) & ~0x1_8000_0000), said)
