"""Why due times were missed: the row says what kept the engine from seeing them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, RunState
from ostinato.clock import SECOND
from ostinato.engine import attendance
from ostinato.engine.attendance import Attendance
from ostinato.engine.node import Engine
from ostinato.engine.plan import NOBODY
from ostinato.errors import StoreUnavailable
from ostinato.testing import FakeClock, drain
from tests.conftest import tuned
from tests.engine.conftest import PATIENCE, eventually


def missed(app: Ostinato) -> str:
    """The reason of the missed row."""
    runs = eventually(lambda: app.runs.list(schedule="job", state=RunState.MISSED))
    return runs[0].reason or ""


def every_minute(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1m", "job", catch_up="none")


def test_nobody_was_there_before_the_first_look(app: Ostinato, fake_clock: FakeClock) -> None:
    every_minute(app)
    fake_clock.advance("3m30s")
    drain(app)
    assert missed(app).startswith("due while no engine was running, and")
    fake_clock.advance("3m")
    drain(app)
    assert [run.reason for run in app.runs.list()] == ["due while no engine was running, and catch_up is none"] * 2


@tuned(due_batch=2)
def test_what_does_not_fit_into_one_pass_was_missed_for_the_same_reason(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    for number in range(5):
        app.schedules.add(f"job{number}", "every 1m", "job", catch_up="none")
    fake_clock.advance("3m30s")
    drain(app)
    assert {run.reason for run in app.runs.list()} == {"due while no engine was running, and catch_up is none"}
    app.start()
    app.with_engine(_looked)
    fake_clock.advance("3m30s")
    eventually(lambda: len(app.runs.list(state=RunState.MISSED)) == 10)
    told = [run.reason or "" for run in app.runs.list(state=RunState.MISSED)]
    assert sum("the engine was held up (stopped, blocked or suspended) for about 3m30s" in each for each in told) == 5


def test_what_could_not_be_recorded_was_missed_because_of_that(
    app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_minute(app)
    app.start()
    app.with_engine(_looked)

    async def away(engine: Engine) -> None:
        await engine.watchdog.stop("ticker")

        async def fails(*_: Any) -> None:
            raise StoreUnavailable("the cable was pulled")

        with monkeypatch.context() as patch:
            patch.setattr(engine.store.schedules, "record_fires", fails)
            fake_clock.advance("1m")
            with pytest.raises(StoreUnavailable):
                await engine.ticker.tick()
        fake_clock.advance("2m30s")
        await engine.ticker.tick()

    app.with_engine(away)
    assert "the database could not be reached for about 2m30s or longer" in missed(app), "since it failed first"


def test_an_engine_that_was_held_up_says_so(app: Ostinato, fake_clock: FakeClock) -> None:
    every_minute(app)
    app.start()
    app.with_engine(_looked)
    fake_clock.advance("3m30s")
    assert "the engine was held up (stopped, blocked or suspended) for about 3m30s" in missed(app)


async def _looked(engine: Engine) -> None:
    await engine.ticker.tick()


def test_a_clock_that_is_set_forward_is_told(app: Ostinato, fake_clock: FakeClock) -> None:
    every_minute(app)
    app.start()
    app.with_engine(_looked)
    fake_clock.jump_to("2026-01-01T01:00:30Z")
    app.with_engine(_looked)
    assert "the clock was set forward by 1h30s" in missed(app)


def test_a_database_that_was_away_is_told(
    app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_minute(app)
    app.start()
    app.with_engine(_looked)

    async def away(engine: Engine) -> None:
        with monkeypatch.context() as patch:

            async def fails(*_: Any) -> None:
                raise StoreUnavailable("the cable was pulled")

            await engine.watchdog.stop("ticker")
            patch.setattr(engine.store.schedules, "due_schedules", fails)
            with pytest.raises(StoreUnavailable):
                await engine.ticker.tick()
            fake_clock.advance("3m30s")
            with pytest.raises(StoreUnavailable):
                await engine.ticker.tick()
        await engine.ticker.tick()

    app.with_engine(away)
    assert "the database could not be reached for about 3m30s" in missed(app)


@pytest.mark.parametrize(
    ("stands", "says"),
    [(0.0, "the database did not answer for about 6s"), (5.0, "the engine was held up")],
    ids=["turns", "stands"],
)
def test_a_slow_answer_is_the_database_s_only_if_the_loop_turned_meanwhile(
    fake_clock: FakeClock, stands: float, says: str
) -> None:
    uptime, stood = [0], [0.0]

    async def slow() -> None:
        uptime[0] += 6_000_000
        stood[0] += stands
        fake_clock.advance("6s")

    async def looks() -> str:
        seen = Attendance(lambda: uptime[0], lambda: stood[0])
        asked = seen.look(fake_clock.now(), fake_clock.steady())
        assert seen.why(asked) == NOBODY
        await seen.ask(slow(), asked)
        seen.recorded(asked)
        return seen.why(seen.look(fake_clock.now(), fake_clock.steady()))

    assert asyncio.run(looks()).startswith(says)


class Watched:
    """An Attendance whose time passes by what its test says."""

    def __init__(self) -> None:
        self.now, self.stood = 0, 0.0
        self.seen = Attendance(lambda: self.now, lambda: self.stood)

    def look(self) -> attendance.Look:
        return self.seen.look(self.now, self.now)

    async def answer(self, seconds: int, error: Exception | None = None) -> None:
        self.now += seconds * SECOND
        if error is not None:
            raise error


async def test_an_outage_is_counted_from_its_beginning_over_all_questions() -> None:
    """A file that is locked for 14 s: the first write gives up after 10, the second waits 4 more."""
    watched = Watched()
    watched.seen.recorded(watched.look())
    watched.now += 60 * SECOND
    with pytest.raises(StoreUnavailable):
        await watched.seen.ask(watched.answer(10, StoreUnavailable("locked")), watched.look())
    again = watched.look()
    assert watched.seen.why(again) == "the database could not be reached for about 10s or longer"
    await watched.seen.ask(watched.answer(4), again)
    assert watched.seen.why(watched.look(), again) == "the database did not answer for about 14s"


async def test_what_comes_long_after_an_outage_is_not_its_doing() -> None:
    watched = Watched()
    look = watched.look()
    await watched.seen.ask(watched.answer(8), look)
    watched.seen.recorded(look)
    watched.now += 3_600 * SECOND
    watched.stood += 30
    look = watched.look()
    assert watched.seen.why(look) == "the engine was held up (stopped, blocked or suspended) for about 30s"
    await watched.seen.ask(watched.answer(3), look)
    assert watched.seen.why(watched.look(), look) == "the database did not answer for about 3s"


WORKER = """
import sys, time
from ostinato import Ostinato
app = Ostinato(sys.argv[1], name="stopped")
app.task("job", schedule="every 1s")(lambda: None)
app.start()
print("ready", flush=True)
sys.stdin.read()
app.stop(grace=0)
"""


@pytest.mark.timeout(120)
def test_a_process_that_is_stopped_for_some_seconds_misses_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    reader = Ostinato(url, name="reader")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        eventually(lambda: len(reader.runs.list()) >= 2)
        os.kill(process.pid, signal.SIGSTOP)
        stopped_at = time.time()
        while time.time() < stopped_at + 3.5:  # how long it is stopped is what is tested
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGCONT)
        held_up = time.time() - stopped_at
        before = len(reader.runs.list())
        eventually(lambda: len(reader.runs.list()) >= before + 5)
        states = {run.state for run in reader.runs.list()}
        if held_up < 4.5:  # on a machine so busy that it was longer, more than the grace may have passed
            assert RunState.MISSED not in states
    finally:
        process.kill()
        process.wait(PATIENCE)
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()
        reader.stop()
