"""Rows of SQLite that break the rules: found by reading, set aside one by one. Neighbours: ends.py, turns.py."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ostinato.clock import Micros
from ostinato.errors import StoreUnavailable
from ostinato.logs import get_logger
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.models.states import ENDS
from ostinato.stores.quarantine import QUARANTINE_COLUMNS, Queries, Seen, content_of, find_all, load_quarantined
from ostinato.stores.rules import KEYS, UNREADABLE, Dialect
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.ends import count_from_finish
from ostinato.stores.sqlite.events import note_runs
from ostinato.stores.sqlite.query import Connection, fetch, fetch_readable, fetch_value
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["DIALECT", "SqliteQuarantine"]

log = get_logger("ostinato.stores")

DIALECT = Dialect(
    yes="1",
    no="0",
    json_kind="CASE WHEN json_valid(COLUMN) THEN json_type(COLUMN) ELSE 'none' END",
    now=":now",
    why=":why",
    readable="utf8(CAST(EXPRESSION AS BLOB))",
    # The comma keeps the end of one text and the beginning of the next from making a letter together.
    undecodable="NOT is_utf8(CAST(concat_ws(',', COLUMNS) AS BLOB))",
    is_sqlite=True,
)
_TEXTS = "SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'"


class SqliteQuarantine:
    """Answers stores.quarantine.QuarantineStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries: dict[str, Queries] = {}

    async def _prepare(self) -> dict[str, Queries]:
        """The queries for every table; they name its texts."""

        def look(connection: Connection) -> dict[str, Queries]:
            texts = {table: [name for (name,) in fetch(connection, _TEXTS, (table,))] for table in KEYS}
            return {table: Queries(DIALECT, table, ":%s", texts[table]) for table in KEYS}

        if not self._queries:
            self._queries = await self._database.query(look)
        return self._queries

    async def find_bad(self, limit: int, seen: Seen | None = None) -> list[BadRow]:
        async def ask(query: str, values: Mapping[str, Any]) -> list[Any]:
            return await self._database.query(lambda connection: fetch(connection, query, values))

        return await find_all(await self._prepare(), ask, limit, seen)

    async def set_aside(self, bad: Sequence[BadRow], now: Micros) -> list[Quarantined]:
        queries = await self._prepare()
        # Each by itself: they share a commit, and one that cannot be set aside keeps no other from it.
        writes = [
            self._database.submit(partial(_set_aside, queries=queries[row.table], bad=row, now=now), wakes=True)
            for row in bad
        ]
        kept: list[Quarantined] = []
        for row, answer in zip(bad, await asyncio.gather(*writes, return_exceptions=True), strict=True):
            if isinstance(answer, Quarantined):
                kept.append(answer)
            elif isinstance(answer, StoreUnavailable) or not isinstance(answer, Exception | None):
                raise answer
            elif answer is not None:
                log.error("%s %r cannot be quarantined: %s", row.table, row.row, answer)
        return kept

    async def list_quarantined(self, limit: int) -> list[Quarantined]:
        query = f"SELECT {QUARANTINE_COLUMNS} FROM quarantine ORDER BY id DESC LIMIT ?"
        rows = await self._database.query(lambda connection: fetch(connection, query, (limit,)))
        return [load_quarantined(row) for row in rows]

    async def count_quarantined(self) -> int:
        query = "SELECT count(*) FROM quarantine"
        count: int = await self._database.query(lambda connection: fetch_value(connection, query))
        return count

    async def clear_quarantine(self) -> int:
        def clear(connection: Connection) -> int:
            connection.execute("DELETE FROM quarantine")
            return connection.changes()

        return await self._database.submit(clear)


def _set_aside(connection: Connection, queries: Queries, bad: BadRow, now: Micros) -> Quarantined | None:
    """Keep one row and change it; None if it is not bad any more."""
    values = {"row": bad.row, "now": now, "why": UNREADABLE + bad.reason, "reason": bad.reason}
    columns, rows = fetch_readable(connection, queries.read, values)
    if not rows:
        return None
    row = dict(zip(columns, rows[0], strict=True))
    kept = fetch(connection, queries.keep, {**values, "content": content_of(row)})
    connection.execute(queries.change, values)
    if queries.decode is not None:
        connection.execute(queries.decode, values)
    if bad.table == "runs" and row["state"] not in ENDS:
        _follow(connection, row, now)
    return load_quarantined(kept[0])


def _follow(connection: Connection, run: dict[str, Any], now: Micros) -> None:
    """What the end of a run means for its schedule and its session."""
    if run["schedule_id"] is not None:
        count_from_finish(connection, ScheduleId(run["schedule_id"]), now)
    if run["session"] is not None:
        note_runs(connection, EventKind.FINISHED, [RunId(run["id"])], now)
        give_turns(connection, [run["session"]])
