"""Runs that are asked to end before their time, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.run import Ending
from ostinato.models.work import CheckIn
from ostinato.stores.base import Cancelled
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.parts import Parts

__all__ = ["cancel_now"]

C = TypeVar("C", bound=Connection)

# A check-in is under way on a machine that nobody can tell to stop: it ends as if it still waited.
_RECALL = f"""
UPDATE runs SET state = 'queued' WHERE id = ANY (:ids::bigint[]) AND state = 'running' AND kind = '{CheckIn.kind}'
"""
_LOCK = "SELECT id FROM runs WHERE id = ANY (:ids::bigint[]) ORDER BY id FOR NO KEY UPDATE"
_TELL = """
UPDATE runs SET cause = :cause, cancel = :reason, cancelled_by = :by::text
WHERE id = ANY (:ids::bigint[]) AND state = 'running' AND cancel IS NULL RETURNING id
"""


async def cancel_now(
    db: C, parts: Parts[C], ids: Sequence[RunId], ending: Ending, now: Micros, by: str | None = None
) -> Cancelled:
    """End queued runs and ask the nodes of running ones; `by` says which person wants it."""
    await db.run(_RECALL, {"ids": sorted(ids)})
    if db.dialect == "postgres" and len(ids) > 1:
        # In the order in which the end of one locks those that wait for it.
        await parts.lock_ends(db, ids)
        await db.run(_LOCK, {"ids": ids})
    unstarted = await end_queued(db, parts, ids, ending, now, by)
    # Who was asked before keeps the first reason.
    rows = await db.fetch(_TELL, {"ids": sorted(ids), **ending._asdict(), "by": by})
    return Cancelled(unstarted, sorted(RunId(id) for (id,) in rows))
