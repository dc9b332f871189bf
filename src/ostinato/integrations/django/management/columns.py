"""Tables and JSON of the commands, written to the stream that Django gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

__all__ = ["write_json", "write_table"]


def write_table(stream: Any, titles: Sequence[str], rows: Sequence[Sequence[str]], otherwise: str) -> None:
    """Rows under titles; without rows, what is said instead."""
    if not rows:
        stream.write(otherwise)
        return
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        stream.write(line.rstrip())


def write_json(stream: Any, value: Any) -> None:
    """One JSON document."""
    stream.write(msgspec.json.format(msgspec.json.encode(value)).decode())
