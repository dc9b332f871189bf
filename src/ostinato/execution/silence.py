"""Watches that running work says something from time to time: the policy `silent`.

The runner makes a watch when such work begins, and ends the attempt when it strikes. What counts as a sign of life,
the context hears: output, counters, progress, reports and heartbeats, its own and those of the runs that it executes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from ostinato.clock import Clock, Micros, Timer, micros_of
from ostinato.execution.context import RunContext

__all__ = ["SilenceWatch"]


class SilenceWatch:
    """Calls `strike`, once, when nothing was heard of a run for so long. A line of output costs no timer: the watch
    looks when the silence would be over that began with what it last knew of."""

    __slots__ = ("_clock", "_context", "_known", "_limit", "_strike", "_timer")

    def __init__(self, context: RunContext, limit: timedelta, clock: Clock, strike: Callable[[], None]) -> None:
        self._context = context
        self._limit = micros_of(limit)
        self._clock = clock
        self._strike = strike
        context.listen(clock.steady)
        self._timer: Timer = self._wait(self._limit)

    def cancel(self) -> None:
        """Watch no more."""
        self._timer.cancel()

    def _wait(self, delay: Micros) -> Timer:
        self._known = self._context.heard_at
        return self._clock.call_at(self._clock.now() + delay, self._look)

    def _look(self) -> None:
        heard_at = self._context.heard_at
        if heard_at == self._known:
            self._strike()
            return
        left = heard_at + self._limit - self._clock.steady()
        # A machine that was suspended has steady time that its timers and its work have not: they begin anew.
        self._timer = self._wait(left if left > 0 else self._limit)
