"""Schedules that have not succeeded in time, inside the caller's transaction: each is told once, until it succeeds.

Neighbours: finishes.py moves `fresh_at` with every success; telling.py makes an incident of what is told here.
"""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.models.freshness import Freshness
from ostinato.stores.schedules import Late
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.telling import tell

__all__ = ["next_fresh_at", "tell_late_now"]

_NEXT = "SELECT min(fresh_at) FROM schedules WHERE fresh_at IS NOT NULL"
# By their ids, as whoever fires or finishes locks them.
_PASSED = """
SELECT id, name, zone, policy, project, created_at, fresh_at FROM schedules
WHERE fresh_at <= :now
  AND id = ANY (ARRAY(SELECT id FROM schedules WHERE fresh_at <= :now ORDER BY fresh_at LIMIT :limit))
ORDER BY id FOR NO KEY UPDATE
"""
# Of the last ones, since the newest run may have ended before an older one.
_SUCCEEDED = """
SELECT max(finished_at) FROM (
    SELECT finished_at FROM runs WHERE schedule_id = :id AND state = 'succeeded' AND cause IS NULL
    ORDER BY id DESC LIMIT 20
) last_ones
"""
_MOVE = "UPDATE schedules SET fresh_at = :fresh_at WHERE id = :id"


async def next_fresh_at(db: Connection) -> Micros | None:
    """When the first schedule must have succeeded."""
    found: Micros | None = await db.fetch_value(_NEXT)
    return found


async def tell_late_now(db: Connection, now: Micros, limit: int) -> Late:
    """Tell of those whose time has passed; what the ledger knows to be fresh is looked at later."""
    late: list[Freshness] = []
    for row in await db.fetch(_PASSED, {"now": now, "limit": limit}, exact=False):
        freshness = Freshness(*(*row, await db.fetch_value(_SUCCEEDED, {"id": row[0]})))
        is_late = freshness.is_late(now)
        await db.run(_MOVE, {"id": freshness.id, "fresh_at": None if is_late else freshness.until})
        if is_late:
            late.append(freshness)
    notices = [freshness.notice(now) for freshness in late]
    return Late(notices, await tell(db, notices, now))
