"""Noticing changes of a PostgreSQL database: LISTEN on a connection of its own, for this process's as for others'."""

from __future__ import annotations

import asyncio
import random

import psycopg
from psycopg import sql

from ostinato.clock import Signal
from ostinato.logs import get_logger
from ostinato.models.ids import NodeId, RunId
from ostinato.stores.base import Glance
from ostinato.stores.postgres.connection import named
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection, fetch
from ostinato.stores.postgres.turns import LATE
from ostinato.stores.rows import load_ending

__all__ = ["PostgresWatch"]

_LONGEST_SECONDS = 5.0

# When the first queued run is ready: one seek for each lane and priority, and one for those that wait for that too.
_GLANCE = f"""
WITH RECURSIVE level AS (
    SELECT l.name AS lane, (SELECT max(priority) FROM runs WHERE state = 'queued' AND NOT waiting AND lane = l.name)
           AS priority
    FROM lanes l WHERE NOT l.paused
    UNION ALL
    SELECT v.lane, (SELECT max(priority) FROM runs
                    WHERE state = 'queued' AND NOT waiting AND lane = v.lane AND priority < v.priority)
    FROM level v WHERE v.priority IS NOT NULL
)
SELECT (SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL),
       least((SELECT min((SELECT min(ready_at) FROM runs
                          WHERE state = 'queued' AND NOT waiting AND lane = v.lane AND priority = v.priority))
              FROM level v WHERE v.priority IS NOT NULL),
             (SELECT min(ready_at) FROM runs WHERE {LATE})),
       (SELECT drain FROM nodes WHERE id = %(node)s), c.id, c.cause, c.cancel
FROM (VALUES (1)) always
LEFT JOIN (SELECT id, cause, cancel FROM runs WHERE node = %(node)s AND state = 'running' AND cancel IS NOT NULL) c
     ON true
"""


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

    async def glance(self, node: NodeId) -> Glance:
        rows = await self._database.read(lambda connection: fetch(connection, _GLANCE, {"node": node}))
        next_at, ready_at, drain = rows[0][:3]
        asked = [(RunId(id), load_ending(*ending)) for _, _, _, id, *ending in rows if id is not None]
        return Glance(next_at, ready_at, asked, drain)

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
