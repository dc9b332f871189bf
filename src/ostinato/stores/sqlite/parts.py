"""The parts that stores.sql needs of SQLite. Its one writer has the whole file: there is nothing to lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ostinato.clock import Micros
from ostinato.models.run import NewRun
from ostinato.stores.sqlite.inserts import insert_fires
from ostinato.stores.sqlite.query import Connection
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["SqliteParts"]


class SqliteParts:
    """Answers stores.sql.parts.Parts."""

    async def insert_fires(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> None:
        insert_fires(db, runs, now)

    async def give_turns(self, db: Connection, sessions: Iterable[str]) -> None:
        give_turns(db, sessions)
