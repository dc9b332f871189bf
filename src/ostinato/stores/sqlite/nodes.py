"""Nodes in SQLite: leases, written by heartbeats."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import NodeId
from ostinato.models.node import Node, NodeBeat
from ostinato.stores.base import OwnedRun, Renewed
from ostinato.stores.rows import NODE_COLUMNS, load_all, load_node, load_statistics
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.locks import report_foreign
from ostinato.stores.sqlite.query import fetch

__all__ = ["SqliteNodes"]

_RENEW = """
INSERT INTO nodes (id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, services,
                   statistics, drain)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    slots = excluded.slots, running = excluded.running, draining = excluded.draining, tasks = excluded.tasks,
    seen_at = excluded.seen_at, lease_until = excluded.lease_until, services = excluded.services,
    statistics = excluded.statistics
WHERE lost_at IS NULL AND nodes.pid = excluded.pid AND nodes.started_at = excluded.started_at
RETURNING drain
"""
_OWNED = "SELECT id, token, ready_at, schedule_id, session FROM runs WHERE state = 'running' AND node = ?"


class SqliteNodes:
    """Answers stores.base.NodeStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def renew(self, beat: NodeBeat) -> Renewed:
        values = (
            beat.id,
            beat.host,
            beat.pid,
            beat.slots,
            beat.running,
            beat.draining,
            msgspec.json.encode(beat.tasks).decode(),
            beat.started_at,
            beat.now,
            beat.lease_until,
            beat.services,
            beat.statistics,
            beat.drain,
        )

        def renew(connection: apsw.Connection) -> Renewed:
            rows = fetch(connection, _RENEW, values)
            if not rows:
                return Renewed(held=False)
            owned = tuple(OwnedRun(*row) for row in fetch(connection, _OWNED, (beat.id,)))
            return Renewed(held=True, drain=bool(rows[0][0]), owned=owned)

        report_foreign()
        return await self._database.write(renew)

    async def leave(self, id: NodeId) -> None:
        def remove(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM nodes WHERE id = ?", (id,))

        await self._database.write(remove)

    async def ask_drain(self, id: NodeId, wanted: bool) -> bool:
        query = "UPDATE nodes SET drain = ? WHERE id = ? AND lost_at IS NULL RETURNING id"
        return bool(await self._database.write(lambda connection: fetch(connection, query, (wanted, id)), wakes=True))

    async def list_nodes(self, now: Micros) -> list[Node]:
        query = f"SELECT {NODE_COLUMNS} FROM nodes WHERE slots > 0 ORDER BY started_at"
        rows = await self._database.read(lambda connection: fetch(connection, query))
        return load_all(lambda row: load_node(row, now), rows, "node")

    async def signs_of_life(self) -> list[tuple[NodeId, Micros]]:
        query = "SELECT id, seen_at FROM nodes WHERE lost_at IS NULL"
        rows = await self._database.read(lambda connection: fetch(connection, query))
        return [(NodeId(id), seen_at) for id, seen_at in rows]

    async def read_statistics(self) -> dict[NodeId, dict[str, Any]]:
        query = "SELECT id, statistics FROM nodes WHERE lost_at IS NULL"
        rows = await self._database.read(lambda connection: fetch(connection, query))
        return {NodeId(id): load_statistics(text) for id, text in rows}
