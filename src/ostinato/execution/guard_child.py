"""The guard's process: it starts commands for the engine, and ends whatever they leave behind.

guard.py runs it as a script; it imports nothing of ours. For each command that runs at the same time it forks a
supervisor, which is the subreaper of that one command: whoever loses its parent there becomes the supervisor's child,
so that a new session or a double fork leads nowhere.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import marshal
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["DEAF_TO", "HEADER", "KILL", "NO_ROOM", "READY", "TERMINATE", "become_subreaper", "has_subreaper"]

READY = b"R\n"
"""What a supervisor says first, and again when a command and all that it started are gone: it takes the next one."""
NO_ROOM = b"N\n"
"""What the guard says in place of a supervisor that it cannot fork."""
TERMINATE, KILL = b"T", b"K"
"""What the engine says while a command runs; the end of its socket says TERMINATE too."""
HEADER = 8
"""The length of a request comes before it, in so many bytes."""
DEAF_TO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or an init sends to all: the guard is needed after them. It is started with them blocked."""

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_LOOK_SECONDS = 0.02, 0.25
"""Between two looks at what is left, at first and at last."""
_MOST_DESCRIPTORS = 64
_AT_ONCE = 65_536


def become_subreaper() -> bool:
    """Whether orphans among the descendants of this process become its children from now on; only Linux has that."""
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def has_subreaper() -> bool:
    """Whether this system has what `become_subreaper` asks for; changes nothing."""
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(ctypes.c_int()), 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class Table:
    """The system's processes at one moment."""

    def __init__(self) -> None:
        self.children: dict[int, list[int]] = {}
        self.sessions: dict[int, list[int]] = {}
        self.begun: dict[int, bytes] = {}
        """When each of those that run was started: with its number, that is nobody else. The dead are not here."""
        for name in os.listdir("/proc"):
            if name.isdigit() and (fields := _fields_of(int(name))) is not None:
                number = int(name)
                self.children.setdefault(int(fields[1]), []).append(number)
                self.sessions.setdefault(int(fields[3]), []).append(number)
                # A first thread that has ended looks like a dead process, though others go on.
                if fields[0] not in (b"Z", b"X") or int(fields[17]) > 1:
                    self.begun[number] = fields[19]

    def below(self, top: int, *, without: Iterable[int] = (), session: int | None = None) -> list[int]:
        """What runs and descends from this process, parents first, and what is of the session."""
        found: dict[int, None] = {}
        waiting = [*self.children.get(top, ()), *self.sessions.get(session or -1, ())]
        seen = set(without)
        for number in waiting:  # it grows on the way
            if number not in seen and number != top:
                seen.add(number)
                waiting.extend(self.children.get(number, ()))
                if number in self.begun:
                    found[number] = None
        return list(found)

    def send(self, number: int, *signals: int) -> None:
        """Send signals to one of them, unless its number is another's by now."""
        try:
            handle = os.pidfd_open(number) if hasattr(os, "pidfd_open") else None
        except OSError:
            handle = None  # an old kernel; or it is gone
        try:
            fields = _fields_of(number)
            if fields is None or fields[19] != self.begun[number]:
                return
            for each in signals:
                if handle is None:
                    os.kill(number, each)
                else:
                    signal.pidfd_send_signal(handle, each)
        except (ProcessLookupError, PermissionError):
            return  # it is gone, or another user's by set-uid
        finally:
            if handle is not None:
                os.close(handle)


def _receive(source: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """Bytes, and the descriptors that came with them; no bytes when the other side is gone."""
    try:
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        data, descriptors, _, _ = socket.recv_fds(source, most, _MOST_DESCRIPTORS, flags)
    except OSError:
        return b"", []
    return data, list(descriptors)


def _fields_of(number: int) -> list[bytes] | None:
    """What the system says of a process, from its state on; None if it is gone."""
    try:
        file = os.open(f"/proc/{number}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # After the name, which may hold anything, in its brackets.
        fields = os.read(file, 4_096).rpartition(b")")[2].split()
        return fields if len(fields) > 19 else None
    except OSError:
        return None
    finally:
        os.close(file)


class _Waits:
    """Sleeps until a descriptor has something, a child has ended, or the time is over."""

    def __init__(self, *descriptors: int) -> None:
        self._wake, writing = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._poll = select.poll()
        for descriptor in (self._wake, *descriptors):
            self._poll.register(descriptor, select.POLLIN)
        self.forget = self._poll.unregister

    def wait(self, seconds: float | None) -> set[int]:
        """The descriptors that have something."""
        ready = {found for found, _ in self._poll.poll(None if seconds is None else seconds * 1000)}
        if self._wake in ready:
            os.read(self._wake, 4_096)
        return ready


class Supervisor:
    """Runs one command after the other; each has all of this process's descendants to itself."""

    def __init__(self, control: socket.socket, engine: int | None) -> None:
        self._control = control
        self._is_subreaper = become_subreaper()
        self._signs = {control.fileno(), *([] if engine is None else [engine])}
        """What says that the engine wants something, or is gone."""
        self._waits = _Waits(*self._signs)
        self._words = b""
        """What came right after the request: it is about this command already."""
        self._is_alone = False
        """The engine is gone, or does not care any more."""

    def run(self) -> None:
        """Return when nobody has a command any more."""
        while not self._is_alone:
            self._say(READY)
            if (request := self._receive()) is None:
                return
            self._execute(*request)

    def _say(self, words: bytes) -> None:
        try:
            self._control.sendall(words)
        except OSError:
            self._is_alone = True

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """The next request, and the descriptors that came with it; None if there is none."""
        data, descriptors = b"", list[int]()
        end = HEADER
        while len(data) < end:
            while not (ready := self._waits.wait(None) & self._signs):
                pass
            # Without a byte the engine is gone, though a fork of it may hold the other end.
            more, came = _receive(self._control, _AT_ONCE) if self._control.fileno() in ready else (b"", [])
            if not more:
                return None
            descriptors += came
            # What was said about the last command as it ended comes before; a header begins with a zero.
            data = data + more if data else more.lstrip(TERMINATE + KILL)
            end = HEADER + int.from_bytes(data[:HEADER], "big") if len(data) >= HEADER else HEADER
        if data[end - 1 : end] == KILL:  # no request ends so: its last byte was not sent any more
            return None
        self._words = data[end:]
        return marshal.loads(data[HEADER:end]), descriptors

    def _is_unwanted(self) -> bool:
        """Whether the engine has taken back what it asked for, or is gone."""
        if self._waits.wait(0) & self._signs:
            self._words += self._hear()
        return bool(self._words) or self._is_alone

    def _execute(self, request: dict[str, Any], descriptors: list[int]) -> None:
        if self._is_unwanted():
            for descriptor in descriptors:
                os.close(descriptor)
            self._say(b"E %d %s\n" % (errno.ECANCELED, _line(os.strerror(errno.ECANCELED))))
            return
        try:
            process = _spawn(request, descriptors)
        except OSError as error:
            self._say(b"E %d %s\n" % (error.errno or 0, _line(error.strerror or str(error))))
        except (ValueError, subprocess.SubprocessError) as error:
            self._say(b"E 0 " + _line(str(error)) + b"\n")
        else:
            self._say(b"S %d\n" % process.pid)
            self._attend(process, request["kill_seconds"])

    def _attend(self, process: subprocess.Popen[bytes], kill_seconds: float) -> None:
        """Until the command and all that it started are gone."""
        kill_at: float | None = None
        told: set[tuple[int, bytes]] = set()
        pause, longest = _LOOK_SECONDS
        look_at = 0.0
        while self._bury(process):
            now = time.monotonic()
            if process.returncode is not None and kill_at is None:
                kill_at = now  # it ended by itself: what it left in the background goes with it
            if kill_at is not None and (now >= look_at or now >= kill_at):
                self._end(process.pid, told, is_last=now >= kill_at)
                look_at, pause = now + pause, min(pause * 2, longest)
                look_at = look_at if now >= kill_at else min(look_at, kill_at)
            ready = self._waits.wait(None if kill_at is None else max(0.001, look_at - now))
            if self._signs & ready:
                words = self._hear()
                if kill_at is None and words != KILL:
                    kill_at = time.monotonic() + kill_seconds
                    self._end(process.pid, told, is_last=False)
                if KILL in words:
                    kill_at, pause = min(kill_at or math.inf, time.monotonic()), _LOOK_SECONDS[0]

    def _hear(self) -> bytes:
        """What the engine wants: nothing more if it is gone."""
        try:
            words = self._control.recv(16, socket.MSG_DONTWAIT)
        except BlockingIOError:  # the engine is gone, and a fork of it holds the other end
            words = b""
        except OSError:
            words = b""
        if not words:
            self._is_alone = True
            for sign in self._signs:
                self._waits.forget(sign)
        return words

    def _bury(self, process: subprocess.Popen[bytes]) -> bool:
        """Take the exit status of all that has ended; whether anybody is left."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == process.pid and process.returncode is None:  # its number may be given out again
                    process.returncode = os.waitstatus_to_exitcode(ended[1])
                    self._say(b"X %d\n" % process.returncode)
        except ChildProcessError:
            return not self._is_subreaper and _has_others(process.pid)
        return True

    def _end(self, command: int, told: set[tuple[int, bytes]], *, is_last: bool) -> None:
        """Signal what is left: SIGKILL at last, before that SIGTERM to each that has not had it."""
        try:
            table = Table()
        except OSError:  # a system without such a table: its process group is all that can be reached
            _signal_group(command, told, is_last=is_last)
            return
        for number in table.below(os.getpid(), session=None if self._is_subreaper else command):
            if is_last:
                table.send(number, signal.SIGKILL)
            elif (number, table.begun[number]) not in told:
                told.add((number, table.begun[number]))
                table.send(number, signal.SIGTERM, signal.SIGCONT)  # who was stopped would not hear it


def _has_others(session: int) -> bool:
    """Without a subreaper: whether anybody is left in the command's session, or at least in its group."""
    try:
        return bool(Table().below(os.getpid(), session=session))
    except OSError:
        pass
    try:
        os.killpg(session, 0)
    except OSError:
        return False
    return True


def _signal_group(command: int, told: set[tuple[int, bytes]], *, is_last: bool) -> None:
    try:
        if is_last:
            os.killpg(command, signal.SIGKILL)
        elif not told:
            told.add((command, b""))
            os.killpg(command, signal.SIGTERM)
            os.killpg(command, signal.SIGCONT)
    except (ProcessLookupError, PermissionError):
        return


def _tell_no_room(control: int) -> None:
    try:
        os.write(control, NO_ROOM)
    except OSError:  # whoever asked waits no longer
        return


def _line(text: str) -> bytes:
    return text.encode(errors="replace").replace(b"\n", b" ")


def _spawn(request: dict[str, Any], descriptors: list[int]) -> subprocess.Popen[bytes]:
    """Start the command with the descriptors that came: stdout, then stderr and stdin if any, then those to pass on."""
    passed = request["pass_fds"]
    above = max(passed, default=2) + 1
    try:
        for at, descriptor in enumerate(descriptors):  # out of the way of the numbers that the command shall have
            descriptors[at] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above)
            os.close(descriptor)
        given = iter(descriptors)
        out = next(given)
        err = next(given) if request["stderr"] else subprocess.STDOUT
        stdin = next(given) if request["stdin"] else subprocess.DEVNULL
        with _Placed(passed, given):
            return subprocess.Popen(
                request["command"],
                cwd=request["folder"],
                env=request["environment"],
                stdin=stdin,
                stdout=out,
                stderr=err,
                pass_fds=passed,
                start_new_session=True,
                **request["identity"],
            )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class _Placed:
    """Descriptors at the numbers that they had in the engine; what this process had there comes back."""

    def __init__(self, wanted: Iterable[int], given: Iterable[int]) -> None:
        self._wanted = list(zip(wanted, given, strict=True))
        self._before: list[tuple[int, int | None]] = []

    def __enter__(self) -> None:
        above = max((number for number, _ in self._wanted), default=2) + 1
        for number, descriptor in self._wanted:
            try:
                saved: int | None = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above)
            except OSError:
                saved = None
            self._before.append((number, saved))
            os.dup2(descriptor, number, inheritable=False)

    def __exit__(self, *_: object) -> None:
        for number, saved in self._before:
            if saved is None:
                os.close(number)
            else:
                os.dup2(saved, number, inheritable=False)
                os.close(saved)


class Guard:
    """Forks a supervisor for each socket that comes, and kills what a killed supervisor left behind."""

    def __init__(self, server: socket.socket, engine: int | None) -> None:
        self._server = server
        self._engine = engine
        self._supervisors: set[int] = set()
        self._has_orphans = False
        self._is_over = False
        become_subreaper()
        self._waits = _Waits(server.fileno(), *([] if engine is None else [engine]))

    def run(self) -> None:
        """Return when the engine is gone, and everything that it started."""
        while not (self._is_over and not self._bury()):
            if self._has_orphans:
                self._kill_orphans()
            ready = self._waits.wait(_LOOK_SECONDS[0] if self._has_orphans else None)
            self._bury()
            if self._engine in ready:
                self._end()
            elif self._server.fileno() in ready:
                self._fork()

    def _end(self) -> None:
        self._is_over = True
        self._waits.forget(self._server.fileno())
        if self._engine is not None:
            self._waits.forget(self._engine)

    def _fork(self) -> None:
        data, descriptors = _receive(self._server, 1)
        if not data:
            self._end()
        for control in descriptors:
            try:
                supervisor = os.fork()
            except OSError:
                supervisor = -1
                _tell_no_room(control)
            if supervisor == 0:
                self._supervise(control)
            os.close(control)
            if supervisor > 0:
                self._supervisors.add(supervisor)

    def _supervise(self, control: int) -> None:
        status = 1
        try:
            self._server.close()
            Supervisor(socket.socket(fileno=control), self._engine).run()
            status = 0
        finally:
            os._exit(status)

    def _bury(self) -> bool:
        """Whether any child is left."""
        try:
            while (ended := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
                if ended[0] not in self._supervisors:
                    continue
                if os.WIFSTOPPED(ended[1]):  # a command may do that: then nobody would end it
                    os.kill(ended[0], signal.SIGKILL)
                    continue
                self._supervisors.discard(ended[0])
                self._has_orphans = self._has_orphans or ended[1] != 0
        except ChildProcessError:
            self._has_orphans = False
            return False
        return True

    def _kill_orphans(self) -> None:
        """What is below this process and below no supervisor has lost its own."""
        try:
            table = Table()
        except OSError:
            self._has_orphans = False
            return
        left = table.below(os.getpid(), without=self._supervisors)
        for number in left:
            table.send(number, signal.SIGKILL)
        self._has_orphans = bool(left)


def main() -> None:
    """Serve the engine, whose number argv names, until it is gone."""
    os.setsid()
    os.chdir("/")
    os.closerange(3, 65_536)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # a command gets the system's own; it must not be ignored here
    for number in DEAF_TO:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    engine = int(sys.argv[1])
    # A fork of the engine may hold the socket open: look at the engine itself too.
    handle = None
    if hasattr(os, "pidfd_open"):
        try:
            handle = os.pidfd_open(engine)
        except OSError:
            handle = None
    if os.getppid() == engine:
        gc.freeze()  # shared with all supervisors
        server = socket.socket(fileno=os.dup(0))
        os.dup2(1, 0)  # which is nothing
        Guard(server, handle).run()


if __name__ == "__main__":
    main()
