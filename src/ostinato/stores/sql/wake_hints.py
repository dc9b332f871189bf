"""What the engine of a node has to know after a change of the database, in one read; called by each watch.py."""

from __future__ import annotations

from ostinato.models.ids import NodeId, RunId
from ostinato.stores.base import WakeHints
from ostinato.stores.rows import load_ending
from ostinato.stores.sql.connection import Connection

__all__ = ["wake_hints"]

# When the first queued run is ready: one seek for each lane and priority, and one for those that wait for that too.
_WAKE_HINTS = """
WITH RECURSIVE level (lane, priority) AS (
    SELECT l.name, (SELECT max(priority) FROM runs WHERE state = 'queued' AND waiting = FALSE AND lane = l.name)
    FROM lanes l WHERE NOT l.paused
    UNION ALL
    SELECT v.lane, (SELECT max(priority) FROM runs
                    WHERE state = 'queued' AND waiting = FALSE AND lane = v.lane AND priority < v.priority)
    FROM level v WHERE v.priority IS NOT NULL
)
SELECT (SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL),
       (SELECT min(at) FROM (
            SELECT (SELECT min(ready_at) FROM runs
                    WHERE state = 'queued' AND waiting = FALSE AND lane = v.lane AND priority = v.priority) AS at
            FROM level v WHERE v.priority IS NOT NULL
            UNION ALL
            SELECT min(ready_at) FROM runs WHERE later = TRUE AND waiting = TRUE AND state = 'queued'
        ) ready),
       (SELECT drain FROM nodes WHERE id = :node), c.id, c.cause, c.cancel
FROM (SELECT 1) always
LEFT JOIN (SELECT id, cause, cancel FROM runs WHERE node = :node AND state = 'running' AND cancel IS NOT NULL) c
     ON true
"""


async def wake_hints(db: Connection, node: NodeId) -> WakeHints:
    """One cheap look."""
    rows = await db.fetch(_WAKE_HINTS, {"node": node})
    next_at, ready_at, drain = rows[0][:3]
    asked = [(RunId(id), load_ending(*ending)) for _, _, _, id, *ending in rows if id is not None]
    return WakeHints(next_at, ready_at, asked, None if drain is None else bool(drain))
