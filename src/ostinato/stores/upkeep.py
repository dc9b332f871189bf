"""What keeps a database fit, and how it is: a part of base.py, answered in each upkeep.py.

retention.py says what is kept for how long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from ostinato.clock import Micros

__all__ = ["PruneCursor", "Pruned", "Remark", "Status", "UpkeepStore"]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What one step of a sweep removed, and where the next one goes on; None when the sweep is through."""

    runs: int = 0
    nodes: int = 0
    cursor: PruneCursor | None = None


@dataclass(frozen=True, slots=True)
class PruneCursor:
    """How far a sweep has come: runs by age up to this id, then schedules by count up to this id."""

    run: int = 0
    schedule: int = 0
    runs_done: bool = False
    schedules_done: bool = False
    """Then old events, idle sessions and lost nodes are left."""


@dataclass(frozen=True, slots=True)
class Status:
    """The database as `ostinato db status` shows it."""

    url: str
    version: int
    latest: int
    size_bytes: int
    schedules: int
    runs: dict[str, int]


@dataclass(frozen=True, slots=True)
class Remark:
    """What `ostinato doctor` says about this kind of database."""

    check: str
    status: Literal["ok", "warn", "fail"]
    text: str
    fix: str | None = None


class UpkeepStore(Protocol):
    """What keeps the database fit."""

    async def prune(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        """One step of a sweep: look at `limit` rows and remove ended runs past what their policy keeps."""
        ...

    async def status(self) -> Status: ...

    async def remarks(self) -> list[Remark]:
        """How safe this kind of database is on this system."""
        ...

    async def check(self) -> list[str]:
        """What is wrong with the database: damage, and rows that break what must hold; empty when nothing is."""
        ...

    async def back_up(self, target: str, told: Callable[[int, int], None], *, overwrite: bool) -> int:
        """Write a whole copy to a file (a full path) while everything runs; answers its size in bytes.

        `told` hears, on some thread, how many of how many parts are copied.
        """
        ...
