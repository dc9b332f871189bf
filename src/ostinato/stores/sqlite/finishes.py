"""Ends of runs in SQLite, each fenced by its token, inside the caller's transaction. What follows is in
stores.sql.finishes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ostinato.models.ids import RunId
from ostinato.models.run import Finish
from ostinato.stores.sqlite.batches import ROWS, batched, placeholders
from ostinato.stores.sqlite.query import Connection

__all__ = ["end_rows"]

# The plus keeps the index on what runs away: each row is to be found by its id, however few the planner believes are
# running.
_END = f"""
WITH f (id, token, state, cause, reason, started_at, finished_at, error, result, totals, progress) AS (
    VALUES {placeholders(11)}
)
UPDATE runs SET state = f.state, cause = f.cause, reason = f.reason,
                started_at = coalesce(f.started_at, runs.started_at), finished_at = f.finished_at,
                error = f.error, result = f.result, totals = coalesce(f.totals, runs.totals),
                progress = coalesce(f.progress, runs.progress)
FROM f WHERE runs.id = f.id AND runs.token = f.token AND +runs.state = 'running'
"""
_NO_END = (None,) * 11
"""Fills a statement up: it has no run's id."""


def end_rows(connection: Connection, ended: Sequence[Finish]) -> set[RunId]:
    """Write these ends; answers whose token held. To count the changes is cheaper than to let each row answer."""
    rows: list[tuple[Any, ...]] = [
        (
            finish.id,
            finish.token,
            finish.state,
            finish.cause,
            finish.reason,
            finish.started_at,
            finish.finished_at,
            finish.error,
            finish.result,
            finish.totals,
            finish.progress,
        )
        for finish in ended
    ]
    values = batched(rows + [_NO_END] * (-len(rows) % ROWS))
    before = connection.total_changes()
    with suppress(_SomeLost), connection:
        connection.executemany(_END, values)
        if connection.total_changes() - before != len(rows):
            raise _SomeLost  # takes the writes back
        return {finish.id for finish in ended}
    return {RunId(id) for (id,) in connection.executemany(f"{_END} RETURNING id", values)}


class _SomeLost(Exception):
    """Not every token held."""
