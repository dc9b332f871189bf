"""The connection of the heartbeats: what says that a node lives must wait for no transaction, neither ours nor others'.

Each query on it is one statement, committed by itself, and does the same when it is repeated. Used by nodes.py, and by
runs.py to declare nodes lost; everything else goes through the writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

from ostinato import failpoints
from ostinato.stores.postgres.connection import Server, bounded, is_lost, named
from ostinato.stores.postgres.query import Connection

__all__ = ["HeartbeatConnection"]

T = TypeVar("T")


class HeartbeatConnection:
    """One connection, made when it is first needed, and made anew when it was lost."""

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._seconds = seconds
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    async def run(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a query of one statement. A connection that the server has dropped is replaced once."""
        async with self._turn:
            while True:
                fresh = self._connection is None
                try:
                    connection = await self._connect()
                    with bounded(connection, self._seconds):
                        failpoints.reach("postgres.beat")
                        return await query(connection)
                except psycopg.Error as error:
                    if is_lost(error, self._connection):
                        await self._disconnect()
                        if not fresh:
                            continue
                    raise named(error) from error
                except BaseException:
                    await self._disconnect()
                    raise

    async def close(self) -> None:
        async with self._turn:
            await self._disconnect()

    async def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = await self._server.connect(key=self._server.beats_key)
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
