"""The watchdog restarts an engine service that died, with backoff, and says so; a thread sees a blocked event loop."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from ostinato.clock import SECOND, Micros, uptime
from ostinato.errors import OstinatoError, StoreError
from ostinato.logs import get_logger

__all__ = ["LoopMonitor", "ServiceHealth", "Watchdog"]

log = get_logger("ostinato.engine")

Service = Callable[[], Awaitable[None]]

LONGEST_PAUSE = 5.0
"""Short against a lease: when the database is back after minutes, the node is not taken for lost."""
CALM = 60.0
"""A service that ran this long before it died starts again with the first pause."""
STEADY = 2 * LONGEST_PAUSE
"""One that died less than this ago may be about to die again."""


@dataclass(slots=True)
class ServiceHealth:
    """How a service is."""

    up: bool = False
    restarts: int = 0
    error: str | None = None
    status: str | None = None
    """What it says of itself, if it has something to say."""
    well: bool = True
    """False while something is missing that is none of this node's business: a network, a token."""

    def ended(self) -> None:
        """It is not started again."""
        self.up = False


class Watchdog:
    """Runs services for ever, or until what they need is lost for good."""

    def __init__(self, first_pause: float, is_lost: Callable[[], bool] = lambda: False) -> None:
        self._first_pause = first_pause
        self._is_lost = is_lost
        """Asked when a service died: whether to start it again is of no use, and somebody else has said so."""
        self.services: dict[str, ServiceHealth] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._own_fault_at: dict[str, float] = {}
        """When a service last died of something else than a database that is away."""

    def start(self, name: str, service: Service) -> None:
        """Run a service and restart it whenever it dies."""
        # Up from here on: the first heartbeat may be written before each task has had its first turn.
        health = self.services[name] = ServiceHealth(up=True)
        task = asyncio.get_running_loop().create_task(self._keep(name, service), name=f"ostinato-{name}")
        task.add_done_callback(lambda _: health.ended())  # also if it is cancelled before its first turn
        self._tasks[name] = task

    def tell(self, name: str, status: str, well: bool) -> None:
        """Keep what a service says of itself, for health."""
        self.services[name].status, self.services[name].well = status, well

    def dying(self, names: Collection[str]) -> list[str]:
        """Those of these services that died just now of a fault of their own. Any thread may ask.

        A database that is away is no such fault: everybody waits for it.
        """
        now = time.monotonic()
        return [name for name, at in tuple(self._own_fault_at.items()) if name in names and now - at < STEADY]

    async def stop(self, *names: str) -> None:
        """End these services, or all."""
        tasks = [self._tasks.pop(name) for name in (names or tuple(self._tasks)) if name in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, service: Service) -> None:
        health = self.services[name]
        pause = self._first_pause
        while True:
            started = time.monotonic()
            health.up = True
            try:
                await service()
                if _is_cancelled():
                    return
                health.error = "it ended without being told to"
                self._own_fault_at[name] = time.monotonic()
            except (Exception, asyncio.CancelledError) as error:
                # The whole point: no error ends a service for good, unless it was told to end.
                if _is_cancelled():
                    raise
                health.error = f"{type(error).__name__}: {error}"
                if self._is_lost():
                    return
                if not isinstance(error, StoreError):
                    self._own_fault_at[name] = time.monotonic()
                # One of our own errors (the database is away) says all there is to say in a line.
                trace = not isinstance(error, OstinatoError)
                what = str(error) or type(error).__name__
                log.error("engine service %s: %s; it starts again in %.1f s", name, what, pause, exc_info=trace)
            health.up = False
            health.restarts += 1
            if time.monotonic() - started > CALM:
                pause = self._first_pause
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _is_cancelled() -> bool:
    """Whether the task itself is to end, and not only something that it waited for was given up by others."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class LoopMonitor:
    """A thread that notices when the event loop has not turned for a while, and logs what blocks it."""

    def __init__(self, threshold: float = 2.0, stands: float = 1.0) -> None:
        self._threshold = threshold
        self._stands = stands
        """A loop that comes so many seconds too late stood; less is what a busy one does."""
        self._pause = threshold / 4
        self._beat = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.blocked_times = 0
        self.last_block: str | None = None
        self._turned_at: Micros | None = None
        """None while nobody watches."""
        self._stood = 0.0

    def stood(self) -> float:
        """For how many seconds the loop has stood since the start (blocked, stopped or suspended), a second and more at
        once."""
        if self._turned_at is None:
            return 0.0
        late = (uptime() - self._turned_at) / SECOND - self._pause
        return self._stood + (late if late >= self._stands else 0.0)

    @property
    def blocked_for(self) -> float:
        """For how many seconds the loop has not turned; 0 when it does."""
        late = time.monotonic() - self._beat
        return late if self._turned_at is not None and late > self._threshold else 0.0

    def start(self) -> None:
        """Watch the running loop, unless it is to be left alone."""
        if not self._threshold:
            return
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._turned_at = uptime()
        self._turn()
        self._thread = threading.Thread(target=self._watch, name="ostinato-loop-monitor", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()

    def _turn(self) -> None:
        self._beat = time.monotonic()
        self._stood, self._turned_at = self.stood(), uptime()
        self._timer = self._loop.call_later(self._pause, self._turn)

    def _watch(self) -> None:
        reported, pause = 0.0, self._threshold / 2
        while True:
            asleep_at = time.monotonic()
            if self._stop.wait(pause):
                return
            held_up = time.monotonic() - asleep_at - pause
            if held_up > self._threshold:  # this thread as well: the loop has had no chance to turn
                log.warning(
                    "this process was held up for about %.1f s: stopped, suspended, or by a call that lets no other "
                    "thread run",
                    held_up,
                )
                continue
            blocked_for = self.blocked_for
            if blocked_for and self._beat != reported:
                reported = self._beat
                frame = sys._current_frames().get(self._loop_thread)
                stack = "".join(traceback.format_stack(frame)[-6:]) if frame is not None else ""
                self.blocked_times += 1
                self.last_block = f"the event loop was blocked for more than {blocked_for:.1f} s"
                _log_block(self.last_block, stack.rstrip())


def _log_block(what: str, stack: str) -> None:
    """Where the loop stands goes with the record as its stack: a message is one line."""
    text = "%s; make the blocking call in a sync task or a thread:"
    log.handle(log.makeRecord(log.name, logging.ERROR, __file__, 0, text, (what,), None, sinfo=stack))
