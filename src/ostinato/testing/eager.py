"""Tasks inline: what is enqueued has ended when `enqueue` returns, and its function was called in the caller's thread.

`driving.py: rehearse` switches it on. The run goes its whole way all the same, through the ledger and the runner; only
the function is handed back to whoever waits for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial, wraps
from queue import SimpleQueue
from typing import Any, Protocol

from ostinato.app import Ostinato
from ostinato.durations import Duration
from ostinato.errors import NotExecuted
from ostinato.execution.context import RunContext, current_context
from ostinato.execution.registry import TaskDefinition
from ostinato.models.ids import RunId, RunIds
from ostinato.models.run import Run
from ostinato.models.states import Cause, RunState
from ostinato.models.upstream import ended_text, left_out
from ostinato.models.work_values import GivenCall
from ostinato.run_handles import RunHandle
from ostinato.service.chains import ChainCall
from ostinato.service.results import RaisedHere
from ostinato.service.runs import EnqueueSpec
from ostinato.service.schedules.drafts import WorkLike

__all__ = ["eagerly"]

Job = Callable[[], Any]
_NOT_POLICY = ("key", "scope", "delay", "at")
"""What says when a run starts, or whether there is one already: it starts now, and ends."""
_HANDED_BACK = "_ostinato_handed_back"


class _Caller(Protocol):
    """Whoever waits for a run, and calls its function meanwhile."""

    raised: BaseException | None

    async def call(self, run: RunContext, function: Job, definition: TaskDefinition) -> Any:
        """What the function returns, or raises; asked on the engine's loop."""
        ...


_caller: contextvars.ContextVar[_Caller] = contextvars.ContextVar("ostinato_caller")


@contextmanager
def eagerly(app: Ostinato) -> Iterator[None]:
    """Execute what is enqueued at once, until the end of the block."""
    inline = _Inline(app)
    with ExitStack() as replaced:
        replaced.callback(inline.restore)
        for place, name, verb in [
            (app.runs, "enqueue", inline.enqueue),
            (app._chains, "enqueue", inline.enqueue_chain),
            (app.aio._chains, "enqueue", inline.aenqueue_chain),
            (app, "enqueue", inline.enqueue_work),
            (app.aio.runs, "enqueue", inline.aenqueue),
            (app.aio, "enqueue", inline.aenqueue_work),
            (app.runs, "wait", partial(inline.wait, app.runs.wait)),
            (app.aio.runs, "wait", partial(inline.await_end, app.aio.runs.wait)),
            (app._chains, "wait", partial(inline.wait_chain, app._chains.wait)),
            (app.aio._chains, "wait", partial(inline.await_chain, app.aio._chains.wait)),
        ]:
            replaced.enter_context(_replaced(place, name, verb))
        yield


@contextmanager
def _replaced(place: Any, name: str, verb: Any) -> Iterator[None]:
    """Set an attribute for a while; what another block like this had set is there again afterwards."""
    before = vars(place).get(name)
    setattr(place, name, verb)
    try:
        yield
    finally:
        if before is None:
            delattr(place, name)
        else:
            setattr(place, name, before)


class _Inline:
    """An app whose tasks are called by whoever enqueues them."""

    def __init__(self, app: Ostinato) -> None:
        self._app = app
        self._before: dict[str, TaskDefinition] = {}
        self._executed: dict[RunId, BaseException | None] = {}
        """What was executed here, and what it raised."""

    def enqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> RunIds:
        works = self._app.registry.encode_calls(spec.task, calls)
        return RunIds([self._execute(work, spec.options).id for work in works])

    def enqueue_work(self, work: WorkLike, **options: Any) -> RunHandle[Any]:
        return RunHandle(self._execute(work, _policy(options)).id, self._app.runs)

    async def aenqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> RunIds:
        works = self._app.registry.encode_calls(spec.task, calls)
        return RunIds([(await self._aexecute(work, spec.options)).id for work in works])

    async def aenqueue_work(self, work: WorkLike, **options: Any) -> RunId:
        return (await self._aexecute(work, _policy(options))).id

    def enqueue_chain(self, calls: Sequence[ChainCall]) -> RunIds:
        """One step after the other; after one that did not succeed, what comes after it is left out."""
        runs: list[Run] = []
        for one in calls:
            (work,) = self._app.registry.encode_calls(one.spec.task, [one.call])
            after = [runs[place] for place in one.after]
            if all(run.state is RunState.SUCCEEDED for run in after):
                runs.append(self._execute(work, one.spec.options, after))
            else:
                runs.append(self._app._host.run(partial(_left_out, work, one.spec.options, after)))
        return RunIds([run.id for run in runs])

    async def aenqueue_chain(self, calls: Sequence[ChainCall]) -> RunIds:
        runs: list[Run] = []
        for one in calls:
            (work,) = self._app.registry.encode_calls(one.spec.task, [one.call])
            after = [runs[place] for place in one.after]
            if all(run.state is RunState.SUCCEEDED for run in after):
                runs.append(await self._aexecute(work, one.spec.options, after))
            else:
                runs.append(await self._app._host.arun(partial(_left_out, work, one.spec.options, after)))
        return RunIds([run.id for run in runs])

    def wait(self, wait: Callable[..., Run], id: RunId, *, timeout: Duration | None = None) -> Run:
        self._check_not_put_off(self._app.runs.get(id))
        return self._with_error(wait(id, timeout=timeout))

    async def await_end(
        self, wait: Callable[..., Awaitable[Run]], id: RunId, *, timeout: Duration | None = None
    ) -> Run:
        self._check_not_put_off(await self._app.aio.runs.get(id))
        return self._with_error(await wait(id, timeout=timeout))

    def wait_chain(self, wait: Callable[..., Sequence[Run]], ids: Sequence[RunId], **options: Any) -> Sequence[Run]:
        for run in self._app._chains.get(ids):
            self._check_not_put_off(run)
        return [self._with_error(run) for run in wait(ids, **options)]

    async def await_chain(
        self, wait: Callable[..., Awaitable[Sequence[Run]]], ids: Sequence[RunId], **options: Any
    ) -> Sequence[Run]:
        for run in await self._app.aio._chains.get(ids):
            self._check_not_put_off(run)
        return [self._with_error(run) for run in await wait(ids, **options)]

    def restore(self) -> None:
        tasks = self._app.registry.tasks
        tasks.update({name: before for name, before in self._before.items() if _is_handed_back(tasks[name])})

    def _check_not_put_off(self, run: Run) -> None:
        """Nobody would end the wait for a task that asked to be run again later."""
        container = self._app._host.container
        is_started = container is not None and container.engine is not None
        if run.id in self._executed and not run.ended and not is_started:
            raise NotExecuted(
                f"run {run.id} of {run.task!r} is {run.state} again: {run.reason or run.cause}; "
                "no engine is started that would execute it: move the clock, and drain(app)",
                run=run.id,
                state=run.state,
                cause=run.cause,
                reason=run.reason,
            )

    def _with_error(self, run: Run) -> Run:
        raised = self._executed.get(run.id)
        if raised is None or run.error is None:
            return run
        error = RaisedHere(run.error)
        error.raised = raised
        return replace(run, error=error)

    def _execute(self, work: WorkLike, policy: Any, after: Sequence[Run] = ()) -> Run:
        """Have it executed by another thread, and serve that: the function is called here."""
        self._app._host.check_may_block()  # here, and not on the thread that will call it
        self._hand_back_functions()
        thread = _CallerThread()
        token = _caller.set(thread)
        try:
            run = thread.serve(partial(self._app._host.run, partial(_executed, work, policy, after)))
        finally:
            _caller.reset(token)
        self._executed[run.id] = thread.raised
        return run

    async def _aexecute(self, work: WorkLike, policy: Any, after: Sequence[Run] = ()) -> Run:
        self._hand_back_functions()
        loop = _CallerLoop(asyncio.get_running_loop())
        token = _caller.set(loop)
        try:
            run = await self._app._host.arun(partial(_executed, work, policy, after))
        finally:
            _caller.reset(token)
        self._executed[run.id] = loop.raised
        return run

    def _hand_back_functions(self) -> None:
        """Of all tasks that there are by now, and that no block around this one hands back already."""
        tasks = self._app.registry.tasks
        for name, definition in tasks.items():
            if not _is_handed_back(definition):
                self._before[name] = definition
                function = _handed_back(definition)
                tasks[name] = replace(definition, function=function, is_async=True, isolation="none")


async def _executed(work: WorkLike, policy: Any, after: Sequence[Run], container: Any) -> Run:
    """What `app.execute` does, behind these runs of its chain."""
    draft = await container.services.runs.draft(work, **policy)
    ended: Run = await container.execute(replace(draft, after=tuple(run.id for run in after)))
    return ended


async def _left_out(work: WorkLike, policy: Any, after: Sequence[Run], container: Any) -> Run:
    """The row of a step whose upstream did not succeed."""
    end = next(run for run in after if run.state is not RunState.SUCCEEDED)
    why = left_out(ended_text(end.id, end.task or end.work.kind, end.state))
    draft = await container.services.runs.draft(work, **policy)
    row = replace(draft, state=RunState.SKIPPED, cause=Cause.UPSTREAM, reason=why, waiting=False)
    (id,) = await container.store.runs.insert_runs([row])
    skipped: Run = await container.services.runs.get(id)
    return skipped


class _CallerThread:
    """A thread that waits for a run."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self._jobs: SimpleQueue[tuple[Job, Future[Any]] | None] = SimpleQueue()

    async def call(self, run: RunContext, function: Job, definition: TaskDefinition) -> Any:
        answer: Future[Any] = Future()
        self._jobs.put((partial(_completed, run, function, definition), answer))
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
        self.raised: BaseException | None = None
        self._loop = loop

    async def call(self, run: RunContext, function: Job, definition: TaskDefinition) -> Any:
        if asyncio.get_running_loop() is self._loop:
            return await _awaited(run, function, definition)
        awaited = asyncio.run_coroutine_threadsafe(_awaited(run, function, definition), self._loop)
        return await asyncio.wrap_future(awaited)


def _handed_back(definition: TaskDefinition) -> Callable[..., Awaitable[Any]]:
    """Calls the function where its run was enqueued."""
    function = definition.function

    @wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        job = partial(function, *args, **kwargs)
        caller = _caller.get(None)
        if caller is None:  # of a schedule or a message: an engine does it
            return await (job() if inspect.iscoroutinefunction(function) else asyncio.to_thread(job))
        try:
            return await caller.call(current_context.get(), job, definition)
        except BaseException as error:
            caller.raised = error
            raise

    vars(call)[_HANDED_BACK] = True
    return call


def _is_handed_back(definition: TaskDefinition) -> bool:
    return _HANDED_BACK in getattr(definition.function, "__dict__", ())


async def _awaited(run: RunContext, function: Job, definition: TaskDefinition) -> Any:
    current_context.set(run)
    call = definition.contexts.call_for_coroutine
    if call is not None and not definition.is_async:
        return await call(function)
    value = function()
    return await value if inspect.isawaitable(value) else value


def _completed(run: RunContext, function: Job, definition: TaskDefinition) -> Any:
    """The same in a thread, which may be within another run."""
    token = current_context.set(run)
    try:
        value = function()
        if not inspect.iscoroutine(value):
            return value
        return definition.contexts.complete(value) if _running_loop() is None else _completed_beside(value)
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


def _policy(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _NOT_POLICY}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
