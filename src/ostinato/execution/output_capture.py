"""What a function of this process prints or logs becomes output of its run: `sys.stdout`, `sys.stderr` and `logging`.

Each write is looked at in the context of its caller, so that runs on one loop and on many threads stay apart; what is
written outside of a run only passes through. A run that prints nothing pays nothing. Functions in processes of their
own have pipes instead (child.py).
"""

from __future__ import annotations

import contextvars
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO
from weakref import WeakSet

from ostinato.execution.context import RunContext, current_context
from ostinato.logs import NAMED

__all__ = ["OutputCapture", "output_capture"]

_STREAMS = ("stdout", "stderr")

_is_taken: contextvars.ContextVar[bool] = contextvars.ContextVar("ostinato_output_taken", default=False)
"""Whether what is written just now is in the output already: a record's handlers print it, or a wrapper of others'
stands between two of our streams."""


class OutputCapture:
    """The streams of this process, while an engine of it is open."""

    def __init__(self) -> None:
        self._users: WeakSet[object] = WeakSet()
        self._lock = threading.Lock()
        self._is_logging_heard = False
        self.passes_on = True
        """Whether what runs print is also printed where it would be without us."""
        self._forked_in: RunContext | None = None
        """The run that forked this process: its output is kept in the other one."""

    def context(self) -> RunContext | None:
        """The run whose output is what is written just now."""
        context = current_context.get(None)
        if context is None or context.has_own_stdout or context is self._forked_in:
            return None
        return context

    def open(self, user: object) -> None:
        """From now on, until `close`. Whoever has replaced a stream since the last time has that looked at, too."""
        with self._lock:
            self._users.add(user)
            for name in _STREAMS:
                stream = getattr(sys, name)
                if stream is not None and not isinstance(stream, _Stream):
                    setattr(sys, name, _Stream(stream, self))
            if not self._is_logging_heard:
                self._is_logging_heard = True
                _hear_logging(self)

    def close(self, user: object) -> None:
        """The last one puts the streams back, unless somebody else has replaced ours."""
        with self._lock:
            self._users.discard(user)
            if self._users:
                return
            self.passes_on = True
            for name in _STREAMS:
                if isinstance(stream := getattr(sys, name), _Stream):
                    setattr(sys, name, stream.original)

    def forked(self) -> None:
        """In a forked child: a thread that is not here may hold the lock, and that of the output of a run."""
        self._lock = threading.Lock()
        self._forked_in = current_context.get(None)


class _Stream:
    """Stands for a stream, and is one but for what runs write to it."""

    def __init__(self, original: TextIO, capture: OutputCapture) -> None:
        self.original = original
        self._capture = capture

    def write(self, text: str) -> int:
        context = self._capture.context()
        if context is None or not isinstance(text, str):
            return self.original.write(text)
        if not _is_taken.get():
            context.write(text)
        if not self._capture.passes_on:
            return len(text)
        taken = _is_taken.set(True)
        try:
            return self.original.write(text)
        finally:
            _is_taken.reset(taken)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _hear_logging(capture: OutputCapture) -> None:
    """Once in a process. A handler of the root would do as well, but where there is one, `logging.basicConfig` of the
    application does nothing, and warnings of one that sets nothing up are shown no more."""
    call_handlers: Callable[[logging.Logger, logging.LogRecord], None] = logging.Logger.callHandlers

    def heard(self: logging.Logger, record: logging.LogRecord) -> None:
        context = capture.context()
        if context is None or _is_taken.get() or record.name.partition(".")[0] == "ostinato":
            call_handlers(self, record)
            return
        if (text := _text(record)) is not None:
            context.log(text)
        taken = _is_taken.set(True)
        try:
            call_handlers(self, record)
        finally:
            _is_taken.reset(taken)

    logging.Logger.callHandlers = heard  # type: ignore[method-assign]


_formatter = logging.Formatter(NAMED)


def _text(record: logging.LogRecord) -> str | None:
    """As a line of output, whose time is noted anyway; None if it cannot be made, which its handlers tell."""
    told = record.exc_text
    try:
        return _formatter.format(record)
    except Exception:
        return None
    finally:
        record.exc_text = told  # the application's own formatter may show tracebacks in its own way


output_capture = OutputCapture()
"""That of this process: there is one `sys.stdout` for all engines."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=output_capture.forked)
