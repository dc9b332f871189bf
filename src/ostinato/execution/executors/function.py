"""Functions in this process: async ones on the loop, sync ones on worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any

from ostinato.errors import SoftTimeout
from ostinato.execution.binding import bind_context
from ostinato.execution.context import SoftLimit, enter
from ostinato.execution.executors.base import LOOP_ENDED, STOPPED, Call, has_begun
from ostinato.execution.outcome import Outcome, raised, returned
from ostinato.execution.threads import WorkerThreads
from ostinato.models.work import Function

__all__ = ["AsyncFunctions", "ThreadFunctions"]


def _context(call: Call) -> AbstractContextManager[object]:
    assert call.definition is not None
    return call.definition.contexts.enter()


async def _within_context(call: Call) -> Any:
    assert call.definition is not None
    if (enter := call.definition.contexts.enter_async) is None:
        with _context(call):
            return await _invoke(call)
    async with enter():
        return await _invoke(call)


class _Softly:
    """Awaits a coroutine, into which a cancel that is only the end of its soft timeout goes as SoftTimeout."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], limit: SoftLimit) -> None:
        self._coroutine = coroutine
        self._limit = limit
        self._is_asked = False
        self._task: asyncio.Task[Any] | None = None

    def _ask(self) -> None:
        assert self._task is not None
        self._is_asked = True
        self._task.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        self._task = asyncio.current_task()
        self._limit.ask = self._ask
        step: Callable[[], Any] = partial(self._coroutine.send, None)
        while True:
            try:
                wanted = step()
            except StopIteration as ended:
                return ended.value
            try:
                step = partial(self._coroutine.send, (yield wanted))
            except asyncio.CancelledError as cancelled:
                step = partial(self._coroutine.throw, self._turned(cancelled))
            except BaseException as error:
                step = partial(self._coroutine.throw, error)

    def _turned(self, cancelled: asyncio.CancelledError) -> BaseException:
        if not self._is_asked:
            return cancelled
        self._is_asked = False
        assert self._task is not None
        return cancelled if self._task.uncancel() else SoftTimeout(self._limit.text)


def _invoke(call: Call) -> Any:
    definition, work = call.definition, call.work
    assert definition is not None
    assert isinstance(work, Function)
    signature = definition.signature
    given = (work.args, work.kwargs) if signature is None else signature.decode(work.args, work.kwargs)
    args, kwargs = bind_context(definition.context_parameter, *given, call.context)
    return definition.function(*args, **kwargs)


def _returned(call: Call, value: Any, most: int) -> Outcome:
    assert call.definition is not None
    return returned(value, most, call.definition.signature)


class AsyncFunctions:
    """A task of the loop for each call. Ends are handed on together, after every call of the same turn has begun."""

    kill_seconds = 0.0

    def __init__(self, stop_seconds: float, max_result: int) -> None:
        self.stop_seconds = stop_seconds
        self._max_result = max_result
        self._ended: list[tuple[Call, Outcome]] = []

    def start(self, call: Call) -> None:
        call.handle = asyncio.get_running_loop().create_task(self._call(call))

    def stop(self, call: Call) -> None:
        call.context.request_cancel()
        task: asyncio.Task[None] = call.handle
        if not task.cancelling() and not has_begun(task):
            # It cannot say itself that it has ended.
            task.add_done_callback(lambda _: call.done(replace(STOPPED, begun=False)))
        task.cancel()

    kill = stop

    async def _call(self, call: Call) -> None:
        enter(call.context)
        try:
            work, limit = _within_context(call), call.context.soft_limit
            outcome = _returned(call, await (work if limit is None else _Softly(work, limit)), self._max_result)
            if _is_being_cancelled():
                call.context.saw_cancel = True  # it took the CancelledError for a word to end
        except asyncio.CancelledError:
            outcome = LOOP_ENDED if _is_being_cancelled() and not call.context.cancelled else STOPPED
        except GeneratorExit:  # the loop was closed under it: nobody is left to be told
            raise
        except BaseException as error:  # SystemExit too: a task must not end the node
            outcome = raised(error)
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._hand_on)
        self._ended.append((call, outcome))

    def _hand_on(self) -> None:
        ended, self._ended = self._ended, []
        for call, outcome in ended:
            call.done(outcome)


def _is_being_cancelled() -> bool:
    """Whether somebody has cancelled this task; it may raise CancelledError by itself, too."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class ThreadFunctions:
    """A worker thread for each call, as long as it takes. A thread cannot be stopped from outside."""

    kill_seconds = 0.0

    def __init__(self, threads: WorkerThreads, stop_seconds: float, max_result: int) -> None:
        self._threads = threads
        self._max_result = max_result
        self.stop_seconds = stop_seconds

    def start(self, call: Call) -> None:
        def job() -> Outcome:
            enter(call.context)
            try:
                with _context(call):
                    return _returned(call, _invoke(call), self._max_result)
            except BaseException as error:  # SystemExit too: a task must not end the thread
                return raised(error)

        # In a context of its own: what it sets there is not for the next one on the same thread.
        self._threads.submit(partial(Context().run, job), call.done)

    def stop(self, call: Call) -> None:
        call.context.request_cancel()

    kill = stop
