"""The guard of this process, seen from here: it starts the commands, and ends them with all that they started.

One process for all engines of this one, started with the first command. Each command that runs has a supervisor of its
own, which the guard forks; one whose command is gone takes the next. If this process is killed, they end what runs.
Neighbours: executors/group.py speaks with a supervisor, guard_child.py is the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from ostinato.execution import guard_child

__all__ = ["GUARD", "Guard", "interpreter"]

_ATTEMPTS = 2
"""How often a guard that dies or does not answer is started anew for one command."""
_FULL_SECONDS = 0.005
"""Until a guard that has much to do is asked again."""


class _NoSupervisor(OSError):
    """The guard gave none: it died, did not answer, or had no room."""


class Guard:
    """The guard's process, and the supervisors that are free."""

    def __init__(self, restart_seconds: float = 1.0, answer_seconds: float = 10.0, most_idle: int = 16) -> None:
        self._restart_seconds = restart_seconds
        """Between two starts of a guard that dies."""
        self._answer_seconds = answer_seconds
        """How long a guard may take to fork a supervisor. One that takes longer was stopped, or hangs."""
        self._most_idle = most_idle
        """How many supervisors wait for the next command; each takes a megabyte or two."""
        self._sockets: dict[socket.socket, int | None] = {}
        """Our ends of all connections, each with the guard that was asked for the supervisor at the other."""
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()  # a thread that is not in a fork may hold the other
        self.process: int | None = None
        """The guard's process id; None while there is none."""
        self._server: socket.socket | None = None
        self._not_before = 0.0
        self._idle: list[socket.socket] = []

    def forget(self) -> None:
        """In a fork, as its first step: the guard and the commands are those of the process that it came from.

        Later the numbers of these sockets may be others', and must not be closed.
        """
        sockets, self._sockets = self._sockets, {}
        self._reset()
        for each in sockets:
            with contextlib.suppress(OSError):
                os.close(each.detach())

    def end(self, seconds: float = 10.0) -> None:
        """No command runs any more, and none will: end the process, and wait for it for so long at most."""
        with self._lock:
            process, server = self.process, self._server
            self.process = self._server = None
            for each in (*filter(None, (server,)), *self._idle):
                self._close(each)
            self._idle.clear()
        until = time.monotonic() + seconds
        with contextlib.suppress(ChildProcessError):  # somebody else buried it
            while process is not None and os.waitpid(process, os.WNOHANG) == (0, 0) and time.monotonic() < until:
                time.sleep(_FULL_SECONDS)

    async def supervisor(self) -> socket.socket:
        """A supervisor that waits for a command. OSError if there can be none."""
        with self._lock:
            self._look()
            while self._idle:
                if _is_there(found := self._idle.pop()):
                    return found
                self._close(found)
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(_NoSupervisor):
                return await self._fork()
        return await self._fork()

    def give_back(self, supervisor: socket.socket) -> None:
        """Its command is gone, and it waits for the next one."""
        with self._lock:
            # One that has outlived its guard takes no other command: nobody would end what it leaves if it were killed.
            if len(self._idle) < self._most_idle and self._sockets.get(supervisor) == self.process:
                self._idle.append(supervisor)
                return
        self.close(supervisor)

    def close(self, supervisor: socket.socket) -> None:
        """It ends what is left of its command, and itself."""
        with self._lock:
            self._close(supervisor)

    def _close(self, each: socket.socket) -> None:
        self._sockets.pop(each, None)
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)  # a fork that never heard of us may hold it too
        each.close()

    async def _fork(self) -> socket.socket:
        """A new supervisor; _NoSupervisor if the guard gives none."""
        ours, theirs = self._pair()
        answer = b""
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._send(ours, theirs)
                theirs.close()
                answer = await asyncio.get_running_loop().sock_recv(ours, len(guard_child.READY))
            if answer == guard_child.READY:
                return ours
        except (BrokenPipeError, ConnectionResetError):
            pass
        except TimeoutError:
            self._kill(self._sockets[ours])
            self.close(ours)
            raise _NoSupervisor(errno.EAGAIN, "the guard of commands does not answer") from None
        except BaseException:
            self.close(ours)
            raise
        finally:
            theirs.close()
        self.close(ours)
        if answer == guard_child.NO_ROOM:
            raise _NoSupervisor(errno.EAGAIN, "the guard of commands has no room to fork")
        # Not for want of room: what is put off for it would be put off for ever.
        raise _NoSupervisor(errno.ECHILD, "the guard of commands ends as soon as it is started")

    async def _send(self, ours: socket.socket, theirs: socket.socket) -> None:
        """Give a socket to the guard, which is started if there is none."""
        while True:
            with self._lock:
                self._look()
                pause = self._not_before - time.monotonic()
                if self._server is None and pause <= 0:
                    self._start()
                if self._server is not None:
                    self._sockets[ours] = self.process
                    try:
                        socket.send_fds(self._server, [b"+"], [theirs.fileno()])
                        return
                    except OSError as error:
                        if error.errno not in (errno.EAGAIN, errno.ETOOMANYREFS):
                            raise
                        pause = _FULL_SECONDS
            await asyncio.sleep(pause)

    def _kill(self, asked: int | None) -> None:
        """The guard that was asked, if it is still the one that there is: the next is started in its place."""
        with self._lock:
            self._look()
            if asked is not None and asked == self.process and self._server is not None:
                os.kill(asked, signal.SIGKILL)
                self._bury(self._server)

    def _look(self) -> None:
        if self._server is not None and not _is_there(self._server):
            self._bury(self._server)

    def _bury(self, server: socket.socket) -> None:
        """It died, or is about to: its socket has ended. The supervisors that wait go with it."""
        dead, self.process, self._server = self.process, None, None
        for each in (server, *self._idle):
            self._close(each)
        self._idle.clear()
        if dead is not None:
            with contextlib.suppress(ChildProcessError):  # somebody else buried it
                os.waitpid(dead, 0)

    def _start(self) -> None:
        """Start the process, but not again and again where it cannot live."""
        self._not_before = time.monotonic() + self._restart_seconds
        ours, theirs = self._pair()
        try:
            self.process = os.posix_spawn(
                program := interpreter(),
                [program, "-I", "-S", str(Path(guard_child.__file__)), str(os.getpid())],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsigmask=guard_child.DEAF_TO,  # from its first moment
            )
            self._server = ours
        except BaseException:
            self._close(ours)
            raise
        finally:
            theirs.close()

    def _pair(self) -> tuple[socket.socket, socket.socket]:
        """Our end of a new connection, and the other."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        if theirs.fileno() <= 2:  # somebody closed ours: a DUP2 to its own number would leave it to be closed
            theirs, low = socket.socket(fileno=fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)), theirs
            low.close()
        ours.setblocking(False)
        self._sockets[ours] = None
        return ours, theirs


def _is_there(other: socket.socket) -> bool:
    """Whether the other side is open; it has nothing to say."""
    try:
        other.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def interpreter() -> str:
    """A Python: in a server that embeds one, sys.executable may be the server."""
    places = [sys.executable or "", f"{sys.exec_prefix}/bin/python3", f"{sys.base_exec_prefix}/bin/python3"]
    for place in places:
        if Path(place).name.startswith(("python", "pypy")) and os.access(place, os.X_OK):
            return place
    looked = ", ".join(filter(None, places))
    raise OSError(errno.EOPNOTSUPP, f"its guard needs a Python interpreter, and there is none at {looked}")


GUARD = Guard()
os.register_at_fork(after_in_child=GUARD.forget)
