"""Runs that wait for other runs: the slots that they do not use meanwhile."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ostinato import Ostinato, RunState, current_run, group
from ostinato.testing import FakeClock
from tests.engine.conftest import PATIENCE, MakeApp, on_shared


@on_shared
@pytest.mark.parametrize("limits", [{"lanes": {"main": 1}}, {"slots": 1}, {"lanes": {"main": 1}, "slots": 1}])
def test_a_parent_that_waits_for_a_child_gives_its_slot_back_meanwhile(
    shared_db: str, make_app: MakeApp, limits: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(shared_db, **limits)
    child = app.task("child")(lambda n: n)

    @app.task
    def parent() -> Any:
        handles = child.enqueue_many([(1,), (2,)])
        return [handle.result(PATIENCE) for handle in handles]

    @app.task
    async def aio_parent() -> Any:
        return await child.aio.result(await child.aio.enqueue(3), PATIENCE)

    @app.task
    def grandparent() -> Any:
        return parent.enqueue().result(PATIENCE)

    app.start()
    assert grandparent.enqueue().result(PATIENCE) == [1, 2]
    assert aio_parent.enqueue().result(PATIENCE) == 3
    if "lanes" in limits:
        assert "of 'parent' waits for run" in caplog.text
        assert "in its own lane 'main', which is full: it lends it its slot" in caplog.text


@on_shared
def test_a_parent_that_waits_for_a_chain_lends_its_slot_to_each_of_its_steps(shared_db: str, make_app: MakeApp) -> None:
    app = make_app(shared_db, lanes={"main": 1})
    step = app.task("step")(lambda n: n)

    @app.task
    def parent() -> Any:
        return step.then(group([step.call(2), step.call(3)])).then(step.call(4)).enqueue(1).result(PATIENCE)

    @app.task
    async def aio_parent() -> Any:
        return await (await step.then(step.call(2)).aio.enqueue(1)).result(PATIENCE)

    app.start()
    assert parent.enqueue().result(PATIENCE) == 4
    assert aio_parent.enqueue().result(PATIENCE) == 2


@on_shared
def test_what_a_command_starts_and_waits_for_has_the_slot_of_its_run(
    shared_db: str, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(shared_db, lanes={"main": 1})
    child = app.task("child")(lambda n: n)
    begun, over = threading.Event(), threading.Event()

    @app.task
    def parent() -> None:
        begun.set()
        over.wait(PATIENCE)

    app.start()
    run = parent.enqueue()
    assert begun.wait(PATIENCE)
    monkeypatch.setenv("OSTINATO_RUN_ID", str(run.id))
    monkeypatch.setenv("OSTINATO_NODE", str(run.get().node))
    assert child.enqueue(1).result(PATIENCE) == 1
    over.set()
    run.result(PATIENCE)


@on_shared
def test_a_lane_executes_no_more_at_once_than_its_limit_while_slots_are_lent(shared_db: str, make_app: MakeApp) -> None:
    app = make_app(shared_db, lanes={"main": 2})
    executing: list[int] = []
    most: list[int] = []

    @app.task
    def child() -> None:
        executing.append(current_run().id)
        most.append(len(executing))
        executing.remove(current_run().id)

    @app.task
    def parent() -> None:
        for handle in [child.enqueue() for _ in range(3)]:
            handle.result(PATIENCE)

    app.start()
    parents = [parent.enqueue() for _ in range(6)]
    assert [handle.wait(PATIENCE).state for handle in parents] == [RunState.SUCCEEDED] * 6
    assert max(most) <= 2
    lane = app.lanes.get("main")
    assert (lane.used, lane.queued) == (0, 0)


def test_who_waits_no_longer_has_its_slot_back(app: Ostinato, fake_clock: FakeClock) -> None:
    app.lanes.set("main", 1)
    later = app.task("later")(lambda: None)
    waited: list[str] = []

    @app.task
    def parent() -> None:
        child = later.using(delay="1h").enqueue()
        try:
            child.result("1ms")
        except TimeoutError as error:
            waited.append(str(error))

    app.start()
    parent.enqueue().result(PATIENCE)
    assert waited
    assert app.lanes.get("main").used == 0
