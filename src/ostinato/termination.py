"""SIGTERM in a script that has only `app.start()`: its engine is drained, and then the process ends as it would have.

app.py says which apps are started. Where anybody else handles the signal (gunicorn, uvicorn, the command line, the
script itself), nothing is done here.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from types import FrameType
from typing import Protocol

__all__ = ["drain_on_sigterm", "leave_sigterm"]


class Stoppable(Protocol):
    """An app."""

    def stop(self) -> None: ...
    def force(self) -> None: ...


_started: list[Stoppable] = []
_arrivals = itertools.count(1)


def drain_on_sigterm(app: Stoppable) -> None:
    """Stop this app before SIGTERM ends the process. Only the main thread may set handlers."""
    if app in _started or threading.current_thread() is not threading.main_thread():
        return
    current = signal.getsignal(signal.SIGTERM)
    if current is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    elif current is not _terminate:
        return
    _started.append(app)


def leave_sigterm(app: Stoppable) -> None:
    """It is stopped. With the last one, the signal is what it was; from another thread it stays, and does the same."""
    if app in _started:
        _started.remove(app)
    is_ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _terminate
    if not _started and is_ours:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, _: FrameType | None) -> None:
    """The first drains, the second forces, a third ends the process where it stands."""
    count = next(_arrivals)
    if count == 1:
        try:
            for app in _started:
                app.stop()
        finally:
            _end(number)
    elif count == 2:
        for app in _started:
            app.force()
    else:
        _end(number)


def _end(number: int) -> None:
    """As if nobody had handled it: whoever waits for this process sees which signal ended it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
