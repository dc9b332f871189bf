"""The parts that stores.sql needs of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ostinato.clock import Micros
from ostinato.models.run import NewRun
from ostinato.stores.postgres.inserts import insert_fires
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.turns import give_turns, lock_sessions

__all__ = ["PostgresParts"]


class PostgresParts:
    """Answers stores.sql.parts.Parts."""

    async def insert_fires(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> None:
        await insert_fires(db, runs, now)

    async def give_turns(self, db: Connection, sessions: Iterable[str]) -> None:
        # Whoever did not name them to the writer has found them on the way.
        await lock_sessions(db, sessions)
        await give_turns(db, sessions)
