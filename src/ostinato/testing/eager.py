"""Tasks inline: what is enqueued has ended when `enqueue` returns, and its function was called in the caller's thread.

`driving.py: rehearse` switches it on. The run goes its whole way all the same, through the ledger and the runner; only
the function is handed back to whoever waits for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

from ostinato.app import Ostinato
from ostinato.execution.context import RunContext, current_context
from ostinato.execution.registry import TaskDefinition
from ostinato.models.ids import RunId
from ostinato.models.run import Run
from ostinato.models.work_values import Function, GivenCall
from ostinato.service.runs import EnqueueSpec
from ostinato.service.schedules.drafts import WorkLike
from ostinato.tasks import RunHandle

__all__ = ["eagerly"]

Job = Callable[[], Any]
_NOT_POLICY = ("key", "delay", "at")
"""What says when a run starts, or whether there is one already: it starts now, and ends."""


class _Caller(Protocol):
    """Whoever waits for a run, and calls its function meanwhile."""

    async def call(self, run: RunContext, function: Job) -> Any:
        """What the function returns, or raises; asked on the engine's loop."""
        ...


_caller: contextvars.ContextVar[_Caller] = contextvars.ContextVar("ostinato_caller")


@contextmanager
def eagerly(app: Ostinato) -> Iterator[None]:
    """Execute what is enqueued at once, until the end of the block."""
    inline = _Inline(app)
    places: list[tuple[Any, Any]] = [
        (app.runs, inline.enqueue),
        (app, inline.enqueue_work),
        (app.aio.runs, inline.aenqueue),
        (app.aio, inline.aenqueue_work),
    ]
    for place, enqueue in places:
        place.enqueue = enqueue
    try:
        yield
    finally:
        for place, _ in places:
            del place.enqueue
        inline.restore()


class _Inline:
    """An app whose tasks are called by whoever enqueues them."""

    def __init__(self, app: Ostinato) -> None:
        self._app = app
        self._before: dict[str, TaskDefinition] = {}

    def enqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> list[RunId]:
        return [self._execute(_function(spec, call), spec.options).id for call in calls]

    def enqueue_work(self, work: WorkLike, **options: Any) -> RunHandle[Any]:
        return RunHandle(self._execute(work, _policy(options)).id, self._app.runs)

    async def aenqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> list[RunId]:
        return [(await self._aexecute(_function(spec, call), spec.options)).id for call in calls]

    async def aenqueue_work(self, work: WorkLike, **options: Any) -> RunId:
        return (await self._aexecute(work, _policy(options))).id

    def restore(self) -> None:
        self._app.registry.tasks.update(self._before)

    def _execute(self, work: WorkLike, policy: Any) -> Run:
        """Have it executed by another thread, and serve that: the function is called here."""
        self._hand_back_functions()
        thread = _CallerThread()
        token = _caller.set(thread)
        try:
            return thread.serve(partial(self._app.execute, work, **policy))
        finally:
            _caller.reset(token)

    async def _aexecute(self, work: WorkLike, policy: Any) -> Run:
        self._hand_back_functions()
        token = _caller.set(_CallerLoop(asyncio.get_running_loop()))
        try:
            return await self._app.aio.execute(work, **policy)
        finally:
            _caller.reset(token)

    def _hand_back_functions(self) -> None:
        """Of all tasks that there are by now."""
        tasks = self._app.registry.tasks
        for name, definition in tasks.items():
            if self._before.get(name) is None or definition.function is self._before[name].function:
                self._before[name] = definition
                function = _handed_back(definition.function)
                tasks[name] = replace(definition, function=function, is_async=True, isolation="none")


class _CallerThread:
    """A thread that waits for a run."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Job, Future[Any]] | None] = SimpleQueue()

    async def call(self, run: RunContext, function: Job) -> Any:
        answer: Future[Any] = Future()
        self._jobs.put((partial(_completed, run, function), answer))
        return _opened(await asyncio.wrap_future(answer))

    def serve(self, execute: Callable[[], Run]) -> Run:
        """What `execute`, on a thread beside, answers in the end; until then, do here what it asks for."""
        ended: Future[Run] = Future()

        def work() -> None:
            try:
                ended.set_result(execute())
            except BaseException as error:  # whatever it is, its caller learns it
                ended.set_exception(error)
            finally:
                self._jobs.put(None)

        threading.Thread(
            target=contextvars.copy_context().run, args=(work,), name="ostinato-eager", daemon=True
        ).start()
        while (asked := self._jobs.get()) is not None:
            job, answer = asked
            answer.set_result(_closed(job))
        return ended.result()


class _CallerLoop:
    """A coroutine that awaits a run, on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def call(self, run: RunContext, function: Job) -> Any:
        if asyncio.get_running_loop() is self._loop:
            return await _awaited(run, function)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(run, function), self._loop))


def _handed_back(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Calls the function where its run was enqueued."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await _caller.get().call(current_context.get(), partial(function, *args, **kwargs))

    return call


async def _awaited(run: RunContext, function: Job) -> Any:
    current_context.set(run)
    value = function()
    return await value if inspect.isawaitable(value) else value


def _completed(run: RunContext, function: Job) -> Any:
    """The same in a thread, which may be within another run."""
    token = current_context.set(run)
    try:
        value = function()
        if not inspect.iscoroutine(value):
            return value
        return asyncio.run(value) if _running_loop() is None else _completed_beside(value)
    finally:
        current_context.reset(token)


def _completed_beside(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """On another thread: this one is busy with a loop."""
    answer: Future[Any] = Future()
    job = partial(contextvars.copy_context().run, asyncio.run, coroutine)
    threading.Thread(target=lambda: answer.set_result(_closed(job)), name="ostinato-eager", daemon=True).start()
    return _opened(answer.result())


def _closed(job: Job) -> tuple[Any, BaseException | None]:
    """What became of a job, for another thread."""
    try:
        return job(), None
    except BaseException as error:  # SystemExit too: it belongs to the run
        return None, error


def _opened(answer: tuple[Any, BaseException | None]) -> Any:
    value, error = answer
    if error is not None:
        raise error
    return value


def _function(spec: EnqueueSpec, call: GivenCall) -> Function:
    args, kwargs = call
    return Function(spec.task, list(args), dict(kwargs))


def _policy(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _NOT_POLICY}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
