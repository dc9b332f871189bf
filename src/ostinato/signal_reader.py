"""Signals heard on a thread of their own, whatever the main thread does.

Python runs handlers in the main thread, between two of its instructions: a call that blocks holds them up, and two of a
kind that wait become one. But each signal is written to a descriptor at once, which is read here. `termination.py`
listens for scripts, `cli/signals.py` and `cli/foreground_run.py` for commands.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, NoReturn, Protocol

__all__ = ["FORCED_END", "SignalReader", "end_by_signal", "say_last", "signal_reader"]

FORCED_END = "forced: the process ends now; what it ran is rescued by others"
"""What is said when the ledger took too long to learn what becomes of the runs."""

_DIRECT = 0x80
"""In a byte that comes from our handler and not from Python."""
_NOTHING = 0x00
"""The byte that only wakes the thread."""
_MARK, _MARK_SECONDS = 0xFF, 5.0
"""The byte that asks how far the thread has read, and how long its answer is waited for: work may have closed it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Deadline:
    at: float
    end: Callable[[], object]


class _Stream(Protocol):
    def fileno(self) -> int: ...


class SignalReader:
    """Calls back on its thread, once for each signal. There is one in a process, as there is one descriptor.

    The thread is there before the first signal: not everywhere can one be started. What is called must not wait, since
    the next signal is heard after it.
    """

    def __init__(self) -> None:
        self._listeners: dict[int, Callable[[int], None]] = {}
        self._before: dict[int, Any] = {}
        """What handled the signal before."""
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._other: tuple[int, int] | None = None
        """The descriptor of somebody else, an event loop say, who gets every byte from here; and a duplicate of it."""
        self._unused: list[int] = []
        """Duplicates that the thread closes: it alone writes to them, so no number is given to a file meanwhile."""
        self._marks_sent = self._marks_read = 0
        self._has_read = threading.Event()
        self._deadlines: dict[int, _Deadline] = {}
        threading.Thread(target=self._read, name="ostinato-signals", daemon=True).start()

    def listen(self, numbers: tuple[signal.Signals, ...], arrived: Callable[[int], None]) -> None:
        """Handle these signals from now on. In the main thread."""
        self._take()
        self.catch_up()
        for number in numbers:
            self._listeners[number] = arrived
            before = signal.signal(number, self._handle)  # one that waits is handled before that, as it was
            if before != self._handle:
                self._before[number] = before

    def leave(self, numbers: tuple[signal.Signals, ...]) -> None:
        """Give these signals back to whoever handled them before. In the main thread."""
        for number in numbers:
            self._listeners.pop(number, None)
            if self._handles(number):
                signal.signal(number, self._before[number])
            self._deadlines.pop(number, None)
        if not self._listeners:
            self._release()
            self.catch_up()  # what it has not read yet is passed on
            self._forget_other()
            self._tell_thread(_NOTHING)

    def listener(self, number: int) -> Callable[[int], None] | None:
        """Who listens to this signal here, unless somebody else has put a handler in the place of this one."""
        return self._listeners.get(number) if self._handles(number) else None

    def _handles(self, number: int) -> bool:
        return signal.getsignal(number) == self._handle

    def end_later(self, number: int, end: Callable[[], object], seconds: float) -> None:
        """Call this in so many seconds, unless this signal is left before. From a listener."""
        self._deadlines[number] = _Deadline(time.monotonic() + seconds, end)

    def catch_up(self, seconds: float = _MARK_SECONDS) -> None:
        """Wait until the thread has read what came before, but not for ever."""
        if not self._tell_thread(_MARK):
            return
        self._marks_sent += 1
        until = time.monotonic() + seconds
        while self._marks_read < self._marks_sent:  # one that nobody waited for any more may be answered first
            if not self._has_read.wait(until - time.monotonic()):
                return
            self._has_read.clear()

    def _tell_thread(self, byte: int) -> bool:
        """False if it cannot be told: work closed its descriptors."""
        try:
            return self._sender.send(bytes([byte])) == 1
        except OSError:
            return False

    def _take(self) -> bool:
        """Have the bytes sent here, and pass them on to whoever had them; whether they came here already."""
        before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        if before == self._sender.fileno():
            return True
        self._forget_other()
        if before != -1:
            with suppress(OSError):  # this may be in a handler, which must not raise
                # A duplicate: its owner may close it, and the number be given to a file that must not get our bytes.
                self._other = (before, os.dup(before))
        return False

    def _forget_other(self) -> None:
        other, self._other = self._other, None
        if other is not None:
            self._unused.append(other[1])

    def _close_unused(self) -> None:
        while self._unused:
            with suppress(OSError):  # work closed it
                os.close(self._unused.pop())

    def _release(self) -> None:
        """Give the bytes back to whoever had them, if he is still there."""
        current = signal.set_wakeup_fd(-1)
        if current == self._sender.fileno():
            current = -1 if self._other is None or not _is_same(*self._other) else self._other[0]
        if current != -1:
            signal.set_wakeup_fd(current, warn_on_full_buffer=False)

    def _handle(self, number: int, _: FrameType | None) -> None:
        """In the main thread, some time after the signal. Mostly the thread has heard it already.

        Not if somebody took the descriptor, or the handler, and calls this one as the one before his.
        """
        if not self._take() or not self._handles(number):
            self._tell_thread(_DIRECT | number)

    def _read(self) -> None:
        while (told := self._next()) is not None:
            self._close_unused()
            for byte in told:
                self._heard(byte)

    def _next(self) -> bytes | None:
        """What came, or nothing if the deadline came first; None if somebody closed our descriptors."""
        deadlines = self._deadlines.copy()
        number = min(deadlines, key=lambda each: deadlines[each].at, default=None)
        try:
            self._receiver.settimeout(None if number is None else max(0.001, deadlines[number].at - time.monotonic()))
            return self._receiver.recv(4096) or None
        except TimeoutError:
            if number is not None and (due := self._deadlines.pop(number, None)) is not None:  # or it was left just now
                self._guarded(number, due.end)
            return b""
        except OSError:
            return None

    def _heard(self, byte: int) -> None:
        if byte == _MARK:
            self._marks_read += 1
            self._has_read.set()
        elif byte == _NOTHING:
            return
        elif byte & _DIRECT:
            self._call(byte ^ _DIRECT)
        else:
            self._pass_on(byte)
            if self._handles(byte):
                self._call(byte)

    def _call(self, number: int) -> None:
        if (arrived := self._listeners.get(number)) is not None:
            self._guarded(number, partial(arrived, number))

    def _guarded(self, number: int, call: Callable[[], object]) -> None:
        """Whatever it raises, the next signal is heard. It is not logged: the main thread may hold a lock of that."""
        try:
            call()
        except Exception as error:
            say_last(f"the listener of signal {number} failed: {error!r}")

    def _pass_on(self, byte: int) -> None:
        if (other := self._other) is not None:
            with suppress(OSError):  # its owner is gone, or has enough of them
                os.write(other[1], bytes([byte]))

    def forked(self) -> None:
        """In a forked child, where the thread is not: its signals are not for the parent to hear."""
        self._release()
        self._forget_other()
        self._close_unused()
        for number in self._listeners:
            if self._handles(number):
                signal.signal(number, self._before[number])


def _is_same(one: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return False


_readers: list[SignalReader] = []


def signal_reader() -> SignalReader:
    """The one of this process."""
    if not _readers:
        _readers.append(SignalReader())
    return _readers[0]


def _after_fork() -> None:
    for reader in _readers:
        reader.forked()
    _readers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def end_by_signal(number: int) -> NoReturn:
    """As if nobody had handled it: whoever waits for this process sees which signal ended it. From any thread."""
    # signal.signal() is for the main thread alone, which may be in a call that does not end.
    ctypes.pythonapi.PyOS_setsig(ctypes.c_int(number), ctypes.c_void_p(int(signal.SIG_DFL)))
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # it is blocked


def say_last(text: str, stream: _Stream | None = None) -> None:
    """A line on stderr, if somebody takes it now: nothing may hold up the end of a process, and no lock is needed."""
    descriptor = 2
    with suppress(AttributeError, OSError, ValueError):  # work has closed it, or put something else there
        descriptor = descriptor if stream is None else stream.fileno()
    with suppress(OSError, ValueError):
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        if poll.poll(0):
            os.write(descriptor, f"{text}\n".encode())
