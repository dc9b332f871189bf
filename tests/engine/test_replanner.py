"""A clock that goes wrong and is set right: schedules go on by the right one, and no due time gets a second row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from ostinato import Ostinato, RunState, current_run
from ostinato.engine.node import Engine
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import MakeApp, eventually, on_shared

NOON = "2026-01-01T12:00:00Z"
LATER = "2026-01-01T13:00:30Z"


async def replan(engine: Engine) -> int:
    return await engine.replanner.replan()


def wander(app: Ostinato, clock: FakeClock) -> None:
    """An hour forward, all that is due there, and back."""
    clock.jump_to(LATER)
    drain(app)
    clock.jump_to("2026-01-01T12:00:10Z")


def test_grid_schedules_do_not_sleep_through_the_hour_that_the_clock_went_back(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    fake_clock.move_to(NOON)
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 5m", "job")
    app.schedules.add("cron", "*/10 * * * *", "job", tz="UTC")
    app.schedules.add("daily", "daily 18:00", "job", tz="UTC")
    wander(app, fake_clock)
    assert app.schedules.get("job").next_run_at == datetime(2026, 1, 1, 13, 5, tzinfo=UTC)
    assert app.with_engine(replan) == 2
    assert app.schedules.get("job").next_run_at == datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
    assert app.schedules.get("cron").next_run_at == datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
    assert app.schedules.get("daily").next_run_at == datetime(2026, 1, 1, 18, 0, tzinfo=UTC)
    assert app.with_engine(replan) == 0

    for _ in range(13):
        fake_clock.advance("5m")
        drain(app)
    runs = app.runs.list(schedule="job", limit=100)
    assert {run.state for run in runs} == {RunState.SUCCEEDED}, "what was missed in the future came again"
    assert set(Counter(run.due_at for run in runs).values()) == {1}
    assert [run.due_at.minute for run in runs if run.due_at.hour == 12] == [55, 50, 45, 40, 35, 30, 25, 20, 15, 10, 5]


def covered(app: Ostinato) -> list[datetime]:
    """The due times that have a row, each as often as it has one."""
    found = []
    for run in app.runs.list(schedule="job", limit=1000):
        step = (run.last_due_at - run.due_at) / (run.count - 1) if run.last_due_at and run.count > 1 else timedelta()
        found += [run.due_at + number * step for number in range(run.count)]
    return sorted(found)


@pytest.mark.parametrize("catch_up", ["none", "latest", "all"])
@pytest.mark.parametrize(
    ("minutes", "change"),
    [
        (60, lambda clock: clock.jump_to(clock.now_utc() + timedelta(days=1))),
        (10, lambda clock: clock.jump_to(clock.now_utc() - timedelta(hours=1))),
        (0.5, lambda clock: clock.advance("90s")),
    ],
    ids=["forward a day", "back an hour", "suspended for 90 s"],
)
def test_each_due_time_has_one_row_whatever_the_clock_does(
    app: Ostinato,
    fake_clock: FakeClock,
    minutes: float,
    change: Callable[[FakeClock], object],
    catch_up: Literal["none", "latest", "all"],
) -> None:
    start, step = fake_clock.move_to("2026-01-01T12:00:05Z"), timedelta(minutes=minutes)
    executed: list[datetime] = []
    app.task("job")(lambda: executed.append(current_run().due_at))
    app.schedules.add("job", f"every {round(step.total_seconds())}s", "job", catch_up=catch_up)
    for number in range(12):
        fake_clock.advance(step)
        drain(app)
        if number == 2:
            change(fake_clock)
            app.with_engine(replan)
            drain(app)
    due = covered(app)
    assert due == [due[0] + number * step for number in range(len(due))], "each once, and none between them is missing"
    assert due[0] <= start + step
    assert fake_clock.now_utc() - due[-1] < step
    assert len(executed) == len(set(executed))
    if catch_up == "all":
        assert sorted(executed) == due


def test_a_missed_row_that_reaches_into_the_future_ends_now(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to("2026-01-01T11:00:00Z")
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 5m", "job", catch_up="none")
    wander(app, fake_clock)
    app.with_engine(replan)
    (missed,) = app.runs.list(state=RunState.MISSED)
    assert (missed.due_at, missed.last_due_at, missed.count) == (
        datetime(2026, 1, 1, 11, 5, tzinfo=UTC),
        datetime(2026, 1, 1, 12, 0, tzinfo=UTC),
        12,
    )


def test_what_counts_from_its_finish_waits_one_interval_from_now(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 10m after finish", "job")
    wander(app, fake_clock)
    assert app.with_engine(replan) == 1
    assert app.schedules.get("job").next_run_at == datetime(2026, 1, 1, 12, 10, 10, tzinfo=UTC)


def test_what_was_enabled_in_the_future_begins_now(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(LATER)
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 10m", "job")
    app.schedules.add("off", "every 10m", "job", enabled=False)
    fake_clock.jump_to(NOON)
    assert app.with_engine(replan) == 1
    assert app.schedules.get("job").next_run_at == datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
    assert app.schedules.get("off").next_run_at is None


def test_a_started_node_notices_tells_and_plans_anew(
    app: Ostinato, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    fake_clock.move_to(LATER)
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 10m", "job")
    app.start()
    assert app.health()["clock_jump"] is None
    fake_clock.jump_to(NOON)
    app.with_engine(_beat)
    due = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
    eventually(lambda: app.schedules.get("job").next_run_at == due)
    assert app.health()["clock_jump"]["by"] == -3630
    assert "the clock was set back by 3630.0 s" in caplog.text
    assert "planned 1 schedule again" in caplog.text


async def _beat(engine: Engine) -> None:
    engine.lease.signal.set()


@on_shared
def test_a_node_that_starts_sees_that_the_clock_went_back_while_nobody_ran(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    fake_clock.move_to(LATER)
    first = make_app(shared_db)
    first.task("job")(lambda: None)
    first.schedules.add("job", "every 10m", "job")
    first.stop()
    fake_clock.jump_to(NOON)
    second = make_app(shared_db)
    second.task("job")(lambda: None)
    second.start()
    due = datetime(2026, 1, 1, 12, 10, tzinfo=UTC)
    eventually(lambda: second.schedules.get("job").next_run_at == due)
