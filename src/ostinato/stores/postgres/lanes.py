"""Lanes in PostgreSQL: changed where no claim is under way. Everything else is in stores.sql.lanes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ostinato.stores.postgres.claims import lock_claims
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.sql.lanes import Lanes

__all__ = ["PostgresLanes"]

T = TypeVar("T")


class PostgresLanes(Lanes[Connection]):
    """Answers stores.base.LaneStore."""

    _database: Database

    async def _change(self, query: Callable[[Connection], Coroutine[Any, Any, T]], *, wakes: bool = True) -> T:
        """At the end of a group, behind the lock of all claims. A claim writes to a lane that has a rate, and would
        wait for one that had changed it first and then wants to claim."""

        async def change(connection: Connection) -> Answer[T]:
            await lock_claims(connection, self._database.server)
            value = await query(connection)

            async def answer() -> T:
                return value

            return answer

        _, value = await self._database.send_last(None, change, wakes=wakes)
        return value
