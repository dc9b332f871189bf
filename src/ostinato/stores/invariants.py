"""What must hold between the rows of every ledger, as SQL for both databases; `ostinato db check` asks for the rest.

What each row must keep by itself is in rules.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["INVARIANTS", "MOST_NAMED", "broken"]

MOST_NAMED = 5
_LIMIT = f"LIMIT {MOST_NAMED + 1}"

INVARIANTS: tuple[tuple[str, str], ...] = (
    (
        "runs that are running without a node or a token",
        f"SELECT id FROM runs WHERE state = 'running' AND (node IS NULL OR token < 1) ORDER BY id {_LIMIT}",
    ),
    (
        "runs that are running on a node that does not exist",
        "SELECT id FROM runs WHERE state = 'running' AND node IS NOT NULL AND node NOT IN (SELECT id FROM nodes) "
        f"ORDER BY id {_LIMIT}",
    ),
    (
        "runs of a lane that does not exist",
        f"SELECT id FROM runs WHERE state IN ('queued', 'running') AND lane NOT IN (SELECT name FROM lanes) "
        f"ORDER BY id {_LIMIT}",
    ),
    (
        "runs that did not succeed and have no reason",
        "SELECT id FROM runs WHERE state NOT IN ('succeeded', 'queued', 'running') AND cause IS NULL "
        f"ORDER BY id {_LIMIT}",
    ),
    (
        "schedules whose budget is negative",
        f"SELECT DISTINCT schedule_id FROM spending WHERE reserved < 0 OR spent < 0 ORDER BY schedule_id {_LIMIT}",
    ),
)


def broken(text: str, rows: Sequence[Sequence[Any]]) -> list[str]:
    """What is to be told of an invariant, by the rows that break it."""
    if not rows:
        return []
    more = " and more" if len(rows) > MOST_NAMED else ""
    return [f"{text}: {', '.join(str(row[0]) for row in rows[:MOST_NAMED])}{more}"]
