"""Ways to read: all rows, one value, several queries of one state. SQLite's values have no static type, so this is
where they become Any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

__all__ = ["fetch", "fetch_value", "snapshot"]


def fetch(connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
    """All rows of a query."""
    return connection.execute(query, values).fetchall()


def fetch_value(connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
    """The first value of the first row."""
    return connection.execute(query, values).fetchall()[0][0]


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
