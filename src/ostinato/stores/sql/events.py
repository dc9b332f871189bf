"""One event of a session, recorded in the transaction of what it tells. Those of runs are in each store's events.py."""

from __future__ import annotations

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.stores.sql.connection import Connection

__all__ = ["note"]

_NOTE = "INSERT INTO events (at, kind, session, run_id, data) VALUES (:at, :kind, :session, :run, :data)"


async def note(
    db: Connection, kind: EventKind, session: str, now: Micros, run: RunId | None = None, **data: object
) -> None:
    """Tell it."""
    said = msgspec.json.encode(data).decode()
    await db.run(_NOTE, {"at": now, "kind": kind, "session": session, "run": run, "data": said})
