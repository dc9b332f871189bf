"""Schedules that the code declares: owner code, orphaned when the code drops them, a person's pause is kept."""

from __future__ import annotations

from typing import Any

from ostinato import Ostinato
from ostinato.testing import FakeClock, drain, simulate
from tests.engine.conftest import MakeApp, on_shared


def deploy(make_app: MakeApp, db: str, timing: str | None = "every 1h", **options: Any) -> Ostinato:
    """A process of the app that declares the schedule `job` (or, with timing None, does not)."""
    app = make_app(db, name="shop")
    app.task("job", schedule=timing, **options)(lambda: None)
    return app.start()


def test_a_declared_schedule_belongs_to_the_code(app: Ostinato) -> None:
    app.task("job", schedule="every 1h", priority=3)(lambda: None)
    app.start()
    schedule = app.schedules.get("job")
    assert (schedule.owner, schedule.enabled, schedule.policy.priority) == ("code", True, 3)


def test_a_schedule_can_be_declared_switched_off(app: Ostinato) -> None:
    app.task("job", schedule="every 1h", enabled=False)(lambda: None)
    assert simulate(app, lasting="5h") == 0
    assert app.schedules.get("job").enabled is False


@on_shared
def test_one_that_disappears_from_the_code_is_orphaned_and_not_deleted(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    deploy(make_app, shared_db).stop()
    app = deploy(make_app, shared_db, None)
    schedule = app.schedules.get("job")
    assert schedule.orphaned
    assert schedule.next_run_at is None
    assert schedule.next_run_reason == "orphaned: the code no longer declares it"
    fake_clock.advance("5h")
    drain(app)
    assert app.runs.list() == []


def test_a_task_declared_after_the_start_is_executed(app: Ostinato) -> None:
    app.start()
    job = app.task("late")(lambda: "better than never")
    assert job.enqueue().wait(timeout=60).result == "better than never"


def test_a_schedule_declared_after_the_start_is_made_too(app: Ostinato, fake_clock: FakeClock) -> None:
    app.start()
    app.task("late", schedule="every 1h")(lambda: None)
    fake_clock.advance("1h")
    drain(app)
    fake_clock.advance("1h")
    drain(app)
    assert app.runs.list(schedule="late")
