"""Claiming in PostgreSQL: every lane's limit is held here, inside the transaction, across all nodes.

Within a lane the highest priority goes first, then what has been ready longest. Each (lane, priority) is one seek
in the index `runs_ready`, so the cost follows what is claimed and not what is queued. It is one statement behind a
lock, sent at the end of a group together with its commit, so that other nodes wait as short as can be.

A lane with a rate is a token bucket, told by the instant at which it was empty (models/lane.py has the same in Python).
"""

from __future__ import annotations

from ostinato.models.ids import RunId
from ostinato.models.lane import JUMPED
from ostinato.models.run import WAITED_TOO_LONG, Ending
from ostinato.stores.base import NONE_ENDED, Claim, Claimed, Unstarted
from ostinato.stores.postgres.connection import Server
from ostinato.stores.postgres.ends import lock_ends
from ostinato.stores.postgres.events import telling
from ostinato.stores.postgres.given_up import MAY_START
from ostinato.stores.postgres.parts import PARTS
from ostinato.stores.postgres.query import Connection, LongStatement, fetch, texts
from ostinato.stores.postgres.turns import FIND_LATE, LATE, give_late_turns
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed, load_ending
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.slots import BORROWED

__all__ = ["ClaimAnswer", "give_back", "lock_claims", "send_claim", "settle_now", "unsettled_sessions"]

ClaimAnswer = tuple[Claimed, bool]
"""What was claimed; nothing if there are runs to `settle_now` first, which is the other half of the answer."""

_QUEUED = "state = 'queued' AND NOT waiting"
_NEVER = 1 << 62
_UNSETTLED = f"""EXISTS (SELECT 1 FROM runs WHERE state = 'queued' AND expires_at <= %(now)s)
       OR EXISTS (SELECT 1 FROM runs WHERE {LATE} AND ready_at <= %(horizon)s)"""
_CLAIM = f"""
WITH RECURSIVE
-- The priorities that are queued in each open lane, from the top; of a rate, the time in which one token comes back.
level AS (
    SELECT l.name AS lane, l.max_running, i.pace,
           greatest(CASE WHEN l.rate_from > %(now)s + {JUMPED} THEN %(now)s ELSE l.rate_from END,
                    %(now)s - l.rate_count * i.pace) AS empty_at,
           (SELECT max(priority) FROM runs WHERE {_QUEUED} AND lane = l.name) AS priority
    FROM lanes l CROSS JOIN LATERAL (SELECT (l.rate_per + l.rate_count - 1) / l.rate_count AS pace) i
    WHERE NOT l.paused AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = %(node)s AND lost_at IS NOT NULL)
      AND (%(settled)s OR NOT ({_UNSETTLED}))
    UNION ALL
    SELECT v.lane, v.max_running, v.pace, v.empty_at,
           (SELECT max(priority) FROM runs WHERE {_QUEUED} AND lane = v.lane AND priority < v.priority)
    FROM level v WHERE v.priority IS NOT NULL
),
-- The lanes in which something is queued, and how much more may run in each; no rate is NULL tokens.
open AS (
    SELECT lane, row_number() OVER (ORDER BY lane) AS position, count(*) OVER () AS lanes,
           max_running - (SELECT count(*) FROM runs WHERE state = 'running' AND lane = first.lane)
                       + {BORROWED.format(lane="first.lane")} AS free,
           pace, empty_at, CASE WHEN pace IS NOT NULL THEN greatest((%(now)s - empty_at) / pace, 0) END AS tokens
    FROM (SELECT DISTINCT lane, max_running, pace, empty_at FROM level WHERE priority IS NOT NULL) first
),
candidate AS MATERIALIZED (
    SELECT o.position, c.id, c.place FROM open o CROSS JOIN LATERAL (
        SELECT id, row_number() OVER () AS place FROM (
            SELECT r.id FROM (
                SELECT priority FROM level WHERE lane = o.lane AND priority IS NOT NULL ORDER BY priority DESC
            ) p CROSS JOIN LATERAL (
                SELECT id FROM runs
                WHERE {_QUEUED} AND lane = o.lane AND priority = p.priority AND ready_at <= %(horizon)s
                  AND (task IS NULL OR task = ANY (%(tasks)s::text[]))
                  AND (expires_at IS NULL OR expires_at > %(now)s) AND (NOT burst OR ready_at <= %(now)s)
                  AND node IS NULL AND {MAY_START}
                ORDER BY ready_at, id LIMIT greatest(least(o.free, o.tokens, %(room)s), 0) FOR UPDATE SKIP LOCKED
            ) r LIMIT greatest(least(o.free, o.tokens, %(room)s), 0)
        ) first_ready
    ) c
),
-- A fair share of the room for each lane, so that a flood in one cannot starve the next on a busy node.
share AS (
    SELECT 0::bigint AS position, NULL::text COLLATE "C" AS lane, 0::bigint AS room, 0::bigint AS taken,
           0::bigint AS total, NULL::bigint AS pace, NULL::bigint AS empty_at, false AS used_up, false AS has_room,
           NULL::bigint AS burst_at
    UNION ALL
    SELECT o.position, o.lane, n.room, n.taken, s.total + n.taken, o.pace, o.empty_at + n.taken * o.pace,
           n.taken < n.room AND n.taken >= coalesce(o.tokens, n.room),
           n.taken < n.room AND n.taken < coalesce(o.tokens, n.room),
           (SELECT min(ready_at) FROM runs WHERE {_QUEUED} AND burst AND lane = o.lane AND ready_at > %(now)s)
           + %(ahead)s
    FROM share s JOIN open o ON o.position = s.position + 1
    CROSS JOIN LATERAL (
        SELECT room, greatest(least(room, (SELECT count(*) FROM candidate WHERE position = o.position)), 0) AS taken
        FROM (SELECT least(o.free, (%(room)s - s.total + o.lanes - o.position) / (o.lanes - s.position)) AS room) r
        OFFSET 0  -- counted once, and not wherever it is used
    ) n
),
-- By slots that are counted already: those of runs that wait for these.
lent AS MATERIALIZED (
    SELECT r.id FROM runs r JOIN open o ON o.lane = r.lane AND o.free <= 0
    WHERE r.state = 'queued' AND NOT r.waiting AND r.slot_of IS NOT NULL AND r.ready_at <= %(horizon)s
      AND EXISTS (SELECT 1 FROM runs w WHERE w.id = r.slot_of AND w.state = 'running')
      AND (r.task IS NULL OR r.task = ANY (%(tasks)s::text[]))
      AND (r.expires_at IS NULL OR r.expires_at > %(now)s) AND (NOT r.burst OR r.ready_at <= %(now)s)
      AND r.node IS NULL
    ORDER BY r.id LIMIT greatest(%(room)s - (SELECT max(total) FROM share), 0) FOR UPDATE OF r SKIP LOCKED
),
taken AS (
    UPDATE runs SET state = 'running', token = token + 1, attempt = attempt + 1, node = %(node)s, started_at = %(now)s,
                    cause = NULL, reason = NULL, error = NULL, burst = false
    WHERE id = ANY (ARRAY(
        SELECT c.id FROM share s JOIN candidate c ON c.position = s.position WHERE c.place <= s.taken
        UNION ALL SELECT id FROM lent
    ))
    RETURNING id, token, kind, task, work, policy, trigger, due_at, ready_at, attempt, schedule_id, session, key,
              count, node, NULL::bigint AS started_at, project, totals, trace, lane, priority, state, cause, reason,
              mode
),
started AS ({telling("%(now)s", "'started'", "taken")}),
spent AS (
    UPDATE lanes l SET rate_from = s.empty_at FROM share s
    WHERE l.name = s.lane AND s.pace IS NOT NULL AND (s.taken > 0 OR l.rate_from > %(now)s + {JUMPED})
)
-- What cannot be claimed ahead counts as ready that much later.
SELECT least(
           (SELECT min((SELECT min(ready_at) FROM runs
                        WHERE {_QUEUED} AND lane = v.lane AND priority = v.priority AND ready_at > %(horizon)s
                          AND NOT burst AND ready_at < coalesce(s.burst_at, {_NEVER})))
            FROM share s JOIN level v ON v.lane = s.lane AND v.priority IS NOT NULL WHERE s.has_room),
           (SELECT min(burst_at) FROM share WHERE has_room),
           (SELECT min(greatest(empty_at + pace, %(now)s)) + %(ahead)s FROM share WHERE used_up),
           (SELECT min(ready_at) FROM runs WHERE {LATE} AND ready_at > %(horizon)s)
       ),
       (SELECT coalesce(bool_or(taken >= room), false) FROM share WHERE position > 0),
       {_UNSETTLED},
       {CLAIM_COLUMNS}
FROM (VALUES (1)) always LEFT JOIN (taken r LEFT JOIN schedules s ON s.id = r.schedule_id) ON true
ORDER BY r.lane, r.priority DESC, r.ready_at, r.id
"""
_SENT_CLAIM = LongStatement(_CLAIM)
_CLAIMED = "state = 'running' AND node = %(node)s AND started_at = %(now)s"
_GIVE_BACK = f"""
WITH back AS (
    UPDATE runs SET state = 'queued', node = NULL, started_at = NULL, attempt = attempt - 1
    WHERE {_CLAIMED} RETURNING id, cause, cancel
),
untold AS (DELETE FROM events WHERE at = %(now)s AND kind = 'started' AND run_id IN (SELECT id FROM back))
SELECT id, cause, cancel FROM back WHERE cancel IS NOT NULL
"""
_EXPIRED = "SELECT id, session FROM runs WHERE state = 'queued' AND expires_at <= %s LIMIT 1000"


async def lock_claims(connection: Connection, server: Server) -> None:
    """Let nobody else claim until the transaction ends."""
    # One lock for all lanes of the schema, in a statement of its own: the next one sees what the holder before us
    # committed. It is an advisory one because a claim reads every lane anyway, it also covers a lane that is made
    # meanwhile, and a lock on rows would be written to the disk with each claim (as a lane with a rate is).
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (server.claims_lock,))


async def send_claim(
    connection: Connection, server: Server, claim: Claim, *, settled: bool = False
) -> Answer[ClaimAnswer]:
    """Take ready runs for a node, inside the caller's transaction and at the end of it.

    Not before all is settled, unless the caller has just done that: what only now queues up may have to go first.
    """
    await lock_claims(connection, server)
    cursor = await _SENT_CLAIM.execute(
        connection,
        {
            "node": claim.node,
            "now": claim.now,
            "horizon": claim.horizon,
            "ahead": claim.ahead,
            "room": claim.room,
            "tasks": texts(claim.tasks),
            "settled": settled,
        },
    )

    async def answer() -> ClaimAnswer:
        rows = await cursor.fetchall()
        later, crowded, unsettled = rows[0][:3]
        runs = [load_claimed(row[3:]) for row in rows if row[3] is not None]
        return Claimed(runs, later, crowded), unsettled

    return answer


async def give_back(connection: Connection, claim: Claim) -> Answer[None]:
    """Undo a claim of which nobody knows whether it was committed: its node never heard what it got."""
    # The tokens of its lanes stay taken: a rate says how many may start, and they come back by themselves.
    claimed = {"node": claim.node, "now": claim.now}
    rows = await fetch(connection, f"SELECT id FROM runs WHERE {_CLAIMED} AND cancel IS NOT NULL", claimed)
    await lock_ends(connection, [RunId(id) for (id,) in rows])
    # What somebody wanted to stop meanwhile must not be claimed again.
    asked: dict[Ending, list[RunId]] = {}
    for id, cause, reason in await fetch(connection, _GIVE_BACK, claimed):
        asked.setdefault(load_ending(cause, reason), []).append(RunId(id))
    for ending, ids in asked.items():
        await end_queued(connection, PARTS, ids, ending, claim.now)

    async def nothing() -> None:
        return None

    return nothing


async def unsettled_sessions(connection: Connection, claim: Claim) -> set[str]:
    """The sessions of what there is to settle."""
    rows = await fetch(connection, _EXPIRED, (claim.now,)) + await fetch(connection, FIND_LATE, (claim.horizon,))
    return {session for _, session in rows if session is not None}


async def settle_now(connection: Connection, claim: Claim) -> Unstarted:
    """End what waited longer than its max age, and let queue up in their sessions whose time has come.

    Not within the claim, since that must not wait for sessions: who holds one may be waiting to claim.
    """
    rows = await fetch(connection, _EXPIRED, (claim.now,))
    expired = NONE_ENDED
    if rows:
        expired = await end_queued(connection, PARTS, [RunId(id) for id, _ in rows], WAITED_TOO_LONG, claim.now)
    await give_late_turns(connection, claim.now, claim.horizon)
    return expired
