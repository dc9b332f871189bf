"""Rows of SQLite that break the rules: found by reading, set aside one by one. Neighbours: ends.py, turns.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.models.states import ENDS
from ostinato.stores.quarantine import QUARANTINE_COLUMNS, Queries, content_of, find_all, load_quarantined
from ostinato.stores.rules import KEYS, UNREADABLE, Dialect
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.ends import count_from_finish
from ostinato.stores.sqlite.events import note_runs
from ostinato.stores.sqlite.query import fetch, fetch_value
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["DIALECT", "SqliteQuarantine"]

DIALECT = Dialect(
    yes="1",
    no="0",
    json_kind="CASE WHEN json_valid(COLUMN) THEN json_type(COLUMN) ELSE 'none' END",
    now=":now",
    why=":why",
    is_sqlite=True,
)
_QUERIES = {table: Queries(DIALECT, table, ":%s") for table in KEYS}


class SqliteQuarantine:
    """Answers stores.quarantine.QuarantineStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_bad(self, limit: int) -> list[BadRow]:
        async def ask(query: str, values: Mapping[str, Any]) -> list[Any]:
            return await self._database.read(lambda connection: fetch(connection, query, values))

        return await find_all(_QUERIES, ask, limit)

    async def set_aside(self, bad: Sequence[BadRow], now: Micros) -> list[Quarantined]:
        def write(connection: apsw.Connection) -> list[Quarantined]:
            return [kept for row in bad if (kept := _set_aside(connection, row, now)) is not None]

        return await self._database.write(write, wakes=True)

    async def list_quarantined(self, limit: int) -> list[Quarantined]:
        query = f"SELECT {QUARANTINE_COLUMNS} FROM quarantine ORDER BY id DESC LIMIT ?"
        rows = await self._database.read(lambda connection: fetch(connection, query, (limit,)))
        return [load_quarantined(row) for row in rows]

    async def count_quarantined(self) -> int:
        query = "SELECT count(*) FROM quarantine"
        count: int = await self._database.read(lambda connection: fetch_value(connection, query))
        return count

    async def clear_quarantine(self) -> int:
        def clear(connection: apsw.Connection) -> int:
            connection.execute("DELETE FROM quarantine")
            return connection.changes()

        return await self._database.write(clear)


def _set_aside(connection: apsw.Connection, bad: BadRow, now: Micros) -> Quarantined | None:
    """Keep one row and change it; None if it is not bad any more."""
    queries = _QUERIES[bad.table]
    values = {"row": bad.row, "now": now, "why": UNREADABLE + bad.reason, "reason": bad.reason}
    cursor = connection.execute(queries.read, values)
    rows = [dict(zip((column[0] for column in cursor.get_description()), row, strict=True)) for row in cursor]
    if not rows:
        return None
    kept = fetch(connection, queries.keep, {**values, "content": content_of(rows[0])})
    connection.execute(queries.change, values)
    if bad.table == "runs" and rows[0]["state"] not in ENDS:
        _follow(connection, rows[0], now)
    return load_quarantined(kept[0])


def _follow(connection: apsw.Connection, run: dict[str, Any], now: Micros) -> None:
    """What the end of a run means for its schedule and its session."""
    if run["schedule_id"] is not None:
        count_from_finish(connection, ScheduleId(run["schedule_id"]), now)
    if run["session"] is not None:
        note_runs(connection, EventKind.FINISHED, [RunId(run["id"])], now)
        give_turns(connection, [run["session"]])
