"""What each store does in a way of its own and the files beside this one need, inside their transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from ostinato.clock import Micros
from ostinato.models.run import NewRun
from ostinato.stores.sql.connection import Connection

__all__ = ["Parts"]

C_contra = TypeVar("C_contra", bound=Connection, contravariant=True)


class Parts(Protocol[C_contra]):
    """Rows into the ledger, and turns in sessions: by the locks of each database."""

    async def insert_fires(self, db: C_contra, runs: Sequence[NewRun], now: Micros) -> None:
        """Insert runs of due times; a due time that has its row already gets no second one."""
        ...

    async def give_turns(self, db: C_contra, sessions: Iterable[str]) -> None:
        """In each session that has room, let the runs that wait longest go."""
        ...
