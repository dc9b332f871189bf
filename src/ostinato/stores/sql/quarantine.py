"""Rows that break the rules: found by reading, set aside one by one, listed.

What each database needs besides is in its own quarantine.py. Neighbours: each store's ends.py and turns.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.models.states import ENDS
from ostinato.stores.quarantine import QUARANTINE_COLUMNS, Queries, Seen, content_of, find_all, load_quarantined
from ostinato.stores.rules import UNREADABLE
from ostinato.stores.sql.connection import Connection, Database
from ostinato.stores.sql.events import note_runs
from ostinato.stores.sql.parts import Parts

__all__ = ["Quarantine"]

C = TypeVar("C", bound=Connection)

_LIST = f"SELECT {QUARANTINE_COLUMNS} FROM quarantine ORDER BY id DESC LIMIT :limit"


class Quarantine(Generic[C]):
    """Answers stores.quarantine.QuarantineStore, but for how many are set aside in one transaction."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts
        self._queries: dict[str, Queries] = {}

    async def _prepare(self) -> dict[str, Queries]:
        """The queries for every table."""
        return self._queries

    async def find_bad(self, limit: int, seen: Seen | None = None) -> list[BadRow]:
        async def ask(query: str, values: Mapping[str, Any]) -> list[Any]:
            return await self._database.read(lambda db: db.fetch(query, values))

        return await find_all(await self._prepare(), ask, limit, seen)

    async def list_quarantined(self, limit: int) -> list[Quarantined]:
        rows = await self._database.read(lambda db: db.fetch(_LIST, {"limit": limit}))
        return [load_quarantined(row) for row in rows]

    async def count_quarantined(self) -> int:
        count: int = await self._database.read(lambda db: db.fetch_value("SELECT count(*) FROM quarantine"))
        return count

    async def clear_quarantine(self) -> int:
        return len(await self._database.write(lambda db: db.fetch("DELETE FROM quarantine RETURNING id")))

    async def _set_aside(self, db: C, bad: BadRow, now: Micros) -> Quarantined | None:
        """Keep one row and change it; None if it is not bad any more."""
        queries = self._queries[bad.table]
        values = {"row": bad.row, "now": now, "why": UNREADABLE + bad.reason, "reason": bad.reason}
        row = await self._parts.fetch_row(db, queries.read, values)
        if row is None:
            return None
        kept = await db.fetch(queries.keep, {**values, "content": content_of(row)})
        await db.run(queries.change, values)
        if queries.decode is not None:
            await db.run(queries.decode, values)
        if bad.table == "runs" and row["state"] not in ENDS:
            await self._follow(db, row, now)
        return load_quarantined(kept[0])

    async def _follow(self, db: C, run: Mapping[str, Any], now: Micros) -> None:
        """What the end of a run means for its schedule and its session."""
        if run["schedule_id"] is not None:
            await self._parts.count_from_finish(db, {ScheduleId(run["schedule_id"]): now})
        if run["session"] is not None:
            await note_runs(db, EventKind.FINISHED, [RunId(run["id"])], now)
            await self._parts.give_turns(db, [run["session"]])
