"""What is executed here while the database fails or is slow: nothing of it stays behind and holds up its session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from ostinato import Ostinato, Run, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.errors import StoreError, StoreUnavailable
from ostinato.models.states import Cause
from ostinato.stores.base import RunStore
from ostinato.testing.store_suite.bound_runs import foreground
from tests.engine.conftest import Beside, MakeApp, eventually, on_shared

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


# What nobody here knows of.


async def only_the_test_beats(engine: Engine) -> None:
    await engine.watchdog.stop("lease", "waker", "rescuer")


async def beat(engine: Engine) -> None:
    await engine.lease.renew()
    await engine.reconciler.rest()


def done_as(app: Ostinato, method: str, around: Around) -> None:
    """Let whoever executes runs see the database so."""

    async def change(engine: Engine) -> None:
        engine.direct._runs = Runs(engine.store.runs, method, around)

    app.with_engine(change)


def lose_the_answer(app: Ostinato) -> Run:
    """Start the app, and queue a run there whose id it never gets."""
    app.start()
    app.with_engine(only_the_test_beats)
    done_as(app, "queue_bound", Once(StoreUnavailable("the answer was lost"), after=True))
    with pytest.raises(StoreUnavailable, match="the answer was lost"):
        execute(app)
    (run,) = in_session(app)
    assert run.state is RunState.QUEUED
    return run


@on_shared
def test_a_run_that_was_queued_and_its_node_never_heard_of_is_ended_at_the_second_beat(
    shared_db: str, make_app: MakeApp
) -> None:
    app = make_app(shared_db)
    lost = lose_the_answer(app)
    app.with_engine(beat)
    assert app.runs.get(lost.id).state is RunState.QUEUED, "its answer may be under way"
    app.with_engine(beat)
    run = app.runs.get(lost.id)
    assert (run.state, run.cause, run.reason) == (
        RunState.FAILED,
        Cause.NODE_LOST,
        "its node never learned that it was queued there: it never started",
    )
    assert execute(app).state is RunState.SUCCEEDED


def test_what_cannot_be_ended_at_one_beat_is_at_the_next(memory_app: Ostinato) -> None:
    lost = lose_the_answer(memory_app)

    async def fail_once(engine: Engine) -> None:
        error = StoreUnavailable("the database is away")
        engine.reconciler._runs = Runs(engine.store.runs, "cancel_runs", Once(error))

    memory_app.with_engine(fail_once)
    for state in (RunState.QUEUED, RunState.QUEUED, RunState.FAILED):
        memory_app.with_engine(beat)
        assert memory_app.runs.get(lost.id).state is state


@on_shared
def test_a_node_that_stops_ends_what_it_never_heard_of(shared_db: str, make_app: MakeApp) -> None:
    app, other = make_app(shared_db), make_app(shared_db, name="other")
    lost = lose_the_answer(app)
    app.stop(grace=0)
    assert other.runs.get(lost.id).state is RunState.FAILED


def test_what_waits_here_and_what_is_just_being_queued_stay(memory_app: Ostinato, beside: Beside) -> None:
    before = busy(memory_app)
    memory_app.with_engine(only_the_test_beats)
    waiting = beside(lambda: execute(memory_app))
    eventually(lambda: len(in_session(memory_app)) == 2)
    for _ in range(3):
        memory_app.with_engine(beat)

    async def beat_meanwhile(call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        bound = await call(*args, **options)
        for _ in range(3):
            await memory_app.aio.with_engine(beat)
        return bound

    done_as(memory_app, "queue_bound", beat_meanwhile)
    queued = beside(lambda: execute(memory_app))
    eventually(lambda: len(in_session(memory_app)) == 3)
    memory_app.runs.cancel(before.id)
    assert [each.result(PATIENCE).state for each in (waiting, queued)] == [RunState.SUCCEEDED] * 2


def test_a_start_that_nobody_waits_for_any_more_is_nobody_elses(memory_app: Ostinato) -> None:
    async def leave(engine: Engine) -> None:
        await only_the_test_beats(engine)
        begun = asyncio.Event()

        async def start_slowly(call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
            await call(*args, **options)
            begun.set()
            await asyncio.Event().wait()

        async def fail(*_: Any) -> None:
            raise StoreUnavailable("the database is away")

        slow = Runs(engine.store.runs, "start_bound", start_slowly)
        engine.direct._runs = Runs(slow, "cancel_runs", fail)
        id = await engine.direct.queue(foreground(session="q"), wait=True)
        waiting = asyncio.create_task(engine.direct.take_turn(id, (), lambda: None, partial(asyncio.sleep, 0)))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        waiting.cancel()
        await asyncio.wait_for(asyncio.wait({waiting}), PATIENCE)
        for _ in range(2):
            await beat(engine)
        while engine.recorder.pending:
            await engine.recorder.flush()

    memory_app.start()
    memory_app.with_engine(leave)
    (run,) = in_session(memory_app)
    assert (run.state, run.reason) == (RunState.CANCELLED, "nobody waited for it any more when it was to start")
