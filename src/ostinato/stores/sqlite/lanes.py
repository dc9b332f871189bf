"""Lanes in SQLite: limits, rates and switches. Their limits are held in claims.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.lane import CLEARED, Lane, Rate
from ostinato.models.states import RunState
from ostinato.stores.base import Cleared
from ostinato.stores.rows import load_all, load_lane
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.ends import end_queued
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value

__all__ = ["SqliteLanes"]

# By the two indexes that hold what is queued (the + keeps SQLite from walking through the ledger by id instead). Those
# that wait go first: the end of one that has its turn gives it to the next.
_QUEUED = """
SELECT id FROM runs
WHERE session IS NOT NULL AND waiting = 1 AND state IN ('queued', 'running') AND lane = ?1 AND +id <= ?2
UNION ALL
SELECT id FROM runs WHERE state = 'queued' AND waiting = 0 AND lane = ?1 AND +id <= ?2
LIMIT ?3
"""
_RATE = "UPDATE lanes SET rate_count = ?, rate_per = ? WHERE name = ?"


class SqliteLanes:
    """Answers stores.base.LaneStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ensure_lanes(
        self, limits: Mapping[str, int], fixed: Sequence[str], rates: Mapping[str, Rate] | None = None
    ) -> None:
        rates = rates or {}
        query = "SELECT name, max_running, rate_count, rate_per FROM lanes"
        rows = await self._database.query(lambda connection: fetch(connection, query))
        there = {name: (limit, count, per) for name, limit, count, per in rows}
        if (
            limits.keys() <= there.keys()
            and all(there[name][0] == limits[name] for name in fixed)
            and all(there[name][1:] == (rate.count, rate.per) for name, rate in rates.items() if name in there)
        ):
            return  # a list opens the database too, and takes no lock to write nothing

        def ensure(connection: Connection) -> None:
            connection.executemany(
                "INSERT INTO lanes (name, max_running) VALUES (?, ?) ON CONFLICT DO NOTHING", limits.items()
            )
            connection.executemany(
                "UPDATE lanes SET max_running = ? WHERE name = ? AND max_running <> ?",
                [(limits[name], name, limits[name]) for name in fixed],
            )
            connection.executemany(_RATE, [(rate.count, rate.per, name) for name, rate in rates.items()])

        await self._database.submit(ensure)

    async def set_lane(self, name: str, limit: int | None, rate: Rate | None, *, clear_rate: bool = False) -> bool:
        def change(connection: Connection) -> bool:
            if limit is not None:
                connection.execute(
                    "INSERT INTO lanes (name, max_running) VALUES (?1, ?2) "
                    "ON CONFLICT (name) DO UPDATE SET max_running = ?2",
                    (name, limit),
                )
            if rate is not None:
                connection.execute(_RATE, (rate.count, rate.per, name))
            elif clear_rate:
                connection.execute(_RATE, (None, None, name))
            return bool(fetch(connection, "SELECT 1 FROM lanes WHERE name = ?", (name,)))

        return await self._database.submit(change, wakes=True)

    async def pause_lane(self, name: str, paused: bool, note: str | None) -> bool:
        def pause(connection: Connection) -> bool:
            connection.execute("UPDATE lanes SET paused = ?, note = ? WHERE name = ?", (paused, note, name))
            return bool(connection.changes())

        return await self._database.submit(pause, wakes=True)

    async def clear_lane(self, name: str, now: Micros, until: RunId | None, limit: int) -> Cleared:
        def clear(connection: Connection) -> Cleared:
            last = fetch_value(connection, "SELECT max(id) FROM runs") if until is None else until
            rows = fetch(connection, _QUEUED, (name, last, limit))
            end_queued(connection, [RunId(id) for (id,) in rows], RunState.CANCELLED, CLEARED, now)
            return Cleared(len(rows), RunId(last) if len(rows) == limit else None)

        return await self._database.submit(clear, wakes=True)

    async def list_lanes(self) -> list[Lane]:
        query = """
            SELECT name, max_running, paused, note, rate_count, rate_per, rate_from,
                   (SELECT count(*) FROM runs WHERE state = 'running' AND lane = lanes.name),
                   (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND lane = lanes.name)
                   + (SELECT count(*) FROM runs WHERE session IS NOT NULL AND waiting = 1
                      AND state IN ('queued', 'running') AND lane = lanes.name),
                   (SELECT min(ready_at) FROM runs WHERE state = 'queued' AND waiting = 0 AND lane = lanes.name)
            FROM lanes ORDER BY name"""
        rows = await self._database.query(lambda connection: fetch(connection, query))
        return load_all(load_lane, rows)
