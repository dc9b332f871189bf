"""Two ways to read: all rows, or one value. SQLite's values have no static type, so this is where they become Any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

__all__ = ["fetch", "fetch_value"]


def fetch(connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
    """All rows of a query."""
    return connection.execute(query, values).fetchall()


def fetch_value(connection: apsw.Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
    """The first value of the first row."""
    return connection.execute(query, values).fetchall()[0][0]
