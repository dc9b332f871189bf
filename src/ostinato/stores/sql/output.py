"""What runs printed: read, and what becomes of its tail. How it is added to is in each store's output.py."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.stores.rows import TAIL, load_part
from ostinato.stores.sql.connection import Connection

__all__ = ["drop_tails", "keep_tails", "output_mark", "read_output"]

_END = "substr(text, CASE WHEN length(text) > 80 THEN length(text) - 79 ELSE 1 END)"
_MARK = f"""
SELECT (SELECT max(part) FROM output WHERE run_id = :id AND part < {TAIL}),
       (SELECT length(text) || ' ' || cut || {_END} FROM output WHERE run_id = :id AND part = {TAIL})
"""
_DROP_TAILS = f"DELETE FROM output WHERE run_id = ANY (:ids::bigint[]) AND part = {TAIL}"
_KEEP_TAILS = f"""
UPDATE output AS o SET part = 1 + (SELECT coalesce(max(part), 0) FROM output WHERE run_id = o.run_id AND part < {TAIL})
WHERE run_id = ANY (:ids::bigint[]) AND part = {TAIL}
"""
_READ = "SELECT part, text, cut_lines, cut FROM output WHERE run_id = :id ORDER BY part"


async def drop_tails(db: Connection, ids: Sequence[RunId]) -> None:
    """Attempts have ended, and their last words are known: what was seen of them before goes."""
    if ids:
        await db.run(_DROP_TAILS, {"ids": ids})


async def keep_tails(db: Connection, ids: Sequence[RunId]) -> None:
    """Nobody will say what came after these: they stay as they are."""
    if ids:
        await db.run(_KEEP_TAILS, {"ids": ids})


async def output_mark(db: Connection, id: RunId) -> object:
    """What changes with whatever is added or replaced."""
    return await db.fetch(_MARK, {"id": id})


async def read_output(db: Connection, id: RunId) -> list[OutputPart]:
    """What a run has printed so far."""
    return [load_part(row) for row in await db.fetch(_READ, {"id": id})]
