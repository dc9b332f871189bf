"""Connections of callers: which library they are of, and statements sent through them, in their transaction.

Each library is recognised by the modules of its classes, so that none is imported that the caller does not use. A
statement has `%s` for its values. The coroutines of a sync connection wait for nothing, and are driven by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, TypeVar

from ostinato.coroutines import driven
from ostinato.errors import InvalidInput

__all__ = ["Caller", "Connection", "DjangoConnection", "SqlAlchemyConnection", "recognise"]

T = TypeVar("T")
Row = tuple[Any, ...]
Use = Callable[["Connection"], Coroutine[Any, Any, T]]

_HINT = (
    "give a psycopg Connection or AsyncConnection, a SQLAlchemy Connection, Session, AsyncConnection or AsyncSession, "
    "or a connection of Django; one of a driver alone, such as sqlite3 or asyncpg, is reached through these"
)


class Connection(Protocol):
    """A connection inside the caller's transaction."""

    async def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of a statement, if it has some."""
        ...


class Caller(Protocol):
    """What the caller has handed in."""

    @property
    def dialect(self) -> str:
        """postgresql, sqlite, mysql, or another."""
        ...

    @property
    def alias(self) -> str | None:
        """Its database, as Django calls it."""
        ...

    @property
    def is_async(self) -> bool: ...

    @property
    def is_two_phase(self) -> bool:
        """Whether its transaction is to be prepared, and committed by somebody else."""
        ...

    def run(self, use: Use[T]) -> T:
        """Use the connection, which is a sync one."""
        ...

    async def arun(self, use: Use[T]) -> T:
        """Use the connection, which may be either."""
        ...

    def after_commit(self, callback: Callable[..., object]) -> None:
        """Call this, with whatever the library says, about when the commit is done, if it tells that."""
        ...


def recognise(connection: object) -> Caller:
    """The caller's connection or session by its library; InvalidInput if it is of none that is known."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(connection).__mro__}
    for library, name in kinds:
        match library, name:
            case "psycopg", "Connection":
                return _Psycopg(connection, is_async=False)
            case "psycopg", "AsyncConnection":
                return _Psycopg(connection, is_async=True)
            case "sqlalchemy", "Connection" | "Session":
                return _SqlAlchemy(connection)
            case "sqlalchemy", "AsyncConnection" | "AsyncSession":
                return _AsyncSqlAlchemy(connection)
            case "sqlalchemy", "scoped_session" | "async_scoped_session":
                return recognise(connection())  # type: ignore[operator]
            case "django", "BaseDatabaseWrapper":
                return _Django(connection)
            case "django", "ConnectionProxy":
                return _Django(connection._connections[connection._alias])  # type: ignore[attr-defined]
    kind = type(connection)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise InvalidInput(f"{name} is no connection that is known", field="connection", hint=_HINT)


class _Psycopg:
    """A connection of psycopg 3, whatever its row and cursor factories are."""

    dialect = "postgresql"
    alias = None

    def __init__(self, connection: Any, *, is_async: bool) -> None:
        self._connection = connection
        self.is_async = is_async

    @property
    def is_two_phase(self) -> bool:
        return getattr(self._connection, "_tpc", None) is not None

    def run(self, use: Use[T]) -> T:
        return driven(use(self))

    async def arun(self, use: Use[T]) -> T:
        return await use(self)

    def after_commit(self, callback: Callable[..., object]) -> None:
        """psycopg does not tell."""

    async def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        from psycopg import AsyncCursor, Cursor
        from psycopg.pq import PipelineStatus
        from psycopg.rows import tuple_row

        # In a pipeline, an answer comes with the next sync point: the end of an inner one is such.
        in_pipeline = self._connection.pgconn.pipeline_status != PipelineStatus.OFF
        if self.is_async:
            async with AsyncCursor(self._connection, row_factory=tuple_row) as waiting:
                async with self._connection.pipeline() if in_pipeline else nullcontext():
                    await waiting.execute(statement.encode(), values)
                return [] if waiting.description is None else await waiting.fetchall()
        with Cursor(self._connection, row_factory=tuple_row) as cursor:
            with self._connection.pipeline() if in_pipeline else nullcontext():
                cursor.execute(statement.encode(), values)
            return [] if cursor.description is None else cursor.fetchall()


class SqlAlchemyConnection:
    """A sync connection of SQLAlchemy, of any driver."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        from sqlalchemy import text

        # A value that is cast is a text, which a driver that looks at types has to be told; and `::` is no value, which
        # text() would take it for.
        parts = statement.replace("%s::", "%s::text::").replace("::", r"\:\:").split("%s")
        named = parts[0] + "".join(f":v{place}{part}" for place, part in enumerate(parts[1:]))
        given = {f"v{place}": value for place, value in enumerate(values)}
        result = self._connection.execute(text(named), given)
        return [tuple(row) for row in result] if result.returns_rows else []


class _SqlAlchemy:
    """A Connection, or the connection that a Session has for its transaction."""

    alias = None
    is_async = False

    def __init__(self, given: Any) -> None:
        self._given = given

    @property
    def _connection(self) -> Any:
        if not _is_session(self._given):
            return self._given
        _bind_of(self._given)
        return self._given.connection()

    @property
    def dialect(self) -> str:
        # Of a session by its bind: its connection would begin a transaction, and the call may yet be refused.
        bind = _bind_of(self._given) if _is_session(self._given) else self._given
        name: str = bind.dialect.name
        return name

    @property
    def is_two_phase(self) -> bool:
        return type(self._connection.get_transaction()).__name__ == "TwoPhaseTransaction"

    def run(self, use: Use[T]) -> T:
        return driven(use(SqlAlchemyConnection(self._connection)))

    async def arun(self, use: Use[T]) -> T:
        return self.run(use)

    def after_commit(self, callback: Callable[..., object]) -> None:
        from sqlalchemy import event

        name = "after_commit" if _is_session(self._given) else "commit"
        # Once for each connection, not for each run; later commits tell it too, which does no harm.
        if not event.contains(self._given, name, callback):
            event.listen(self._given, name, callback)


class _AsyncSqlAlchemy:
    """The same of an AsyncConnection or AsyncSession: SQLAlchemy itself awaits what its driver does."""

    alias = None
    is_async = True

    def __init__(self, given: Any) -> None:
        self._given = given
        sync = given.sync_session if hasattr(given, "sync_session") else given.sync_connection
        if sync is None:
            raise InvalidInput(
                "this AsyncConnection is not open",
                field="connection",
                hint="async with engine.connect() as connection: …",
            )
        self._sync = _SqlAlchemy(sync)

    @property
    def dialect(self) -> str:
        return self._sync.dialect

    @property
    def is_two_phase(self) -> bool:
        return self._sync.is_two_phase

    def run(self, use: Use[T]) -> T:
        raise TypeError(f"{type(self._given).__name__} has to be awaited")

    async def arun(self, use: Use[T]) -> T:
        result: T = await self._given.run_sync(lambda _: self._sync.run(use))
        return result

    def after_commit(self, callback: Callable[..., object]) -> None:
        self._sync.after_commit(callback)


class DjangoConnection:
    """A connection of Django, of any backend."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, list(values))
            return [] if cursor.description is None else [tuple(row) for row in cursor.fetchall()]


class _Django:
    """The connection of an alias, in this thread."""

    is_async = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def alias(self) -> str:
        alias: str = self._connection.alias
        return alias

    @property
    def dialect(self) -> str:
        vendor: str = self._connection.vendor
        return vendor

    @property
    def is_two_phase(self) -> bool:
        return False

    def run(self, use: Use[T]) -> T:
        return driven(use(DjangoConnection(self._connection)))

    async def arun(self, use: Use[T]) -> T:
        return self.run(use)

    def after_commit(self, callback: Callable[..., object]) -> None:
        # With autocommit switched off by hand, Django does not know when the commit is.
        if self._connection.in_atomic_block or self._connection.get_autocommit():
            self._connection.on_commit(callback)


def _is_session(given: Any) -> bool:
    return any(kind.__name__ == "Session" for kind in type(given).__mro__)


def _bind_of(session: Any) -> Any:
    from sqlalchemy.exc import UnboundExecutionError

    try:
        return session.get_bind()
    except UnboundExecutionError as error:
        raise InvalidInput(
            "this Session has a database for each of its mappers, and none for all",
            field="connection",
            hint="give one of them: session.connection(bind_arguments={'mapper': Order})",
        ) from error
