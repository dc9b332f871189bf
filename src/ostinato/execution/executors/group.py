"""A command in a process group of its own: started, fed, listened to, stopped, and nothing of it left behind.

Every kind of work that is a process stands on this: shell commands, agents, gates, and functions with
isolation="process". It knows neither runs nor contexts. The guard is told of each, for the case that we are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import pwd
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ostinato.execution.executors.pipes import Ear, Mouth
from ostinato.execution.guard import GUARD
from ostinato.execution.guard_child import groups_of, signal_groups

__all__ = ["KILL_SECONDS", "NotStarted", "ProcessGroup", "end_of"]

KILL_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""
DRAIN_SECONDS = 2.0
"""How long an ended process's last words are waited for: what it started may have fled and hold the pipes open."""
_PROMPT_SECONDS = 0.05
"""Within this the pipes of a command that left nothing behind have ended."""
_LOOK_SECONDS = 0.02, 0.25
"""Between two looks whether somebody is left, at first and at last."""
_BURIAL_SECONDS = 0.05
"""How long the loop may wait for what was killed, when nobody waits for it any more."""
_IN_A_TURN = 8
"""How many commands are started before the loop looks after others."""
_NO_ROOM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

Sink = Callable[[bytes], None]


class NotStarted(Exception):
    """The command could not be started; the text says what was looked for, where, and how to mend it."""

    def __init__(self, reason: str, *, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        """Whether it may go better later: the machine has no room just now."""


class _Turns:
    """Lets a few start in each turn of the loop: a start takes a millisecond, and thirty would hold up all others."""

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return when it is one's turn."""
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next)
        if self._begun < _IN_A_TURN:
            self._begun += 1
            return
        waiting = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _next(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < _IN_A_TURN:
            waiting = self._waiting.popleft()
            if not waiting.done():  # cancelled
                waiting.set_result(None)
                self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next)


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = weakref.WeakKeyDictionary()
"""Each loop has its own; they must not hold the loop, or it would stay for ever."""


class ProcessGroup:
    """One started command and whatever it starts."""

    def __init__(self, process: subprocess.Popen[bytes], ears: Sequence[Ear], ours: contextlib.ExitStack) -> None:
        self._process = process
        self._ears = ears
        self._ours = ours
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        """Set when its first process has ended. That is buried last of all: until then nobody else gets its number."""
        self._kill_at: float | None = None
        """When SIGKILL follows, once it was told to stop."""
        self._is_left = False
        """Nobody waits for it any more."""
        self._descriptor: int | None = None
        """Tells of its end, where the system has such."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        stdout: Sink,
        stderr: Sink | None = None,
        stdin: bytes | None = None,
        keep_stdin: bool = False,
        user: str | None = None,
        pass_fds: Sequence[int] = (),
    ) -> ProcessGroup:
        """Start it; NotStarted says why not. Without `stderr`, both streams come through one pipe, in their order.

        Without `stdin` it reads an end of file; with `keep_stdin` that comes only when the group is gone, or we are.
        """
        loop = asyncio.get_running_loop()
        if (turns := _TURNS.get(loop)) is None:
            turns = _TURNS[loop] = _Turns()
        await turns.wait()
        with contextlib.ExitStack() as ours:
            try:
                # Pipes of our own: to wait for asyncio's is to wait for everybody who holds them.
                with contextlib.ExitStack() as theirs:
                    out, out_end = _listen(stdout, ours, theirs)
                    err, err_end = (None, subprocess.STDOUT) if stderr is None else _listen(stderr, ours, theirs)
                    process = _spawn(
                        command,
                        _identity(user),
                        cwd=folder,
                        env=environment,
                        stdin=subprocess.DEVNULL if stdin is None else _feed(stdin, keep_stdin, ours, theirs),
                        stdout=out_end,
                        stderr=err_end,
                        pass_fds=tuple(pass_fds),
                    )
            except (OSError, ValueError) as error:
                may_pass = isinstance(error, OSError) and error.errno in _NO_ROOM
                raise NotStarted(_why_not(command, folder, environment, user, error), may_pass=may_pass) from error
            group = cls(process, [out] if err is None else [out, err], ours.pop_all())
        GUARD.watch(process.pid)
        group._watch()
        return group

    @property
    def has_ended(self) -> bool:
        """Whether the command itself has ended, though some that it started may still run."""
        return self._ended.done()

    @property
    def was_terminated(self) -> bool:
        """Whether it was told to stop before it had ended."""
        return self._kill_at is not None

    def terminate(self) -> None:
        """SIGTERM to the group now, SIGKILL later to what does not go."""
        if self._kill_at is None and not self._ended.done():
            self._kill_at = self._loop.time() + KILL_SECONDS
            self._signal(signal.SIGTERM)
            killing = self._loop.call_later(KILL_SECONDS, self.kill)
            self._ours.callback(killing.cancel)

    def kill(self) -> None:
        """SIGKILL to the group."""
        self._signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit status (negative: the signal that ended it), when all it said is heard and the group is gone.

        A cancel kills the group.
        """
        try:
            await asyncio.shield(self._ended)
            if self._kill_at is not None:
                await self._let_go(self._kill_at)
            # Whatever it started goes with it, and lets go of the pipes.
            self._signal(signal.SIGKILL)
            if self._kill_at is not None or not await self._hear_out(_PROMPT_SECONDS):
                await self._send_to_all(signal.SIGKILL)
                await self._hear_out(DRAIN_SECONDS)
            return await self._bury_all()
        finally:
            self._leave()

    async def _let_go(self, until: float) -> None:
        """The first process obeyed the SIGTERM; the others have the same time to."""
        await self._send_to_all(signal.SIGTERM)
        await self._gone(until)

    async def _send_to_all(self, number: signal.Signals) -> None:
        """To the other groups of its session too: `timeout`, say, makes one. The look takes a while: on a thread."""
        groups = await asyncio.to_thread(groups_of, self._process.pid)
        signal_groups(groups - {self._process.pid}, number)

    async def _gone(self, until: float) -> bool:
        """Whether everybody has gone by then."""
        pause, longest = _LOOK_SECONDS
        while await asyncio.to_thread(groups_of, self._process.pid):
            if self._loop.time() >= until:
                return False
            await asyncio.sleep(min(pause, max(until - self._loop.time(), 0)))
            pause = min(pause * 2, longest)
        return True

    async def _hear_out(self, seconds: float) -> bool:
        """Whether all pipes have ended within this time."""
        open_pipes = [ear.ended for ear in self._ears if not ear.ended.done()]
        if open_pipes:
            await asyncio.wait(open_pipes, timeout=seconds)
        return all(ear.ended.done() for ear in self._ears)

    async def _bury_all(self) -> int:
        number = self._process.pid
        status = self._process.wait()  # at once: it has ended
        # With the first one buried, the group is there only as long as somebody else is in it.
        if signal_groups({number}, 0) and not await self._gone(self._loop.time() + DRAIN_SECONDS):
            signal_groups(await asyncio.to_thread(groups_of, number), signal.SIGKILL)
        return status

    def _leave(self) -> None:
        """Let go of it. What is left of it is killed; if that takes a while, the last rites follow."""
        self._ours.close()
        self._is_left = True
        if self._process.returncode is None:
            signal_groups({self._process.pid, *groups_of(self._process.pid)}, signal.SIGKILL)
            try:
                self._process.wait(_BURIAL_SECONDS)
            except subprocess.TimeoutExpired:
                return
        self._watch_no_more()
        GUARD.dismiss(self._process.pid)

    def _watch(self) -> None:
        """Learn of its end, without burying it."""
        try:
            self._descriptor = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not on this system
            threading.Thread(target=self._wait_on_a_thread, name="ostinato-child", daemon=True).start()
        else:
            self._loop.add_reader(self._descriptor, self._on_end)

    def _watch_no_more(self) -> None:
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _wait_on_a_thread(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it
            self._loop.call_soon_threadsafe(self._on_end)

    def _on_end(self) -> None:
        self._watch_no_more()
        if not self._ended.done():
            self._ended.set_result(None)
        if self._is_left:
            self._leave()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            signal_groups({self._process.pid}, number)


def end_of(status: int) -> str:
    """An exit status in words."""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"was killed by {name}"
    return f"exited with status {status}"


def _spawn(command: Sequence[str], identity: Mapping[str, Any], **places: Any) -> subprocess.Popen[bytes]:
    """Blocks until the program is there, as long as asyncio's own way does."""
    return subprocess.Popen(command, start_new_session=True, **places, **identity)


def _listen(sink: Sink, ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[Ear, int]:
    """An ear, and the end of its pipe that is the command's."""
    reading, writing = os.pipe()
    theirs.callback(os.close, writing)
    ear = Ear(reading, sink)
    ours.callback(ear.close)
    return ear, writing


def _feed(data: bytes, keep_open: bool, ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> int:
    """The end of a pipe from which the command reads this."""
    reading, writing = os.pipe()
    theirs.callback(os.close, reading)
    ours.callback(Mouth(writing, data, keep_open=keep_open).close)
    return reading


def _identity(user: str | None) -> dict[str, Any]:
    """The user that it runs as, with that user's groups."""
    if user is None:
        return {}
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise NotStarted(f"there is no user {user!r} on this machine: add it, or correct user") from None
    if found.pw_uid == os.geteuid():
        return {}
    if os.geteuid() != 0:
        raise NotStarted(
            f"only root can run it as user {user!r}, and the engine runs as uid {os.geteuid()}: "
            f"start the engine as {user!r}, or leave out user"
        )
    groups = os.getgrouplist(user, found.pw_gid)
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": groups}


def _why_not(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], user: str | None, error: OSError | ValueError
) -> str:
    program = command[0]
    who = f" for user {user!r}" if user else ""
    if not isinstance(error, OSError):
        return f"{program!r} cannot be started: {error}"
    if error.errno in _NO_ROOM:
        return f"the machine has no room for another process: {error.strerror}"
    if not folder.is_dir():
        return f"its folder {folder} does not exist: make it, or correct the project or the work"
    place = folder / program
    match error.errno:
        case errno.ENOENT if "/" not in program:
            path = environment.get("PATH", os.defpath)
            return f"there is no program {program!r}; looked in PATH ({path}): install it, or give its whole path"
        case errno.ENOENT if place.exists():
            return f"{program!r} cannot be started: the interpreter that its first line names is not there"
        case errno.ENOENT:
            return f"{program!r} cannot be started: {place} does not exist"
        case errno.EACCES if place.is_dir():
            return f"{program!r} cannot be started: {place} is a folder, not a program"
        case errno.EACCES:
            hint = f"chmod +x it, and look at who may enter {folder}"
            return f"{program!r} cannot be started{who}: permission denied; {hint}"
        case errno.ENOEXEC:
            return f"{program!r} cannot be started: it is no program; begin a script with a line such as #!/bin/sh"
        case errno.E2BIG:
            return f"{program!r} cannot be started: its arguments and environment are too long for this system"
        case _:
            return f"{program!r} cannot be started: {error.strerror or error}"
