"""SIGTERM in a script that has only `app.start()`: its engine is drained, and then the process ends as it would have.

The first Ctrl-C is Python's own (KeyboardInterrupt); the second, while the engine is drained for it, forces. app.py
says which apps are started, `signal_reader.py` hears the signals. Where anybody else handles them (gunicorn, uvicorn,
the command line, the script itself), nothing is done here, but that a Ctrl-C forces the drain of a server's lifespan.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import NoReturn, Protocol

from ostinato.config import Settings
from ostinato.logs import get_logger
from ostinato.signal_reader import FORCED_END, end_by_signal, say_last, signal_reader
from ostinato.tuning import DEFAULT_TUNING

__all__ = ["FORCING", "Stoppable", "another_interrupt_forces", "drain_on_sigterm", "interrupts_force", "leave_sigterm"]

log = get_logger("ostinato")

_MOST_NAMED = 3
FORCING = "forcing: what is under way is cut off (once more to end at once)"


class Stoppable(Protocol):
    """An app."""

    settings: Settings

    def stop(self) -> None: ...
    def force(self) -> None: ...


class _Drain:
    """Stops the apps on a thread of its own, which is there before: not everywhere can one be started."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[int] = SimpleQueue()
        self._count = 0
        self._thread = threading.Thread(target=self._wait, name="ostinato-termination", daemon=True)
        self._thread.start()
        atexit.register(self._let_end)

    def arrived(self, number: int) -> None:
        """The first drains, the second forces, a third ends the process where it stands. Nothing in here waits."""
        self._count += 1
        if self._count == 1:
            self._asked.put(number)
        elif self._count == 2:
            apps = _started.copy()
            signal_reader().end_later(number, partial(_end, number), _force_seconds(apps))
            _force(apps)
        else:
            end_by_signal(number)

    def _wait(self) -> None:
        number = self._asked.get()
        try:
            for app in _started.copy():
                try:
                    app.stop()
                except Exception:  # the others are drained all the same
                    log.exception("an app could not be stopped")
        finally:
            end_by_signal(number)

    def _let_end(self) -> None:
        """The main thread has come to its end meanwhile: the process ends after the drain, by the signal."""
        signal_reader().catch_up()  # it may have come just now
        if self._count:
            self._thread.join()


_SIGNALS = (signal.SIGTERM,)
_started: list[Stoppable] = []
_drains: list[_Drain] = []
"""The one of this process, once an app was started."""


_at_exit: list[Callable[[], None]] = []


def drain_at_exit(drain: Callable[[], None]) -> None:
    """Drain when the process ends: once the main thread has ended, unless other threads go on; then behind them.

    The functions of `atexit` are called when no executor of the process takes work any more, and work that runs then
    may want one. Calling it twice for the same app is harmless.
    """
    leave_exit(drain)
    _at_exit.append(drain)
    atexit.register(drain)


def leave_exit(drain: Callable[[], None]) -> None:
    """It is drained."""
    if drain in _at_exit:
        _at_exit.remove(drain)
    atexit.unregister(drain)


def _drain_all_if_alone() -> None:
    """Before the executors end: theirs was registered first, and the last one is called first."""
    executors = set(concurrent.futures.thread._threads_queues)
    others = [one for one in threading.enumerate() if not one.daemon and one not in executors]
    if all(one is threading.main_thread() for one in others):
        for drain in _at_exit.copy():
            drain()


if hasattr(threading, "_register_atexit"):  # of CPython alone; elsewhere atexit has to do
    threading._register_atexit(_drain_all_if_alone)


def drain_on_sigterm(app: Stoppable) -> None:
    """Stop this app before SIGTERM ends the process. Only the main thread may set handlers."""
    if app in _started or threading.current_thread() is not threading.main_thread():
        return
    if not is_ours() and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    if not _drains:
        _drains.append(_Drain())
    _started.append(app)
    signal_reader().listen(_SIGNALS, _drains[0].arrived)


def leave_sigterm(app: Stoppable) -> None:
    """It is stopped. With the last one, the signal is what it was; from another thread it stays, and does the same."""
    if app in _started:
        _started.remove(app)
    if not _started and is_ours() and threading.current_thread() is threading.main_thread():
        signal_reader().leave(_SIGNALS)


@contextmanager
def interrupts_force(app: Stoppable, under_way: Sequence[str], *, at_exit: bool) -> Iterator[None]:
    """Around a drain that the process waits for, after Ctrl-C or at its end: a line names the runs `under_way`,
    and another Ctrl-C forces and does not raise.

    At the exit it forces the others too, whose turn comes later.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    count = itertools.count(1)

    def arrived(number: int) -> None:
        if next(count) > 1:
            end_by_signal(number)
        apps = [app, *(_started if at_exit else [])]
        signal_reader().end_later(number, partial(_end, number), _force_seconds(apps))
        _force(apps)
        say_last(FORCING)

    signal_reader().listen((signal.SIGINT,), arrived)
    if under_way:
        say_last(_waiting(under_way))
    try:
        yield
    finally:
        signal_reader().leave((signal.SIGINT,))


@contextmanager
def another_interrupt_forces(app: Stoppable, under_way: Sequence[str], *, of_server: bool) -> Iterator[None]:
    """Around a drain on the loop of a server or of `asyncio.run`, which has handled the signal that led to it: a line
    names the runs `under_way`, and a Ctrl-C forces.

    It is the server's too, whose reloader sends a SIGTERM after a Ctrl-C: that one says nothing new. `asyncio.run`
    would end where it stands: it gets the one after that.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        if under_way:
            say_last(_waiting(under_way, can_force=False))
        yield
        return
    count = itertools.count(1)

    def arrived(number: int, frame: FrameType | None) -> None:
        app.force()
        if of_server or next(count) > 1:
            handler(number, frame)
        else:
            say_last(FORCING)

    signal.signal(signal.SIGINT, arrived)
    if under_way:
        say_last(_waiting(under_way))
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is arrived:
            signal.signal(signal.SIGINT, handler)


def _waiting(names: Sequence[str], *, can_force: bool = True) -> str:
    more = len(names) - _MOST_NAMED
    listed = ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"waiting for {listed} to end" + (" (Ctrl-C cuts off what is under way)" if can_force else "")


def is_ours() -> bool:
    """Whether SIGTERM drains the apps."""
    return bool(_drains) and signal_reader().listener(signal.SIGTERM) == _drains[0].arrived


def _force_seconds(apps: Iterable[Stoppable]) -> float:
    return max((app.settings.tuning.force_seconds for app in apps), default=DEFAULT_TUNING.force_seconds)


def _force(apps: Iterable[Stoppable]) -> None:
    for app in apps:
        try:
            app.force()
        except Exception as error:  # the others are forced all the same, and the process ends soon
            say_last(f"an app could not be forced: {error!r}")


def _end(number: int) -> NoReturn:
    try:
        say_last(FORCED_END)
    finally:
        end_by_signal(number)


def _after_fork() -> None:
    """In a forked child: neither the apps nor the thread that stops them are here."""
    _drains.clear()
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
