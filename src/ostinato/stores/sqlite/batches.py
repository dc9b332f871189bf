"""Many rows by few statements, for what is written by the hundred: ends of runs, and new ones.

For each statement apsw looks its text up among those that it keeps prepared, and gives up the GIL, which a busy loop
may then have; `executemany` does so for each row. Called by finishes.py and inserts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

__all__ = ["ROWS", "batched", "placeholders"]

ROWS = 20
"""How many rows one statement takes. With more of them a row gets hardly cheaper."""


def placeholders(columns: int, rows: int = ROWS) -> str:
    """What follows VALUES in such a statement."""
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)


def batched(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The values for `executemany`, ROWS rows at a time; their number is a multiple of it."""
    return [list(chain.from_iterable(rows[start : start + ROWS])) for start in range(0, len(rows), ROWS)]
