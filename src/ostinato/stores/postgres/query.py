"""A connection as stores.sql asks for it, and small tools: rows out, columns of values in as array literals.

A batch goes to the server as one array for each column. psycopg adapts a list item by item in Python, which for a
hundred finishes costs more than the database does; a literal is one join. A column of nothing but None is NULL,
which `unnest` fills up with NULLs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any, Literal

from psycopg import AsyncConnection, AsyncCursor, AsyncRawCursor

from ostinato.stores.sql.connection import NOTHING, Values

__all__ = [
    "Connection",
    "LongStatement",
    "Row",
    "booleans",
    "fetch",
    "fetch_value",
    "numbers",
    "readable",
    "snapshot",
    "texts",
]

Row = tuple[Any, ...]

_VALUE = re.compile(r"'[^']*'|--[^\n]*|(?<!:):([a-z]\w*)(::\w+\[\])?")
"""A value by its name; or what is quoted or a remark, in which none is looked for."""
_STATEMENTS = 512
"""So many texts are kept with their values numbered; those of filters are made as they are asked for."""


class Connection(AsyncConnection[Row]):
    """Answers stores.sql.connection.Connection."""

    dialect: Literal["postgres"] = "postgres"

    async def fetch(self, statement: str, values: Values = NOTHING, *, exact: bool | None = None) -> list[Row]:
        # Exact or not: every text of PostgreSQL is UTF-8.
        return await (await _numbered(statement).execute(self, values)).fetchall()

    async def fetch_value(self, statement: str, values: Values = NOTHING) -> Any:
        return (await self.fetch(statement, values))[0][0]

    async def fetch_row(self, statement: str, values: Values) -> dict[str, Any] | None:
        """The first row by the names of its columns."""
        cursor = await _numbered(statement).execute(self, values)
        row = await cursor.fetchone()
        names = [column.name for column in cursor.description or ()]
        return None if row is None else dict(zip(names, row, strict=True))

    async def run(self, statement: str, values: Values = NOTHING) -> None:
        await _numbered(statement).execute(self, values)

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        return snapshot(self)


class _Numbered:
    """A statement of stores.sql whose values have numbers, and how each is written."""

    def __init__(self, statement: str) -> None:
        self._values: dict[str, Callable[[Any], Any]] = {}
        self._text = _VALUE.sub(self._number, statement).encode()

    def _number(self, found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        name, kind = found[1], found[2] or ""
        self._values.setdefault(name, _WRITTEN.get(kind, _plain))
        return f"${list(self._values).index(name) + 1}{kind}"

    async def execute(self, connection: Connection, values: Values) -> AsyncCursor[Row]:
        given = [written(values[name]) for name, written in self._values.items()]
        return await AsyncRawCursor(connection).execute(self._text, given)


@lru_cache(maxsize=_STATEMENTS)
def _numbered(statement: str) -> _Numbered:
    return _Numbered(statement)


def _plain(value: Any) -> Any:
    return readable(value) if isinstance(value, str) else value


async def fetch(connection: Connection, query: str, values: Any = None) -> list[Row]:
    """All rows of a query."""
    cursor = await connection.execute(query, values)
    return await cursor.fetchall()


async def fetch_value(connection: Connection, query: str, values: Any = None) -> Any:
    """The one value of a query that always answers one row."""
    return (await fetch(connection, query, values))[0][0]


class LongStatement:
    """A statement with `%(names)s` for its values, which are numbered once: psycopg reads one of more than 4,096
    characters anew for every call."""

    def __init__(self, text: str) -> None:
        self._names: list[str] = []
        self._text = re.sub(r"%\((\w+)\)s", self._number, text).encode()

    def _number(self, found: re.Match[str]) -> str:
        if found[1] not in self._names:
            self._names.append(found[1])
        return f"${self._names.index(found[1]) + 1}"

    async def execute(self, connection: Connection, values: Mapping[str, Any]) -> AsyncCursor[Row]:
        """Send it; the cursor has what it answers."""
        return await AsyncRawCursor(connection).execute(self._text, [values[name] for name in self._names])


@asynccontextmanager
async def snapshot(connection: Connection) -> AsyncIterator[None]:
    """What is read inside is of one state of the database, whatever others write meanwhile.

    After an error the connection is of no more use: its owner closes it.
    """
    async with connection.pipeline():
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", prepare=False)
        yield
        await connection.execute("COMMIT", prepare=False)


def numbers(values: Iterable[int | None]) -> str | None:
    """A bigint[] literal."""
    items = list(values)
    if None not in items:
        return "{" + ",".join(map(str, items)) + "}"
    if items.count(None) == len(items):
        return None
    return "{" + ",".join(["NULL" if value is None else str(value) for value in items]) + "}"


def booleans(values: Iterable[bool]) -> str:
    """A boolean[] literal."""
    return "{" + ",".join(["t" if value else "f" for value in values]) + "}"


def texts(values: Sequence[str | None]) -> str | None:
    """A text[] literal."""
    given = [value for value in values if value is not None]
    if not given:
        return None if values else "{}"
    if len(given) < len(values):
        return "{" + ",".join(["NULL" if value is None else f'"{_escaped(readable(value))}"' for value in values]) + "}"
    # NUL, which no text may hold, between them: so all are escaped at once.
    joined = "\0".join(given)
    if joined.count("\0") >= len(given):
        joined = "\0".join(map(readable, given))
    return '{"' + _escaped(joined).replace("\0", '","') + '"}'


def readable(text: str) -> str:
    """The text without NUL, which PostgreSQL cannot store: output of programs may hold any byte."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "::bigint[]": numbers,
    "::text[]": texts,
    "::boolean[]": booleans,
}
"""How a list becomes an array."""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
