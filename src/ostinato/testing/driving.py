"""Drive an app by hand: drain what is due, simulate a stretch of time, settle a started engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ostinato.app import Ostinato
from ostinato.clock import Clock, Micros, from_micros, micros_of, to_micros
from ostinato.config import is_in_memory
from ostinato.durations import Duration, parse_duration
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput, NotRunning, WaitTimeout
from ostinato.plurals import counted
from ostinato.testing.eager import eagerly
from ostinato.testing.fake_clock import FakeClock

__all__ = ["adrain", "asettle", "asimulate", "drain", "rehearse", "settle", "simulate"]

T = TypeVar("T")

PATIENCE = 30.0
"""Real seconds; a test that hangs should say so before its runner gives up."""


def drain(app: Ostinato, *, timeout: Duration = PATIENCE) -> int:
    """Do everything that is due or ready now, on a temporary engine, and return how many runs that were.

    Tick, claim, execute, record, and again until nothing is left. A retry in the future stays queued until the clock
    is moved. Work that does not end within `timeout` (real time) raises WaitTimeout. On a started app, its own engine
    does the same.

        task.enqueue("x")
        assert drain(app) == 1
    """
    return _driven(app, _bounded(_run_due, timeout))


async def adrain(app: Ostinato, *, timeout: Duration = PATIENCE) -> int:
    """The same for coroutines."""
    return await _adriven(app, _bounded(_run_due, timeout))


def simulate(
    app: Ostinato,
    *,
    until: datetime | str | None = None,
    lasting: Duration | None = None,
    timeout: Duration = PATIENCE,
) -> int:
    """Move the app's FakeClock from due time to due time, up to a moment, and drain at each; returns how many runs.

    What happens over a week: `simulate(app, lasting="7d")`. Afterwards the clock stands at the end of that time.
    """
    return _driven(app, _bounded(_simulation(app, until, lasting), timeout))


async def asimulate(
    app: Ostinato,
    *,
    until: datetime | str | None = None,
    lasting: Duration | None = None,
    timeout: Duration = PATIENCE,
) -> int:
    """The same for coroutines."""
    return await _adriven(app, _bounded(_simulation(app, until, lasting), timeout))


def settle(app: Ostinato, *, timeout: Duration = PATIENCE) -> int:
    """On a started app: return when all that is due is recorded and all that is ready has started.

    Unlike `drain` it does not wait for running work to end; returns how many runs it started itself.
    """
    return _driven(app, _bounded(_step, timeout))


async def asettle(app: Ostinato, *, timeout: Duration = PATIENCE) -> int:
    """The same for coroutines."""
    return await _adriven(app, _bounded(_step, timeout))


@contextmanager
def rehearse(
    app: Ostinato, clock: Clock | None = None, *, db: str = "sqlite://:memory:", eager: bool = False
) -> Iterator[Ostinato]:
    """Put an existing app, such as your project's, on another clock and database for a while.

    With `eager=True`, what is enqueued is executed at once, and its function is called in the caller's thread. No
    transaction reaches a database in memory: what is enqueued with a `connection` is in the ledger at once.

    @pytest.fixture
    def app(fake_clock):
        with rehearse(project.app, fake_clock) as app:
            yield app
    """
    before = app.settings, app.clock, app._enqueuer.at_once
    app.stop()
    app.settings, app.clock = replace(app.settings, db=db), clock or FakeClock()
    app._enqueuer.at_once = eager or is_in_memory(db)
    try:
        with eagerly(app) if eager else nullcontext():
            yield app
    finally:
        app.stop()
        app.settings, app.clock, app._enqueuer.at_once = before


def _driven(app: Ostinato, use: Callable[[Engine], Awaitable[T]]) -> T:
    if (check := app.registry.contexts.check_threads) is not None:
        check()
    return app.with_engine(use)


async def _adriven(app: Ostinato, use: Callable[[Engine], Awaitable[T]]) -> T:
    contexts = app.registry.contexts
    if contexts.check_threads is not None:
        await (contexts.call_for_coroutine or asyncio.to_thread)(contexts.check_threads)
    return await app.aio.with_engine(use)


def _bounded(use: Callable[[Engine], Awaitable[T]], timeout: Duration) -> Callable[[Engine], Awaitable[T]]:
    seconds = parse_duration(timeout, field="timeout").total_seconds()

    async def bounded(engine: Engine) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await use(engine)
        except TimeoutError:
            after = f"after {seconds:g} s of real time"
            if not engine.runner.running:
                raise WaitTimeout(f"it was not done {after}: give it more with timeout=") from None
            running = counted(engine.runner.running, "run")
            raise WaitTimeout(
                f"{running} had not ended {after}: does the work wait for a clock that stands still?"
            ) from None

    return bounded


async def _run_due(engine: Engine) -> int:
    return await engine.run_due()


async def _step(engine: Engine) -> int:
    if not engine.is_started:
        raise NotRunning("settle() waits for a started engine: call app.start() first, or drain(app) instead")
    return await engine.step()


def _simulation(
    app: Ostinato, until: datetime | str | None, lasting: Duration | None
) -> Callable[[Engine], Awaitable[int]]:
    clock = app.clock
    if not isinstance(clock, FakeClock):
        raise InvalidInput(
            "only a FakeClock can be moved", field="clock", hint="Ostinato('sqlite://:memory:', clock=FakeClock())"
        )
    end = _end(clock, until, lasting)

    async def simulated(engine: Engine) -> int:
        count = await engine.run_due()
        while clock.now() < end:
            next_at = engine.next_at
            clock.move_to(from_micros(end if next_at is None else min(next_at, end)))
            count += await engine.run_due()
        return count

    return simulated


def _end(clock: FakeClock, until: datetime | str | None, lasting: Duration | None) -> Micros:
    if (until is None) == (lasting is None):
        raise InvalidInput("give either until or lasting", field="until", hint="until='2026-01-08T00:00:00Z'")
    if lasting is not None:
        return clock.now() + micros_of(parse_duration(lasting, field="lasting"))
    assert until is not None
    return to_micros(FakeClock(until).now_utc())
