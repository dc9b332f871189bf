"""Times the steps of a run: wraps functions of Ostinato and adds up what each takes, without what it calls.

Only for the profile: everything else in the bench uses the public interface. A wrapped call costs about half a
microsecond more, which is in the figures.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Spent", "Stopwatch"]


@dataclass(slots=True)
class Spent:
    """What a step took so far."""

    calls: int = 0
    seconds: float = 0.0


class Stopwatch:
    """Sums of time by step. Steps that nest on one thread are told apart: each is charged for itself only."""

    def __init__(self) -> None:
        self.steps: dict[str, Spent] = {}
        self._inner = threading.local()
        self._undo: list[Callable[[], None]] = []

    def wrap(self, owner: Any, name: str, step: str) -> None:
        """Charge every call of `owner.name` to a step; for coroutine functions see `wrap_waiting`."""
        function = getattr(owner, name)
        spent = self.steps.setdefault(step, Spent())
        inner = self._inner

        def timed(*args: Any, **kwargs: Any) -> Any:
            outside = getattr(inner, "seconds", 0.0)
            inner.seconds = 0.0
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                whole = time.perf_counter() - start
                spent.calls += 1
                spent.seconds += whole - inner.seconds
                inner.seconds = outside + whole

        self._set(owner, name, timed)

    def wrap_step(self, owner: Any, name: str, step: str) -> None:
        """Charge a coroutine function that never waits, such as the call of a no-op task, to a step."""
        function = getattr(owner, name)
        spent = self.steps.setdefault(step, Spent())
        inner = self._inner

        async def timed(*args: Any, **kwargs: Any) -> Any:
            outside = getattr(inner, "seconds", 0.0)
            inner.seconds = 0.0
            start = time.perf_counter()
            try:
                return await function(*args, **kwargs)
            finally:
                whole = time.perf_counter() - start
                spent.calls += 1
                spent.seconds += whole - inner.seconds
                inner.seconds = outside + whole

        self._set(owner, name, timed)

    def wrap_waiting(self, owner: Any, name: str, step: str) -> None:
        """Charge a coroutine function with all that it waits for, from its call to its return."""
        function = getattr(owner, name)
        spent = self.steps.setdefault(step, Spent())

        async def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return await function(*args, **kwargs)
            finally:
                spent.calls += 1
                spent.seconds += time.perf_counter() - start

        assert asyncio.iscoroutinefunction(function), name
        self._set(owner, name, timed)

    def wrap_collector(self, step: str) -> None:
        """Charge Python's garbage collector to a step of its own, and to nobody else."""
        spent = self.steps.setdefault(step, Spent())
        inner = self._inner
        started = 0.0

        def collecting(phase: str, _: dict[str, int]) -> None:
            nonlocal started
            if phase == "start":
                started = time.perf_counter()
            else:
                whole = time.perf_counter() - started
                spent.calls += 1
                spent.seconds += whole
                inner.seconds = getattr(inner, "seconds", 0.0) + whole

        gc.callbacks.append(collecting)
        self._undo.append(lambda: gc.callbacks.remove(collecting))

    def _set(self, owner: Any, name: str, timed: Callable[..., Any]) -> None:
        original = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, original))
        setattr(owner, name, timed)

    def clear(self) -> None:
        """Start anew."""
        for spent in self.steps.values():
            spent.calls, spent.seconds = 0, 0.0

    @contextmanager
    def wrapped(self) -> Iterator[Stopwatch]:
        """Take all wrappers off in the end."""
        try:
            yield self
        finally:
            while self._undo:
                self._undo.pop()()
