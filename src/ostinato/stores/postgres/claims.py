"""Claiming in PostgreSQL: every lane's limit is held here, inside the transaction, across all nodes.

Within a lane the highest priority goes first, then what has been ready longest. Each (lane, priority) is one seek
in the index `runs_ready`, so the cost follows what is claimed and not what is queued. It is one statement behind a
lock, sent at the end of a group together with its commit, so that other nodes wait as short as can be.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.stores.base import Claim, Claimed
from ostinato.stores.postgres.connection import Server
from ostinato.stores.postgres.ends import end_queued
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed

__all__ = ["ClaimAnswer", "expire_now", "give_back", "send_claim"]

ClaimAnswer = tuple[Claimed, bool]
"""What was claimed, and whether runs are queued that waited longer than their max age."""

_QUEUED = "state = 'queued' AND NOT waiting"
_CLAIM = f"""
WITH RECURSIVE
-- The priorities that are queued in each open lane, from the top.
level AS (
    SELECT l.name AS lane, l.max_running,
           (SELECT max(priority) FROM runs WHERE {_QUEUED} AND lane = l.name) AS priority
    FROM lanes l WHERE NOT l.paused AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = %(node)s AND lost_at IS NOT NULL)
    UNION ALL
    SELECT v.lane, v.max_running,
           (SELECT max(priority) FROM runs WHERE {_QUEUED} AND lane = v.lane AND priority < v.priority)
    FROM level v WHERE v.priority IS NOT NULL
),
-- The lanes in which something is queued, and how much more may run in each.
open AS (
    SELECT lane, row_number() OVER (ORDER BY lane) AS position, count(*) OVER () AS lanes,
           max_running - (SELECT count(*) FROM runs WHERE state = 'running' AND lane = first.lane) AS free
    FROM (SELECT DISTINCT lane, max_running FROM level WHERE priority IS NOT NULL) first
),
candidate AS MATERIALIZED (
    SELECT o.position, c.id, c.place FROM open o CROSS JOIN LATERAL (
        SELECT id, row_number() OVER () AS place FROM (
            SELECT r.id FROM (
                SELECT priority FROM level WHERE lane = o.lane AND priority IS NOT NULL ORDER BY priority DESC
            ) p CROSS JOIN LATERAL (
                SELECT id FROM runs
                WHERE {_QUEUED} AND lane = o.lane AND priority = p.priority AND ready_at <= %(horizon)s
                  AND task = ANY (%(tasks)s::text[]) AND (expires_at IS NULL OR expires_at > %(now)s)
                ORDER BY ready_at, id LIMIT greatest(least(o.free, %(room)s), 0) FOR UPDATE SKIP LOCKED
            ) r LIMIT greatest(least(o.free, %(room)s), 0)
        ) first_ready
    ) c
),
-- A fair share of the room for each lane, so that a flood in one cannot starve the next on a busy node.
share AS (
    SELECT 0::bigint AS position, NULL::text COLLATE "C" AS lane, 0::bigint AS room, 0::bigint AS taken,
           0::bigint AS total
    UNION ALL
    SELECT o.position, o.lane, n.room, n.taken, s.total + n.taken
    FROM share s JOIN open o ON o.position = s.position + 1
    CROSS JOIN LATERAL (
        SELECT room, greatest(least(room, (SELECT count(*) FROM candidate WHERE position = o.position)), 0) AS taken
        FROM (SELECT least(o.free, (%(room)s - s.total + o.lanes - o.position) / (o.lanes - s.position)) AS room) r
    ) n
),
taken AS (
    UPDATE runs SET state = 'running', token = token + 1, attempt = attempt + 1, node = %(node)s, started_at = %(now)s,
                    reason = NULL, error = NULL
    WHERE id = ANY (ARRAY(
        SELECT c.id FROM share s JOIN candidate c ON c.position = s.position WHERE c.place <= s.taken
    ))
    RETURNING id, token, kind, task, work, policy, trigger, due_at, ready_at, attempt, schedule_id, session, key,
              count, node, NULL::bigint AS started_at, lane, priority
)
SELECT (SELECT min((SELECT min(ready_at) FROM runs
                    WHERE {_QUEUED} AND lane = v.lane AND priority = v.priority AND ready_at > %(horizon)s))
        FROM share s JOIN level v ON v.lane = s.lane AND v.priority IS NOT NULL WHERE s.taken < s.room),
       (SELECT coalesce(bool_or(taken >= room), false) FROM share WHERE position > 0),
       EXISTS (SELECT 1 FROM runs WHERE state = 'queued' AND expires_at <= %(now)s),
       {CLAIM_COLUMNS}
FROM (VALUES (1)) always LEFT JOIN (taken r LEFT JOIN schedules s ON s.id = r.schedule_id) ON true
ORDER BY r.lane, r.priority DESC, r.ready_at, r.id
"""
_EXPIRED = "SELECT id FROM runs WHERE state = 'queued' AND expires_at <= %s LIMIT 1000"


async def send_claim(connection: Connection, server: Server, claim: Claim) -> Answer[ClaimAnswer]:
    """Take ready runs for a node, inside the caller's transaction and at the end of it."""
    # One lock for all lanes of the schema, in a statement of its own: the next one sees what the holder before us
    # committed. It is an advisory one because a claim reads every lane anyway, it also covers a lane that is made
    # meanwhile, and a lock on rows would be written to the disk with each claim.
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (server.claims_lock,))
    cursor = await connection.execute(
        _CLAIM,
        {
            "node": claim.node,
            "now": claim.now,
            "horizon": claim.horizon,
            "room": claim.room,
            "tasks": texts(claim.tasks),
        },
    )

    async def answer() -> ClaimAnswer:
        rows = await cursor.fetchall()
        later, crowded, expired = rows[0][:3]
        runs = [load_claimed(row[3:]) for row in rows if row[3] is not None]
        return Claimed(runs, later, crowded), expired

    return answer


async def give_back(connection: Connection, claim: Claim, known: Sequence[RunId] = ()) -> Answer[None]:
    """Undo a claim of which nobody knows whether it was committed: its node never heard what it got beyond `known`."""
    await connection.execute(
        "UPDATE runs SET state = 'queued', node = NULL, started_at = NULL, attempt = attempt - 1 "
        "WHERE state = 'running' AND node = %s AND started_at = %s AND id <> ALL (%s::bigint[])",
        (claim.node, claim.now, numbers(known)),
    )

    async def nothing() -> None:
        return None

    return nothing


async def expire_now(connection: Connection, now: Micros) -> None:
    """End what waited longer than its max age."""
    rows = await fetch(connection, _EXPIRED, (now,))
    if rows:
        reason = "waited longer than its max age before it could start"
        await end_queued(connection, [RunId(id) for (id,) in rows], "expired", reason, now)
