"""From the clock to the row: what is due is run once, on time, and nothing before."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from ostinato import At, CatchUp, DailyAt, NotFound, Ostinato, Overlap, RunState, Trigger
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared


def at(hour: int, minute: int = 0, second: int = 0, day: int = 1) -> datetime:
    return datetime(2026, 1, day, hour, minute, second, tzinfo=UTC)


def states(app: Ostinato, name: str = "job") -> list[str]:
    """The states of a schedule's rows, oldest first."""
    return [str(run.state) for run in reversed(app.runs.list(schedule=name, limit=1000))]


def test_at_three_oclock_it_ran(app: Ostinato, fake_clock: FakeClock) -> None:
    ran: list[datetime] = []

    @app.task("cleanup", schedule=DailyAt(3, 0))
    def cleanup() -> str:
        ran.append(fake_clock.now_utc())
        return "clean"

    app.start()
    fake_clock.move_to("2026-01-01T02:59:59Z")
    drain(app)
    assert ran == []

    fake_clock.move_to("2026-01-01T03:00:00Z")
    drain(app)

    assert ran == [at(3)]
    (run,) = app.runs.list(schedule="cleanup")
    assert (run.state, run.trigger, run.due_at, run.result) == (RunState.SUCCEEDED, Trigger.SCHEDULE, at(3), "clean")
    assert app.schedules.get("cleanup").next_run_at == at(3, day=2)


def test_a_started_engine_does_nothing_until_the_clock_is_moved(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    app.start()
    app.schedules.add("job", "every 5m", "job")
    settle(app)
    assert app.runs.list() == []
    fake_clock.advance("5m")
    eventually(lambda: states(app) == ["succeeded"])


def test_without_an_engine_drain_runs_what_is_due_and_leaves_no_node_behind(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 5m", "job")
    assert drain(app) == 0
    fake_clock.advance("5m")
    assert drain(app) == 1
    assert drain(app) == 0
    assert states(app) == ["succeeded"]
    assert app.nodes.list() == []
    assert app.health()["ok"] is False


def test_a_week_is_simulated_from_due_time_to_due_time(app: Ostinato, fake_clock: FakeClock) -> None:
    seen: list[datetime] = []
    app.task("job")(lambda: seen.append(fake_clock.now_utc()))
    app.schedules.add("job", "weekly mon,thu 09:00", "job")
    assert simulate(app, lasting="7d") == 2
    assert seen == [at(9), at(9, day=5)]
    assert fake_clock.now_utc() == at(0, day=8)


def test_a_task_after_finish_is_due_one_interval_after_its_end(app: Ostinato, fake_clock: FakeClock) -> None:
    @app.task("job")
    def job() -> None:
        fake_clock.advance("7m")

    app.schedules.add("job", "every 1h after finish", "job")
    simulate(app, until=at(2, 30))
    assert [run.due_at for run in reversed(app.runs.list(schedule="job"))] == [at(1), at(2, 7)]
    assert app.schedules.get("job").next_run_at == at(3, 14)


def test_a_one_time_schedule_is_finished_afterwards(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", At(at(6)), "job")
    simulate(app, lasting="2d")
    assert states(app) == ["succeeded"]
    schedule = app.schedules.get("job")
    assert schedule.next_run_at is None
    assert "finished" in (schedule.next_run_reason or "")


def test_a_finished_schedule_that_should_be_deleted_is(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", At(at(6)), "job", delete_after_run=True)
    assert simulate(app, lasting="1d") == 1
    assert app.schedules.list() == []
    (run,) = app.runs.list()
    assert (run.schedule, run.schedule_id, run.state) == ("job", None, RunState.SUCCEEDED)
    assert app.runs.wait(run.id).state is RunState.SUCCEEDED
    assert app.runs.list(schedule="job") == [run]
    with pytest.raises(NotFound, match="there is no schedule 'other'"):
        app.runs.list(schedule="other")


def test_a_one_time_schedule_that_fails_is_not_deleted_but_off_with_its_reason(app: Ostinato) -> None:
    fails = [True]

    @app.task("job", retry=0)
    def job() -> None:
        if fails[-1]:
            raise ValueError("the disk is full")

    app.schedules.add("job", At(at(6)), job, delete_after_run=True)
    simulate(app, lasting="1d")
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken) == (False, "its last run failed: ValueError: the disk is full")
    assert [run.error is not None for run in app.runs.list(schedule="job")] == [True]
    fails.append(False)
    app.schedules.edit("job", timing="in 1h")
    assert (app.schedules.get("job").enabled, app.schedules.get("job").broken) == (True, None)
    assert simulate(app, lasting="1d") == 1
    assert app.schedules.list() == []
    assert states(app) == ["failed", "succeeded"]


def test_of_several_runs_only_the_last_one_decides_whether_it_is_deleted(app: Ostinato) -> None:
    fails = [True]

    @app.task("job", retry=0)
    def job() -> None:
        if fails.pop():
            raise ValueError

    fails[:] = [False, True]
    app.schedules.add("job", "every 1h", job, remaining=2, delete_after_run=True)
    simulate(app, lasting="1h")
    assert (app.schedules.get("job").enabled, app.schedules.get("job").broken) == (True, None)
    simulate(app, lasting="5h")
    assert app.schedules.list() == []
    assert states(app) == ["failed", "succeeded"]


def test_run_once_is_disabled_before_it_executes(app: Ostinato, fake_clock: FakeClock) -> None:
    seen: list[bool] = []

    @app.task("job")
    async def job() -> None:
        seen.append((await app.aio.schedules.get("job")).enabled)

    app.schedules.add("job", "every 1h", job, run_once=True)
    assert simulate(app, lasting="5h") == 1
    assert seen == [False]
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.remaining) == (False, 0)
    assert "as often as it should" in (schedule.next_run_reason or "")


def test_enabling_what_has_run_out_counts_anew(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job", remaining=2)
    simulate(app, lasting="5h")
    app.schedules.enable("job")
    assert simulate(app, lasting="5h") == 2


# Overlap: a run is inside the gate when the next due time comes.


def started_at_the_gate(app: Ostinato, gate: Gate, clock: FakeClock, overlap: Overlap) -> None:
    @app.task("job")
    def job() -> None:
        gate.wait()

    app.schedules.add("job", "every 1m", job, overlap=overlap)
    app.start()
    clock.advance("1m")
    gate.entered()


def pass_minutes(app: Ostinato, clock: FakeClock, minutes: int) -> None:
    for _ in range(minutes):
        clock.advance("1m")
        settle(app)


def test_overlap_skip_records_what_it_skipped_and_why(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    started_at_the_gate(app, gate, fake_clock, Overlap.SKIP)
    pass_minutes(app, fake_clock, 2)
    assert states(app) == ["running", "skipped", "skipped"]
    skipped = app.runs.list(schedule="job", state="skipped")[0]
    assert "still active" in (skipped.reason or "")
    gate.open()
    drain(app)
    fake_clock.advance("1m")
    drain(app)
    assert states(app) == ["succeeded", "skipped", "skipped", "succeeded"]


def test_overlap_cancel_running_replaces_the_run_under_way(app: Ostinato, fake_clock: FakeClock) -> None:
    started: list[datetime] = []

    @app.task("job")
    async def job() -> None:
        started.append(fake_clock.now_utc())
        if len(started) == 1:
            await asyncio.Event().wait()

    app.schedules.add("job", "every 1m", job, overlap="cancel_running")
    app.start()
    fake_clock.advance("1m")
    eventually(lambda: started)
    fake_clock.advance("1m")
    eventually(lambda: states(app) == ["cancelled", "succeeded"])
    assert "replaced by a newer due time" in (app.runs.list(state="cancelled")[0].reason or "")
    assert started == [at(0, 1), at(0, 2)]


# Clock jumps.


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (CatchUp.NONE, ["missed"]),
        (CatchUp.LATEST, ["missed", "succeeded"]),
        (CatchUp.ALL, ["succeeded"] * 4),
    ],
)
def test_a_forward_jump_is_caught_up_by_policy(
    app: Ostinato, fake_clock: FakeClock, catch_up: CatchUp, expected: list[str]
) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job", catch_up=catch_up, overlap=Overlap.ALLOW)
    app.start()
    fake_clock.advance("4h30m")
    drain(app)
    assert states(app) == expected
    assert sum(run.count for run in app.runs.list(schedule="job")) == 4


def test_a_backward_jump_fires_nothing_twice(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job")
    app.start()
    fake_clock.move_to(at(2, 10))
    drain(app)
    before = [run.due_at for run in app.runs.list(schedule="job")]
    fake_clock.move_to(at(0, 30))
    drain(app)
    for hour in (1, 2):
        fake_clock.move_to(at(hour))
        drain(app)
    assert [run.due_at for run in app.runs.list(schedule="job")] == before
    fake_clock.move_to(at(3))
    drain(app)
    assert [run.due_at for run in app.runs.list(schedule="job")] == [at(3), *before]


def test_a_backward_jump_leaves_a_running_run_alone(app: Ostinato, fake_clock: FakeClock, gate: Gate) -> None:
    started_at_the_gate(app, gate, fake_clock, Overlap.SKIP)
    fake_clock.move_to("2025-12-31T12:00:00Z")
    gate.open()
    drain(app)
    assert states(app) == ["succeeded"]


@on_shared
def test_a_schedule_added_by_another_process_is_seen_by_a_started_engine(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    engine, other = make_app(shared_db), make_app(shared_db)
    engine.task("job")(lambda: None)
    engine.start()
    other.schedules.add("job", At(at(0, 0, 1)), "job")
    fake_clock.advance("1s")
    eventually(lambda: states(other) == ["succeeded"])


@on_shared
def test_a_run_enqueued_by_another_process_is_executed(shared_db: str, make_app: MakeApp) -> None:
    engine, other = make_app(shared_db), make_app(shared_db)
    engine.task("job")(lambda: "done")
    engine.start()
    handle = other.task("job")(lambda: "never here").enqueue()
    assert handle.wait(timeout=60).result == "done"
