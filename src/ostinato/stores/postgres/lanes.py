"""Lanes in PostgreSQL: limits, rates and switches. Their limits are held in claims.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.lane import Lane, Rate
from ostinato.models.run import CLEARED
from ostinato.stores.base import Cleared
from ostinato.stores.postgres.claims import lock_claims
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.ends import end_queued
from ostinato.stores.postgres.query import Connection, Row, fetch, fetch_value, numbers, texts
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.rows import load_all, load_lane

__all__ = ["PostgresLanes"]

T = TypeVar("T")

_ENSURE = """
INSERT INTO lanes (name, max_running)
SELECT name, max_running FROM unnest(%s::text[], %s::bigint[]) l (name, max_running) ORDER BY name
ON CONFLICT (name) DO NOTHING
"""
_FIX = """
UPDATE lanes SET max_running = f.max_running FROM unnest(%s::text[], %s::bigint[]) f (name, max_running)
WHERE lanes.name = f.name AND lanes.max_running <> f.max_running
"""
_SET = "INSERT INTO lanes (name, max_running) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET max_running = %s"
_RATE = "UPDATE lanes SET rate_count = %s, rate_per = %s WHERE name = %s"
_LIST = """
SELECT l.name, l.max_running, l.paused, l.note, l.rate_count, l.rate_per, l.rate_from,
       (SELECT count(*) FROM runs WHERE state = 'running' AND lane = l.name), q.runs + coalesce(w.runs, 0), q.oldest_at
FROM lanes l
CROSS JOIN LATERAL (
    SELECT count(*) AS runs, min(ready_at) AS oldest_at FROM runs
    WHERE state = 'queued' AND NOT waiting AND lane = l.name
) q
LEFT JOIN (SELECT lane, count(*) AS runs FROM runs WHERE state = 'queued' AND waiting GROUP BY lane) w
       ON w.lane = l.name
ORDER BY l.name
"""
# By the two indexes that hold what is queued (the + 0 keeps the server from walking through the ledger by id instead).
# Those that wait go first: the end of one that has its turn gives it to the next.
_QUEUED = """
SELECT id, session FROM runs WHERE state = 'queued' AND waiting AND lane = %(lane)s AND id + 0 <= %(until)s
UNION ALL
SELECT id, session FROM runs WHERE state = 'queued' AND NOT waiting AND lane = %(lane)s AND id + 0 <= %(until)s
LIMIT %(limit)s
"""


class PostgresLanes:
    """Answers stores.base.LaneStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ensure_lanes(
        self, limits: Mapping[str, int], fixed: Sequence[str], rates: Mapping[str, Rate] | None = None
    ) -> None:
        names = sorted(fixed)

        async def ensure(connection: Connection) -> None:
            await connection.execute(_ENSURE, (texts(list(limits)), numbers(limits.values())))
            if names:
                await connection.execute(_FIX, (texts(names), numbers([limits[name] for name in names])))
            for name, rate in (rates or {}).items():
                await connection.execute(_RATE, (rate.count, rate.per, name))

        await self._change(ensure, wakes=False)

    async def set_lane(self, name: str, limit: int | None, rate: Rate | None, *, clear_rate: bool = False) -> bool:
        async def change(connection: Connection) -> bool:
            if limit is not None:
                await connection.execute(_SET, (name, limit, limit))
            if rate is not None:
                await connection.execute(_RATE, (rate.count, rate.per, name))
            elif clear_rate:
                await connection.execute(_RATE, (None, None, name))
            return bool(await fetch(connection, "SELECT 1 FROM lanes WHERE name = %s", (name,)))

        return await self._change(change)

    async def pause_lane(self, name: str, paused: bool, note: str | None) -> bool:
        query = "UPDATE lanes SET paused = %s, note = %s WHERE name = %s RETURNING name"
        return bool(await self._change(lambda connection: fetch(connection, query, (paused, note, name))))

    async def _change(self, query: Callable[[Connection], Awaitable[T]], *, wakes: bool = True) -> T:
        """Change lanes where a claim would read them: at the end of a group, behind the lock of all claims. A claim
        writes to a lane that has a rate, and would wait for one that had changed it first and then wants to claim."""

        async def change(connection: Connection) -> Answer[T]:
            await lock_claims(connection, self._database.server)
            value = await query(connection)

            async def answer() -> T:
                return value

            return answer

        _, value = await self._database.send_last(None, change, wakes=wakes)
        return value

    async def clear_lane(self, name: str, now: Micros, until: RunId | None, limit: int) -> Cleared:
        # Looked up before, so that the writer knows the sessions; what has started meanwhile is not ended.
        async def look(connection: Connection) -> tuple[RunId, list[Row]]:
            last = await fetch_value(connection, "SELECT max(id) FROM runs") if until is None else until
            return last, await fetch(connection, _QUEUED, {"lane": name, "until": last, "limit": limit})

        last, rows = await self._database.read(look)
        ids = [RunId(id) for id, _ in rows]
        sessions = {session for _, session in rows if session is not None}
        ended = await self._database.write(
            lambda connection: end_queued(connection, ids, CLEARED, now),
            wakes=True,
            sessions=sessions,
        )
        return Cleared(len(ended), last if len(rows) == limit else None)

    async def list_lanes(self) -> list[Lane]:
        rows = await self._database.read(lambda connection: fetch(connection, _LIST))
        return load_all(load_lane, rows)
