"""Nodes in SQLite: leases, written by heartbeats. What only reads is in stores.sql.nodes."""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.models.ids import NodeId, RunId
from ostinato.models.node import NodeBeat
from ostinato.stores.base import OwnedRun, Renewed
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.nodes import BEAT_COLUMNS, BEAT_VALUES, LEAVE, RENEWED, NodeReads, beat_values, signs_of_life
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.locks import report_foreign

__all__ = ["SqliteNodes"]

_RENEW = f"""
INSERT INTO nodes ({BEAT_COLUMNS}) VALUES ({BEAT_VALUES}) ON CONFLICT (id) DO UPDATE SET {RENEWED}
WHERE lost_at IS NULL AND nodes.pid = excluded.pid AND nodes.started_at = excluded.started_at
RETURNING drain
"""
_OWNED = "SELECT id, token, ready_at, schedule_id, session FROM runs WHERE state = 'running' AND node = :id"
_BOUND = "SELECT id FROM runs WHERE state = 'queued' AND node = :id"
_ASK_DRAIN = "UPDATE nodes SET drain = :wanted WHERE id = :id AND lost_at IS NULL RETURNING id"


class SqliteNodes(NodeReads):
    """Answers stores.base.NodeStore."""

    _database: Database

    async def renew(self, beat: NodeBeat) -> Renewed:
        values = beat_values(beat)

        async def renew(db: Connection) -> Renewed:
            rows = await db.fetch(_RENEW, values)
            if not rows:
                return Renewed(held=False)
            owned = tuple(OwnedRun(*row) for row in await db.fetch(_OWNED, values))
            bound = tuple(RunId(id) for (id,) in await db.fetch(_BOUND, values))
            return Renewed(held=True, drain=bool(rows[0][0]), owned=owned, bound=bound)

        report_foreign()
        return await self._database.write(renew)

    async def leave(self, id: NodeId) -> None:
        await self._database.write(lambda db: db.run(LEAVE, {"id": id}))

    async def ask_drain(self, id: NodeId, wanted: bool) -> bool:
        values = {"id": id, "wanted": wanted}
        return bool(await self._database.write(lambda db: db.fetch(_ASK_DRAIN, values), wakes=True))

    async def signs_of_life(self) -> list[tuple[NodeId, Micros]]:
        return await self._database.read(signs_of_life)
