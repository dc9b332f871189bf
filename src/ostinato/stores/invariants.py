"""What must hold in every ledger, as SQL for both databases: `ostinato db check` asks for the rows that break it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.models.states import RunState

__all__ = ["INVARIANTS", "MOST_NAMED", "broken"]

MOST_NAMED = 5
_STATES = ", ".join(f"'{state}'" for state in RunState)
_LIMIT = f"LIMIT {MOST_NAMED + 1}"

INVARIANTS: tuple[tuple[str, str], ...] = (
    ("runs in a state that nobody knows", f"SELECT id FROM runs WHERE state NOT IN ({_STATES}) ORDER BY id {_LIMIT}"),
    (
        "runs that are running without a node, a start, an attempt or a token",
        "SELECT id FROM runs "
        "WHERE state = 'running' AND (node IS NULL OR started_at IS NULL OR attempt < 1 OR token < 1) "
        f"ORDER BY id {_LIMIT}",
    ),
    (
        "runs that are running on a node that does not exist",
        "SELECT id FROM runs WHERE state = 'running' AND node IS NOT NULL AND node NOT IN (SELECT id FROM nodes) "
        f"ORDER BY id {_LIMIT}",
    ),
    (
        "runs that ended at no time",
        f"SELECT id FROM runs WHERE state NOT IN ('queued', 'running') AND finished_at IS NULL ORDER BY id {_LIMIT}",
    ),
    ("runs that stand for no due time", f"SELECT id FROM runs WHERE count < 1 ORDER BY id {_LIMIT}"),
    (
        "runs of a lane that does not exist",
        f"SELECT id FROM runs WHERE state IN ('queued', 'running') AND lane NOT IN (SELECT name FROM lanes) "
        f"ORDER BY id {_LIMIT}",
    ),
    (
        "lanes with a limit or a rate that cannot be",
        f"SELECT name FROM lanes WHERE max_running < 0 OR rate_count < 1 OR rate_per < 1 ORDER BY name {_LIMIT}",
    ),
    (
        "schedules whose budget is less than nothing",
        f"SELECT DISTINCT schedule_id FROM spending WHERE reserved < 0 OR spent < 0 ORDER BY schedule_id {_LIMIT}",
    ),
)


def broken(text: str, rows: Sequence[Sequence[Any]]) -> list[str]:
    """What is to be told of an invariant, by the rows that break it."""
    if not rows:
        return []
    more = " and more" if len(rows) > MOST_NAMED else ""
    return [f"{text}: {', '.join(str(row[0]) for row in rows[:MOST_NAMED])}{more}"]
