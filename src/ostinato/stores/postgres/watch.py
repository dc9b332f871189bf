"""Noticing changes of a PostgreSQL database: LISTEN on a connection of its own, for this process's as for others'."""

from __future__ import annotations

import asyncio
import random

import psycopg
from psycopg import sql

from ostinato.clock import Signal
from ostinato.logs import get_logger
from ostinato.models.ids import NodeId
from ostinato.stores.base import WakeHints
from ostinato.stores.postgres.connection import named
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection
from ostinato.stores.sql.wake_hints import wake_hints

__all__ = ["PostgresWatch"]

_LONGEST_SECONDS = 5.0


class PostgresWatch:
    """Answers stores.base.Watch."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database = database
        self._signal = Signal()
        self._task = asyncio.create_task(self._listen(connection), name="ostinato-postgres-watch")

    @classmethod
    async def start(cls, database: Database) -> PostgresWatch:
        """Listen from now on: what is committed after this returns is noticed."""
        try:
            return cls(database, await _connect(database))
        except psycopg.Error as error:
            raise named(error) from error

    async def changed(self) -> None:
        while not await self._signal.wait():
            pass

    async def wake_hints(self, node: NodeId) -> WakeHints:
        return await self._database.read(lambda db: wake_hints(db, node))

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self, connection: Connection | None) -> None:
        """Pass on notifications, over as many connections as it takes."""
        delay = 0.1
        while True:
            try:
                if connection is None:
                    connection = await _connect(self._database)
                    # Nobody knows what was missed meanwhile.
                    self._signal.set()
                delay = 0.1
                async for _ in connection.notifies():
                    self._signal.set()
            except psycopg.Error as error:
                get_logger(__name__).info("listening again in %.1f s: %s", delay, named(error))
                await asyncio.sleep(delay * random.uniform(0.8, 1.2))
                delay = min(delay * 2, _LONGEST_SECONDS)
            finally:
                if connection is not None:
                    await connection.close()
                    connection = None


async def _connect(database: Database) -> Connection:
    connection = await database.server.connect()
    try:
        channel = sql.Identifier(database.server.channel)
        await connection.execute(sql.SQL("LISTEN {}").format(channel), prepare=False)
    except BaseException:
        await connection.close()
        raise
    return connection
