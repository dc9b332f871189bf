"""`app.tasks` and the tasks of `app.health()`: which there are, their schedules, whether they run, and when next."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ostinato import DailyAt, Ostinato
from ostinato.errors import NotFound, StoreUnavailable
from ostinato.models.task import TaskInfo
from ostinato.testing import FakeClock
from tests.doors.conftest import at


def by_name(app: Ostinato) -> Mapping[str, TaskInfo]:
    return {task.name: task for task in app.tasks}


def test_tasks_are_listed_with_the_schedules_that_the_code_declares(app: Ostinato) -> None:
    @app.task("cleanup", schedule=DailyAt())
    def cleanup() -> None:
        """Remove what is old.

        And more.
        """

    @app.task(isolation="none")
    async def greet(name: str = "you") -> None: ...

    before = by_name(app)
    assert list(before) == ["cleanup", "greet"]
    assert (before["cleanup"].kind, before["cleanup"].description) == ("sync", "Remove what is old.")
    assert (before["greet"].kind, before["greet"].description, before["greet"].schedules) == ("async", None, ())
    (declared,) = before["cleanup"].schedules
    assert (declared.name, declared.timing, declared.enabled) == ("cleanup", "daily 03:00", True)
    assert (declared.stored, declared.next_run_at, before["cleanup"].schedule_count) == (False, None, 1)

    app.schedules.add("greetings", "every 1h", "greet")
    app.schedules.add("unheard", "every 1h", "elsewhere")
    app.start()
    after = by_name(app)
    (stored,) = after["cleanup"].schedules
    assert (stored.stored, stored.next_run_at, after["cleanup"].next_run_at) == (True, at(3), at(3))
    assert after["greet"].next_run_at == at(1)
    assert after["greet"].nodes == [app.health()["node"]]
    assert (after["elsewhere"].app, after["elsewhere"].nodes, after["elsewhere"].schedule_count) == (False, (), 1)
    assert app.tasks.get("greet") == after["greet"]
    with pytest.raises(NotFound, match="there is no task 'nobody'"):
        app.tasks.get("nobody")


async def test_health_says_for_each_task_whether_it_runs_now_since_when_and_when_next(
    app: Ostinato, clock: FakeClock
) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    @app.task("hourly", schedule="every 1h")
    async def hourly() -> None:
        begun.set()
        await end.wait()

    app.task("idle")(lambda: None)
    async with app:
        idle: dict[str, Any] = {"running": 0, "running_since": None, "next_run_at": None}
        assert (await app.aio.health())["tasks"] == {
            "hourly": {**idle, "next_run_at": at(1).isoformat()},
            "idle": idle,
        }
        await hourly.aio.enqueue()
        await begun.wait()
        found = (await app.aio.health())["tasks"]["hourly"]
        assert found == {"running": 1, "running_since": at(0).isoformat(), "next_run_at": at(1).isoformat()}
        (task, _) = await app.aio.tasks.list()
        assert (task.name, task.running, task.running_since, task.next_run_at) == ("hourly", 1, at(0), at(1))
        end.set()


def test_health_answers_while_the_database_does_not(app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    app.start()

    async def away(*_: object) -> None:
        raise StoreUnavailable("the database is away")

    async def unplug(engine: Any) -> None:
        monkeypatch.setattr(engine.store.runs, "running_tasks", away)

    app.with_engine(unplug)
    health = app.health()
    assert (health["ok"], health["tasks"]) == (True, None)
