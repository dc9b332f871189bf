"""Retention: an hourly sweep over ended runs, in small steps, that removes what their policy no longer keeps."""

from __future__ import annotations

from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.engine.quarantine import Quarantine
from ostinato.stores.retention import sweep
from ostinato.stores.upkeep import UpkeepStore

__all__ = ["Pruner"]

EVERY: Micros = 3_600 * SECOND
FIRST: Micros = 60 * SECOND
PAUSE: Micros = SECOND // 20


class Pruner:
    """Sweeps, and rests."""

    def __init__(self, upkeep: UpkeepStore, clock: Clock, quarantine: Quarantine) -> None:
        self._quarantine = quarantine
        self._upkeep = upkeep
        self._clock = clock
        self.signal = Signal()

    async def run(self) -> None:
        """One sweep soon after the start, then one each hour."""
        wait = FIRST
        while True:
            await self._clock.wait(self.signal, self._clock.now() + wait)
            await self.sweep()
            wait = EVERY

    async def sweep(self) -> int:
        """One whole sweep; answers how many runs it removed."""
        return await self._quarantine.attempt(lambda: sweep(self._upkeep, self._clock.now(), self._rest))

    async def _rest(self) -> None:
        """Let claims and finishes go between the deletions."""
        await self._clock.wait(self.signal, self._clock.now() + PAUSE)
