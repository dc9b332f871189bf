"""Rows of PostgreSQL that break the rules: found by reading, set aside one by one. Neighbours: ends.py, turns.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.models.states import ENDS
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.ends import count_from_finish, lock_ends
from ostinato.stores.postgres.events import note_runs
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers
from ostinato.stores.postgres.turns import give_turns
from ostinato.stores.quarantine import QUARANTINE_COLUMNS, Queries, Seen, content_of, find_all, load_quarantined
from ostinato.stores.rules import KEYS, UNREADABLE, Dialect

__all__ = ["DIALECT", "PostgresQuarantine"]

DIALECT = Dialect(
    yes="true",
    no="false",
    json_kind="json_kind(COLUMN)",
    now="%(now)s",
    why="%(why)s",
    readable="CAST(EXPRESSION AS text)",
    undecodable=None,
    is_sqlite=False,
)
_QUERIES = {table: Queries(DIALECT, table, "%%(%s)s") for table in KEYS}
_SESSIONS = "SELECT DISTINCT session FROM runs WHERE id = ANY (%s::bigint[]) AND session IS NOT NULL"


class PostgresQuarantine:
    """Answers stores.quarantine.QuarantineStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_bad(self, limit: int, seen: Seen | None = None) -> list[BadRow]:
        async def ask(query: str, values: Mapping[str, Any]) -> list[Any]:
            return await self._database.read(lambda connection: fetch(connection, query, values))

        return await find_all(_QUERIES, ask, limit, seen)

    async def set_aside(self, bad: Sequence[BadRow], now: Micros) -> list[Quarantined]:
        ids = [int(row.row) for row in bad if row.table == "runs"]

        async def write(connection: Connection) -> list[Quarantined]:
            await lock_ends(connection, [RunId(id) for id in ids])
            return [kept for row in bad if (kept := await _set_aside(connection, row, now)) is not None]

        sessions = await self._database.read(lambda connection: fetch(connection, _SESSIONS, (numbers(ids),)))
        return await self._database.write(write, wakes=True, sessions=[session for (session,) in sessions])

    async def list_quarantined(self, limit: int) -> list[Quarantined]:
        query = f"SELECT {QUARANTINE_COLUMNS} FROM quarantine ORDER BY id DESC LIMIT %s"
        rows = await self._database.read(lambda connection: fetch(connection, query, (limit,)))
        return [load_quarantined(row) for row in rows]

    async def count_quarantined(self) -> int:
        query = "SELECT count(*) FROM quarantine"
        count: int = await self._database.read(lambda connection: fetch_value(connection, query))
        return count

    async def clear_quarantine(self) -> int:
        query = "DELETE FROM quarantine RETURNING 1"
        return len(await self._database.write(lambda connection: fetch(connection, query)))


async def _set_aside(connection: Connection, bad: BadRow, now: Micros) -> Quarantined | None:
    """Keep one row and change it; None if it is not bad any more."""
    queries = _QUERIES[bad.table]
    values = {"row": bad.row, "now": now, "why": UNREADABLE + bad.reason, "reason": bad.reason}
    cursor = await connection.execute(f"{queries.read} FOR UPDATE", values)
    rows = await cursor.fetchall()
    if not rows:
        return None
    row = dict(zip((column.name for column in cursor.description or ()), rows[0], strict=True))
    kept = await fetch(connection, queries.keep, {**values, "content": content_of(row)})
    await connection.execute(queries.change, values)
    if bad.table == "runs" and row["state"] not in ENDS:
        await _follow(connection, row, now)
    return load_quarantined(kept[0])


async def _follow(connection: Connection, run: dict[str, Any], now: Micros) -> None:
    """What the end of a run means for its schedule and its session."""
    if run["schedule_id"] is not None:
        await count_from_finish(connection, {ScheduleId(run["schedule_id"]): now})
    if run["session"] is not None:
        await note_runs(connection, EventKind.FINISHED, [RunId(run["id"])], now)
        await give_turns(connection, [run["session"]])
