"""`app.on(…)`: a process is told what its engine and its verbs did, each thing once, and only what was written."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from ostinato import AppEvent, AppEventKind, Cause, CheckIn, Ostinato, RunState, Shell, Snooze
from ostinato.engine.node import Engine
from ostinato.logs import RUN_LOGGER
from ostinato.models.check_in import Ping, PingSignal
from ostinato.models.ids import NodeId
from ostinato.models.run import NewRun
from ostinato.models.states import Trigger
from ostinato.stores.base import Finished
from ostinato.testing import FakeClock, drain, simulate
from ostinato.wiring import Container
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared

INCIDENTS = {AppEventKind.INCIDENT_OPENED, AppEventKind.INCIDENT_CLOSED}


def listening(app: Ostinato, *kinds: AppEventKind) -> list[AppEvent]:
    """What the app tells of these kinds, or of all but incidents."""
    told: list[AppEvent] = []
    for kind in kinds or set(AppEventKind) - INCIDENTS:
        app.on(kind, told.append)
    return told


def names(told: list[AppEvent]) -> list[str]:
    return [event.kind.value for event in told]


def fails() -> None:
    raise ValueError("the disk is full")


# What is told


def test_a_run_is_told_when_it_starts_and_when_it_has_succeeded(app: Ostinato, fake_clock: FakeClock) -> None:
    told = listening(app)
    run = app.task("mail")(lambda: None).enqueue()
    drain(app)
    started, ended = told
    assert (started.kind, started.run, started.task, started.state) == ("run.started", run.id, "mail", "running")
    assert (started.attempt, started.at, started.due_at) == (1, fake_clock.now_utc(), fake_clock.now_utc())
    assert (ended.kind, ended.run, ended.task, ended.state) == ("run.succeeded", run.id, "mail", "succeeded")
    assert (ended.cause, ended.schedule, ended.attempt) == (None, None, 1)


def test_a_failed_attempt_is_told_as_retrying_and_the_last_one_as_failed(app: Ostinato) -> None:
    told = listening(app)
    run = app.task("job", retry=1)(fails).enqueue()
    simulate(app, lasting="1h")
    assert names(told) == ["run.started", "run.retrying", "run.started", "run.failed"]
    _, retrying, _, failed = told
    assert (retrying.state, retrying.attempt, retrying.cause) == (RunState.QUEUED, 1, Cause.RAISED)
    assert retrying.retry_at is not None
    assert retrying.retry_at > retrying.at
    row = app.runs.get(run.id)
    assert (failed.state, failed.cause, failed.reason, failed.error) == (row.state, row.cause, row.reason, row.error)
    assert (failed.attempt, failed.at) == (2, row.finished_at)


def test_an_incident_is_told_when_it_opens_and_when_it_closes(app: Ostinato) -> None:
    told = listening(app, *INCIDENTS)
    outcomes = [ValueError("a"), ValueError("b"), None]

    @app.task("job", retry=0)
    def job() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    for _ in range(3):
        job.enqueue()
        drain(app)
    assert [(event.kind.value, event.subject, event.cause, event.count) for event in told] == [
        ("incident.opened", "job", Cause.RAISED, 1),
        ("incident.closed", "job", Cause.RAISED, 2),
    ]
    assert told[0].incident == told[1].incident


def test_a_run_that_expires_in_the_queue_is_told_with_its_incident_and_logged(
    app: Ostinato, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    told = listening(app, AppEventKind.RUN_SKIPPED, AppEventKind.INCIDENT_OPENED)
    run = app.task("job", max_age="5m")(lambda: None).enqueue()
    due_at = fake_clock.now_utc()
    fake_clock.advance("5m")
    drain(app)
    opened, skipped = told
    assert (opened.kind, opened.subject, opened.cause, opened.run) == ("incident.opened", "job", "expired", run.id)
    assert (skipped.kind, skipped.run, skipped.task, skipped.due_at) == ("run.skipped", run.id, "job", due_at)
    row = app.runs.get(run.id)
    assert (skipped.state, skipped.cause, skipped.reason) == (row.state, row.cause, row.reason)
    (line,) = [record for record in caplog.records if record.name == RUN_LOGGER]
    assert line.getMessage() == f"run {run.id} of 'job' expired: {row.reason}"


def test_a_run_that_waits_here_for_its_turn_and_expires_is_told_with_its_incident(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    told = listening(app, AppEventKind.RUN_SKIPPED, AppEventKind.INCIDENT_OPENED)
    app.enqueue(Shell("true"), session="q")
    with ThreadPoolExecutor(1) as beside:
        executed = beside.submit(lambda: app.execute(Shell("true"), session="q", max_age="5m"))
        eventually(lambda: len(app.runs.list(session="q")) == 2)
        fake_clock.advance("5m")
        assert executed.result(60).state is RunState.EXPIRED
    app.stop()
    assert names(told) == ["incident.opened", "run.skipped"]


def test_what_a_machine_that_checks_in_tells_comes_with_its_incident(
    app: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    told = listening(app, AppEventKind.RUN_STARTED, AppEventKind.RUN_FAILED, AppEventKind.RUN_SUCCEEDED, *INCIDENTS)
    app.schedules.add("backup", "daily 03:00", CheckIn(), tz="UTC")
    key = app.schedules.ping_key("backup").key

    async def check_in(container: Container, ping: Ping) -> None:
        assert await container.services.check_ins.check_in(key, ping) is not None

    for ping in (Ping(PingSignal.START), Ping(PingSignal.FAIL, 3), Ping(PingSignal.SUCCESS)):
        app.schedules._host.run(partial(check_in, ping=ping))
    app.stop()
    assert names(told) == ["run.started", "incident.opened", "run.failed", "incident.closed", "run.succeeded"]
    started, opened, failed, closed, succeeded = told
    assert {event.schedule for event in told} == {"backup"}
    assert (opened.cause, opened.subject, opened.incident) == (Cause.EXIT_STATUS, "backup", closed.incident)
    assert started.run == failed.run != succeeded.run
    row = app.runs.get(failed.run or 0)
    assert (failed.state, failed.cause, failed.reason, failed.attempt) == (row.state, row.cause, row.reason, 1)
    lines = [record.getMessage() for record in caplog.records if record.name == RUN_LOGGER]
    assert lines == [f"run {failed.run} of 'backup' failed after 0ms: {row.reason}"]


def test_a_run_that_waited_for_a_lost_node_is_told_as_failed_with_its_incident(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    told = listening(app, AppEventKind.RUN_FAILED, AppEventKind.INCIDENT_OPENED)

    async def leave(engine: Engine) -> None:
        now = fake_clock.now()
        run = NewRun("shell", None, '{"command":"true"}', "{}", Trigger.API, now, now, "default", session="q")
        await engine.store.runs.queue_bound(run, NodeId("gone"), now)

    app.with_engine(leave)
    drain(app)
    assert names(told) == ["incident.opened", "run.failed"]
    assert {event.cause for event in told} == {Cause.NODE_LOST}


def test_what_is_put_off_without_being_an_attempt_is_not_told_as_retrying(memory_app: Ostinato) -> None:
    told = listening(memory_app, AppEventKind.RUN_RETRYING, AppEventKind.RUN_SUCCEEDED)
    tries = [Snooze("1m", "later")]

    @memory_app.task
    def job() -> None:
        if tries:
            raise tries.pop()

    job.enqueue()
    simulate(memory_app, lasting="1h")
    assert names(told) == ["run.succeeded"]


def test_a_queued_run_that_is_cancelled_here_is_told_once(app: Ostinato) -> None:
    told = listening(app)
    run = app.task("job")(lambda: None).enqueue()
    app.runs.cancel(run.id, reason="not today")
    app.runs.cancel(run.id)
    app.stop()
    (event,) = told
    assert (event.kind, event.run, event.state, event.cause) == ("run.cancelled", run.id, "cancelled", "cancelled")
    assert event.reason == "not today"


def test_a_running_run_that_is_cancelled_is_told_when_its_end_is_written(app: Ostinato, gate: Gate) -> None:
    told = listening(app)

    @app.task
    async def job() -> None:
        gate.open()
        await asyncio.Event().wait()

    run = job.enqueue()
    app.start()
    gate.wait()
    app.runs.cancel(run.id)
    app.wait_idle(timeout="60s")
    app.stop()
    assert names(told) == ["run.started", "run.cancelled"]


def test_a_failed_attempt_of_a_run_that_was_to_be_cancelled_is_told_and_counted_as_cancelled(
    app: Ostinato, gate: Gate
) -> None:
    told = listening(app)

    @app.task("job", retry=3)
    def job() -> None:
        gate.wait()
        fails()

    run = job.enqueue()

    async def cancel_meanwhile(engine: Engine) -> dict[str, dict[str, int]]:
        """The engine is not started: nobody tells the run, so it fails, and is to be tried again."""
        await engine.dispatcher.claim()
        await asyncio.to_thread(gate.entered)
        await asyncio.to_thread(app.runs.cancel, run.id)
        gate.open()
        await engine.run_due()
        runs: dict[str, dict[str, int]] = engine.statistics.shape()["runs"]
        return runs

    assert app.with_engine(cancel_meanwhile) == {"job": {"cancelled": 1}}
    assert names(told) == ["run.started", "run.cancelled"]
    assert app.runs.get(run.id).state is RunState.CANCELLED


def test_what_was_missed_is_told_as_one_event_with_its_count(app: Ostinato, fake_clock: FakeClock) -> None:
    told = listening(app)
    app.schedules.add("hourly", "every 1h", app.task("job")(lambda: None), catch_up="none")
    fake_clock.advance("5h30m")
    drain(app)
    (event,) = told
    assert (event.kind, event.schedule, event.task, event.count) == ("due.missed", "hourly", "job", 5)
    assert (event.run, event.state, event.cause) == (None, RunState.MISSED, Cause.DOWNTIME)
    (row,) = app.runs.list(schedule="hourly")
    assert (event.due_at, event.reason) == (row.due_at, row.reason)


def test_a_due_time_that_meets_an_active_run_is_told_as_skipped(
    app: Ostinato, gate: Gate, fake_clock: FakeClock
) -> None:
    told = listening(app, AppEventKind.RUN_SKIPPED)
    app.schedules.add("hourly", "every 1h", app.task("job")(gate.wait))

    async def overlap(engine: Engine) -> None:
        fake_clock.advance("1h")
        await engine.step()
        await asyncio.to_thread(gate.entered)
        fake_clock.advance("1h")
        await engine.step()
        gate.open()

    app.with_engine(overlap)
    (event,) = told
    assert (event.schedule, event.cause, event.due_at) == ("hourly", Cause.OVERLAP, fake_clock.now_utc())


def test_a_run_that_a_check_refuses_is_told_as_skipped(memory_app: Ostinato) -> None:
    told = listening(memory_app)
    answers: list[str | None] = [None]
    memory_app.check("disk")(lambda: answers[-1])
    memory_app.schedules.add("hourly", "every 1h", memory_app.task("job")(lambda: None), checks=["disk"])
    answers.append("it is full")
    simulate(memory_app, lasting="1h")
    (run,) = memory_app.runs.list()
    assert names(told) == ["run.started", "run.skipped"]
    assert (told[1].run, told[1].cause) == (run.id, Cause.CHECK)


def test_a_schedule_that_breaks_and_works_again_is_told_once_each(app: Ostinato) -> None:
    told = listening(app, AppEventKind.SCHEDULE_BROKEN, AppEventKind.SCHEDULE_RECOVERED)
    is_full = [True]
    app.task("job", retry=0)(lambda: fails() if is_full[0] else None)
    app.schedules.add("hourly", "every 1h", "job", retry=0, break_after=2)
    simulate(app, lasting="5h")
    assert [(event.kind, event.schedule) for event in told] == [("schedule.broken", "hourly")]
    assert told[0].reason == app.schedules.get("hourly").broken

    is_full[0] = False
    app.schedules.enable("hourly")
    simulate(app, lasting="3h")
    assert names(told) == ["schedule.broken", "schedule.recovered"]


def test_a_schedule_that_failed_here_recovers_with_its_next_success(app: Ostinato) -> None:
    told = listening(app, AppEventKind.SCHEDULE_RECOVERED)
    is_full = [True]
    app.task("job", retry=0)(lambda: fails() if is_full[0] else None)
    app.schedules.add("hourly", "every 1h", "job", retry=0)
    simulate(app, lasting="1h")
    assert told == []
    is_full[0] = False
    simulate(app, lasting="3h")
    (event,) = told
    assert (event.schedule, event.task) == ("hourly", "job")
    assert event.run == app.runs.list(schedule="hourly", state="succeeded")[-1].id


def test_enabling_a_schedule_that_was_only_off_is_no_recovery(memory_app: Ostinato) -> None:
    told = listening(memory_app)
    memory_app.schedules.add("hourly", "every 1h", memory_app.task("job")(lambda: None))
    memory_app.schedules.disable("hourly")
    memory_app.schedules.enable("hourly")
    memory_app.stop()
    assert told == []


def test_a_schedule_whose_timing_cannot_be_read_is_told_as_broken(
    app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = listening(app)
    app.schedules.add("hourly", "every 1h", app.task("job")(lambda: None))
    fake_clock.advance("1h")

    def unreadable(*_: object, **__: object) -> None:
        raise ValueError("no such word")

    monkeypatch.setattr("ostinato.models.schedule.parse_timing", unreadable)
    drain(app)
    assert names(told) == ["schedule.broken"]
    assert told[0].reason == app.schedules.get("hourly").broken


def test_pausing_a_lane_here_is_told(app: Ostinato) -> None:
    told = listening(app)
    app.lanes.pause("main", note="the provider is down")
    app.lanes.resume("main")
    app.stop()
    (event,) = told
    assert (event.kind, event.lane, event.reason) == ("lane.paused", "main", "the provider is down")


@on_shared
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_lost_node_is_told_before_what_became_of_its_runs(
    shared_db: str, make_app: MakeApp, gate: Gate, is_cancelled: bool
) -> None:
    app, other = make_app(shared_db), make_app(shared_db, clock=(later := FakeClock()))
    app.task("job", retry=1 if is_cancelled else 0)(gate.wait)
    told = listening(other)
    run = app.enqueue("job")
    app.start()
    gate.entered()
    (node,) = app.nodes.list()
    if is_cancelled:
        app.runs.cancel(run.id)
    other.start()
    later.advance("15s")
    # Not until the row says so: a stop may come between that write and what is told of it.
    eventually(lambda: later.advance("100ms") and len(told) >= 2)
    other.stop()
    end, cause = ("run.cancelled", Cause.CANCELLED) if is_cancelled else ("run.failed", Cause.NODE_LOST)
    assert names(told) == ["node.lost", end]
    assert told[0].node == node.id
    assert (told[1].run, told[1].cause) == (run.id, cause)


def test_an_end_is_told_before_the_start_that_it_made_room_for(app: Ostinato) -> None:
    told = listening(app)
    job = app.task("job")(lambda: None)
    first, second = (job.using(session="one").enqueue() for _ in range(2))
    app.start()
    second.wait(timeout="60s")
    app.stop()
    assert [(event.kind.value, event.run) for event in told] == [
        ("run.started", first.id),
        ("run.succeeded", first.id),
        ("run.started", second.id),
        ("run.succeeded", second.id),
    ]


def test_a_start_that_another_claim_got_is_told_behind_the_end_that_made_room_for_it(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = listening(app)
    job = app.task("job")(lambda: None)
    first, second = (job.using(session="one").enqueue() for _ in range(2))

    async def step(engine: Engine) -> None:
        await engine.dispatcher.claim()
        await engine.runner.idle.wait()
        await engine.recorder.flush(claim=False)

    async def overtake(engine: Engine) -> None:
        runs = engine.recorder._runs
        finish = runs.finish_runs

        async def finish_and_claim(*args: Any, **options: Any) -> Finished:
            finished = await finish(*args, **options)
            await engine.dispatcher.claim()  # sees what is committed, before the recorder hears of it
            return finished

        with monkeypatch.context() as patch:
            patch.setattr(runs, "finish_runs", finish_and_claim)
            await step(engine)
        await step(engine)

    app.with_engine(overtake)
    assert [(event.kind.value, event.run) for event in told] == [
        ("run.started", first.id),
        ("run.succeeded", first.id),
        ("run.started", second.id),
        ("run.succeeded", second.id),
    ]


def test_a_schedule_does_not_recover_from_what_failed_in_another_of_its_name(app: Ostinato) -> None:
    told = listening(app, AppEventKind.SCHEDULE_RECOVERED)
    bad, good = app.task("bad", retry=0)(fails), app.task("good")(lambda: None)
    for task in (bad, good):
        app.schedules.add("hourly", "every 1h", task)
        simulate(app, lasting="1h")
        app.schedules.remove("hourly")
    assert told == []


def test_only_one_of_those_who_declare_a_node_lost_tells_it(app: Ostinato) -> None:
    async def declare(engine: Engine) -> list[list[NodeId]]:
        ((id, seen_at),) = await engine.store.nodes.signs_of_life()
        assert id == engine.id
        runs, now = engine.store.runs, engine.clock.now()
        answers = [await runs.stale_runs([(id, at)], now) for at in (seen_at - 1, seen_at, seen_at)]
        return [list(stale.lost) for stale in answers]

    heard_since, first, second = app.with_engine(declare)
    assert (heard_since, len(first), second) == ([], 1, [])


def test_a_finish_whose_token_no_longer_holds_is_not_told(app: Ostinato) -> None:
    told = listening(app)
    app.task("job")(lambda: None).enqueue()

    async def lose(engine: Engine) -> None:
        await engine.dispatcher.claim()
        await engine.runner.idle.wait()
        (finish,) = engine.recorder.unwritten
        finish.token += 1
        await engine.recorder.flush(claim=False)
        assert engine.recorder.lost_runs == 1

    app.with_engine(lose)
    assert names(told) == ["run.started"]


def test_work_that_is_executed_by_hand_is_told(memory_app: Ostinato) -> None:
    told = listening(memory_app)
    memory_app.task("job")(lambda: None)
    memory_app.execute("job")
    assert names(told) == ["run.started", "run.succeeded"]
