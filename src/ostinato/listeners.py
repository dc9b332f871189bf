"""Callbacks of `app.on(…)`: events are handed to a thread of their own, which calls one callback after the other.

The engine's announcer and the services tell. Nothing that a callback does comes back: what it raises is logged, and
what it does not get to in time is dropped and counted.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from ostinato.clock import Micros, from_micros
from ostinato.errors import InvalidInput
from ostinato.logs import get_logger
from ostinato.models.app_event import AppEvent, AppEventKind
from ostinato.plurals import counted
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
        self.wanted: frozenset[AppEventKind] = frozenset()
        self.failing: set[str] = set()
        """Schedules whose failures were seen here, while somebody wants to know who recovers."""
        self.dropped = 0
        """How many events no callback was told of."""
        self._dropped_told_at: float | None = None
        self._failed: set[tuple[int, AppEventKind]] = set()
        self._most = tuning.event_queue
        self._stop_seconds = tuning.event_stop_seconds
        self._worker: _Worker | None = None
        self._lock = threading.Lock()
        """Two loops of a process may tell at once: that of the engine and that of a server."""

    def add(self, kind: AppEventKind, callback: Callback) -> None:
        """Call this from now on."""
        if not callable(callback):
            raise InvalidInput(
                f"{callback!r} cannot be called", field="callback", hint="give a function that takes the event"
            )
        self._callbacks[kind] = (*self._callbacks.get(kind, ()), callback)
        self.wanted |= {kind}

    def tell(self, events: Iterable[AppEvent]) -> None:
        """Hand these on and return at once. Called on the app's loop, and only if somebody listens."""
        loop = asyncio.get_running_loop()
        with self._lock:
            for event in events:
                if event.kind in self.wanted and not self._take(event, loop):
                    self._drop(1)

    def recovered(self, schedule: str, at: Micros) -> None:
        """A verb switched on a broken schedule."""
        if AppEventKind.SCHEDULE_RECOVERED in self.wanted:
            self.failing.discard(schedule)
            self.tell([AppEvent(AppEventKind.SCHEDULE_RECOVERED, from_micros(at), schedule=schedule)])

    def _take(self, event: AppEvent, loop: asyncio.AbstractEventLoop) -> bool:
        # After a fork its thread is not here.
        if self._worker is None or not self._worker.thread.is_alive():
            try:
                self._worker = _Worker(self._deliver)
            except RuntimeError:  # no thread can be started
                self._worker = None
                return False
        if self._worker.queue.qsize() >= self._most:
            return False
        self._worker.queue.put((event, loop))
        return True

    def _drop(self, count: int) -> None:
        self.dropped += count
        now = time.monotonic()
        if self._dropped_told_at is None or now - self._dropped_told_at >= _TELL_AGAIN:
            self._dropped_told_at = now
            log.error("callbacks of app.on are too slow, or hang: %s dropped so far", counted(self.dropped, "event"))

    def _deliver(self, worker: _Worker, event: AppEvent, loop: asyncio.AbstractEventLoop) -> None:
        for callback in self._callbacks[event.kind]:
            try:
                worker.call(callback, event, loop)
            except BaseException:  # a callback that ends its thread would take the others with it
                failed = (id(callback), event.kind)
                if failed not in self._failed and not worker.is_abandoned:
                    self._failed.add(failed)
                    log.exception("a callback of app.on(%r) raised; this is logged once", str(event.kind))

    async def close(self) -> None:
        """Let the callbacks have what was told so far; those that take too long are left alone."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is None or not worker.thread.is_alive():
            return
        worker.queue.put(None)
        await asyncio.wait({asyncio.wrap_future(worker.ended)}, timeout=self._stop_seconds)
        if not worker.ended.done():
            self._drop(worker.abandon())
            log.warning("a callback of app.on did not end within %g s: it is left alone", self._stop_seconds)


class _Worker:
    """The thread that calls, until it gets None, and what waits for it."""

    def __init__(self, deliver: Callable[[_Worker, AppEvent, asyncio.AbstractEventLoop], None]) -> None:
        self.queue: SimpleQueue[tuple[AppEvent, asyncio.AbstractEventLoop] | None] = SimpleQueue()
        self.ended: Future[None] = Future()
        self.is_abandoned = False
        self._deliver = deliver
        self._awaited: Future[Any] | None = None
        self.thread = threading.Thread(target=self._run, name="ostinato-listeners", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (told := self.queue.get()) is not None and not self.is_abandoned:
            self._deliver(self, *told)
        self.ended.set_result(None)

    def call(self, callback: Callback, event: AppEvent, loop: asyncio.AbstractEventLoop) -> None:
        """Call it here; what a coroutine function returns is awaited on the app's loop."""
        answer = callback(event)
        if asyncio.iscoroutine(answer):
            try:
                self._awaited = asyncio.run_coroutine_threadsafe(answer, loop)
            except RuntimeError:
                answer.close()  # the loop is gone, and nobody will await it
                raise
            self._awaited.result()

    def abandon(self) -> int:
        """Call nothing more once the callback under way returns; answers how many events are left."""
        self.is_abandoned = True
        if self._awaited is not None:
            with suppress(RuntimeError):
                self._awaited.cancel()
        return max(self.queue.qsize() - 1, 0)
