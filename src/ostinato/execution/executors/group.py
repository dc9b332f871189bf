"""A command in a process group of its own: started, fed, listened to, stopped, and nothing of it left behind.

Every kind of work that is a process stands on this: shell commands, agents, gates, and functions with
isolation="process". It knows neither runs nor contexts. The guard is told of each, for the case that we are killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ostinato.execution.descriptors import ensure_standard_descriptors
from ostinato.execution.executors.pipes import Ear, Mouth
from ostinato.execution.executors.sessions import LOOK_SECONDS, UNDERTAKER, is_in_use, look
from ostinato.execution.executors.starting import NotStarted, identity_of, not_started, turn
from ostinato.execution.guard import GUARD
from ostinato.execution.guard_child import signal_groups

__all__ = ["KILL_SECONDS", "UNKNOWN", "NotStarted", "ProcessGroup", "end_of"]

KILL_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""
DRAIN_SECONDS = 2.0
"""How long an ended process's last words are waited for: what it started may have fled and hold the pipes open."""
_PROMPT_SECONDS = 0.05
"""Within this the pipes of a command that left nothing behind have ended."""
UNKNOWN = 1 << 16
"""An exit status that nobody knows: somebody else took it. No process ends with this one."""

Sink = Callable[[bytes], None]


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
        self._told: set[int] = set()
        """The groups that were told to."""
        self._reaching: set[asyncio.Task[None]] = set()
        """Signals on their way to its other groups."""
        self._is_over = False
        """Nothing of it is left."""
        self._is_left = False
        """Nobody waits for it any more: it is the undertaker's."""
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
        user: pwd.struct_passwd | None = None,
        pass_fds: Sequence[int] = (),
    ) -> ProcessGroup:
        """Start it; NotStarted says why not. Without `stderr`, both streams come through one pipe, in their order.

        Without `stdin` it reads an end of file; with `keep_stdin` that comes only when the group is gone, or we are.
        """
        await turn()
        ensure_standard_descriptors()
        group: ProcessGroup | None = None
        try:
            with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
                # Pipes of our own: to wait for asyncio's is to wait for everybody who holds them.
                out, out_end = _listen(stdout, ours, theirs)
                err, err_end = (None, subprocess.STDOUT) if stderr is None else _listen(stderr, ours, theirs)
                process = _spawn(
                    command,
                    identity_of(user),
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL if stdin is None else _feed(stdin, keep_stdin, ours, theirs),
                    stdout=out_end,
                    stderr=err_end,
                    pass_fds=tuple(pass_fds),
                )
                group = cls(process, [out] if err is None else [out, err], ours.pop_all())
            GUARD.watch(process.pid, KILL_SECONDS)
            group._watch()
        except BaseException as error:
            if group is not None:  # it runs, and nobody would ever end it
                group._leave()
            elif isinstance(error, OSError | ValueError):
                raise not_started(command, folder, environment, user, error) from error
            raise
        return group

    @property
    def number(self) -> int:
        """The number of its first process, its group and its session."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the command itself has ended, though some that it started may still run."""
        return self._ended.done()

    @property
    def was_terminated(self) -> bool:
        """Whether it was told to stop before it had ended."""
        return self._kill_at is not None

    def terminate(self) -> None:
        """SIGTERM to all of it now, SIGKILL later to what does not go."""
        if self._kill_at is None and not self._ended.done():
            self._kill_at = self._loop.time() + KILL_SECONDS
            self._reach(signal.SIGTERM)
            killing = self._loop.call_later(KILL_SECONDS, self.kill)
            self._ours.callback(killing.cancel)

    def kill(self) -> None:
        """SIGKILL to all of it."""
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, self._loop.time())
        self._reach(signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit status (negative: the signal that ended it), when all it said is heard and the group is gone.

        UNKNOWN if somebody else took it. A cancel kills the group.
        """
        try:
            await asyncio.shield(self._ended)
            await self._let_go()
            # Whatever it started goes with it, and lets go of the pipes.
            if self._is_ours():
                self.send({self.number}, signal.SIGKILL)
            if self._kill_at is not None or not await self._hear_out(_PROMPT_SECONDS):
                self.send(await self._groups(), signal.SIGKILL)
                await self._hear_out(DRAIN_SECONDS)
            return await self._bury_all()
        finally:
            self._leave()

    def send(self, groups: set[int], number: signal.Signals) -> None:
        """Send a signal to these groups of it: its own while its first process is not buried, or just looked up."""
        if self._has_number():
            signal_groups(groups, number)
            if number == signal.SIGTERM:
                self._told |= groups
                signal_groups(groups, signal.SIGCONT)  # who was stopped would not hear it

    def bury(self) -> bool:
        """Whether its first process has ended, and is buried now; nobody needs the guard for it any more."""
        if not self._bury():
            return False
        GUARD.dismiss(self.number)
        return True

    def _reach(self, number: signal.Signals) -> None:
        """To its own group at once, to others of its session as soon as they are found: `timeout`, say, makes one."""
        if not self._is_left and self._is_ours():
            self.send({self.number}, number)
            reaching = self._loop.create_task(self._reach_others(number))
            self._reaching.add(reaching)
            reaching.add_done_callback(self._reaching.discard)

    async def _reach_others(self, number: signal.Signals) -> None:
        groups = await self._groups()
        self.send(groups - {self.number}, number)

    async def _let_go(self) -> None:
        """Its first process obeyed the SIGTERM; the others have the same time to."""
        pause, longest = LOOK_SECONDS
        while self._kill_at is not None and (groups := await self._groups()):
            self.send(groups - self._told, signal.SIGTERM)
            left = self._kill_at - self._loop.time()
            if left <= 0:
                break
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, longest)

    async def _groups(self) -> set[int]:
        """The groups of its session in which something runs."""
        sessions = await look()
        if sessions is None and self._ended.done():
            # The system shows only whether the group is there, and it is as long as the first one is not buried.
            self._bury()
        if not self._has_number():
            return set()
        if sessions is None:
            return {self.number} if signal_groups({self.number}, 0) else set()
        return sessions.get(self.number, set())

    async def _hear_out(self, seconds: float) -> bool:
        """Whether all pipes have ended within this time."""
        open_pipes = [ear.ended for ear in self._ears if not ear.ended.done()]
        if open_pipes:
            await asyncio.wait(open_pipes, timeout=seconds)
        return all(ear.ended.done() for ear in self._ears)

    async def _bury_all(self) -> int:
        pause, longest = LOOK_SECONDS
        while not self._bury():  # noqa: ASYNC110 - it has ended, but somebody may trace it, and nothing tells of that
            await asyncio.sleep(pause)
        status = self._process.returncode
        assert status is not None
        # With the first one buried, the number is in use only as long as somebody else is in the session.
        until = self._loop.time() + DRAIN_SECONDS
        while status != UNKNOWN and is_in_use(self.number) and (groups := await self._groups()):
            self.send(groups, signal.SIGKILL)
            if self._loop.time() >= until:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
        self._is_over = True
        return status

    def _bury(self) -> bool:
        """Whether its first process has ended. Popen's own wait takes a status that somebody else took for a 0."""
        if self._process.returncode is None:
            try:
                end = os.waitid(os.P_PID, self.number, os.WEXITED | os.WNOHANG)
            except ChildProcessError:
                self._process.returncode = UNKNOWN
            else:
                if end is None:
                    return False
                self._process.returncode = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        return True

    def _is_ours(self) -> bool:
        """Whether its first process is there and not buried by anybody, so that the number is its own."""
        if self._process.returncode is None:
            try:
                os.waitid(os.P_PID, self.number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._process.returncode = UNKNOWN
        return self._process.returncode is None

    def _has_number(self) -> bool:
        """Whether what has its number is of its session: buried, it may be another process's by now."""
        if self._is_ours():
            return True
        return self._process.returncode != UNKNOWN and not os.path.exists(f"/proc/{self.number}")

    def _leave(self) -> None:
        """Let go of it. What is left of it is killed, and the last rites follow."""
        self._is_left = True
        for reaching in self._reaching:
            reaching.cancel()
        if self._is_over:
            GUARD.dismiss(self.number)
        else:
            if self._is_ours():
                self.send({self.number}, signal.SIGKILL)
            UNDERTAKER.take(self)
        self._watch_no_more()
        self._ours.close()

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


def end_of(status: int) -> str:
    """An exit status in words."""
    if status == UNKNOWN:
        taker = "os.waitpid(-1), or SIGCHLD ignored"
        return f"ended, and nobody knows how: somebody else in this process collected its exit status ({taker})"
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
