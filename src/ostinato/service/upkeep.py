"""The database: status, a check, a copy, and a sweep of retention by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ostinato.clock import Clock
from ostinato.service.audit import audited
from ostinato.stores.base import Store
from ostinato.stores.retention import sweep
from ostinato.stores.upkeep import Remark, Status

__all__ = ["Status", "UpkeepService"]


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
        """What is wrong with the database; empty when nothing is."""
        return await self._store.upkeep.check()

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
