"""A connection as stores.sql asks for it, and ways to read: all rows, one value, several queries of one state.

SQLite's values have no static type, so this is where they become Any. It takes any bytes for a text: here is also how
one is read that is not UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from typing import Any, Literal, TypeVar

import apsw
import msgspec

from ostinato.coroutines import driven
from ostinato.stores.sql.connection import NOTHING, Values

__all__ = ["Connection", "add_functions", "drive", "fetch", "fetch_readable", "fetch_value", "snapshot"]

T = TypeVar("T")

_TRANSLATIONS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"= ANY \(:(\w+)::\w+\[\]\)", r"IN (SELECT value FROM json_each(:\1))"),
        (r"<> ALL \(:(\w+)::\w+\[\]\)", r"NOT IN (SELECT value FROM json_each(:\1))"),
        # What waits for its turn is in an index with what has it.
        (
            r"(\b\w+\.)?state = 'queued' AND (?:\w+\.)?waiting = TRUE",
            r"\1session IS NOT NULL AND \1waiting = 1 AND \1state IN ('queued', 'running')",
        ),
        # The words TRUE and FALSE do not match the numbers in the condition of an index.
        (r"\bTRUE\b", "1"),
        (r"\bFALSE\b", "0"),
        # Columns and values have these types anyway. A cast that changes a value is none of them.
        (r"::(bigint|text|boolean)\b(?!\[)", ""),
        # The one writer has the whole file.
        (r"\bFOR (NO KEY UPDATE|UPDATE|KEY SHARE)\b", ""),
    )
)
_UNKNOWN = re.compile(
    r"::\w*|\[\]|\$\d|\b(?:(?:ANY|ALL|SOME) ?\(|ARRAY\b|UNNEST\b|ILIKE\b|SIMILAR TO\b|DISTINCT ON\b|LATERAL\b"
    r"|FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)\b|SKIP LOCKED\b|NOWAIT\b)"
)
"""What only PostgreSQL reads, or what SQLite reads as something else; in capitals."""
_QUOTED = re.compile(r"'[^']*'|--[^\n]*")
_HIDDEN = re.compile(r"'(\d+)'")
_LISTS = re.compile(r":(\w+)::\w+\[\]")
_ROWS = re.compile(r"unnest\(([^()]*)\)( WITH ORDINALITY)?\s+(\w+) \(([^()]*)\)")
_STATEMENTS = 512
"""So many texts are kept translated; those of filters are made as they are asked for."""


def _without_arrays(text: str) -> str:
    """The text with `IN (SELECT …)` for each `= ANY (ARRAY(SELECT …))`."""
    before, found, rest = text.partition("= ANY (ARRAY(")
    if not found:
        return text
    depth, end = 1, 0
    while depth:
        depth += {"(": 1, ")": -1}.get(rest[end], 0)
        end += 1
    return f"{before}IN ({rest[:end]}{_without_arrays(rest[end:].lstrip()[1:])}"


class _Translated:
    """A statement of stores.sql in the words of SQLite: a list is given as JSON, and so are the columns of rows.

    A statement that holds what is not translated is refused: SQLite might read it as something else.
    """

    __slots__ = ("_lists", "_quoted", "_rows", "text")

    def __init__(self, statement: str) -> None:
        self._quoted: list[str] = []
        self._rows: dict[str, tuple[str, ...]] = {}
        text = _without_arrays(_ROWS.sub(self._unnested, _QUOTED.sub(self._hidden, statement)))
        self._lists = tuple(set(_LISTS.findall(text)))
        for pattern, words in _TRANSLATIONS:
            text = pattern.sub(words, text)
        if unknown := _UNKNOWN.search(text.upper()):
            raise ValueError(f"there is no translation to SQLite of {unknown[0]} in: {statement}")
        self.text = _HIDDEN.sub(lambda found: self._quoted[int(found[1])], text)

    def _hidden(self, found: re.Match[str]) -> str:
        """The number of what is quoted, in quotes: what stands there is never translated."""
        if found[0].startswith("--"):
            return ""
        if found[0] == "'queued'":  # which a translation looks for
            return found[0]
        self._quoted.append(found[0])
        return f"'{len(self._quoted) - 1}'"

    def _unnested(self, found: re.Match[str]) -> str:
        names, columns = tuple(_LISTS.findall(found[1])), re.split(r",\s*", found[4])
        whole = "__".join(names)
        self._rows[whole] = names
        parts = [f"value ->> {place} AS {column}" for place, column in enumerate(columns[: len(names)])]
        parts += [f"key AS {columns[-1]}"] if found[2] else []
        return f"(SELECT {', '.join(parts)} FROM json_each(:{whole})) {found[3]}"

    def values(self, given: Values) -> Values:
        if not self._lists and not self._rows:
            return given
        lists = {name: msgspec.json.encode(given[name]).decode() for name in self._lists}
        for whole, names in self._rows.items():
            rows = list(zip(*(given[name] for name in names), strict=True))
            lists[whole] = msgspec.json.encode(rows).decode()
        return {**given, **lists}


@lru_cache(maxsize=_STATEMENTS)
def _translated(statement: str) -> _Translated:
    return _Translated(statement)


def _bound(statement: str, values: Values) -> tuple[str, Values]:
    translated = _translated(statement)
    return translated.text, translated.values(values)


class Connection(apsw.Connection):
    """Answers stores.sql.connection.Connection."""

    dialect: Literal["sqlite"] = "sqlite"

    async def fetch(
        self, statement: str, values: Values = NOTHING, *, exact: bool | None = None
    ) -> list[tuple[Any, ...]]:
        return fetch(self, *_bound(statement, values), exact=exact)

    async def fetch_value(self, statement: str, values: Values = NOTHING) -> Any:
        return fetch_value(self, *_bound(statement, values))

    async def run(self, statement: str, values: Values = NOTHING) -> None:
        self.execute(*_bound(statement, values))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        with snapshot(self):
            yield


def drive(query: Callable[[Connection], Coroutine[Any, Any, T]]) -> Callable[[Connection], T]:
    """A query of stores.sql as a plain function: on this connection it waits for nothing."""

    def run(connection: Connection) -> T:
        return driven(query(connection), "a query of SQLite waits for something that is not in the database")

    return run


def fetch(
    connection: apsw.Connection,
    query: str,
    values: Sequence[Any] | Mapping[str, Any] = (),
    *,
    exact: bool | None = None,
) -> list[Any]:
    """All rows of a query. Where a text is not UTF-8, a list shows what can be shown of it; what is written or run by
    what was read must be what is there, so a writer raises. `exact` decides otherwise."""
    try:
        return connection.execute(query, values).fetchall()
    except UnicodeDecodeError:
        if exact is None:
            exact = not fetch_value(connection, "PRAGMA query_only")
        if exact:
            raise
        return fetch_readable(connection, query, values)[1]


def fetch_readable(
    connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> tuple[list[str], list[Any]]:
    """The columns and all rows of a SELECT; bytes that are not UTF-8 become U+FFFD."""
    cursor = connection.execute(query, values)
    try:
        names = [column[0] for column in cursor.get_description()]
    except apsw.ExecutionCompleteError:  # no row
        return [], []
    finally:
        cursor.close(True)
    columns = [f"c{number}" for number in range(len(names))]
    texts = ", ".join(f"CASE typeof({c}) WHEN 'text' THEN utf8(CAST({c} AS BLOB)) ELSE {c} END" for c in columns)
    readable = f"WITH found({', '.join(columns)}) AS MATERIALIZED ({query}) SELECT {texts} FROM found"
    return names, connection.execute(readable, values).fetchall()


def add_functions(connection: apsw.Connection) -> None:
    """What the SQL of this store calls: whether bytes are UTF-8, and the text of them."""
    connection.create_scalar_function("is_utf8", _is_utf8, 1, deterministic=True)
    connection.create_scalar_function("utf8", _utf8, 1, deterministic=True)


def _is_utf8(*values: Any) -> bool:
    try:
        values[0].decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf8(*values: Any) -> str | None:
    return None if values[0] is None else values[0].decode(errors="replace")


def fetch_value(connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
    """The first value of the first row."""
    return fetch(connection, query, values)[0][0]


@contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """What is read inside is of one state of the database, whatever others write meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        # Some errors end it themselves.
        if not connection.get_autocommit():
            connection.execute("COMMIT")
