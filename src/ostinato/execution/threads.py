"""Worker threads for sync functions: many jobs go in and many completions come back in one hop of the loop.

A future and a wake-up for each call would cost more than a short function does. Threads are made on demand, are
daemons (a hung function must not keep the process alive) and end when idle for a while.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ostinato.logs import get_logger

__all__ = ["WorkerThreads", "on_own_thread"]

log = get_logger("ostinato.execution")

T = TypeVar("T")
Job = Callable[[], Any]
Done = Callable[[Any], None]


class WorkerThreads:
    """Runs jobs beside the loop and calls `done(result)` of each on the loop, in batches."""

    def __init__(self, name: str = "ostinato-worker", idle_seconds: float = 30.0) -> None:
        self._name = name
        self._idle_seconds = idle_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: SimpleQueue[tuple[Job, Done] | None] = SimpleQueue()
        self._completions: deque[tuple[Done, Any]] = deque()
        self._lock = threading.Lock()
        self._threads = 0
        self._busy = 0
        """Jobs given out and not completed: a thread is made when there are more of them than threads."""
        self._wake_pending = False

    @property
    def busy(self) -> int:
        """How many jobs are waiting or running, those of abandoned runs included."""
        return self._busy

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` on a thread; it must not raise. Call on the loop that `done` shall be called on."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        # Under one lock with the idle thread's look at the queue: it must not give up between the count and the put.
        with self._lock:
            if self._threads <= self._busy:
                name = f"{self._name}-{self._threads + 1}"
                threading.Thread(target=contextvars.Context().run, args=(self._work,), name=name, daemon=True).start()
                self._threads += 1
            self._busy += 1
            self._jobs.put((job, done))

    def stop(self) -> None:
        """Let idle threads end; busy ones end with their job."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while True:
            try:
                entry = self._jobs.get(timeout=self._idle_seconds)
            except Empty:
                entry = None
            if entry is None:
                with self._lock:
                    # A job may have come in while this thread gave up waiting.
                    if self._jobs.empty():
                        self._threads -= 1
                        return
                continue
            job, done = entry
            self._complete(done, job())

    def _complete(self, done: Done, result: Any) -> None:
        self._completions.append((done, result))
        # One wake-up serves every completion until the loop has drained them.
        with self._lock:
            if self._wake_pending:
                return
            self._wake_pending = True
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            self._wake_pending = False
        while self._completions:
            done, result = self._completions.popleft()
            self._busy -= 1
            try:
                done(result)
            except Exception:
                log.exception("a completion failed; the others go on")


async def on_own_thread(function: Callable[[], T], name: str = "ostinato-check") -> T:
    """What the function answers, from a daemon thread of its own; it must not raise.

    Unlike asyncio.to_thread, one that hangs keeps neither a shared thread nor the end of the process.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(value: T) -> None:
        if not answer.done():  # nobody waits any more
            answer.set_result(value)

    def work() -> None:
        value = function()
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(settle, value)

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), name=name, daemon=True).start()
    return await answer
