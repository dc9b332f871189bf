"""Small tools for queries: rows out, and columns of values in as array literals.

A batch goes to the server as one array for each column. psycopg adapts a list item by item in Python, which for a
hundred finishes costs more than the database does; a literal is one join. A column of nothing but None is NULL,
which `unnest` fills up with NULLs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, AsyncRawCursor

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
Connection = AsyncConnection[Row]


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


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
