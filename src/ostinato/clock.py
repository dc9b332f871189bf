"""Time comes in through a Clock; nobody else calls now().

Inside the container an instant is a whole number of microseconds since 1970 in UTC (`Micros`): it compares,
stores and subtracts without a zone. At the doors it is an aware datetime in UTC.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = [
    "MICROSECOND",
    "SECOND",
    "Clock",
    "Micros",
    "Signal",
    "SystemClock",
    "Timer",
    "from_micros",
    "micros_of",
    "to_micros",
    "uptime",
]

Micros = int

MICROSECOND = timedelta(microseconds=1)
SECOND: Micros = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""The clock that goes on while the machine is suspended, where there is one."""


def to_micros(moment: datetime) -> Micros:
    """The instant of an aware datetime."""
    return (moment - _EPOCH) // MICROSECOND


def from_micros(instant: Micros) -> datetime:
    """The aware datetime, in UTC, of an instant; the last there is, for one after the year 9999."""
    try:
        return _EPOCH + timedelta(0, 0, instant)  # by their places: lists are made of thousands
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def micros_of(duration: timedelta) -> Micros:
    """The length of a duration."""
    return duration // MICROSECOND


def uptime() -> Micros:
    """Real time that only passes, whoever sets the clock, and passes while the machine is suspended too."""
    nanoseconds = time.monotonic_ns() if _BOOTTIME is None else time.clock_gettime_ns(_BOOTTIME)
    return nanoseconds // 1_000


class Signal:
    """A wake-up for one waiter on one loop: setting it twice is once, and waiting takes it.

    Cheaper than an asyncio.Event with wait_for, which makes a task for every wait.
    """

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Wake the waiter, or let the next wait return at once. Call it on the waiter's loop."""
        self._is_set = True
        self.release()

    def release(self) -> None:
        """End the wait under way, if any, without setting the signal."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self) -> bool:
        """Whether it was set; clears it."""
        was_set, self._is_set = self._is_set, False
        return was_set

    async def wait(self) -> bool:
        """Wait until set or released; True if it was set. Takes the signal."""
        if not self._is_set:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self.take()


class Timer(Protocol):
    """A call that waits for its instant."""

    def cancel(self) -> None:
        """Do not call; too late is no error."""
        ...


class Clock(Protocol):
    """What time it is, and how to wait for a later one."""

    def now(self) -> Micros:
        """The instant it is."""
        ...

    def steady(self) -> Micros:
        """Time that only passes: it does not jump when somebody sets the clock. Good for differences alone."""
        ...

    def uptime(self) -> Micros:
        """The same of this process, whatever the clock of the engine says: leases are measured by it."""
        ...

    async def wait(self, signal: Signal, until: Micros | None) -> bool:
        """Wait until `signal` is set (True) or the instant `until` has come (False); for ever if None."""
        ...

    def call_at(self, instant: Micros, callback: Callable[[], None]) -> Timer:
        """Call it on the running loop when the instant has come."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> Micros:
        return time.time_ns() // 1_000

    def steady(self) -> Micros:
        return uptime()

    def uptime(self) -> Micros:
        return uptime()

    async def wait(self, signal: Signal, until: Micros | None) -> bool:
        if until is None:
            return await signal.wait()
        delay = until - self.now()
        if delay <= 0:
            # Give the loop a turn: a caller that is always late must not starve the rest.
            await asyncio.sleep(0)
            return signal.take()
        timer = asyncio.get_running_loop().call_later(delay / SECOND, signal.release)
        try:
            return await signal.wait()
        finally:
            timer.cancel()

    def call_at(self, instant: Micros, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later((instant - self.now()) / SECOND, callback)
