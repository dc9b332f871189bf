"""What the files beside this one ask of a database: statements with named values, and transactions around them.

A statement is written as PostgreSQL reads it, with `:name` for a value, `= ANY (:names::text[])` or `<> ALL (…)` for
one of many, and `unnest(:ids::bigint[], :names::text[]) k (id, name)` for many rows; a switch is compared with TRUE or
FALSE. Each store turns a text into its own words once and keeps that (sqlite/query.py, postgres/query.py). Where the
two databases need other SQL, `db.dialect` chooses.

PostgreSQL awaits its answers. SQLite has them at once: its threads drive the same coroutines, which never wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

from ostinato.tuning import Tuning

__all__ = ["NOTHING", "Answer", "Connection", "Database", "Dialect", "Values", "given", "reading", "where"]

P = ParamSpec("P")
T = TypeVar("T")
C_co = TypeVar("C_co", bound="Connection", covariant=True)
Dialect = Literal["sqlite", "postgres"]
Values = Mapping[str, Any]

Answer = Callable[[], Coroutine[Any, Any, T]]
"""How to read what came of statements that were sent."""

NOTHING: Values = MappingProxyType({})


class Connection(Protocol):
    """One connection, inside whatever transaction its caller has begun."""

    @property
    def dialect(self) -> Dialect: ...

    async def fetch(
        self, statement: str, values: Values = NOTHING, *, exact: bool | None = None
    ) -> list[tuple[Any, ...]]:
        """All rows. A text that is not UTF-8 is an error for a writer, and readable for a reader; `exact` decides."""
        ...

    async def fetch_value(self, statement: str, values: Values = NOTHING) -> Any:
        """The first value of the first row."""
        ...

    async def run(self, statement: str, values: Values = NOTHING) -> None:
        """A statement whose answer nobody needs: it costs no round trip of its own."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """What is read inside is of one state of the database, whatever others write meanwhile."""
        ...


class Database(Protocol[C_co]):
    """One database: readers, and a writer that takes what waits into one commit."""

    @property
    def tuning(self) -> Tuning: ...

    def read(self, query: Callable[[C_co], Coroutine[Any, Any, T]]) -> Awaitable[T]:
        """Run a query beside the writer."""
        ...

    def send(
        self,
        operation: Callable[[C_co], Coroutine[Any, Any, Answer[T]]],
        *,
        wakes: bool = False,
        once: bool = True,
        sessions: Collection[str] = (),
    ) -> Awaitable[T]:
        """As `write`, for an operation whose results are read after the group commit, which saves its round trip."""
        ...

    def write(
        self,
        query: Callable[[C_co], Coroutine[Any, Any, T]],
        *,
        wakes: bool = False,
        once: bool = True,
        sessions: Collection[str] = (),
    ) -> Awaitable[T]:
        """Run a query in the next group commit; `wakes` tells every engine.

        `once` is False for what does no harm and answers the same when it is done twice, after a commit that got no
        answer. Nobody else works on the given `sessions` meanwhile.
        """
        ...


def reading(
    query: Callable[Concatenate[Connection, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A query as a method of a store, which runs it beside the writer."""

    @wraps(query)
    async def read(store: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = await store._database.read(lambda db: query(db, *args, **kwargs))
        return answer

    return read


def given(wanted: object, conditions: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """The conditions of those fields of a filter that are given, and their values.

    Both are by the name of the field, which is also the name of the value in its condition.
    """
    values = {name: value for name in conditions if (value := getattr(wanted, name)) is not None}
    return [conditions[name] for name in values], values


def where(clauses: Sequence[str]) -> str:
    """The WHERE of these; nothing if there are none."""
    return f"WHERE {' AND '.join(clauses)}" if clauses else ""
