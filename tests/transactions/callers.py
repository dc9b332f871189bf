"""Callers of every library on one PostgreSQL: what they begin, enqueue in, and commit or roll back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import psycopg
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato.tasks import Task

__all__ = ["CALLERS", "OpenCaller", "Transaction", "configure_django", "django_database", "sqlalchemy_url"]


class Transaction(Protocol):
    """A transaction of a caller that is open."""

    def execute(self, statement: str) -> None: ...

    def enqueue(self, task: Task[..., Any], *args: Any, **using: Any) -> Any: ...

    def enqueue_many(self, task: Task[..., Any], calls: list[Any], **using: Any) -> list[Any]: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


OpenCaller = Callable[[str], Any]
"""Opens a transaction of a caller on this URL: a context manager."""


class _Sync:
    def __init__(self, connection: Any, execute: Callable[[str], Any]) -> None:
        self.connection = connection
        self._execute = execute

    def execute(self, statement: str) -> None:
        self._execute(statement)

    def enqueue(self, task: Task[..., Any], *args: Any, **using: Any) -> Any:
        return task.using(connection=self.connection, **using).enqueue(*args)

    def enqueue_many(self, task: Task[..., Any], calls: list[Any], **using: Any) -> list[Any]:
        return task.using(connection=self.connection, **using).enqueue_many(calls)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()


class _Async:
    """An async caller whose loop turns as long as one call takes."""

    def __init__(self, runner: asyncio.Runner, connection: Any, execute: Callable[[str], Coroutine[Any, Any, Any]]):
        self._runner = runner
        self.connection = connection
        self._execute = execute

    def execute(self, statement: str) -> None:
        self._runner.run(self._execute(statement))

    def enqueue(self, task: Task[..., Any], *args: Any, **using: Any) -> Any:
        return self._runner.run(task.using(connection=self.connection, **using).aio.enqueue(*args))

    def enqueue_many(self, task: Task[..., Any], calls: list[Any], **using: Any) -> list[Any]:
        return self._runner.run(task.using(connection=self.connection, **using).aio.enqueue_many(calls))

    def commit(self) -> None:
        self._runner.run(self.connection.commit())

    def rollback(self) -> None:
        self._runner.run(self.connection.rollback())


def sqlalchemy_url(url: str, driver: str = "psycopg") -> Any:
    """The same database for SQLAlchemy; the folder of the socket is a host to asyncpg too."""
    return make_url(url).set(drivername=f"postgresql+{driver}")


@contextmanager
def _psycopg(url: str) -> Iterator[Transaction]:
    with psycopg.connect(url) as connection:
        yield _Sync(connection, connection.execute)
        connection.rollback()


@contextmanager
def _psycopg_async(url: str) -> Iterator[Transaction]:
    with asyncio.Runner() as runner:
        connection = runner.run(psycopg.AsyncConnection.connect(url))
        try:
            yield _Async(runner, connection, connection.execute)
        finally:
            runner.run(connection.close())


@contextmanager
def _connection(url: str) -> Iterator[Transaction]:
    engine = create_engine(sqlalchemy_url(url), poolclass=NullPool)
    with engine.connect() as connection:
        yield _Sync(connection, lambda statement: connection.execute(text(statement)))


@contextmanager
def _session(url: str) -> Iterator[Transaction]:
    engine = create_engine(sqlalchemy_url(url), poolclass=NullPool)
    with Session(engine) as session:
        yield _Sync(session, lambda statement: session.execute(text(statement)))


def _opened_async(driver: str, kind: type[Any]) -> OpenCaller:
    @contextmanager
    def opened(url: str) -> Iterator[Transaction]:
        with asyncio.Runner() as runner:
            engine = create_async_engine(sqlalchemy_url(url, driver), poolclass=NullPool)
            connection: Any = AsyncSession(engine) if kind is AsyncSession else runner.run(_started(engine.connect()))
            try:
                yield _Async(runner, connection, lambda statement: connection.execute(text(statement)))
            finally:
                runner.run(connection.close())

    return opened


async def _started(connection: AsyncConnection) -> AsyncConnection:
    return await connection.start()


@contextmanager
def _django(url: str) -> Iterator[Transaction]:
    connection = configure_django(url)
    connection.set_autocommit(False)
    try:
        yield _Sync(connection, lambda statement: connection.cursor().execute(statement))
    finally:
        connection.rollback()
        connection.close()


def configure_django(url: str, alias: str = "default", **more: Any) -> Any:
    """A new connection of Django to this database."""
    from django.conf import settings
    from django.db import connections

    if not settings.configured:
        settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
        import django

        django.setup()
    if alias in connections:
        connections[alias].close()
        del connections[alias]
    configured = connections.configure_settings({"default": django_database(url), alias: django_database(url)})
    connections.settings[alias] = configured[alias]
    connections.settings[alias].update(more)
    return connections[alias]


def django_database(url: str) -> dict[str, Any]:
    """An entry of DATABASES."""
    if url.startswith("sqlite"):
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    parts = urlsplit(url)
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0]
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": host,
        "PORT": parts.port or "",
    }


CALLERS: dict[str, OpenCaller] = {
    "psycopg": _psycopg,
    "psycopg async": _psycopg_async,
    "sqlalchemy connection": _connection,
    "sqlalchemy session": _session,
    "django": _django,
}
if find_spec("greenlet") is not None:  # SQLAlchemy needs it to await
    CALLERS["sqlalchemy async connection"] = _opened_async("psycopg", AsyncConnection)
    CALLERS["sqlalchemy async session"] = _opened_async("psycopg", AsyncSession)
    if find_spec("asyncpg") is not None:
        CALLERS["sqlalchemy asyncpg"] = _opened_async("asyncpg", AsyncSession)
