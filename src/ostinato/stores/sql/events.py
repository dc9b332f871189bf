"""Events of sessions, recorded in the transaction of what they tell."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.stores.sql.connection import Connection, Dialect

__all__ = ["note", "note_runs"]

_NOTE = "INSERT INTO events (at, kind, session, run_id, data) VALUES (:at, :kind, :session, :run, :data)"
# What a run's own row says goes into its event; a run in no user session has none.
_NOTE_RUNS = """
INSERT INTO events (at, kind, session, run_id, data)
SELECT coalesce(:at::bigint, finished_at), :kind::text, session, id, {}
FROM runs WHERE id = ANY (:ids::bigint[]) AND mode IS NOT NULL ORDER BY id
"""
_SAID = "'state', state, 'attempt', attempt, 'cause', cause, 'reason', reason"
_OF_RUNS: dict[Dialect, str] = {
    "sqlite": _NOTE_RUNS.format(f"json_object({_SAID})"),
    "postgres": _NOTE_RUNS.format(f"json_build_object({_SAID})::text"),
}


async def note(
    db: Connection, kind: EventKind, session: str, now: Micros, run: RunId | None = None, **data: object
) -> None:
    """One event."""
    said = msgspec.json.encode(data).decode()
    await db.run(_NOTE, {"at": now, "kind": kind, "session": session, "run": run, "data": said})


async def note_runs(db: Connection, kind: EventKind, ids: Sequence[RunId], now: Micros | None) -> None:
    """One event for each of the runs that is in a user session, as its row is now.

    None tells it of the instant at which each has ended."""
    await db.run(_OF_RUNS[db.dialect], {"at": now, "kind": kind, "ids": ids})
