"""A lease that may have run out: nothing starts, and what runs is stopped, before others start it anew."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import apsw
import psycopg
import pytest

from ostinato import Ostinato, RunState
from ostinato.clock import SECOND, Micros, SystemClock, to_micros
from ostinato.clock import uptime as real_uptime
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.engine.ticker import Ticker
from ostinato.errors import Conflict
from ostinato.models.node import NodeBeat
from ostinato.models.run import NewRun
from ostinato.models.states import Trigger
from ostinato.stores.base import Claim, Finished, NodeStore, Renewed, RunStore
from ostinato.testing import FakeClock, simulate
from ostinato.tuning import Tuning
from tests.conftest import tuned
from tests.engine.conftest import PATIENCE, Gate, MakeApp, engine_of, eventually, on_shared

LEASE = 15 * SECOND


class Uptime:
    """The time since boot, which only the test lets pass."""

    def __init__(self) -> None:
        self.now: Micros = 1_000 * SECOND

    def __call__(self) -> Micros:
        return self.now


@pytest.fixture
def uptime(monkeypatch: pytest.MonkeyPatch) -> Uptime:
    made = Uptime()
    for clock in (FakeClock, SystemClock):
        monkeypatch.setattr(clock, "uptime", lambda _: made())
    return made


@pytest.fixture
def tuning() -> Tuning:
    return Tuning(lease_look_seconds=0.01)


never_held_up = tuned(lease_look_seconds=0.01, lease_late_seconds=1e9)
"""The process was there all the time: it was its beat that did not get through."""


class DeadLine:
    """The nodes of a database behind a line that swallows beats until the test lets them through."""

    def __init__(self, nodes: NodeStore) -> None:
        self._nodes = nodes
        self._open = asyncio.Event()
        self.sent = 0

    async def renew(self, beat: NodeBeat) -> Renewed:
        self.sent += 1
        await self._open.wait()
        return await self._nodes.renew(beat)

    def mend(self) -> None:
        self._open.set()

    async def mended(self) -> None:
        await self._open.wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nodes, name)


class DeadRuns:
    """The runs of a database behind the same line: what is finished is written when it is mended."""

    def __init__(self, runs: RunStore, line: DeadLine) -> None:
        self._runs = runs
        self._line = line

    async def finish_runs(self, *args: Any) -> Finished:
        await self._line.mended()
        return await self._runs.finish_runs(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)


def cut(app: Ostinato) -> DeadLine:
    """From now on neither a beat nor a finish of this node gets through."""

    async def replace_nodes(engine: Engine) -> DeadLine:
        line = engine.lease._nodes = DeadLine(engine.store.nodes)
        engine.recorder._runs = cast(RunStore, DeadRuns(engine.store.runs, line))
        return line

    return app.with_engine(replace_nodes)


def mend(app: Ostinato, line: DeadLine) -> None:
    async def open_line(_: Engine) -> None:
        line.mend()

    app.with_engine(open_line)


def on_loop(app: Ostinato, call: Callable[[Engine], Any]) -> Any:
    async def called(engine: Engine) -> Any:
        return call(engine)

    return app.with_engine(called)


# Nothing starts.


def test_what_was_claimed_ahead_does_not_start_once_the_lease_may_have_run_out(
    app: Ostinato, fake_clock: FakeClock, uptime: Uptime
) -> None:
    ran: list[int] = []
    job = app.task("job")(lambda: ran.append(1))
    app.start()
    run = job.using(delay="50ms").enqueue()
    eventually(lambda: app.health()["held"] == 1)
    line = cut(app)
    uptime.now += LEASE
    fake_clock.advance("1s")
    eventually(lambda: line.sent)
    assert on_loop(app, lambda engine: engine.dispatcher.start_claimed(engine.clock.now())) == 0
    assert (app.health()["held"], ran) == (1, [])
    mend(app, line)
    assert run.wait(timeout=60).state is RunState.SUCCEEDED
    assert run.get().attempt == 1


def test_nothing_is_claimed_once_the_lease_may_have_run_out(app: Ostinato, uptime: Uptime) -> None:
    job = app.task("job")(lambda: "done")
    app.start()
    line = cut(app)
    uptime.now += LEASE
    run = job.enqueue()
    eventually(lambda: line.sent)
    assert on_loop(app, lambda engine: engine.dispatcher.request()) is None
    assert run.get().state is RunState.QUEUED
    mend(app, line)
    assert run.wait(timeout=60).result == "done"


def test_a_claim_that_is_answered_too_late_waits_for_a_beat(app: Ostinato, uptime: Uptime) -> None:
    job = app.task("job")(lambda: "done")
    app.start()
    line = cut(app)

    async def begin(engine: Engine) -> Claim:
        await engine.dispatcher.rest()
        request = engine.dispatcher.request()
        assert request is not None
        return request

    async def end(engine: Engine) -> int:
        claimed = await engine.store.runs.claim_runs(claim)
        uptime.now += LEASE
        engine.dispatcher.accept(claimed)
        assert engine.runner.running == 0
        return engine.dispatcher.claimed_ahead

    claim = app.with_engine(begin)
    run = job.enqueue()
    assert app.with_engine(end) == 1
    mend(app, line)
    assert run.wait(timeout=60).result == "done"
    assert run.get().attempt == 1


def test_work_whose_preparation_ends_too_late_begins_after_a_beat(
    app: Ostinato, fake_clock: FakeClock, gate: Gate, uptime: Uptime
) -> None:
    ran: list[int] = []
    asked: list[int] = []
    app.task("job")(lambda: ran.append(1))

    @app.check("ready")
    def ready() -> bool:
        asked.append(1)
        if len(asked) > 1:  # the first time it is added
            gate.wait()
        return True

    app.schedules.add("job", "every 1h", "job", checks=["ready"])
    app.start()
    fake_clock.advance("1h")
    gate.entered()
    line = cut(app)
    uptime.now += LEASE - SECOND
    gate.open()
    eventually(lambda: line.sent)
    assert (app.health()["running"], ran) == (1, [])
    mend(app, line)
    eventually(lambda: ran)


def test_a_run_that_is_handed_in_is_not_begun_on_a_node_that_was_declared_lost(
    app: Ostinato, uptime: Uptime, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.task("job")(lambda: "never")
    app.start()
    engine = engine_of(app)

    async def hand_in(engine: Engine) -> None:
        await engine.watchdog.stop("lease", "fence", "rescuer")
        start_run = engine.store.runs.start_run

        async def slow(*args: Any) -> Any:
            """Meanwhile the lease runs out, and others declare the node lost."""
            claimed = await start_run(*args)
            (node,) = await engine.store.nodes.list_nodes(engine.clock.now())
            await engine.store.runs.stale_runs([(engine.id, to_micros(node.seen_at))], engine.clock.now())
            uptime.now += LEASE
            engine.watchdog.start("lease", engine.lease.run)
            return claimed

        monkeypatch.setattr(engine.store.runs, "start_run", slow)
        now = engine.clock.now()
        run = NewRun("function", "job", '{"kind":"function","task":"job"}', "{}", Trigger.API, now, now, "main")
        with pytest.raises(Conflict, match="lost its lease"):
            await engine.direct.start(run)

    before = engine.id
    app.with_engine(hand_in)
    assert engine.id != before
    assert engine.runner.running == 0


# What runs is stopped.


def stay(app: Ostinato, name: str, **policy: Any) -> tuple[Any, threading.Event, threading.Event]:
    """A task that runs until it is stopped; when it has begun, and when it has ended."""
    begun, ended = threading.Event(), threading.Event()

    @app.task(name, **policy)
    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    return work, begun, ended


@never_held_up
def test_at_the_end_of_its_lease_a_node_stops_what_it_runs_and_says_so(
    app: Ostinato, uptime: Uptime, caplog: pytest.LogCaptureFixture
) -> None:
    job, begun, ended = stay(app, "job", retry=0)
    other, other_begun, other_ended = stay(app, "other", retry=0, on_lost_lease="continue")
    app.start()
    run, goes_on = job.enqueue(), other.enqueue()
    assert begun.wait(PATIENCE)
    assert other_begun.wait(PATIENCE)
    assert app.health()["lease"] == {"holds": True, "unrenewed_since": None, "stopped_runs": 0}

    line = cut(app)
    uptime.now += LEASE
    assert ended.wait(PATIENCE), "the work was not stopped"
    health = app.health()
    assert not health["ok"]
    assert health["lease"]["unrenewed_since"] == "2025-12-31T23:59:45+00:00"
    assert health["lease"]["stopped_runs"] == 1
    assert not other_ended.is_set()
    told = [record.message for record in caplog.records if "could not renew its lease" in record.message]
    assert len(told) == 1
    assert "stops 1 run, and lets 1 go on" in told[0]

    mend(app, line)
    eventually(lambda: app.health()["ok"])
    stopped = run.wait(timeout=60)
    assert (stopped.state, stopped.reason) == (RunState.FAILED, "the node could not renew its lease for 15 s")
    assert goes_on.get().state is RunState.RUNNING
    assert "renewed its lease after 15 s" in caplog.text


@never_held_up
def test_what_was_stopped_is_tried_again_and_does_not_count_for_the_breaker(
    app: Ostinato, fake_clock: FakeClock, uptime: Uptime
) -> None:
    _, begun, ended = stay(app, "job")
    app.schedules.add("job", "every 1h", "job", retry=0, break_after=1)
    app.schedules.add("again", "every 1h", "job", retry=1)
    app.start()
    fake_clock.advance("1h")
    assert begun.wait(PATIENCE)
    eventually(lambda: app.health()["running"] == 2)
    line = cut(app)
    uptime.now += LEASE
    assert ended.wait(PATIENCE)
    mend(app, line)
    eventually(lambda: [run.state for run in app.runs.list(schedule="job")] == [RunState.FAILED])
    assert app.schedules.get("job").enabled
    (again,) = app.runs.list(schedule="again")
    assert (again.state, again.attempt) == (RunState.QUEUED, 1)
    assert "attempt 1 of 2 failed" in (again.reason or "")


@never_held_up
def test_a_run_whose_work_had_not_begun_goes_back_without_an_attempt(
    app: Ostinato, fake_clock: FakeClock, uptime: Uptime
) -> None:
    """Its check was being asked: without retries too, the work is still to be done."""
    ran: list[int] = []
    asked: list[int] = []
    app.task("job")(lambda: ran.append(1))
    begun = threading.Event()

    @app.check("ready")
    async def ready() -> bool:
        asked.append(1)
        if len(asked) == 2:  # the first time it is added
            begun.set()
            await asyncio.Event().wait()
        return True

    app.schedules.add("job", "every 1h", "job", checks=["ready"], retry=0, run_once=True)
    app.start()
    fake_clock.advance("1h")
    assert begun.wait(PATIENCE)
    line = cut(app)
    uptime.now += LEASE
    eventually(lambda: app.health()["lease"]["stopped_runs"])
    mend(app, line)
    eventually(lambda: ran)
    eventually(lambda: app.runs.list(state=RunState.SUCCEEDED))
    (run,) = app.runs.list()
    assert (run.attempt, [attempt.state for attempt in run.attempts], ran) == (1, ["succeeded"], [1])


@on_shared
@never_held_up
def test_what_others_rescued_meanwhile_is_not_written(shared_db: str, make_app: MakeApp, uptime: Uptime) -> None:
    app, other = make_app(shared_db), make_app(shared_db, clock=(later := FakeClock()))
    job, begun, ended = stay(app, "job", retry=0)
    other.task("job")(lambda: None)
    app.start()
    run = job.enqueue()
    assert begun.wait(PATIENCE)
    line = cut(app)
    later.advance("1s")  # what both write at one instant is taken for one end that was written twice
    other.start()
    uptime.now += LEASE
    assert ended.wait(PATIENCE)
    later.advance("15s")
    eventually(lambda: later.advance("1s") and "was lost" in (other.runs.get(run.id).reason or ""))
    mend(app, line)
    eventually(lambda: app.health()["ok"] and app.health()["unwritten"] == 0)
    assert "was lost while it ran this" in (other.runs.get(run.id).reason or "")
    assert app.health()["lost_runs"] == 1


def test_a_process_that_was_stopped_asks_before_it_stops_its_work(app: Ostinato, uptime: Uptime) -> None:
    """After a SIGSTOP or a suspend the beat had no chance: it comes first."""
    job, begun, ended = stay(app, "job")
    app.start()
    run = job.enqueue()
    assert begun.wait(PATIENCE)
    line = cut(app)
    sent = uptime.now
    uptime.now += 8 * 3_600 * SECOND
    eventually(lambda: line.sent)
    mend(app, line)
    eventually(lambda: app.health()["ok"])
    assert not ended.is_set()
    assert run.get().state is RunState.RUNNING
    assert uptime.now > sent


@tuned(lease_look_seconds=0.01, lease_second_chance_seconds=0.05)
def test_a_process_that_was_stopped_does_not_wait_for_ever(app: Ostinato, uptime: Uptime) -> None:
    job, begun, ended = stay(app, "job")
    app.start()
    job.enqueue()
    assert begun.wait(PATIENCE)
    line = cut(app)
    uptime.now += 8 * 3_600 * SECOND
    assert ended.wait(PATIENCE)
    assert not app.health()["ok"]
    mend(app, line)
    eventually(lambda: app.health()["ok"])


# On real databases that hang, by the real clock.


@contextmanager
def hung(url: str) -> Iterator[None]:
    """Nobody can write to the table of nodes."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(60_000)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()
    else:
        with psycopg.connect(url) as server, server.transaction():
            server.execute("LOCK TABLE ostinato.nodes IN ACCESS EXCLUSIVE MODE")
            yield


@on_shared
def test_a_database_that_hangs_ends_what_runs_within_a_lease(shared_db: str) -> None:
    settings = replace(Settings(), db=shared_db, lease=timedelta(seconds=1))
    app = Ostinato(settings=settings)
    job, begun, ended = stay(app, "job", retry=0)
    app.start()
    try:
        run = job.enqueue()
        assert begun.wait(PATIENCE)
        with hung(shared_db):
            assert ended.wait(PATIENCE), "it worked on without a lease"
            assert not app.health()["lease"]["holds"]
        stopped = run.wait(timeout=60)
        assert stopped.state is RunState.FAILED
        assert "could not renew its lease" in (stopped.reason or "")
        eventually(lambda: app.health()["ok"])
    finally:
        app.stop(grace=0)


def test_the_clock_since_boot_only_passes() -> None:
    seen = [real_uptime() for _ in range(100)]
    assert seen == sorted(seen)
    assert abs(real_uptime() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000) < 60 * SECOND


def test_what_is_driven_by_hand_never_loses_its_lease_in_the_middle_of_a_step(
    memory_app: Ostinato, uptime: Uptime, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_app.task("job", schedule="every 1m", max_age="30s")(lambda: None)
    tick = Ticker.tick

    async def slow(ticker: Ticker) -> Any:
        uptime.now += LEASE // 5
        return await tick(ticker)

    monkeypatch.setattr(Ticker, "tick", slow)
    assert simulate(memory_app, lasting="1h") == 60
