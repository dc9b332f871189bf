"""Nodes, as every store reads them. Their beats are in each store's nodes.py: only PostgreSQL has a line for them."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import NodeId
from ostinato.models.node import Node, NodeBeat
from ostinato.stores.rows import NODE_COLUMNS, load_all, load_node, load_statistics
from ostinato.stores.sql.connection import Connection, Database

__all__ = ["BEAT_COLUMNS", "BEAT_VALUES", "LEAVE", "RENEWED", "NodeReads", "beat_values", "signs_of_life"]

_LIST = f"SELECT {NODE_COLUMNS} FROM nodes WHERE slots > 0 ORDER BY started_at"
_SIGNS = "SELECT id, seen_at FROM nodes WHERE lost_at IS NULL"
_STATISTICS = "SELECT id, statistics FROM nodes WHERE lost_at IS NULL"
LEAVE = "DELETE FROM nodes WHERE id = :id"
_BEAT = (
    *("id", "host", "pid", "slots", "running", "draining", "tasks", "started_at", "seen_at", "lease_until"),
    *("services", "statistics", "drain"),
)
BEAT_COLUMNS = ", ".join(_BEAT)
BEAT_VALUES = ", ".join(f":{name}" for name in _BEAT)
RENEWED = ", ".join(
    f"{name} = excluded.{name}" for name in _BEAT if name not in ("id", "host", "pid", "started_at", "drain")
)
"""What a beat changes of a node that is there."""


def beat_values(beat: NodeBeat) -> dict[str, Any]:
    """The values of BEAT_COLUMNS."""
    values = {name: getattr(beat, name) for name in _BEAT if name not in ("tasks", "seen_at")}
    return {**values, "tasks": msgspec.json.encode(beat.tasks).decode(), "seen_at": beat.now}


async def signs_of_life(db: Connection) -> list[tuple[NodeId, Micros]]:
    """When each process that has a lease and is not lost was heard last."""
    return [(NodeId(id), seen_at) for id, seen_at in await db.fetch(_SIGNS)]


class NodeReads:
    """What of stores.base.NodeStore only reads."""

    def __init__(self, database: Database[Connection]) -> None:
        self._database = database

    async def list_nodes(self, now: Micros) -> list[Node]:
        rows = await self._database.read(lambda db: db.fetch(_LIST))
        return load_all(lambda row: load_node(row, now), rows, "node")

    async def read_statistics(self) -> dict[NodeId, dict[str, Any]]:
        rows = await self._database.read(lambda db: db.fetch(_STATISTICS))
        return {NodeId(id): load_statistics(text) for id, text in rows}
