"""Lanes in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.lane import Lane
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts

__all__ = ["PostgresLanes"]

_ENSURE = """
INSERT INTO lanes (name, max_running)
SELECT name, max_running FROM unnest(%s::text[], %s::bigint[]) l (name, max_running) ORDER BY name
ON CONFLICT (name) DO NOTHING
"""
_FIX = """
UPDATE lanes SET max_running = f.max_running FROM unnest(%s::text[], %s::bigint[]) f (name, max_running)
WHERE lanes.name = f.name AND lanes.max_running <> f.max_running
"""


class PostgresLanes:
    """Answers stores.base.LaneStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ensure_lanes(self, limits: dict[str, int], fixed: Sequence[str]) -> None:
        names = sorted(fixed)

        async def ensure(connection: Connection) -> None:
            await connection.execute(_ENSURE, (texts(list(limits)), numbers(limits.values())))
            if names:
                await connection.execute(_FIX, (texts(names), numbers([limits[name] for name in names])))

        await self._database.write(ensure)

    async def list_lanes(self) -> list[Lane]:
        query = """
            SELECT name, max_running, paused, note,
                   (SELECT count(*) FROM runs WHERE state = 'running' AND lane = lanes.name),
                   (SELECT count(*) FROM runs WHERE state = 'queued' AND NOT waiting AND lane = lanes.name)
            FROM lanes ORDER BY name"""
        rows = await self._database.read(lambda connection: fetch(connection, query))
        return [Lane(*row) for row in rows]
