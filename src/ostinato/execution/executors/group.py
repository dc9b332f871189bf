"""A command in a process group of its own: started, fed, listened to, stopped, and nothing of it left behind.

Every kind of work that is a process stands on this: shell commands, agents, gates, and functions with
isolation="process". It knows neither runs nor contexts. A supervisor of the guard starts it and ends all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import pwd
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ostinato.execution.descriptors import ensure_standard_descriptors
from ostinato.execution.executors.pipes import PipeReader, PipeWriter
from ostinato.execution.executors.starting import NotStarted, identity_of, not_started, turn
from ostinato.execution.guard import GUARD
from ostinato.execution.guard_child import HEADER, KILL, READY, TERMINATE
from ostinato.tuning import DEFAULT_TUNING

__all__ = ["UNKNOWN", "NotStarted", "ProcessGroup", "end_of"]

DRAIN_SECONDS = 2.0
"""How long what cannot be killed is waited for, and pipes that somebody holds open who is out of reach."""
UNKNOWN = 1 << 16
"""An exit status that nobody knows: its supervisor was killed. No process ends with this one."""

Sink = Callable[[bytes], None]


class ProcessGroup:
    """One started command and whatever it starts."""

    def __init__(
        self,
        supervisor: socket.socket,
        number: int,
        said: bytes,
        readers: Sequence[PipeReader],
        ours: contextlib.ExitStack,
        kill_seconds: float,
        writer: PipeWriter | None = None,
    ) -> None:
        self.number = number
        """The number of its first process, its group and its session; 0 if its supervisor died before it told."""
        self._supervisor = supervisor
        self._readers = readers
        self._ours = ours
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._said = b""
        """What has come of a line of the supervisor's that is not whole yet."""
        self._status = UNKNOWN
        self._ended: asyncio.Future[None] = self._loop.create_future()
        """Set when its first process has ended."""
        self._gone: asyncio.Future[None] = self._loop.create_future()
        """Set when nothing of it is left."""
        self._is_free = False
        """The supervisor waits for the next command."""
        self._kill_seconds = kill_seconds
        self._kill_at: float | None = None
        """When SIGKILL follows, once it was told to stop."""
        self._loop.add_reader(supervisor, self._hear)
        self._take(said)

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
        kill_seconds: float = DEFAULT_TUNING.command_kill_seconds,
    ) -> ProcessGroup:
        """Start it; NotStarted says why not. Without `stderr`, both streams come through one pipe, in their order.

        Without `stdin` it reads an end of file; with `keep_stdin` that comes only when the group is gone, or we are.
        """
        await turn()
        ensure_standard_descriptors()
        try:
            with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
                # Pipes of our own: to wait for asyncio's is to wait for everybody who holds them.
                out, out_end = _listen(stdout, ours, theirs)
                readers, ends = [out], [out_end]
                if stderr is not None:
                    err, err_end = _listen(stderr, ours, theirs)
                    readers, ends = [out, err], [out_end, err_end]
                writer = None
                if stdin is not None:
                    writer, stdin_end = _feed(stdin, keep_stdin, ours, theirs)
                    ends.append(stdin_end)
                request = {
                    "command": [os.fsencode(word) for word in command],
                    "folder": os.fsencode(folder),
                    "environment": {os.fsencode(name): os.fsencode(value) for name, value in environment.items()},
                    "identity": identity_of(user),
                    "stderr": stderr is not None,
                    "stdin": stdin is not None,
                    "pass_fds": list(pass_fds),
                    "kill_seconds": kill_seconds,
                }
                supervisor, number, said = await _spawn(request, [*ends, *pass_fds])
                return cls(supervisor, number, said, readers, ours.pop_all(), kill_seconds, writer)
        except (OSError, ValueError) as error:
            raise not_started(command, folder, environment, user, error) from error

    @property
    def was_terminated(self) -> bool:
        """Whether it was told to stop before it had ended."""
        return self._kill_at is not None

    def write(self, data: bytes) -> None:
        """Let it read more from its stdin, which was kept open."""
        if self._writer is not None:
            self._writer.add(data)

    def terminate(self) -> None:
        """SIGTERM to all of it now, SIGKILL later to what does not go."""
        if self._kill_at is None and not self._ended.done():
            self._kill_at = self._loop.time() + self._kill_seconds
            self._tell(TERMINATE)

    def kill(self) -> None:
        """SIGKILL to all of it."""
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, self._loop.time())
        self._tell(KILL)

    async def wait(self) -> int:
        """Its exit status (negative: the signal that ended it), when all it said is heard and the group is gone.

        UNKNOWN if nobody knows it. A cancel kills the group, and ends when that is gone: others may start it anew then.
        """
        try:
            await asyncio.shield(self._ended)
            # Its supervisor ends whatever it started: if it was told to stop, with the time that it had itself.
            last = max(self._loop.time(), self._kill_at or 0) + DRAIN_SECONDS
            await asyncio.wait([self._gone], timeout=last - self._loop.time())
            open_pipes = [reader.ended for reader in self._readers if not reader.ended.done()]
            if open_pipes:
                await asyncio.wait(open_pipes, timeout=DRAIN_SECONDS)
            return self._status
        except asyncio.CancelledError:
            self._tell(KILL)
            await asyncio.wait([self._gone], timeout=DRAIN_SECONDS)
            self._is_free = False  # its loop may end with this cancel: its supervisor does too
            raise
        finally:
            self._leave()

    def _tell(self, word: bytes) -> None:
        if not self._gone.done():
            with contextlib.suppress(OSError):  # it was killed, which is heard soon
                self._supervisor.send(word)

    def _hear(self) -> None:
        """The supervisor says the status of the command's end, and then that nothing of it is left."""
        try:
            data = self._supervisor.recv(1_024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            if line == READY.rstrip():
                self._is_free = True
                self._end(self._gone)
            else:
                self._status = int(line.removeprefix(b"X "))
                self._end(self._ended)

    def _lose(self) -> None:
        """Somebody killed the supervisor. The guard ends what it left; if that was killed too, this reaches most."""
        self._loop.remove_reader(self._supervisor)
        if self.number and not self._ended.done():
            with contextlib.suppress(OSError):
                os.killpg(self.number, signal.SIGKILL)
        self._end(self._ended)
        self._end(self._gone)

    def _end(self, future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)

    def _leave(self) -> None:
        """Let go of it. What is left of it is killed."""
        self._loop.remove_reader(self._supervisor)
        if self._is_free:
            GUARD.give_back(self._supervisor)
        else:
            self._tell(KILL)
            GUARD.close(self._supervisor)
        self._ours.close()


def end_of(status: int) -> str:
    """An exit status in words."""
    if status == UNKNOWN:
        return "ended for an unknown reason: the process that supervised it was killed"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"was killed by {name}"
    return f"exited with status {status}"


async def _spawn(request: dict[str, Any], descriptors: Sequence[int]) -> tuple[socket.socket, int, bytes]:
    """Have it started: its supervisor, its number, what is said of it already. OSError or ValueError: why it is not."""
    supervisor = await GUARD.supervisor()
    try:
        loop = asyncio.get_running_loop()
        data = marshal.dumps(request)
        message = memoryview(len(data).to_bytes(HEADER, "big") + data)
        sent = socket.send_fds(supervisor, [message], descriptors)
        if sent < len(message):
            await loop.sock_sendall(supervisor, message[sent:])
        answer = b""
        while b"\n" not in answer:
            if not (more := await loop.sock_recv(supervisor, 1_024)):
                return supervisor, 0, b""  # killed; the command may have begun, so this is an end of it, and no refusal
            answer += more
        line, _, said = answer.partition(b"\n")
        if line.startswith(b"S "):
            return supervisor, int(line[2:]), said
        _, number, words = line.decode(errors="replace").split(" ", 2)
        raise OSError(int(number), words) if int(number) else ValueError(words)
    except BaseException:
        with contextlib.suppress(OSError):
            supervisor.send(KILL)  # it may have begun, though a cancel came while the request was on its way
        GUARD.close(supervisor)
        raise


def _listen(sink: Sink, ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[PipeReader, int]:
    """A reader, and the end of its pipe that is the command's."""
    reading, writing = os.pipe()
    theirs.callback(os.close, writing)
    reader = PipeReader(reading, sink)
    ours.callback(reader.close)
    return reader, writing


def _feed(
    data: bytes, keep_open: bool, ours: contextlib.ExitStack, theirs: contextlib.ExitStack
) -> tuple[PipeWriter, int]:
    """What writes this, and the end of a pipe from which the command reads it."""
    reading, writing = os.pipe()
    theirs.callback(os.close, reading)
    writer = PipeWriter(writing, data, keep_open=keep_open)
    ours.callback(writer.close)
    return writer, reading
