"""One SQLite file: its connections, its pragmas, its migrations. Every other file of this store goes through it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TypeVar

import apsw

from ostinato.errors import StoreError
from ostinato.models.effects import noted
from ostinato.stores.migrate import load_migrations, pending
from ostinato.stores.sqlite.jobs import Operation
from ostinato.stores.sqlite.query import fetch, fetch_value
from ostinato.stores.sqlite.readers import Readers
from ostinato.stores.sqlite.writer import Writer
from ostinato.trust import require_trusted_database

__all__ = ["MIGRATIONS", "Database", "schema_version"]

T = TypeVar("T")

MIGRATIONS = load_migrations("ostinato.stores.sqlite")
_open_files: dict[Database, str] = {}
"""What this process has open, by its real path."""
_inherited_files: set[str] = set()
"""What the parent had open at the fork: SQLite's table of locks came with it and is wrong here."""
_BUSY_MILLISECONDS = 10_000
_MIGRATION_MILLISECONDS = 600_000
_PAUSE_SECONDS = 0.005


class Database:
    """The writer, and readers that never wait for it. In memory there is one connection for both."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.in_memory = path == ":memory:"
        self._writer = Writer(self._connect_writer)
        self._readers: Readers | None = None

    async def open(self) -> None:
        """Make the file (only its owner may read it), connect and migrate."""
        if not self.in_memory:
            require_trusted_database(self.path)
            self._enter()
            _make_private_file(self.path)
        await self._writer.start(self._migrate)
        if not self.in_memory:
            self._readers = Readers(self.connect_reader)

    def write(self, operation: Operation[T], *, wakes: bool = False) -> asyncio.Future[T]:
        """Run an operation in the next group commit; `wakes` tells the engines of this process at once."""
        return noted(self._writer.submit(operation, wakes=wakes))

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on this loop after every commit that wakes; answers how to stop it."""
        entry = (asyncio.get_running_loop(), listener)
        self._writer.listeners.append(entry)
        return lambda: self._writer.listeners.remove(entry)

    def read(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run a query beside the writer."""
        return (self._writer if self._readers is None else self._readers).submit(operation)

    async def close(self) -> None:
        await self._writer.stop()
        if self._readers is not None:
            readers, self._readers = self._readers, None
            await readers.stop()
        _open_files.pop(self, None)

    def _enter(self) -> None:
        path = os.path.realpath(self.path)
        if path in _inherited_files:
            raise StoreError(
                f"this process was forked while its parent had the database {self.path!r} open, which SQLite cannot "
                "survive: open the app after the fork (gunicorn: start it in post_worker_init, and with --preload do "
                "not use it before)"
            )
        _open_files[self] = path

    def connect_reader(self) -> apsw.Connection:
        """A connection that only reads; its owner closes it."""
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _connect_writer(self) -> apsw.Connection:
        connection = apsw.Connection(self.path)
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        try:
            _log_ahead(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -32768")
        except apsw.Error:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: apsw.Connection) -> None:
        """Run what is pending. BEGIN IMMEDIATE is the lock: another process waits and then finds nothing to do."""
        pending(MIGRATIONS, schema_version(connection), self.url)
        # Another process may be migrating a large file just now.
        connection.set_busy_timeout(_MIGRATION_MILLISECONDS)
        connection.execute("BEGIN IMMEDIATE")
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations "
                "(version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
            )
            for migration in pending(MIGRATIONS, schema_version(connection), self.url):
                fetch(connection, migration.sql)
                connection.execute(
                    "INSERT INTO migrations VALUES (?, ?, CAST(unixepoch('subsec') * 1000000 AS INTEGER))",
                    (migration.version, migration.name),
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"


def _after_fork() -> None:
    _inherited_files.update(_open_files.values())
    _left_behind.extend(_open_files)
    _open_files.clear()


_left_behind: list[Database] = []
"""Not to be closed by the child, not even by the garbage collector."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def schema_version(connection: apsw.Connection) -> int:
    """Which migration the file has reached; 0 for a new one."""
    known = fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'")
    if not known:
        return 0
    version: int = fetch_value(connection, "SELECT coalesce(max(version), 0) FROM migrations")
    return version


def _log_ahead(connection: apsw.Connection) -> None:
    """Turn a new file to WAL. SQLite does not wait for another that writes to it or turns it just now; so this does."""
    deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            fetch(connection, "PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def _make_private_file(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StoreError(
            f"the database {path!r} cannot be opened: {error.strerror}; make the folder, or choose another with --db"
        ) from error
    os.close(descriptor)
