"""Runs that other runs of this process execute: they are told to stop when those are, and those end after them.

The context of a run tells when it is to stop, and the runner before it records an end. Whoever executes a run inside of
another one enters it here. Both may be of different apps, on different loops.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ostinato.models.run import Ending
from ostinato.models.states import Cause

if TYPE_CHECKING:
    from ostinato.execution.context import RunContext

__all__ = ["nested_runs"]

Stop = Callable[[Ending], object]
Then = Callable[[], object]


class NestedRuns:
    """By the context of a run: how to stop what it executes, and who waits for the end of all that."""

    def __init__(self) -> None:
        self.outer: dict[RunContext, dict[Stop, asyncio.AbstractEventLoop]] = {}
        """Empty in a process in which nothing is nested: that is all that others look at."""
        self._waiting: dict[RunContext, tuple[asyncio.AbstractEventLoop, Then]] = {}
        self._lock = threading.Lock()

    def add(self, context: RunContext, stop: Stop) -> None:
        """A run begins inside of another one; `stop` is called on this loop."""
        with self._lock:
            self.outer.setdefault(context, {})[stop] = asyncio.get_running_loop()

    def remove(self, context: RunContext, stop: Stop) -> None:
        """It has ended."""
        with self._lock:
            inner = self.outer[context]
            del inner[stop]
            if inner:
                return
            del self.outer[context]
            waiting = self._waiting.pop(context, None)
        if waiting is not None:
            _call(*waiting)

    def stop(self, context: RunContext, why: str) -> None:
        """Tell everything inside of this run to stop."""
        with self._lock:
            inner = list(self.outer.get(context, {}).items())
        ending = Ending(Cause.CANCELLED, f"run {context.id}, which executed it, {why}")
        for stop, loop in inner:
            _call(loop, stop, ending)

    def hold(self, context: RunContext, then: Then) -> bool:
        """The code of this run has ended. If there is still something inside of it, end that, and then call `then`."""
        with self._lock:
            if context not in self.outer:
                return False
            self._waiting[context] = (asyncio.get_running_loop(), then)
        self.stop(context, "has ended")
        return True


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object) -> None:
    with suppress(RuntimeError):  # that loop was closed: nothing runs there any more
        loop.call_soon_threadsafe(callback, *args)


nested_runs = NestedRuns()
"""Those of this process. Nobody can pass it in: the outer run may be of another app than the inner one, with an engine
and a loop of its own, and all that both have in common is the process."""
