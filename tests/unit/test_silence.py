"""The watch over silence: when it looks, and when it strikes."""

from __future__ import annotations

import asyncio

from ostinato.clock import SECOND, Micros
from ostinato.durations import parse_duration
from ostinato.execution.context import RunContext
from ostinato.execution.silence import SilenceWatch
from ostinato.testing import FakeClock
from tests.rows import claimed_run


class Laptop(FakeClock):
    """A machine that can be suspended: its steady time goes on, its timers do not."""

    slept: Micros = 0

    def steady(self) -> Micros:
        return super().steady() + self.slept


class Watched:
    """A run, and whether it was found stuck."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.context = RunContext(claimed_run(), lambda _: None)
        self.is_stuck = False
        self.watch = SilenceWatch(self.context, parse_duration("10m"), clock, self._strike)

    def _strike(self) -> None:
        assert not self.is_stuck, "it strikes once"
        self.is_stuck = True

    async def after(self, length: str) -> bool:
        """Whether it is stuck when this much time has passed."""
        self.clock.advance(length)
        await asyncio.sleep(0)
        return self.is_stuck


async def test_it_strikes_when_the_time_is_over_since_the_last_sign_of_life() -> None:
    run = Watched(FakeClock())
    assert not await run.after("9m")
    run.context.heartbeat()
    assert not await run.after("1m")
    assert not await run.after("8m59s")
    assert await run.after("1s")
    assert await run.after("1h")


async def test_a_watch_that_is_cancelled_does_not_strike() -> None:
    run = Watched(FakeClock())
    await run.after("9m")
    run.context.heartbeat()
    await run.after("1m")
    run.watch.cancel()
    assert not await run.after("1h")


async def test_the_time_that_a_machine_was_suspended_for_is_no_silence() -> None:
    clock = Laptop()
    run = Watched(clock)
    await run.after("5m")
    run.context.heartbeat()
    clock.slept += 3_600 * SECOND
    assert not await run.after("5m")
    assert not await run.after("9m59s")
    assert await run.after("1s")
