"""A clock that stands still until it is moved; whoever waits for an instant is woken when the clock gets there."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count

from ostinato.clock import Micros, Signal, from_micros, micros_of, to_micros, uptime
from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidInput
from ostinato.timing.zones import check_aware

__all__ = ["FakeClock"]


class FakeClock:
    """Implements ostinato.clock.Clock, and drives a whole engine; move it from any thread.

    clock = FakeClock("2026-01-01T00:00:00Z")
    app = Ostinato("sqlite://:memory:", clock=clock).start()
    clock.advance("3h")
    """

    def __init__(self, start: datetime | str = "2026-01-01T00:00:00Z") -> None:
        self._now = _instant(start)
        self._steady: Micros = 0
        self._lock = threading.Lock()
        self._timers: list[_Timer] = []
        self._numbers = count()

    def now(self) -> Micros:
        return self._now

    def steady(self) -> Micros:
        return self._steady

    def uptime(self) -> Micros:
        return uptime()

    def now_utc(self) -> datetime:
        """The current time as an aware datetime in UTC."""
        return from_micros(self._now)

    def advance(self, duration: Duration) -> datetime:
        """Let time pass (a timedelta, seconds, or text such as `1h30m`); returns the new time."""
        length = micros_of(parse_duration(duration))
        with self._lock:
            return self._move(self._now + length)

    def move_to(self, moment: datetime | str) -> datetime:
        """Set the clock, forward as time passes, or back as a corrected clock jumps."""
        with self._lock:
            return self._move(_instant(moment))

    def jump_to(self, moment: datetime | str) -> datetime:
        """Set the clock, forward or back, as when somebody sets a wrong clock: no time passes."""
        with self._lock:
            jumped = _instant(moment) - self._now
            self._now += jumped
            for timer in self._timers:
                timer.instant += jumped
            return from_micros(self._now)

    async def wait(self, signal: Signal, until: Micros | None) -> bool:
        if until is None:
            return await signal.wait()
        if until <= self._now:
            await asyncio.sleep(0)
            return signal.take()
        timer = self.call_at(until, signal.release)
        try:
            return await signal.wait()
        finally:
            timer.cancel()

    def call_at(self, instant: Micros, callback: Callable[[], None]) -> _Timer:
        with self._lock:
            timer = _Timer(instant, next(self._numbers), callback, asyncio.get_running_loop())
            if instant <= self._now:
                timer.fire()
            else:
                heapq.heappush(self._timers, timer)
        return timer

    def _move(self, instant: Micros) -> datetime:
        gone_back = self._now - instant
        self._now = instant
        self._steady += max(0, -gone_back)
        if gone_back > 0:
            # A sleep under way takes as long as it would have: it was never a sleep until a time on the wall.
            for timer in self._timers:
                timer.instant -= gone_back
        while self._timers and self._timers[0].instant <= instant:
            heapq.heappop(self._timers).fire()
        return from_micros(instant)

    def __repr__(self) -> str:
        return f"<FakeClock {self.now_utc():%Y-%m-%dT%H:%M:%S.%f}Z>"


class _Timer:
    __slots__ = ("_callback", "_loop", "_number", "instant")

    def __init__(
        self, instant: Micros, number: int, callback: Callable[[], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.instant = instant
        self._number = number
        self._callback: Callable[[], None] | None = callback
        self._loop = loop

    def fire(self) -> None:
        """Call back on the loop that waits, whatever thread moves the clock."""
        with suppress(RuntimeError):  # that loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._call)

    def _call(self) -> None:
        if self._callback is not None:
            self._callback()

    def cancel(self) -> None:
        self._callback = None

    def __lt__(self, other: _Timer) -> bool:
        return (self.instant, self._number) < (other.instant, other._number)


def _instant(moment: datetime | str) -> Micros:
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidInput(f"{moment!r} is not a time", field="moment", hint="write 2026-01-01T03:00:00Z") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
    return to_micros(check_aware(moment, "moment"))
