"""An event loop for a whole cluster in one thread: processes that can be killed and stopped, and time that only the
loop lets pass.

Each callback and task belongs to the process that asked for it. Within a process everything happens in order, as on
any loop; whose turn it is among the processes is drawn by a seeded `random.Random`, so that the same seed gives the
same history. Where nobody has anything to do, time moves on to the next timer. `simulation.py` uses it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar
from weakref import WeakSet

from ostinato.clock import SECOND, Micros

__all__ = ["SimulatedLoop", "SimulatedProcess", "Stuck"]

T = TypeVar("T")

_TURN: Micros = 2
"""How long one callback takes."""
_current: ContextVar[SimulatedProcess] = ContextVar("simulated_process")


class Stuck(Exception):
    """Nothing will ever happen again, and what is waited for has not happened."""


class SimulatedProcess:
    """What belongs to one process of the cluster. A dead one does nothing more, and cleans nothing up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_stopped = False
        """As by SIGSTOP."""
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()

    def __repr__(self) -> str:
        return f"<SimulatedProcess {self.name}>"


class _Timer(asyncio.TimerHandle):
    """One that knows its process, and its place in the order."""

    __slots__ = ("at", "number", "process")

    at: Micros
    number: int
    process: SimulatedProcess

    def __lt__(self, other: object) -> bool:
        assert isinstance(other, _Timer)
        return (self.at, self.number) < (other.at, other.number)


class SimulatedLoop(asyncio.AbstractEventLoop):
    """One thread, no input and output, and time in microseconds since its beginning."""

    def __init__(self, random: Random) -> None:
        self.now: Micros = 0
        self.complaints: list[str] = []
        """What nobody caught."""
        self._random = random
        self._main = SimulatedProcess("main")
        self._processes: list[SimulatedProcess] = [self._main]
        self._timers: list[_Timer] = []
        self._numbers = 0
        self._dead_tasks: list[asyncio.Task[Any]] = []
        """Kept, because a task that is freed would run its `finally` blocks."""
        self._is_running = False
        self._is_closed = False

    # Processes

    def new_process(self, name: str) -> SimulatedProcess:
        """One more, in which nothing runs yet."""
        process = SimulatedProcess(name)
        self._processes.append(process)
        return process

    def spawn(self, process: SimulatedProcess, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let a coroutine run in a process. Its task must not be awaited by another one: processes share nothing."""
        context = copy_context()
        context.run(_current.set, process)
        return context.run(self.create_task, work)

    @property
    def current(self) -> SimulatedProcess:
        """The process whose turn it is."""
        return self._process_of(None)

    def kill(self, process: SimulatedProcess) -> None:
        """SIGKILL: nothing of it happens any more."""
        process.is_alive = False
        process.ready.clear()
        self._dead_tasks += process.tasks
        self._processes.remove(process)

    # Running

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Go on until something is so."""
        asyncio._set_running_loop(self)
        self._is_running = True
        try:
            while not is_done():
                self._step()
        finally:
            self._is_running = False
            asyncio._set_running_loop(None)

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(future, loop=self)
        self.run_until(task.done)
        return task.result()

    def run_to(self, instant: Micros) -> None:
        """Let time pass until an instant."""
        self.run_until(lambda: self.now >= instant)

    def _step(self) -> None:
        while self._timers and (self._timers[0].at <= self.now or self._timers[0].cancelled()):
            self._fire(heapq.heappop(self._timers))
        able = [process for process in self._processes if process.ready and not process.is_stopped]
        if able:
            process = able[0] if len(able) == 1 else self._random.choice(able)
            handle = process.ready.popleft()
            if not handle.cancelled():
                handle._run()
            self.now += _TURN
        elif self._timers:
            self.now = self._timers[0].at
        else:
            raise Stuck(f"nothing happens any more at {self.now / SECOND:.6f} s")

    def _fire(self, timer: _Timer) -> None:
        if timer.process.is_alive and not timer.cancelled():
            timer.process.ready.append(timer)

    def close(self) -> None:
        """End what is left, where nobody hears of it any more."""
        left = [task for process in self._processes for task in process.tasks] + self._dead_tasks
        asyncio._set_running_loop(self)
        try:
            for task in left:
                _end(task)
        finally:
            asyncio._set_running_loop(None)
        self._is_closed = True
        self._timers.clear()
        self._processes.clear()

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    # What asyncio asks of a loop

    def time(self) -> float:
        return self.now / SECOND

    def get_debug(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        process = self._process_of(context)
        if process.is_alive:
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_at(self.now + max(0, round(delay * SECOND)), callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_at(round(when * SECOND), callback, args, context)

    def _call_at(
        self, when: Micros, callback: Callable[..., Any], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        timer = _Timer(when / SECOND, callback, args, self, context)
        timer.at = when
        timer.process = self._process_of(context)
        self._numbers += 1
        timer.number = self._numbers
        heapq.heappush(self._timers, timer)
        return timer

    def _process_of(self, context: Context | None) -> SimulatedProcess:
        return _current.get(self._main) if context is None else context.get(_current, self._main)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is dropped when its time has come."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._process_of(context).tasks.add(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """What would be done on a thread is done in one go, a moment later."""
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except BaseException as error:
                future.set_exception(error)

        self.call_later(self._random.uniform(0.0001, 0.002), run)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.complaints.append(f"{context.get('message')}: {error!r}")

    async def shutdown_asyncgens(self) -> None:
        return None


def _end(task: asyncio.Task[Any]) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    with suppress(BaseException):  # whatever its `finally` blocks want, it is too late for that
        coroutine = task.get_coro()
        assert coroutine is not None
        coroutine.close()
