"""Databases of the store suite: how to open another store on one, and how to reach below it with raw SQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import apsw
import psycopg

from ostinato.stores.base import Store
from ostinato.stores.postgres.query import Connection as PostgresConnection
from ostinato.stores.postgres.store import PostgresStore
from ostinato.stores.sqlite.store import SqliteStore

__all__ = ["PostgresPlace", "SqlitePlace", "StorePlace", "blocked_by", "opened", "raw", "switch_checks_off"]


class StorePlace(Protocol):
    """A database that a test has for itself."""

    kind: str

    def store(self) -> Store:
        """A new store on it, not yet opened."""
        ...

    def execute(self, statements: str) -> None:
        """Run SQL past every store: what another version of the program may have written."""
        ...


class SqlitePlace:
    kind = "sqlite"

    def __init__(self, path: str) -> None:
        self.path = path

    def store(self) -> Store:
        return SqliteStore(self.path)

    def execute(self, statements: str) -> None:
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(5_000)
        connection.execute(statements)
        connection.close()


class PostgresPlace:
    kind = "postgres"

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema

    def store(self) -> Store:
        return PostgresStore(self.url, self.schema)

    def execute(self, statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True, options=f"-c search_path={self.schema}") as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}".encode())
            connection.execute(statements.encode())


AnyStore = TypeVar("AnyStore", bound=Store)


@asynccontextmanager
async def opened(store: AnyStore) -> AsyncIterator[AnyStore]:
    """Open while the block lasts."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def raw(store: Store, statement: str) -> list[tuple[Any, ...]]:
    """Run one SQL statement without parameters through the store's own writer, and answer its rows."""
    if isinstance(store, SqliteStore):
        return await store._database.submit(lambda connection: list(connection.execute(statement)))
    assert isinstance(store, PostgresStore)

    async def run(connection: PostgresConnection) -> list[tuple[Any, ...]]:
        cursor = await connection.execute(statement.encode(), prepare=False)
        return await cursor.fetchall() if statement.startswith("SELECT") else []

    return await store._database.write(run)


_DROP_CHECKS = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT c.conname, c.conrelid::regclass AS tab FROM pg_constraint c
               JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'c' AND n.nspname = current_schema()
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.tab, one.conname);
    END LOOP;
END $$
"""


async def switch_checks_off(store: Store) -> None:
    """Let every row in, as a restored backup or a careless hand does."""
    await raw(store, "PRAGMA ignore_check_constraints = ON" if isinstance(store, SqliteStore) else _DROP_CHECKS)


async def blocked_by(admin: psycopg.Connection[Any]) -> None:
    """Return when somebody waits for a lock of this connection."""
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    while not (await asyncio.to_thread(admin.execute, waiting)).fetchall():
        pass
