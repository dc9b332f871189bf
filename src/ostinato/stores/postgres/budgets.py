"""Budgets in PostgreSQL: what is settled when an attempt ends, inside the caller's transaction.

What it reserved before, and how a budget is locked, is in stores.sql.budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ostinato.models.budget import UNKNOWN
from ostinato.models.run import Finish
from ostinato.stores.postgres.query import Connection, numbers
from ostinato.stores.sql.budgets import budget_lock

__all__ = ["budget_locks", "settle_costs"]

# A run that holds no reservation (any more) settles nothing, however often it is asked to.
_SETTLE = f"""
WITH settled AS (
    UPDATE runs r SET reserved = NULL
    FROM unnest(%s::bigint[], %s::bigint[]) f (id, cost)
    JOIN runs held ON held.id = f.id AND held.reserved IS NOT NULL
    WHERE r.id = held.id
    RETURNING r.schedule_id, r.budget_day, held.reserved,
              CASE WHEN f.cost = {UNKNOWN} THEN held.reserved ELSE f.cost END AS cost
)
UPDATE spending s SET reserved = s.reserved - t.reserved, spent = s.spent + t.cost
FROM (
    SELECT schedule_id, budget_day, sum(reserved)::bigint AS reserved, sum(cost)::bigint AS cost
    FROM settled GROUP BY schedule_id, budget_day
) t
WHERE s.schedule_id = t.schedule_id AND s.day = t.budget_day
"""


def budget_locks(finishes: Iterable[Finish]) -> set[str]:
    """The locks of the budgets that these finishes settle."""
    return {
        budget_lock(finish.schedule_id)
        for finish in finishes
        if finish.cost is not None and finish.schedule_id is not None
    }


async def settle_costs(connection: Connection, ended: Sequence[Finish]) -> None:
    """Attempts have ended: what they cost takes the place of what they had reserved, if they had."""
    costs = {finish.id: finish.cost for finish in ended if finish.cost is not None}
    if costs:
        await connection.execute(_SETTLE, (numbers(costs), numbers(costs.values())))
