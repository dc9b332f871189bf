"""The tools of ostinato.testing, tried as a user tries them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ostinato import (
    DailyAt,
    Ostinato,
    Run,
    RunContext,
    RunFailed,
    RunState,
)
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput, NotRunning, WaitTimeout
from ostinato.testing import FakeClock, drain, rehearse, settle, simulate
from tests.doors.conftest import at


def test_the_fake_clock_moves_as_it_is_told() -> None:
    clock = FakeClock("2026-05-01T10:00:00+02:00")
    assert clock.now_utc() == datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert clock.advance(timedelta(seconds=1)) == datetime(2026, 5, 1, 8, 0, 1, tzinfo=UTC)
    assert clock.advance("1h30m") == datetime(2026, 5, 1, 9, 30, 1, tzinfo=UTC)
    assert clock.advance(0.5).microsecond == 500_000
    assert clock.move_to("2026-01-01") == at(0)
    for wrong in ("soon", datetime(2026, 1, 1)):
        with pytest.raises(InvalidInput):
            clock.move_to(wrong)
    with pytest.raises(InvalidInput):
        clock.advance("-1h")


def test_the_fake_clock_wakes_who_waits_on_other_loops_in_order() -> None:
    from ostinato.clock import SECOND, Signal

    clock = FakeClock()
    woken: list[int] = []
    waiting = threading.Barrier(2)

    async def wait(seconds: int) -> None:
        assert not await clock.wait(Signal(), clock.now() + seconds * SECOND)
        woken.append(seconds)

    async def main() -> None:
        tasks = [asyncio.create_task(wait(seconds)) for seconds in (30, 10, 20)]
        await asyncio.sleep(0)
        waiting.wait()
        await asyncio.gather(*tasks)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    waiting.wait()
    clock.advance(15)
    clock.advance(15)
    thread.join(10)
    assert woken == [10, 20, 30]


async def test_a_wait_takes_as_long_as_it_would_have_when_the_clock_goes_back() -> None:
    clock = FakeClock()
    called: list[datetime] = []
    clock.call_at(clock.now() + 10_000_000, lambda: called.append(clock.now_utc()))
    clock.move_to("2025-12-31T00:00:00Z")
    clock.advance("9s")
    await asyncio.sleep(0)
    assert called == []
    clock.advance("1s")
    await asyncio.sleep(0)
    assert called == [datetime(2025, 12, 31, 0, 0, 10, tzinfo=UTC)]


def test_only_a_fake_clock_can_be_simulated() -> None:
    app = Ostinato(settings=Settings(db="sqlite://:memory:"))
    with pytest.raises(InvalidInput, match="only a FakeClock can be moved"):
        simulate(app, lasting="1h")


def test_simulate_wants_one_end(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="either until or lasting"):
        simulate(app)


def test_drain_gives_up_on_work_that_does_not_end(app: Ostinato) -> None:
    @app.task
    async def job() -> None:
        await asyncio.Event().wait()

    run = job.enqueue()
    # Whether it had begun by then is the machine's affair.
    with pytest.raises(WaitTimeout, match=r"(1 run had not ended|it was not done) after 0\.5 s"):
        drain(app, timeout="500ms")
    assert run.get().state is RunState.QUEUED, "and puts it back"


def test_settle_needs_a_started_engine(app: Ostinato) -> None:
    with pytest.raises(NotRunning, match="drain"):
        settle(app)


def test_a_wait_that_nobody_could_ever_end_is_refused_at_once(app: Ostinato) -> None:
    @app.task
    def fail() -> None:
        raise ValueError("no stock")

    run = fail.enqueue()
    with pytest.raises(NotRunning, match="run 1 is queued, and nobody executes it: no engine is started"):
        run.wait()
    with pytest.raises(NotRunning, match="1 run is still queued or running, and nobody executes it"):
        app.wait_idle()
    assert drain(app) == 1
    with pytest.raises(NotRunning, match=r"run 1 is queued and not ready before 2026-01-01 .*drain"):
        run.result()
    with pytest.raises(NotRunning, match="nobody executes it"):
        app.sessions.send("chat", "hello", task=app.task("answer")(lambda payloads: None)).wait()
    simulate(app, lasting="1h")
    with pytest.raises(RunFailed, match="no stock"):
        run.result()


def test_a_wait_goes_on_while_somebody_may_end_it(app: Ostinato, tmp_path: Path) -> None:
    answers: list[Future[Run]] = []

    @app.task
    def job() -> str:
        return "done"

    with pytest.raises(WaitTimeout, match="still queued after"):
        job.enqueue().wait("10ms")

    with ThreadPoolExecutor(1) as pool:

        @app.task
        def be_awaited(run: RunContext) -> None:
            answers.append(pool.submit(app.runs.wait, run.id))

        be_awaited.enqueue()
        drain(app)  # its engine is not a started one, and ends it
        assert answers[0].result(30).state is RunState.SUCCEEDED

    shared = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path}/jobs.db"))
    run = shared.task("later")(lambda: "later").enqueue()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(run.result)
        shared.start()
        assert answer.result(30) == "later"
    shared.stop()


def test_an_app_that_exists_is_rehearsed_on_another_clock_and_database() -> None:
    app = Ostinato(settings=Settings(db="sqlite:////nowhere/at/all.db"))
    seen: list[int] = []
    app.task("job", schedule=DailyAt(3, 0))(lambda: seen.append(1))
    with rehearse(app) as rehearsed:
        assert simulate(rehearsed, lasting="2d") == 2
    assert seen == [1, 1]
    assert app.settings.db == "sqlite:////nowhere/at/all.db"
    assert not isinstance(app.clock, FakeClock)


def test_drain_does_what_comes_after_a_run_that_ended_while_it_looked(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, gate = threading.Event(), threading.Event()

    @app.task("first")
    def first() -> None:
        began.set()
        assert gate.wait(30)

    app.task("second")(lambda: None)
    app.start()
    app.schedules.add("before", "at 2030-01-01T00:00:00Z", "first")
    app.schedules.add("behind", "after before", "second")
    app.schedules.trigger("before")
    assert began.wait(30)

    async def looked(engine: Engine) -> int:
        claim = engine.dispatcher.claim

        async def claim_while_it_ends(ahead: int = 0) -> int:
            claimed = await claim(ahead)
            gate.set()
            await engine.runner.idle.wait()
            await engine.recorder.flush(claim=False)
            return claimed

        with monkeypatch.context() as patch:
            patch.setattr(engine.dispatcher, "claim", claim_while_it_ends)
            await engine.watchdog.stop("ticker", "waker")  # nobody else does it
            return await engine.run_due()

    app.with_engine(looked)
    assert [run.state for run in app.runs.list(schedule="behind")] == ["succeeded"]
