"""An outbox of another database, as whoever drains or lists it reaches it: by SQLAlchemy, or as an alias of Django."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from ostinato.clock import Micros
from ostinato.config import without_password
from ostinato.coroutines import driven
from ostinato.errors import InvalidInput, NotFound, StoreError
from ostinato.integrations.transactions import table
from ostinato.integrations.transactions.connections import (
    Connection,
    DjangoConnection,
    SqlAlchemyConnection,
    Use,
)
from ostinato.models.outbox import OutboxRow

__all__ = ["LISTED", "Outbox", "open_outbox"]

T = TypeVar("T")

LISTED = 1_000
"""Rows that a list has at most."""


class _Database(Protocol):
    """How statements reach it: each use is one transaction."""

    name: str
    identity: object
    """The same of every object that leads to one database; of what names no database, the engine."""

    @property
    def alias(self) -> str | None:
        """As Django calls it."""

    def dialect(self) -> str: ...

    def file(self) -> str | None:
        """The file of a SQLite database: to open one that is not there would make it."""
        ...

    async def run(self, use: Use[T]) -> T: ...

    async def close(self) -> None: ...

    def apart(self) -> _Database:
        """The same database by a thread of its own: who looks at it does not end what drains it."""


class Outbox:
    """The table of one database."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    @property
    def name(self) -> str:
        """What people call it: its URL without the password, or its alias."""
        return self._database.name

    @property
    def identity(self) -> object:
        """Which database it is of."""
        return self._database.identity

    def call(self, name: str) -> None:
        """Give it another name: one with its URL is known already."""
        self._database.name = name

    def create(self) -> None:
        """Make the table, if it is not there."""
        self._ask(lambda one: one._database.run(lambda db: table.create(db, one._database.dialect())))

    def list(self, limit: int = LISTED) -> Sequence[OutboxRow]:
        """What waits in it and what was refused, the oldest first."""
        return self._ask(lambda one: one._run(lambda db: table.list_rows(db, limit)))

    def retry(self, id: str | None = None) -> int:
        """Have a row tried again, or all that were refused or given up, as if they were new; how many there were."""
        return self._found(id, self._ask(lambda one: one._run(lambda db: table.retry(db, id))))

    def remove(self, id: str) -> None:
        """Delete a row: its run is never enqueued, unless a node is taking it just now."""
        self._found(id, self._ask(lambda one: one._run(lambda db: table.remove(db, one._database.dialect(), id))))

    def _ask(self, question: Callable[[Outbox], Coroutine[Any, Any, T]]) -> T:
        """On a thread of its own: who looks at it does not end what drains it."""
        one = Outbox(self._database.apart())
        return _waited_for(one._once(question(one)))

    def _found(self, id: str | None, rows: int) -> int:
        if id is not None and not rows:
            raise NotFound(f"there is no row {id!r} in the outbox {self.name}; 'ostinato outbox ls' lists them")
        return rows

    def __repr__(self) -> str:
        return f"<outbox {self.name}>"

    async def due(self, now: Micros, limit: int) -> Sequence[OutboxRow]:
        """The rows to take next."""
        return await self._run(lambda db: table.due(db, now, limit))

    async def settle(self, done: Sequence[str], refused: Sequence[tuple[OutboxRow, str, Micros | None]]) -> None:
        """Delete what is in the ledger, and note what is not and when to try it again."""

        async def write(db: Connection) -> None:
            await table.delete(db, self._database.dialect(), done)
            for row, error, try_at in refused:
                await table.refuse(db, row, error, try_at)

        await self._run(write)

    async def close(self) -> None:
        """Until it is used again."""
        await self._database.close()

    async def _run(self, use: Use[T]) -> T:
        """Use a table that should be there; StoreError says how to make it, if it is not."""
        makes_it = table.how_to_make(self._database.alias)
        if (file := self._missing_file()) is not None:
            raise StoreError(f"there is no file {file}; {makes_it}")
        try:
            return await self._database.run(use)
        except Exception as error:
            if await self._is_missing():
                raise StoreError(f"there is no table {table.TABLE} in {self.name}; {makes_it}") from error
            raise

    def _missing_file(self) -> str | None:
        file = self._database.file()
        return None if file is None or os.path.exists(file) else file

    async def _is_missing(self) -> bool:
        try:
            return not await self._database.run(lambda db: table.exists(db, self._database.dialect()))
        except Exception:  # then it is something else, which the first error tells
            return False

    async def _once(self, answer: Coroutine[Any, Any, T]) -> T:
        """For whoever holds no connection afterwards."""
        try:
            return await answer
        except (InvalidInput, StoreError):
            raise
        except Exception as error:  # of whatever library it is
            raise StoreError(f"the outbox {self.name} cannot be reached: {_first_line(error)}") from error
        finally:
            await self._database.close()


def open_outbox(target: object) -> Outbox:
    """The outbox of a SQLAlchemy Engine or AsyncEngine, of a URL or a file, or of a database alias of Django."""
    if isinstance(target, str):
        if "://" not in target and ("." in target or "/" in target):
            target = f"sqlite:///{target}"
        return Outbox(_by_url(target) if "://" in target else _DjangoDatabase(target))
    names = {kind.__name__ for kind in type(target).__mro__ if kind.__module__.startswith("sqlalchemy.")}
    if "AsyncEngine" in names:
        return Outbox(_AsyncDatabase(target.url))  # type: ignore[attr-defined]
    if "Engine" in names:
        return Outbox(_SyncDatabase(target))
    raise InvalidInput(
        f"{target!r} is no database that can have an outbox",
        field="outbox",
        hint="give a SQLAlchemy engine, a URL such as postgresql://user@host/shop, or a database alias of Django",
    )


def _by_url(text: str) -> _Database:
    try:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import ArgumentError
    except ModuleNotFoundError as error:
        raise StoreError("an outbox by its URL needs SQLAlchemy: pip install sqlalchemy") from error
    try:
        url = make_url(text)
        if url.drivername in ("postgres", "postgresql"):
            url = url.set(drivername="postgresql+psycopg")
        table.check_dialect(url.get_backend_name())
        if url.get_dialect().is_async:
            return _AsyncDatabase(url)
        return _SyncDatabase(create_engine(url, pool_pre_ping=True))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"{without_password(text)!r} cannot be opened: its driver is not installed: {_first_line(error)}",
            field="url",
            hint=f"install it, or name one that is: {text.partition('://')[0].partition('+')[0]}+driver://…",
        ) from error
    except ArgumentError as error:
        raise InvalidInput(
            f"{without_password(text)!r} cannot be opened: {_first_line(error)}",
            field="url",
            hint="write sqlite:///shop.db, or postgresql://user@host/shop",
        ) from error


class _OneThread:
    """Where a sync library is called: always the same thread, whose connection it keeps."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    async def call(self, function: Callable[[], T]) -> T:
        if self._pool is None or self._pid != os.getpid():  # after a fork, there is no thread in it
            self._pool, self._pid = ThreadPoolExecutor(1, thread_name_prefix="ostinato-outbox"), os.getpid()
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    @property
    def is_used(self) -> bool:
        return self._pool is not None

    def end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


class _SyncDatabase:
    """By a sync engine of SQLAlchemy, which stays the caller's: its pool is not disposed of."""

    alias = None

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._thread = _OneThread()
        self.name: str = engine.url.render_as_string(hide_password=True)
        self.identity: object = self.name if engine.url.database else engine

    def dialect(self) -> str:
        name: str = self._engine.dialect.name
        return name

    def file(self) -> str | None:
        return _file_of(self._engine.url)

    async def run(self, use: Use[T]) -> T:
        def work() -> T:
            with self._engine.begin() as connection:
                return driven(use(SqlAlchemyConnection(connection)))

        return await self._thread.call(work)

    async def close(self) -> None:
        self._thread.end()

    def apart(self) -> _Database:
        return _SyncDatabase(self._engine)


class _AsyncDatabase:
    """By the URL of an async engine. Its own connections belong to the loop of the caller, so here are others."""

    alias = None

    def __init__(self, url: Any) -> None:
        self._url = url
        self._engine: Any = None
        self.name: str = url.render_as_string(hide_password=True)
        self.identity: object = self.name

    def dialect(self) -> str:
        name: str = self._url.get_dialect().name
        return name

    def file(self) -> str | None:
        return _file_of(self._url)

    async def run(self, use: Use[T]) -> T:
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import NullPool

        if self._engine is None:  # it holds no connection, and so belongs to no loop
            self._engine = create_async_engine(self._url, poolclass=NullPool)
        async with self._engine.begin() as connection:
            result: T = await connection.run_sync(lambda sync: driven(use(SqlAlchemyConnection(sync))))
            return result

    async def close(self) -> None:
        """Every use has a connection of its own."""

    def apart(self) -> _Database:
        return self


class _DjangoDatabase:
    """By an alias of Django's DATABASES."""

    def __init__(self, alias: str) -> None:
        self.name = alias
        self.alias = alias
        self.identity: object = alias
        self._thread = _OneThread()

    def dialect(self) -> str:
        vendor: str = self._connection().vendor
        return vendor

    def file(self) -> str | None:
        connection = self._connection()
        if connection.vendor != "sqlite" or connection.is_in_memory_db():
            return None
        return str(connection.settings_dict["NAME"])

    async def run(self, use: Use[T]) -> T:
        def work() -> T:
            from django.db import transaction

            connection = self._connection()
            connection.close_if_unusable_or_obsolete()
            with transaction.atomic(using=self.name):
                return driven(use(DjangoConnection(connection)))

        return await self._thread.call(work)

    async def close(self) -> None:
        if self._thread.is_used:
            await self._thread.call(lambda: self._connection().close())
            self._thread.end()

    def apart(self) -> _Database:
        return _DjangoDatabase(self.name)

    def _connection(self) -> Any:
        try:
            from django.db import connections
        except ModuleNotFoundError as error:
            raise StoreError(f"the outbox {self.name!r} is an alias of Django, which is not installed") from error
        from django.core.exceptions import ImproperlyConfigured
        from django.db.utils import ConnectionDoesNotExist

        try:
            return connections[self.name]
        except ImproperlyConfigured as error:
            raise InvalidInput(
                f"{self.name!r} is read as a database alias of Django, whose settings are not configured here",
                field="outbox",
                hint="name an --app that calls django.setup(), or give a URL such as sqlite:///shop.db",
            ) from error
        except ConnectionDoesNotExist as error:
            raise InvalidInput(f"Django has no database {self.name!r}", field="outbox") from error


def _file_of(url: Any) -> str | None:
    path: str | None = url.database
    if url.get_backend_name() != "sqlite" or not path or path == ":memory:" or path.startswith("file:"):
        return None
    return path


def _waited_for(question: Coroutine[Any, Any, T]) -> T:
    """The answer of a coroutine, whether or not the caller is on a loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, question).result()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
