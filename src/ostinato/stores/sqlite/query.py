"""Ways to read: all rows, one value, several queries of one state. SQLite's values have no static type, so this is
where they become Any. SQLite takes any bytes for a text: here is also how one is read that is not UTF-8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

__all__ = ["add_functions", "fetch", "fetch_readable", "fetch_value", "snapshot"]


def fetch(
    connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = (), *, exact: bool = False
) -> list[Any]:
    """All rows of a query. Where a text is not UTF-8, a list shows what can be shown of it; what is written or run by
    what was read must be what is there, so a writer raises, and whoever asks for `exact`."""
    try:
        return connection.execute(query, values).fetchall()
    except UnicodeDecodeError:
        if exact or not fetch_value(connection, "PRAGMA query_only"):
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
