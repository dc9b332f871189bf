"""What is executed here while the database fails or is slow: nothing of it stays behind and holds up its session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from ostinato import Ostinato, Run, RunState, Shell
from ostinato.clock import to_micros
from ostinato.engine.node import Engine
from ostinato.errors import StoreError, StoreUnavailable
from ostinato.models.ids import NodeId
from ostinato.models.states import Cause
from ostinato.stores.base import NodeStore, RunStore
from ostinato.testing.store_suite.bound_runs import foreground
from ostinato.testing.store_suite.builders import new_run
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

    @property
    def is_over(self) -> bool:
        """Whether it has raised."""
        return not self._errors

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
    hiccup = Once(StoreUnavailable("the database is away"))
    shown_as(memory_app, "get_run", hiccup)
    executed = beside(lambda: execute(memory_app))
    eventually(lambda: hiccup.is_over)  # or the cancel below would have it, which looks at the run too
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


def test_under_a_new_name_nothing_is_queued_or_started_before_others_know_it(app: Ostinato) -> None:
    async def lose_its_name(engine: Engine) -> None:
        await only_the_test_beats(engine)
        (node,) = await engine.store.nodes.list_nodes(engine.clock.now())
        await engine.store.runs.stale_runs([(engine.id, to_micros(node.seen_at))], engine.clock.now())
        engine._lost()  # as the beat says that cannot bring the new name

    async def runs_once_it_is_known(engine: Engine) -> None:
        calls = [engine.direct.queue(foreground(session="q"), wait=True), engine.direct.start(new_run(task="job"))]
        asked = [asyncio.create_task(call) for call in calls]
        await asyncio.wait_for(engine.lease.signal.wait(), PATIENCE)  # somebody waits for a beat
        assert await engine.store.runs.count_active(engine.clock.now()) == 0
        await beat(engine)
        for id in await asyncio.wait_for(asyncio.gather(*asked), PATIENCE):
            run = await engine.store.runs.get_run(id)
            assert run is not None
            assert run.node == engine.id

    app.task("job")(lambda: None)
    app.start()
    app.with_engine(lose_its_name)
    app.with_engine(runs_once_it_is_known)


class Leaving:
    """The nodes of a database; tells when one leaves."""

    def __init__(self, nodes: NodeStore) -> None:
        self._nodes = nodes
        self.left = asyncio.Event()

    async def leave(self, id: NodeId) -> None:
        self.left.set()
        await self._nodes.leave(id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nodes, name)


@on_shared
def test_a_node_that_stops_waits_for_what_is_just_being_started(shared_db: str, make_app: MakeApp) -> None:
    app, other = make_app(shared_db), make_app(shared_db, name="other")
    had_left: list[bool] = []

    async def stop_meanwhile(engine: Engine) -> None:
        nodes = engine.store.nodes = Leaving(engine.store.nodes)  # type: ignore[misc]
        stopping: list[asyncio.Task[None]] = []

        async def start_slowly(call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
            run = await call(*args, **options)
            stopping.append(asyncio.create_task(engine.stop(grace=0)))
            with suppress(TimeoutError):  # as long as an answer may take: a node that waits for it is still there
                await asyncio.wait_for(nodes.left.wait(), 0.5)
            had_left.append(nodes.left.is_set())
            return run

        engine.direct._runs = Runs(engine.store.runs, "start_bound", start_slowly)
        id = await engine.direct.queue(foreground(session="q", task="job"), wait=True)
        assert await engine.direct.take_turn(id, (), lambda: None, partial(asyncio.sleep, 0))
        await asyncio.wait_for(stopping[0], PATIENCE)

    app.task("job")(lambda: None)
    app.start()
    app.with_engine(stop_meanwhile)
    (run,) = in_session(other)
    assert (had_left, run.ended) == ([False], True)
