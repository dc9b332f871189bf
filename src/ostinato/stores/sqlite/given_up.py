"""What was given up and goes on, in SQLite: looked at by claims.py and schedules.py."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.models.ids import RunId
from ostinato.stores.sql.given_up import ALLOWS, LIVING
from ostinato.stores.sqlite.query import Connection, fetch

__all__ = ["ANY_GIVEN_UP", "MAY_START", "given_up_of"]

ANY_GIVEN_UP = "SELECT 1 FROM given_up LIMIT 1"
"""Asked first: there is hardly ever one, and a claim without the condition below is faster by a tenth."""
MAY_START = f"""
(s.name IS NULL OR s.name NOT IN (SELECT g.schedule FROM {LIVING}) OR instr(r.policy, '{ALLOWS}') > 0)
"""
_OF = f"""
SELECT s.id, g.run_id FROM {LIVING} JOIN schedules s ON s.name = g.schedule
WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY g.run_id
"""


def given_up_of(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[RunId, ...]]:
    """By schedule: the runs whose code goes on under its name."""
    found: dict[int, tuple[RunId, ...]] = {}
    if not fetch(connection, ANY_GIVEN_UP):
        return found
    for schedule_id, run_id in fetch(connection, _OF, (msgspec.json.encode(ids).decode(),)):
        found[schedule_id] = (*found.get(schedule_id, ()), RunId(run_id))
    return found
