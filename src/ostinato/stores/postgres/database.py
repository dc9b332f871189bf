"""One PostgreSQL schema: its connections and its migrations. Every other file of this store goes through it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from ostinato import failpoints
from ostinato.models.write_tracking import noted
from ostinato.stores.migrate import load_migrations, pending
from ostinato.stores.postgres.beats import HeartbeatConnection
from ostinato.stores.postgres.connection import Server, bounded, is_lost, named
from ostinato.stores.postgres.query import Connection, fetch, fetch_value
from ostinato.stores.postgres.writer import Answer, Operation, Writer
from ostinato.tuning import Tuning

__all__ = ["MIGRATIONS", "Database", "schema_version"]

T = TypeVar("T")
Query = Callable[[Connection], Awaitable[T]]

MIGRATIONS = load_migrations("ostinato.stores.postgres")
_READERS = 3
_READ_SECONDS = 60.0
"""The longest that a query may take: a line that is cut may be silent for ever, and others wait for the reader."""


class Database:
    """The writer, and readers that never wait for it. It belongs to the loop that opened it."""

    def __init__(self, url: str, schema: str, lease: float, tuning: Tuning) -> None:
        self.tuning = tuning
        self.server = Server(url, schema, lease)
        self._writer = Writer(self.server, tuning.postgres_effort_seconds)
        self.beats = HeartbeatConnection(self.server, tuning.postgres_beat_seconds)
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(_READERS)

    async def open(self) -> None:
        """Connect and migrate."""
        await self._writer.start(self._migrate)

    async def write(
        self, query: Query[T], *, wakes: bool = False, once: bool = True, sessions: Collection[str] = ()
    ) -> T:
        """Run a query that reads its own results on the way in the next group commit; `wakes` tells every engine.

        `once` is False for what does no harm and answers the same when it is done twice (see writer.py).
        """

        async def operation(connection: Connection) -> Answer[T]:
            value = await query(connection)

            async def answer() -> T:
                return value

            return answer

        return await self.send(operation, wakes=wakes, once=once, sessions=sessions)

    async def send(
        self, operation: Operation[T], *, wakes: bool = False, once: bool = True, sessions: Collection[str] = ()
    ) -> T:
        """Run an operation whose results are read after the group commit, which saves its round trip."""
        job = self._writer.submit(operation, wakes=wakes, once=once, sessions=sessions)
        result: T = await noted(job)
        return result

    async def send_last(
        self,
        operation: Operation[Any] | None,
        last: Operation[T],
        undo: Operation[None] | None = None,
        *,
        wakes: bool = False,
        once: bool = False,
        sessions: Collection[str] = (),
    ) -> tuple[Any, T]:
        """Run an operation, and what goes at the end of its group; `undo` takes back a `last` of unknown outcome."""
        result: tuple[Any, T] = await self._writer.submit(
            operation, last=last, undo=undo, wakes=wakes, once=once, sessions=sessions
        )
        return result

    def take_back(self, undo: Operation[None]) -> None:
        """Run this before whatever is written next: nobody heard of what it takes back."""
        self._writer.take_back(undo)

    async def read(self, query: Query[T]) -> T:
        """Run a query beside the writer. A connection that the server has dropped is replaced once."""
        async with self._free:
            while True:
                connection = self._idle.pop() if self._idle else None
                fresh = connection is None
                try:
                    connection = connection or await self.server.connect()
                    with bounded(connection, _READ_SECONDS):
                        value = await query(connection)
                except psycopg.Error as error:
                    if fresh or not is_lost(error, connection):
                        raise named(error) from error
                    # The others that lay idle were most likely dropped with it.
                    await self._close_idle()
                else:
                    self._idle.append(connection)
                    connection = None
                    return value
                finally:
                    if connection is not None:
                        await connection.close()

    async def close(self) -> None:
        await self._writer.stop()
        await self.beats.close()
        await self._close_idle()

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _migrate(self, connection: Connection) -> None:
        """Run what is pending under a lock: another process waits and then finds nothing to do."""
        schema = self.server.schema
        pending(MIGRATIONS, await schema_version(connection, schema), self.server.shown)
        async with connection.transaction():
            if connection.info.server_version >= 170000:
                # A large ledger takes its time, and so does whoever is before us.
                await connection.execute("SET LOCAL transaction_timeout = 0", prepare=False)
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (self.server.migrations_lock,), prepare=False)
            # Only where it is missing: a user may own a schema without the right to create one.
            if not await fetch(connection, "SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)):
                await connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)), prepare=False)
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations "
                "(version bigint PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL)",
                prepare=False,
            )
            for migration in pending(MIGRATIONS, await schema_version(connection, schema), self.server.shown):
                await connection.execute(migration.sql.encode(), prepare=False)
                await connection.execute(
                    "INSERT INTO migrations VALUES (%s, %s, extract(epoch FROM clock_timestamp()) * 1000000)",
                    (migration.version, migration.name),
                    prepare=False,
                )
                failpoints.reach("migration.applied")


async def schema_version(connection: Connection, schema: str) -> int:
    """Which migration the schema has reached; 0 for a new one."""
    known = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = %s AND relname = %s"
    if not await fetch(connection, known, (schema, "migrations")):
        return 0
    version: int = await fetch_value(connection, "SELECT coalesce(max(version), 0) FROM migrations")
    return version
