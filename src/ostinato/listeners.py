"""Callbacks of `app.on(…)`: events are handed to a thread of their own, which calls one callback after the other.

The engine's announcer and the services tell. Nothing that a callback does comes back: what it raises is logged, and
what it does not get to in time is dropped and counted.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import closing, suppress
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

from ostinato.clock import Micros, from_micros
from ostinato.errors import InvalidInput
from ostinato.logs import get_logger
from ostinato.models.app_event import AppEvent, AppEventKind
from ostinato.models.ids import ScheduleId
from ostinato.plurals import counted
from ostinato.task_contexts import TaskContexts
from ostinato.tuning import DEFAULT_TUNING, Tuning

__all__ = ["Callback", "Listeners", "check_event_kind"]

log = get_logger("ostinato")

Callback = Callable[[AppEvent], object]

_TELL_AGAIN = 60.0
"""Seconds between two lines of the log that say that events are dropped."""


def check_event_kind(name: str) -> AppEventKind:
    """The kind of this name, or an error that lists them all."""
    try:
        return AppEventKind(name)
    except ValueError:
        raise InvalidInput(
            f"there is no event {name!r}", field="event", hint=f"use one of {', '.join(AppEventKind)}"
        ) from None


class Listeners:
    """Who wants to be told of what. While nobody does, `wanted` is empty, and nobody makes an event."""

    def __init__(self, tuning: Tuning = DEFAULT_TUNING) -> None:
        self._callbacks: dict[AppEventKind, tuple[Callback, ...]] = {}
        self.contexts = TaskContexts()
        """Those of the app."""
        self.wanted: frozenset[AppEventKind] = frozenset()
        self.failing: set[ScheduleId] = set()
        """Schedules whose failures were seen here, while somebody wants to know who recovers."""
        self.dropped = 0
        """How many events no callback was told of."""
        self._dropped_told = 0
        self._dropped_told_at: float | None = None
        self._failed: set[tuple[int, AppEventKind]] = set()
        self._most = tuning.event_queue
        self._stop_seconds = tuning.event_stop_seconds
        self._worker: _Worker | None = None
        self._lock = threading.Lock()
        """Two loops of a process may tell at once: that of the engine and that of a server."""
        _all.add(self)

    def add(self, kind: AppEventKind, callback: Callback) -> None:
        """Call this from now on."""
        if not callable(callback):
            raise InvalidInput(
                f"{callback!r} cannot be called", field="callback", hint="give a function that takes the event"
            )
        with self._lock:
            self._callbacks[kind] = (*self._callbacks.get(kind, ()), callback)
            self.wanted |= {kind}

    def tell(self, events: Iterable[AppEvent]) -> None:
        """Hand these on and return at once. Called only if somebody listens."""
        with self._lock:
            for event in events:
                if event.kind in self.wanted and not self._take(event):
                    self._drop(1)

    def recovered(self, id: ScheduleId, schedule: str, at: Micros) -> None:
        """A verb switched on a broken schedule."""
        if AppEventKind.SCHEDULE_RECOVERED in self.wanted:
            self.failing.discard(id)
            self.tell([AppEvent(AppEventKind.SCHEDULE_RECOVERED, from_micros(at), schedule=schedule)])

    def _take(self, event: AppEvent) -> bool:
        if self._worker is None or not self._worker.thread.is_alive():
            try:
                self._worker = _Worker(self._deliver)
            except RuntimeError:  # no thread can be started
                self._worker = None
                return False
        if self._worker.queue.qsize() >= self._most:
            return False
        self._worker.queue.put(event)
        return True

    def _drop(self, count: int) -> None:
        self.dropped += count
        if self._dropped_told_at is None or time.monotonic() - self._dropped_told_at >= _TELL_AGAIN:
            self._tell_dropped()

    def _tell_dropped(self) -> None:
        self._dropped_told, self._dropped_told_at = self.dropped, time.monotonic()
        log.error("callbacks of app.on are too slow, or hang: %s dropped so far", counted(self.dropped, "event"))

    def _deliver(self, worker: _Worker, event: AppEvent) -> None:
        for callback in self._callbacks[event.kind]:
            if worker.is_abandoned:
                return
            try:
                worker.call(callback, event, self.contexts)
            except BaseException:  # a callback that ends its thread would take the others with it
                failed = (id(callback), event.kind)
                if failed not in self._failed and not worker.is_abandoned:
                    self._failed.add(failed)
                    name = getattr(callback, "__qualname__", None) or repr(callback)
                    log.exception("callback %s of app.on(%r) raised; this is logged once", name, str(event.kind))

    async def close(self) -> None:
        """Let the callbacks have what was told so far; those that take too long are left alone."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is None or not worker.thread.is_alive():
            return
        worker.queue.put(None)
        await asyncio.wait({asyncio.wrap_future(worker.ended)}, timeout=self._stop_seconds)
        if not worker.ended.done():
            if left := worker.abandon():
                self._drop(left)
            log.warning("a callback of app.on did not end within %g s: it is left alone", self._stop_seconds)
        if self.dropped > self._dropped_told:
            self._tell_dropped()

    def _forked(self) -> None:
        """In a forked child: the thread is not here, and one that is not here may hold the lock."""
        self._lock = threading.Lock()
        self._worker = None


_all: WeakSet[Listeners] = WeakSet()


def _after_fork() -> None:
    for listeners in list(_all):
        listeners._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Worker:
    """The thread that calls, until it gets None, and what waits for it. Coroutines have its own loop: one that blocks
    does not hold up the engine's."""

    def __init__(self, deliver: Callable[[_Worker, AppEvent], None]) -> None:
        self.queue: SimpleQueue[AppEvent | None] = SimpleQueue()
        self.ended: Future[None] = Future()
        self.is_abandoned = False
        self._deliver = deliver
        self._awaited: asyncio.Task[Any] | None = None
        self._runner = asyncio.Runner()
        self.thread = threading.Thread(target=self._run, name="ostinato-listeners", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with closing(self._runner):
                while (event := self.queue.get()) is not None and not self.is_abandoned:
                    self._deliver(self, event)
        finally:
            self.ended.set_result(None)

    def call(self, callback: Callback, event: AppEvent, contexts: TaskContexts) -> None:
        """Call it here, and await what a coroutine function returns."""
        with contexts.enter():
            answer = callback(event)
        if asyncio.iscoroutine(answer):
            self._runner.run(self._await(contexts.awaited(answer)))

    async def _await(self, answer: Coroutine[Any, Any, Any]) -> None:
        self._awaited = asyncio.current_task()
        try:
            await answer
        finally:
            self._awaited = None

    def abandon(self) -> int:
        """Call nothing more once the callback under way returns; answers how many events are left."""
        self.is_abandoned = True
        if (awaited := self._awaited) is not None:
            with suppress(RuntimeError):  # its loop is closed just now
                awaited.get_loop().call_soon_threadsafe(awaited.cancel)
        return max(self.queue.qsize() - 1, 0)
