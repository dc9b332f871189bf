"""What runs printed, as it is read. How it is written is in each store's output.py."""

from __future__ import annotations

from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.stores.rows import TAIL, load_part
from ostinato.stores.sql.connection import Connection

__all__ = ["output_mark", "read_output"]

_END = "substr(text, CASE WHEN length(text) > 80 THEN length(text) - 79 ELSE 1 END)"
_MARK = f"""
SELECT (SELECT max(part) FROM output WHERE run_id = :id AND part < {TAIL}),
       (SELECT length(text) || ' ' || cut || {_END} FROM output WHERE run_id = :id AND part = {TAIL})
"""
_READ = "SELECT part, text, cut_lines, cut FROM output WHERE run_id = :id ORDER BY part"


async def output_mark(db: Connection, id: RunId) -> object:
    """What changes with whatever is added or replaced."""
    return await db.fetch(_MARK, {"id": id})


async def read_output(db: Connection, id: RunId) -> list[OutputPart]:
    """What a run has printed so far."""
    return [load_part(row) for row in await db.fetch(_READ, {"id": id})]
