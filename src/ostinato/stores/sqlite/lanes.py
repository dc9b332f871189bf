"""Lanes in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from ostinato.models.lane import Lane
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.query import fetch

__all__ = ["SqliteLanes"]


class SqliteLanes:
    """Answers stores.base.LaneStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ensure_lanes(self, limits: dict[str, int], fixed: Sequence[str]) -> None:
        def ensure(connection: apsw.Connection) -> None:
            connection.executemany(
                "INSERT INTO lanes (name, max_running) VALUES (?, ?) ON CONFLICT DO NOTHING", limits.items()
            )
            connection.executemany(
                "UPDATE lanes SET max_running = ? WHERE name = ? AND max_running <> ?",
                [(limits[name], name, limits[name]) for name in fixed],
            )

        await self._database.write(ensure)

    async def list_lanes(self) -> list[Lane]:
        query = """
            SELECT name, max_running, paused, note,
                   (SELECT count(*) FROM runs WHERE state = 'running' AND lane = lanes.name),
                   (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND lane = lanes.name)
            FROM lanes ORDER BY name"""
        rows = await self._database.read(lambda connection: fetch(connection, query))
        return [
            Lane(name, limit, bool(paused), note, running, queued)
            for name, limit, paused, note, running, queued in rows
        ]
