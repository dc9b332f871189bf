"""SIGTERM in a script that has only `app.start()`: its engine is drained, and then the process ends as it would have.

app.py says which apps are started. Where anybody else handles the signal (gunicorn, uvicorn, the command line, the
script itself), nothing is done here.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import threading
from queue import SimpleQueue
from types import FrameType
from typing import Protocol

__all__ = ["drain_on_sigterm", "leave_sigterm"]


class Stoppable(Protocol):
    """An app."""

    def stop(self) -> None: ...
    def force(self) -> None: ...


class _Drain:
    """Stops the apps on a thread of its own: a signal may interrupt the main thread where it holds a lock that a stop
    needs. The thread is there before: not everywhere can one be started."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[int] = SimpleQueue()
        self.has_begun = False
        self.is_over = threading.Event()
        threading.Thread(target=self._wait, name="ostinato-termination", daemon=True).start()
        atexit.register(self._let_end)

    def begin(self, number: int) -> None:
        """From a signal handler."""
        self.has_begun = True
        self._asked.put(number)

    def _wait(self) -> None:
        number = self._asked.get()
        try:
            for app in _started.copy():
                app.stop()
        finally:
            self.is_over.set()
            # Only the main thread may give the signal its default back.
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    def _let_end(self) -> None:
        """The main thread has come to its end meanwhile: the process ends after the drain."""
        if self.has_begun:
            self.is_over.wait()


_started: list[Stoppable] = []
_arrivals = itertools.count(1)
_drains: list[_Drain] = []
"""The one of this process, once an app was started."""


def drain_on_sigterm(app: Stoppable) -> None:
    """Stop this app before SIGTERM ends the process. Only the main thread may set handlers."""
    if app in _started or threading.current_thread() is not threading.main_thread():
        return
    current = signal.getsignal(signal.SIGTERM)
    if current is not signal.SIG_DFL and current is not _terminate:
        return
    if not _drains:
        _drains.append(_Drain())
    _started.append(app)
    signal.signal(signal.SIGTERM, _terminate)


def leave_sigterm(app: Stoppable) -> None:
    """It is stopped. With the last one, the signal is what it was; from another thread it stays, and does the same."""
    if app in _started:
        _started.remove(app)
    is_ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _terminate
    if not _started and is_ours:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, _: FrameType | None) -> None:
    """The first drains, the second forces, a third ends the process where it stands. Nothing in here waits."""
    count = next(_arrivals)
    if count > 2 or _drains[0].is_over.is_set():
        _end(number)
    elif count == 1:
        _drains[0].begin(number)
    else:
        for app in _started.copy():
            app.force()


def _end(number: int) -> None:
    """As if nobody had handled it: whoever waits for this process sees which signal ended it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _after_fork() -> None:
    """In a forked child: neither the apps nor the thread that stops them are here."""
    _drains.clear()
    _started.clear()
    if signal.getsignal(signal.SIGTERM) is _terminate:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
