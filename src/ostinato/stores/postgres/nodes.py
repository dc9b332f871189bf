"""Nodes in PostgreSQL: leases, written by heartbeats on a connection of their own, and how the lost ones are ended.

A node's row has the key of its process (see connection.py). Whoever declares it lost first ends its connections: what
they have locked is what everybody else waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from psycopg import errors

from ostinato.clock import Micros
from ostinato.logs import get_logger
from ostinato.models.ids import NodeId
from ostinato.models.node import NodeBeat
from ostinato.models.write_tracking import noted
from ostinato.plurals import counted
from ostinato.stores.base import OwnedRun, Renewed
from ostinato.stores.postgres.connection import HELD_KEYS
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts
from ostinato.stores.sql.nodes import BEAT_COLUMNS, BEAT_VALUES, LEAVE, RENEWED, NodeReads, beat_values, signs_of_life

__all__ = ["PostgresNodes", "declare_lost"]

log = get_logger("ostinato.stores")

_RENEW = f"""
WITH renewed AS (
    INSERT INTO nodes AS n ({BEAT_COLUMNS}, writer) VALUES ({BEAT_VALUES}, :writer)
    ON CONFLICT (id) DO UPDATE SET {RENEWED}, writer = excluded.writer
    WHERE n.lost_at IS NULL AND n.pid = excluded.pid AND n.started_at = excluded.started_at
    RETURNING n.id, n.drain, ARRAY(SELECT id FROM runs WHERE state = 'queued' AND node = n.id) AS bound
)
SELECT n.drain, n.bound, r.id, r.token, r.ready_at, r.schedule_id, r.session
FROM renewed n LEFT JOIN runs r ON r.node = n.id AND r.state = 'running'
"""
_ASK_DRAIN = """
WITH asked AS (UPDATE nodes SET drain = :wanted WHERE id = :id AND lost_at IS NULL RETURNING id)
SELECT pg_notify(:channel, '') FROM asked
"""
_SILENT = """
unnest(%s::text[], %s::bigint[]) s (id, seen_at) WHERE n.id = s.id AND n.seen_at = s.seen_at AND n.lost_at IS NULL
"""
_HOLDERS = f"""
SELECT n.id, held.pid FROM ({HELD_KEYS}) held JOIN nodes n ON held.key IN (n.writer, n.writer + 1)
CROSS JOIN {_SILENT} AND n.writer <> %s
"""
_END = f"SELECT pg_terminate_backend(pid) FROM ({_HOLDERS}) found"
_LOSE = f"UPDATE nodes n SET lost_at = %s, statistics = '{{}}' FROM {_SILENT} RETURNING n.id"


class PostgresNodes(NodeReads):
    """Answers stores.base.NodeStore."""

    _database: Database

    async def renew(self, beat: NodeBeat) -> Renewed:
        values = {**beat_values(beat), "writer": self._database.server.writer_key}
        rows = await self._database.beats.run(lambda db: db.fetch(_RENEW, values))
        if not rows:
            return Renewed(held=False)
        drain, bound, *_ = rows[0]
        owned = tuple(OwnedRun(*run) for _, _, *run in rows if run[0] is not None)
        return Renewed(held=True, drain=bool(drain), owned=owned, bound=tuple(bound))

    async def leave(self, id: NodeId) -> None:
        await self._database.beats.run(lambda db: db.run(LEAVE, {"id": id}))

    async def ask_drain(self, id: NodeId, wanted: bool) -> bool:
        # Not through the writer: a group that waits for others' locks would hold the node's row, and its beats.
        values = {"id": id, "wanted": wanted, "channel": self._database.server.channel}
        asking = self._database.beats.run(lambda db: db.fetch(_ASK_DRAIN, values))
        return bool(await noted(asyncio.ensure_future(asking)))

    async def signs_of_life(self) -> list[tuple[NodeId, Micros]]:
        return await self._database.beats.run(signs_of_life)


async def declare_lost(database: Database, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[NodeId]:
    """Declare nodes lost that gave no sign of life since the given one, after their connections were ended; answers
    which."""
    nodes = (texts([id for id, _ in silent]), numbers([seen_at for _, seen_at in silent]))

    async def end(connection: Connection) -> None:
        try:
            ended = await fetch(connection, _END, (*nodes, database.server.writer_key))
        except errors.InsufficientPrivilege as error:
            log.warning("the connections of lost nodes could not be ended, and may hold up others: %s", error)
            return
        if ended:
            log.warning("ended %s of nodes that gave no sign of life", counted(len(ended), "connection"))

    async def lose(connection: Connection) -> list[NodeId]:
        return [NodeId(id) for (id,) in await fetch(connection, _LOSE, (now, *nodes))]

    await database.beats.run(end)
    return await database.beats.run(lose)
