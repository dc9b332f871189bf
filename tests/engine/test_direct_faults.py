"""What is executed here while the database fails or is slow: nothing of it stays behind and holds up its session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from ostinato import Ostinato, Run, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.errors import StoreError, StoreUnavailable
from ostinato.models.states import Cause
from ostinato.stores.base import RunStore
from ostinato.testing.store_suite.bound_runs import foreground
from tests.engine.conftest import eventually

PATIENCE = 60
Around = Callable[..., Awaitable[Any]]


class Runs:
    """The runs of a database, of which the test has one method done in another way."""

    def __init__(self, runs: RunStore, method: str, around: Around) -> None:
        self._runs = runs
        self._method = method
        self._around = around

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._runs, name)
        return partial(self._around, method) if name == self._method else method


class Once:
    """Raises instead of the first call, or after it."""

    def __init__(self, error: Exception, *, after: bool = False) -> None:
        self._errors = [error]
        self._after = after

    async def __call__(self, call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        if self._errors and not self._after:
            raise self._errors.pop()
        answer = await call(*args, **options)
        if self._errors:
            raise self._errors.pop()
        return answer


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Calls on other threads; all have ended when the test has."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


Beside = Callable[[Callable[[], Any]], "Future[Any]"]


def in_session(app: Ostinato, session: str = "q") -> list[Run]:
    """The runs of a session, the oldest first."""
    return list(app.runs.list(session=session))[::-1]


def execute(app: Ostinato) -> Run:
    return app.execute(Shell("true"), session="q")


def busy(app: Ostinato) -> Run:
    """Start the app, with something in the session that keeps its turn until it is cancelled."""
    app.lanes.pause("cron")
    app.start()
    return app.enqueue(Shell("true"), session="q", lane="cron").get()


def shown_as(app: Ostinato, method: str, around: Around) -> None:
    """Let whoever looks at runs see the database so; those who execute them do not."""

    async def change(engine: Engine) -> None:
        engine.store.runs = Runs(engine.store.runs, method, around)  # type: ignore[misc]

    app.with_engine(change)


def test_a_hiccup_when_it_looks_for_whom_it_waits_is_outlived(memory_app: Ostinato, beside: Beside) -> None:
    before = busy(memory_app)
    shown_as(memory_app, "get_run", Once(StoreUnavailable("the database is away")))
    executed = beside(lambda: execute(memory_app))
    eventually(lambda: len(in_session(memory_app)) == 2)
    memory_app.runs.cancel(before.id)
    assert executed.result(PATIENCE).state is RunState.SUCCEEDED


def test_an_error_while_it_waits_ends_it_and_leaves_the_turn_to_the_next(memory_app: Ostinato) -> None:
    before = busy(memory_app)
    shown_as(memory_app, "get_run", Once(StoreError("the row is broken")))
    with pytest.raises(StoreError, match="the row is broken"):
        execute(memory_app)
    run = in_session(memory_app)[-1]
    assert (run.state, run.cause, run.reason) == (
        RunState.CANCELLED,
        Cause.CANCELLED,
        "it never started: StoreError: the row is broken",
    )
    memory_app.runs.cancel(before.id)
    assert execute(memory_app).state is RunState.SUCCEEDED


def test_a_wait_that_is_cancelled_leaves_the_turn_to_the_next(memory_app: Ostinato) -> None:
    before = busy(memory_app)

    async def cancel(engine: Engine) -> None:
        waits = asyncio.Event()

        async def tell() -> None:
            waits.set()

        id = await engine.direct.queue(foreground(session="q"), wait=True)
        waiting = asyncio.create_task(engine.direct.take_turn(id, (), lambda: None, tell))
        await asyncio.wait_for(waits.wait(), PATIENCE)
        waiting.cancel()
        await asyncio.wait_for(asyncio.wait({waiting}), PATIENCE)

    memory_app.with_engine(cancel)
    run = in_session(memory_app)[-1]
    assert (run.state, run.reason) == (RunState.CANCELLED, "its process was stopped before its turn came")
    memory_app.runs.cancel(before.id)
    assert execute(memory_app).state is RunState.SUCCEEDED
