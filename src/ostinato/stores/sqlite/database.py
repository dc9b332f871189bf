"""One SQLite file: its connections, its pragmas, its migrations. Every other file of this store goes through it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

import apsw

from ostinato import failpoints
from ostinato.errors import StoreError
from ostinato.models.write_tracking import noted
from ostinato.stores.migrate import load_migrations, pending
from ostinato.stores.sql.connection import Answer
from ostinato.stores.sqlite.identity import FileIdentity
from ostinato.stores.sqlite.jobs import Operation, named_error
from ostinato.stores.sqlite.locks import close, connect, opening, protect
from ostinato.stores.sqlite.query import Connection, add_functions, drive, fetch, fetch_value
from ostinato.stores.sqlite.readers import Readers
from ostinato.stores.sqlite.waiting import LockWait
from ostinato.stores.sqlite.writer import Writer
from ostinato.trust import require_trusted_database
from ostinato.tuning import Tuning

__all__ = ["MIGRATIONS", "Database", "schema_version"]

T = TypeVar("T")
Query = Callable[[Connection], Coroutine[Any, Any, T]]

MIGRATIONS = load_migrations("ostinato.stores.sqlite")
_open_files: dict[Database, str] = {}
"""What this process has open, by its real path."""
_inherited_files: set[str] = set()
"""What the parent had open at the fork: SQLite's table of locks came with it and is wrong here."""
_migrated_memory: list[bytes] = []
"""What the first database in memory was after its migrations: the next ones are copies, which takes a tenth of that."""


class Database:
    """The writer, and readers that never wait for it. In memory there is one connection for both."""

    def __init__(self, path: str, tuning: Tuning) -> None:
        self.path = path
        self.tuning = tuning
        self.in_memory = path == ":memory:"
        self._wait = self._lock_wait(tuning.sqlite_lock_seconds)
        self._writer = Writer(self._connect_writer, self._wait, self._look)
        self._readers: Readers | None = None
        self._identity: FileIdentity | None = None

    async def open(self) -> None:
        """Make the file (only its owner may read it), connect, and migrate where something is pending."""
        if not self.in_memory:
            require_trusted_database(self.path)
            path = self._enter()
            _make_private_file(self.path)
            protect(path)
        await self._writer.start(self._migrate)
        if not self.in_memory:
            seconds = self.tuning.sqlite_lock_seconds
            self._readers = Readers(self.path, seconds, self.connect_reader, self._look_now_and_then)

    @property
    def fault(self) -> str | None:
        """Why nothing is read or written any more: the file was deleted or replaced, say."""
        return self._look()

    def _look(self) -> str | None:
        return None if self._identity is None else self._identity.look()

    def _look_now_and_then(self) -> str | None:
        return None if self._identity is None else self._identity.look_now_and_then()

    def write(
        self, query: Query[T], *, wakes: bool = False, once: bool = True, sessions: Collection[str] = ()
    ) -> asyncio.Future[T]:
        """Run a query of stores.sql in the next group commit: the one writer does each once, and one at a time."""
        return self.submit(drive(query), wakes=wakes)

    def send(
        self,
        operation: Query[Answer[T]],
        *,
        wakes: bool = False,
        once: bool = True,
        sessions: Collection[str] = (),
    ) -> asyncio.Future[T]:
        """The same: what came of an operation is known at once."""

        async def run(connection: Connection) -> T:
            return await (await operation(connection))()

        return self.write(run, wakes=wakes)

    def read(self, query: Query[T]) -> asyncio.Future[T]:
        """Run a query of stores.sql beside the writer."""
        return self.query(drive(query))

    def submit(self, operation: Operation[T], *, wakes: bool = False) -> asyncio.Future[T]:
        """Run an operation in the next group commit; `wakes` tells the engines of this process at once."""
        return noted(self._writer.submit(operation, wakes=wakes))

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` on this loop after every commit that wakes; answers how to stop it."""
        entry = (asyncio.get_running_loop(), listener)
        self._writer.listeners.append(entry)
        return lambda: self._writer.listeners.remove(entry)

    def query(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Run an operation that only reads beside the writer."""
        return (self._writer if self._readers is None else self._readers).submit(operation)

    def exists(self) -> bool:
        """Whether there is a file; what is in memory needs none. Where this user may not look, opening it says so."""
        if not self.in_memory:
            try:
                os.stat(self.path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError:
                return True
        return True

    async def close(self) -> None:
        await self._writer.stop()
        if self._readers is not None:
            readers, self._readers = self._readers, None
            await readers.stop()
        _open_files.pop(self, None)

    def _enter(self) -> str:
        path = os.path.realpath(self.path)
        if path in _inherited_files:
            raise StoreError(
                f"this process was forked while its parent had the database {self.path!r} open, which SQLite cannot "
                "survive: start the app after the fork (gunicorn with --preload: in post_worker_init), or stop it "
                "before"
            )
        _open_files[self] = path
        return path

    def connect_reader(self) -> Connection:
        """A connection that only reads; its owner closes it, by locks.close()."""
        wait = self._lock_wait(self.tuning.sqlite_lock_seconds)
        return self._connect(lambda connection: connection.execute("PRAGMA query_only = ON"), wait)

    def _lock_wait(self, seconds: float) -> LockWait:
        return LockWait(self.path, seconds, self.tuning.sqlite_lock_warning_seconds)

    def _connect_writer(self) -> Connection:
        connection = self._connect(_prepare_writer, self._wait)
        if not self.in_memory:
            self._identity = FileIdentity(connection, self.path)
        return connection

    def _connect(self, prepare: Callable[[Connection], object], wait: LockWait) -> Connection:
        """Open, prepare and read once, so that the locks that a connection keeps are taken; again while it is locked.

        SQLite does not wait for another that turns the file to WAL just now; and nobody waits while he holds `opening`.
        """
        connection = connect(self.path)
        add_functions(connection)
        tries = 0
        while True:
            try:
                with opening:
                    prepare(connection)
                    schema_version(connection)
                    connection.set_busy_handler(wait)
                return connection
            except BaseException as error:
                # The same connection again: to close it could drop the locks of another library that has the file.
                if not isinstance(error, apsw.BusyError) or not wait(tries):
                    close(connection)
                    raise
            tries += 1

    def _migrate(self, connection: Connection) -> None:
        """Run what is pending. BEGIN IMMEDIATE is the lock: another process waits and then finds nothing to do.

        Where nothing is, no lock is asked for: a list waits for nobody who writes.
        """
        if self.in_memory and _migrated_memory:
            _copy(_migrated_memory[0], connection)
        if not pending(MIGRATIONS, schema_version(connection), self.url):
            return
        seconds = self.tuning.sqlite_migration_seconds
        connection.set_busy_handler(self._lock_wait(seconds))
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise named_error(error, self.path, seconds) from error
        connection.set_busy_handler(self._wait)
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
                failpoints.reach("migration.applied")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        if self.in_memory:
            _migrated_memory.append(connection.serialize("main"))

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


def _copy(content: bytes, connection: Connection) -> None:
    """Fill an empty database. Deserialised itself, it could not grow beyond a gigabyte."""
    source = connect(":memory:")
    source.deserialize("main", content)
    with connection.backup("main", source, "main") as backup:
        backup.step(-1)
    close(source)


def schema_version(connection: apsw.Connection) -> int:
    """Which migration the file has reached; 0 for a new one."""
    known = fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'")
    if not known:
        return 0
    version: int = fetch_value(connection, "SELECT coalesce(max(version), 0) FROM migrations")
    return version


def _prepare_writer(connection: Connection) -> None:
    fetch(connection, "PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -32768")


def _make_private_file(path: str) -> None:
    """Only where there is none: to open and close a file that is in use drops the locks that SQLite has on it."""
    try:
        # Where a link points at, which O_EXCL does not follow: else a link without its file would count as one.
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreError(
            f"the database {path!r} cannot be opened: {error.strerror}; make the folder, or choose another with --db"
        ) from error
