"""The fence around a node whose lease may have run out: nothing starts, and what runs is stopped.

The lease tells of every beat that succeeded; the dispatcher and the runner ask before they start anything. Time counts
from when a beat was *sent*, by a clock that nobody sets: nobody declares the node lost before it knows that they may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ostinato.clock import SECOND, Micros
from ostinato.tuning import Tuning

__all__ = ["Fence"]


class Fence:
    """Knows until when the lease holds for certain. In real time, whatever the clock of the engine says."""

    def __init__(
        self,
        length: Micros,
        uptime: Callable[[], Micros],
        ask: Callable[[], None],
        expired: Callable[[], None],
        restored: Callable[[Micros | None], None],
        tuning: Tuning,
    ) -> None:
        self._length = length
        self._uptime = uptime
        self._look = round(tuning.lease_look_seconds * SECOND)
        self._late = round(tuning.lease_late_seconds * SECOND)
        self._second_chance = tuning.lease_second_chance_seconds
        self._ask = ask
        """Asks for a beat at once."""
        self._expired = expired
        """Called once when the lease has ended."""
        self._restored = restored
        """Called when work may start that was refused; with how long the lease had not been renewed, if it ended."""
        self._sent_at = -length
        self._start_until = 0
        self._renewal = asyncio.Event()
        self.is_expired = False
        self._is_closed = False

    def close(self) -> None:
        """Nothing starts here any more, whatever beats succeed."""
        self._is_closed = True
        self._start_until = 0

    def lost(self) -> None:
        """The node goes on under a new name: nothing starts under it before a beat has brought it to the others."""
        self._start_until = 0

    def admits(self) -> bool:
        """Whether work may start now. If not, a beat is asked for, and `restored` follows when it has succeeded."""
        if self._uptime() < self._start_until:
            return True
        self._ask()
        return False

    @property
    def holds(self) -> bool:
        """Whether the lease holds for certain, with a margin for what is about to be done."""
        return self._uptime() < self._start_until

    @property
    def is_fresh(self) -> bool:
        """Whether half of the lease is still to come: whoever beats by hand beats before it is too late for a step."""
        return self.holds and self.age < self._length // 2

    @property
    def age(self) -> Micros:
        """How long ago the last beat that succeeded was sent."""
        return self._uptime() - self._sent_at

    async def wait(self) -> None:
        """Return when work may start."""
        while not self.admits():
            await self._renewal.wait()

    def renewed(self, sent_at: Micros) -> None:
        """A beat that was sent at this instant has succeeded."""
        was_refused, unrenewed_for = not self.holds, self.age
        self._sent_at = sent_at
        self._start_until = 0 if self._is_closed else sent_at + self._length - self._length // 10
        self._renewal.set()
        self._renewal = asyncio.Event()
        if was_refused and self.holds:
            was_expired, self.is_expired = self.is_expired, False
            self._restored(unrenewed_for if was_expired else None)
        elif was_refused and not self._is_closed:
            self._ask()  # its answer took longer than the lease

    async def run(self) -> None:
        """Look at the lease until it has ended, tell that, and wait for it to be renewed."""
        while True:
            if self.is_expired:
                await self._renewal.wait()
                continue
            asleep_at = self._uptime()
            pause = max(0, min(self._sent_at + self._length - asleep_at, self._look))
            await asyncio.sleep(pause / SECOND)
            was_held_up = self._uptime() - asleep_at > pause + self._late
            if self.age >= self._length and not (was_held_up and await self._is_renewed_soon()):
                self.is_expired = True
                self._expired()

    async def _is_renewed_soon(self) -> bool:
        """Let the beat say who owns the work: after a hold-up it only comes late."""
        try:
            async with asyncio.timeout(self._second_chance):
                await self.wait()
        except TimeoutError:
            return False
        return True
