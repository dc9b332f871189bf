"""The runs of incidents of work that has neither a schedule nor a task: those that do what its first run did.

Called by notifications.py. `incidents.py` knows all others.
"""

from __future__ import annotations

from ostinato.models.ids import IncidentId, RunId
from ostinato.stores.sql import incidents
from ostinato.stores.sql.connection import Connection

__all__ = ["incident_runs"]

_SAME_WORK = """
SELECT r.id FROM incidents i
JOIN runs f ON f.id = i.first_run
JOIN runs r ON r.finished_at >= i.opened_at AND r.finished_at <= i.last_at
WHERE i.id = :id AND i.schedule IS NULL AND i.subject LIKE f.kind || ' %'
  AND r.schedule_id IS NULL AND r.session IS NULL AND r.kind = f.kind AND r.work = f.work
  AND r.cause = i.cause AND (r.state IN ('failed', 'expired') OR r.cause = 'errors')
ORDER BY r.id DESC LIMIT :limit
"""


async def incident_runs(db: Connection, id: IncidentId, limit: int) -> list[RunId]:
    """The failed runs that an incident stands for, the newest first."""
    found = await incidents.incident_runs(db, id, limit)
    if found:
        return found
    return [RunId(run) for (run,) in await db.fetch(_SAME_WORK, {"id": id, "limit": limit})]
