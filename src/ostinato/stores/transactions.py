"""Runs that come by way of another transaction than the store's own: a part of base.py.

A caller whose connection leads to the same database inserts them there itself (`SharedLedger`); from any other
database they come out of an outbox (`OutboxStore`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ostinato.clock import Micros
from ostinato.models.ids import RunId, RunIds
from ostinato.models.outbox import Arrival
from ostinato.models.run import NewRun

__all__ = ["CallerConnection", "OutboxStore", "SharedLedger"]


class CallerConnection(Protocol):
    """A connection of somebody else, inside whatever transaction they have begun."""

    async def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement that has `%s` for each value. A sync connection waits for nothing."""
        ...


class SharedLedger(Protocol):
    """The ledger as connections of others reach it. It may be used on any thread and any loop."""

    async def is_behind(self, caller: CallerConnection) -> bool:
        """Whether this connection leads to the database of the ledger; StoreError if it does and may not write."""
        ...

    async def insert_runs(self, caller: CallerConnection, runs: Sequence[NewRun]) -> RunIds:
        """Insert them in the transaction of the caller, whose commit wakes every engine. Where a key is active
        already in its scope, the answer holds that run's id. A run of a session queues up there after the commit."""
        ...


class OutboxStore(Protocol):
    """Which rows of outboxes are in the ledger."""

    async def take(self, arrivals: Sequence[Arrival], now: Micros) -> None:
        """Insert the runs of those whose id has not come yet, and remember the ids, in one transaction."""
        ...

    async def find_run(self, id: str) -> RunId | None:
        """The run that came out of this row."""
        ...
