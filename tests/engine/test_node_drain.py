"""Draining a node from afar: it takes no more work and stays, and others go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato import Ostinato, RunContext, current_run
from ostinato.engine.node import Engine
from ostinato.errors import Conflict, NotFound
from ostinato.models.node import Node
from ostinato.service.nodes import NodeService
from ostinato.testing import FakeClock
from tests.engine import process_tasks
from tests.engine.conftest import Gate, MakeApp, engine_of, eventually, on_shared


def ask(app: Ostinato, verb: str, id: str | None = None) -> Node:
    """Drain or resume a node, through this app's database; its own if none is named."""

    async def call(engine: Engine) -> Node:
        nodes = NodeService(engine.store, engine.clock)
        verbs = {"drain": nodes.drain, "resume": nodes.resume, "get": nodes.get}
        return await verbs[verb](id or engine.id)

    return app.with_engine(call)


def drained(app: Ostinato) -> Callable[[], bool]:
    engine = engine_of(app)
    return lambda: engine.is_asked_to_drain and not engine.dispatcher.is_open


def test_a_drained_node_takes_no_more_work_and_what_runs_ends(app: Ostinato, gate: Gate) -> None:
    @app.task("wait")
    def task(value: int) -> int:
        return gate.passed(value)

    app.start()
    first = task.enqueue(1)
    gate.entered()
    ask(app, "drain")
    eventually(drained(app))
    second = task.enqueue(2)  # accepted: others would do it
    gate.open()
    assert first.wait(timeout="60s").result == 1
    app.with_engine(lambda engine: engine.dispatcher.claim())
    assert second.get().state == "queued"
    ask(app, "resume")
    assert second.wait(timeout="60s").result == 2


def test_what_a_claim_brings_after_the_drain_was_asked_for_goes_back_to_others(app: Ostinato) -> None:
    ran: list[int] = []
    task = app.task("job", retry=0)(lambda: ran.append(1))
    app.start()

    async def claim_late(engine: Engine) -> int:
        await engine.watchdog.stop("dispatcher", "waker")
        await engine.dispatcher.rest()
        id = await task.aio.enqueue()
        request = engine.dispatcher.request()
        assert request is not None
        await engine.store.nodes.ask_drain(engine.id, True)
        await engine.lease.renew()
        engine.dispatcher.accept(await engine.store.runs.claim_runs(request))
        return id

    id = app.with_engine(claim_late)
    eventually(lambda: app.runs.get(id).state == "queued")
    assert (app.runs.get(id).attempt, ran) == (0, [])


def test_its_state_says_that_it_drains_and_its_process_stays(app: Ostinato) -> None:
    app.start()
    ask(app, "drain")
    eventually(lambda: ask(app, "get").state == "draining")
    health = app.health()
    assert (health["ok"], health["draining"], health["asked_to_drain"]) == (True, False, True)
    ask(app, "resume")
    eventually(lambda: ask(app, "get").state == "alive")
    eventually(lambda: engine_of(app).dispatcher.is_open)


@on_shared
def test_others_do_what_a_drained_node_leaves(shared_db: str, make_app: MakeApp) -> None:
    one, two = make_app(shared_db, name="one"), make_app(shared_db, name="two")
    tasks = [app.task("hello")(lambda: "hi") for app in (one, two)]
    one.start()
    two.start()
    ask(two, "drain", engine_of(one).id)
    eventually(drained(one))
    runs = [tasks[0].enqueue() for _ in range(5)]
    assert {run.wait(timeout="60s").node for run in runs} == {engine_of(two).id}


def test_a_beat_is_enough_to_hear_of_it(app: Ostinato, fake_clock: FakeClock) -> None:
    app.start()
    engine = engine_of(app)

    async def without_waker(engine: Engine) -> None:
        await engine.watchdog.stop("waker")
        await engine.store.nodes.ask_drain(engine.id, True)

    app.with_engine(without_waker)
    assert not engine.is_asked_to_drain
    fake_clock.advance(app.settings.lease / 3)
    eventually(drained(app))


def test_a_node_that_lost_its_lease_is_still_drained_under_its_new_name(app: Ostinato) -> None:
    app.start()
    ask(app, "drain")
    eventually(drained(app))
    engine = engine_of(app)
    before = engine.id

    async def lose(engine: Engine) -> None:
        (node,) = await engine.store.nodes.list_nodes(engine.clock.now())
        seen_at = round(node.seen_at.timestamp() * 1_000_000)
        await engine.store.runs.stale_runs([(engine.id, seen_at)], engine.clock.now())
        await engine.lease.renew()

    app.with_engine(lose)
    assert engine.id != before
    assert drained(app)()
    assert ask(app, "get").drain


def test_a_restart_forgets_it(app: Ostinato) -> None:
    app.start()
    ask(app, "drain")
    eventually(drained(app))
    app.stop()
    app.start()
    assert not engine_of(app).is_asked_to_drain
    assert engine_of(app).dispatcher.is_open


def test_only_a_node_that_is_there_can_be_drained(app: Ostinato, fake_clock: FakeClock) -> None:
    app.start()
    with pytest.raises(NotFound, match="there is no node 'nobody'"):
        ask(app, "drain", "nobody")

    async def kill(engine: Engine) -> str:
        await engine.watchdog.stop("lease", "rescuer")
        return engine.id

    id = app.with_engine(kill)
    fake_clock.advance(app.settings.lease * 2)
    with pytest.raises(Conflict, match="was lost"):
        ask(app, "drain", id)


def test_work_sees_at_the_start_of_a_drain_that_it_may_stop_early(db: str, make_app: MakeApp, tmp_path: Path) -> None:
    app, begun = make_app(db), threading.Semaphore(0)
    note = tmp_path / "begun"

    @app.task("sync")
    def sync(run: RunContext) -> str:
        begun.release()
        while not run.draining:
            threading.Event().wait(0.005)
        return "stopped early"

    @app.task("async")
    async def coroutine() -> str:
        begun.release()
        while not current_run().draining:
            await asyncio.to_thread(threading.Event().wait, 0.005)
        return "stopped early"

    isolated = app.task("isolated", isolation="process")(process_tasks.until_drained)
    app.start()
    runs = [sync.enqueue(), coroutine.enqueue(), isolated.enqueue(str(note))]
    for _ in range(2):
        assert begun.acquire(timeout=60)
    eventually(note.exists)
    app.stop(grace="60s")
    ends = [app.runs.get(run.id) for run in runs]
    assert [(end.state, end.result) for end in ends] == [("succeeded", "stopped early")] * 3


def test_a_drain_from_afar_is_seen_too_and_so_is_its_end(app: Ostinato) -> None:
    seen: list[bool] = []
    look, looked = threading.Semaphore(0), threading.Semaphore(0)

    @app.task("watch")
    def watch(run: RunContext) -> None:
        for _ in range(3):
            assert look.acquire(timeout=60)
            seen.append(run.draining)
            looked.release()

    def see() -> None:
        look.release()
        assert looked.acquire(timeout=60)

    app.start()
    run = watch.enqueue()
    see()
    ask(app, "drain")
    eventually(drained(app))
    see()
    ask(app, "resume")
    eventually(lambda: engine_of(app).dispatcher.is_open)
    see()
    assert run.wait(timeout="60s").state == "succeeded"
    assert seen == [False, True, False]
