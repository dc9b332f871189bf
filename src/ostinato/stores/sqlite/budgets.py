"""Budgets in SQLite: what is settled when an attempt ends, inside the caller's transaction.

What it reserved before is in stores.sql.budgets.
"""

from __future__ import annotations

from ostinato.models.budget import UNKNOWN
from ostinato.models.ids import RunId
from ostinato.stores.sqlite.query import Connection

__all__ = ["settle_cost"]

# A run that holds no reservation (any more) settles nothing, however often it is asked to.
_SETTLE = f"""
UPDATE spending SET reserved = spending.reserved - r.reserved,
                    spent = spent + CASE WHEN ?2 = {UNKNOWN} THEN r.reserved ELSE ?2 END
FROM (SELECT schedule_id, budget_day, reserved FROM runs WHERE id = ?1 AND reserved IS NOT NULL) r
WHERE spending.schedule_id = r.schedule_id AND spending.day = r.budget_day
"""


def settle_cost(connection: Connection, run: RunId, cost: int) -> None:
    """An attempt has ended: what it cost takes the place of what it had reserved, if it had."""
    connection.execute(_SETTLE, (run, cost))
    connection.execute("UPDATE runs SET reserved = NULL WHERE id = ? AND reserved IS NOT NULL", (run,))
