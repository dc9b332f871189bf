"""Summaries of what became of everything in the scope of a rule, each made once over all nodes.

Called by notifications.py.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.models.notification import NoticeKind, Rule
from ostinato.stores.rows import SCHEDULE_OF
from ostinato.stores.sql.connection import Connection, Values
from ostinato.stores.sql.deliveries import new_key

__all__ = ["owe_digest"]

_MOST_SUBJECTS = 10
"""How many of those that failed are named."""
_MOVE_ON = """
UPDATE rules SET digest_at = :next_at, told_at = :now
WHERE id = :id AND digest_at = :digest_at RETURNING id
"""
_SCOPE = """
r.finished_at >= :since AND r.finished_at < :now AND (:project::text IS NULL OR r.project = :project)
"""
_STATES = f"SELECT r.state, sum(r.count) FROM runs r WHERE {_SCOPE} GROUP BY r.state"
_WRONG = f"""
SELECT coalesce({SCHEDULE_OF}, r.task, r.kind) AS subject, count(*)
FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
WHERE {_SCOPE} AND (r.state = 'failed' OR r.cause = 'errors')
GROUP BY coalesce({SCHEDULE_OF}, r.task, r.kind) ORDER BY 2 DESC, 1 LIMIT {_MOST_SUBJECTS}
"""
_OPEN = """
SELECT count(*) FROM incidents WHERE closed_at IS NULL AND (:project::text IS NULL OR project = :project)
"""
_OWE = """
INSERT INTO deliveries (key, at, channel, kind, subject, ready_at, data)
VALUES (:key, :now, :channel, :kind, :subject, :now, :data)
"""


async def owe_digest(db: Connection, rule: Rule, next_at: Micros | None, now: Micros) -> bool:
    """Count what ended since the last one; False if another node did."""
    values: Values = {
        "id": rule.id,
        "digest_at": rule.digest_at,
        "next_at": next_at,
        "now": now,
        "since": rule.told_at,
        "project": rule.project,
    }
    if not await db.fetch(_MOVE_ON, values):
        return False
    states = {state: int(count) for state, count in await db.fetch(_STATES, values)}
    wrong = [[subject, count] for subject, count in await db.fetch(_WRONG, values)]
    open = await db.fetch_value(_OPEN, values)
    said: dict[str, Any] = {"since": rule.told_at, "states": states, "failed": wrong, "open": open}
    said |= {"zone": rule.zone, "project": rule.project}
    owed = {
        "key": new_key(),
        "now": now,
        "channel": rule.channel,
        "kind": NoticeKind.DIGEST,
        "subject": rule.project or "everything",
        "data": msgspec.json.encode(said).decode(),
    }
    await db.run(_OWE, owed)
    return True
