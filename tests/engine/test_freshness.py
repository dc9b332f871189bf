"""Schedules that must succeed in time, and machines that check in: what is late is told, whatever the reason."""

from __future__ import annotations

from datetime import UTC, datetime

from ostinato import AppEvent, AppEventKind, CheckIn, Ostinato, RunContext, RunState
from ostinato.engine.node import Engine
from ostinato.models.check_in import Ping, PingSignal
from ostinato.models.incident import Incident, IncidentFilter
from ostinato.testing import FakeClock, drain, simulate
from ostinato.wiring import Container
from tests.engine.conftest import MakeApp, eventually, on_shared

NOON = "2026-01-01T12:00:00Z"


def incidents(app: Ostinato) -> list[Incident]:
    async def ask(engine: Engine) -> list[Incident]:
        return await engine.store.notifications.list_incidents(IncidentFilter())

    return app.with_engine(ask)


def ping(app: Ostinato, key: str, signal: PingSignal = PingSignal.SUCCESS) -> bool:
    async def check_in(container: Container) -> bool:
        return await container.services.check_ins.check_in(key, Ping(signal)) is not None

    return app.schedules._host.run(check_in)


def listening(app: Ostinato) -> list[AppEvent]:
    told: list[AppEvent] = []
    app.on(AppEventKind.SCHEDULE_LATE, told.append)
    return told


# Freshness


def test_a_schedule_whose_runs_fail_is_late_after_its_time(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)
    told = listening(app)
    broken_since = datetime(2026, 1, 1, 14, 30, tzinfo=UTC)

    @app.task("job", retry=0)
    def job() -> None:
        if fake_clock.now_utc() > broken_since:
            raise ValueError("the disk is full")

    app.schedules.add("job", "every 1h", job, fresh="2h", tz="UTC", break_after=100)
    simulate(app, lasting="4h")
    (late,) = told
    assert (late.schedule, late.at) == ("job", datetime(2026, 1, 1, 16, tzinfo=UTC))
    assert late.reason == "has not succeeded since 2026-01-01 14:00:00 UTC (fresh is 2h)"
    assert app.schedules.get("job").late
    assert {incident.cause for incident in incidents(app)} == {"raised", "late"}
    simulate(app, lasting="4h")
    assert len(told) == 1


def test_a_success_by_hand_makes_it_fresh_again(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)
    app.task("job")(lambda: None)
    app.schedules.add("job", "daily 03:00", "job", fresh="1h", enabled=False)
    simulate(app, lasting="1h")
    assert app.schedules.get("job").late
    (incident,) = incidents(app)
    assert incident.reason == "has never succeeded since it was added at 2026-01-01 12:00:00 UTC (fresh is 1h)"
    app.schedules.trigger("job")
    drain(app)
    schedule = app.schedules.get("job")
    assert not schedule.late
    assert schedule.fresh_until == datetime(2026, 1, 1, 14, tzinfo=UTC)


def test_a_success_with_errors_is_none(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)

    @app.task("job")
    def job(run: RunContext) -> None:
        run.count("errors", 1)

    app.schedules.add("job", "every 1h", job, fresh="90m")
    simulate(app, lasting="2h")
    assert app.schedules.get("job").late


@on_shared
def test_what_was_late_while_no_node_ran_is_told_by_the_next_one(shared_db: str, make_app: MakeApp) -> None:
    clock = FakeClock(NOON)
    before = make_app(shared_db, clock=clock)
    before.task("job")(lambda: None)
    before.schedules.add("job", "every 1h", "job", fresh="2h", tz="UTC", enabled=False)
    before.stop()
    clock.advance("3d")
    after = make_app(shared_db, clock=clock)
    told = listening(after)
    after.start()
    eventually(lambda: bool(told))
    assert "since it was added at 2026-01-01 12:00:00 UTC" in str(told[0].reason)


def test_a_started_engine_tells_it_at_its_time(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    told = listening(memory_app)
    memory_app.task("job")(lambda: None)
    memory_app.start()
    memory_app.schedules.add("job", "daily 03:00", "job", fresh="1h", enabled=False)
    fake_clock.advance("1h")
    eventually(lambda: bool(told))


# Check-ins


def test_a_machine_that_checks_in_has_its_runs_in_the_ledger(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)
    app.schedules.add("backup", "every 1h", CheckIn(late_after="15m"), tz="UTC")
    key = app.schedules.ping_key("backup").key
    for hour in (13, 14, 15):
        fake_clock.move_to(f"2026-01-01T{hour}:00:00Z")
        drain(app)
        fake_clock.advance("5m")
        assert ping(app, key, PingSignal.START)
        drain(app)
        assert app.runs.list(schedule="backup")[0].state is RunState.RUNNING
        assert ping(app, key)
    runs = app.runs.list(schedule="backup")
    assert {run.state for run in runs} == {RunState.SUCCEEDED}
    assert incidents(app) == []


def test_a_machine_that_is_silent_is_late_once_until_it_checks_in(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)
    told = listening(app)
    app.schedules.add("backup", "every 1h", CheckIn(late_after="15m"), tz="UTC")
    key = app.schedules.ping_key("backup").key
    simulate(app, lasting="150m")
    missed = app.runs.list(schedule="backup", state=RunState.MISSED)
    assert len(missed) == 2
    assert {event.reason for event in told} == {run.reason for run in missed}
    (incident,) = incidents(app)
    assert (incident.kind, incident.count, incident.state) == ("late", 2, "open")
    assert ping(app, key)
    assert incidents(app)[0].state == "closed"


def test_check_ins_that_could_not_come_in_time_are_missed_by_the_downtime(app: Ostinato, fake_clock: FakeClock) -> None:
    app.schedules.add("backup", "every 1h", CheckIn(late_after="15m"), tz="UTC")
    drain(app)
    fake_clock.advance("3h30m")
    drain(app)
    (missed,) = app.runs.list(schedule="backup", state="missed")
    assert missed.cause == "downtime"
    assert missed.reason is not None
    assert missed.reason.endswith(": nobody can know whether it was done")


def test_after_a_downtime_only_what_can_still_come_is_awaited(app: Ostinato, fake_clock: FakeClock) -> None:
    fake_clock.move_to(NOON)
    app.schedules.add("backup", "every 1h", CheckIn(late_after="15m"), tz="UTC")
    fake_clock.advance("3h5m")
    drain(app)
    waiting, missed = app.runs.list(schedule="backup")
    assert (waiting.state, waiting.due_at.hour) == (RunState.QUEUED, 15)
    assert (missed.state, missed.count, missed.cause) == (RunState.MISSED, 2, "downtime")
    fake_clock.advance("1h30m")
    drain(app)
    assert [run.state for run in app.runs.list(schedule="backup")] == ["missed", "missed", "missed"]
