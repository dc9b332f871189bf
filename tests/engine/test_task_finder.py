"""Tasks that no node knows, and that a framework finds by their names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ostinato import Function, Ostinato, RunState
from ostinato.engine.node import Engine
from ostinato.testing import FakeClock, drain


@pytest.fixture
def app() -> Iterator[Ostinato]:
    app = Ostinato("sqlite://:memory:", tz="UTC", clock=FakeClock())
    yield app
    app.stop(grace=0)


def test_a_task_that_nobody_knows_is_looked_for_once_and_its_runs_are_claimed(app: Ostinato) -> None:
    asked: list[str] = []

    def find(name: str) -> bool:
        asked.append(name)
        if name == "post.write":
            app.task(name)(lambda to: f"written to {to}")
        return name == "post.write"

    app.registry.find_task = find
    handle = app.enqueue(Function("post.write", ["ada"]))
    unknown = app.enqueue(Function("post.lose"))
    later = app.enqueue(Function("post.wait"), delay="1h")
    assert drain(app) == 0
    assert app.with_engine(lambda engine: engine.task_finder.look()) == 1
    assert sorted(asked) == ["post.lose", "post.write"]
    assert drain(app) == 1
    assert handle.get().result == "written to ada"
    assert [each.get().state for each in (unknown, later)] == [RunState.QUEUED] * 2


def test_a_task_that_was_not_found_is_looked_for_again_after_some_minutes(app: Ostinato) -> None:
    asked: list[str] = []

    def find(name: str) -> bool:
        asked.append(name)
        return False

    app.registry.find_task = find
    app.enqueue(Function("post.lose"))
    clock = app.clock
    assert isinstance(clock, FakeClock)

    async def look(engine: Engine) -> None:
        for lasting in ("0s", "1m", "10m"):
            clock.advance(lasting)
            await engine.task_finder.look()

    app.with_engine(look)
    assert asked == ["post.lose"] * 2


def test_a_node_asks_only_where_a_framework_can_find_tasks(app: Ostinato) -> None:
    app.start()
    assert "task_finder" not in app.health()["services"]
    app.stop(grace=0)
    app.registry.find_task = lambda _: False
    app.start()
    assert app.health()["services"]["task_finder"]["up"]
