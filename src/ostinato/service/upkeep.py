"""The database: status, a check, a copy, a sweep of retention by hand, and the rows that are quarantined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ostinato.clock import Clock
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.service.audit import audited
from ostinato.stores.base import Store
from ostinato.stores.retention import sweep
from ostinato.stores.upkeep import Remark, Status

__all__ = ["Status", "UpkeepService"]

_MOST = 1_000
"""So many bad or quarantined rows are told; how many there are is told too."""


class UpkeepService:
    """What keeps the database fit."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def status(self) -> Status:
        """Version, size and row counts."""
        return await self._store.upkeep.status()

    async def remarks(self) -> list[Remark]:
        """How safe this kind of database is on this system."""
        return await self._store.upkeep.remarks()

    async def check(self) -> list[str]:
        """What is wrong with the database, and with single rows; empty when nothing is."""
        wrong = await self._store.upkeep.check()
        return wrong or [f"{row.table} {row.row}: {row.reason}" for row in await self.find_bad()]

    async def back_up(self, target: str, told: Callable[[int, int], None], *, overwrite: bool = False) -> int:
        """Write a whole copy to a file (a full path) while everything runs; answers its size in bytes."""
        return await self._store.upkeep.back_up(target, told, overwrite=overwrite)

    @audited("db.migrate", about=lambda _, status: f"version {status.version}")
    async def migrated(self) -> Status:
        """What the database is after somebody asked for its migration, which opening it has done."""
        return await self.status()

    @audited("db.prune", about=lambda _, __: "database", answers="removed")
    async def prune(self) -> int:
        """One whole sweep of retention; answers how many runs it removed."""
        return await sweep(self._store.upkeep, self._clock.now(), lambda: asyncio.sleep(0))

    async def find_bad(self) -> Sequence[BadRow]:
        """Rows that break a rule of the ledger and are not quarantined yet; an engine does that."""
        return await self._store.quarantine.find_bad(_MOST)

    async def quarantined(self) -> Sequence[Quarantined]:
        """Rows that were set aside because nobody could work with them, the newest first."""
        return await self._store.quarantine.list_quarantined(_MOST)

    @audited("db.clear_quarantine", about=lambda _, __: "database", answers="removed")
    async def clear_quarantine(self) -> int:
        """Forget what is quarantined; answers how many rows. What became of the rows stays as it is."""
        return await self._store.quarantine.clear_quarantine()
