"""Events of runs in SQLite, recorded in the transaction of what they tell."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.stores.sqlite.query import Connection

__all__ = ["note_runs"]

# What a run's own row says goes into its event; a run in no session of people's has none.
_OF_RUNS = """
INSERT INTO events (at, kind, session, run_id, data)
SELECT coalesce(?, finished_at), ?, session, id, json_object('state', state, 'attempt', attempt, 'reason', reason)
FROM runs WHERE id IN (SELECT value FROM json_each(?)) AND mode IS NOT NULL ORDER BY id
"""


def note_runs(connection: Connection, kind: EventKind, ids: Sequence[RunId], now: Micros | None) -> int:
    """One event for each of the runs that is in a session of people's, as its row is now; answers how many.

    None tells it of the instant at which each has ended."""
    connection.execute(_OF_RUNS, (now, kind, msgspec.json.encode(ids).decode()))
    return connection.changes()
