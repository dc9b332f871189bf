"""Queued runs that are bound to a node: no claim takes them, the node starts each itself when its turn has come.

Everything here happens inside the caller's transaction, which has locked the session of the run. Neighbours:
arrivals.py, and each store's claims.py, which leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import WAITED_TOO_LONG, NewRun
from ostinato.models.session import goes_alone
from ostinato.stores.base import Bound, Claimed
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed
from ostinato.stores.sql.arrivals import let_in
from ostinato.stores.sql.chains import link_ended
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.events import note_runs
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.throttle import throttle_now, unthrottle_now

__all__ = ["LOST", "queue_bound", "start_bound"]

C = TypeVar("C", bound=Connection)

LOST = """
SELECT r.id FROM runs r LEFT JOIN nodes n ON n.id = r.node
WHERE r.state = 'queued' AND r.node IS NOT NULL AND (n.id IS NULL OR n.lost_at IS NOT NULL)
"""
"""Those whose node is lost or has vanished: nobody will start them."""
_BIND = "UPDATE runs SET node = :node WHERE id = :id"
_MOST = "SELECT CASE WHEN throttled THEN 1 ELSE max_concurrent END FROM sessions WHERE key = :key"
_IN_TURN = """
SELECT id, mode, kind, work FROM runs
WHERE session = :key AND waiting = FALSE AND state IN ('queued', 'running') ORDER BY id
"""
_WAITING = "SELECT min(id) FROM runs WHERE session = :key AND state = 'queued' AND waiting = TRUE AND later = FALSE"
_EXPIRED = "SELECT id FROM runs WHERE id = :id AND state = 'queued' AND node = :node AND expires_at <= :now"
_START = """
UPDATE runs SET state = 'running', token = token + 1, attempt = attempt + 1, started_at = :now,
                cause = NULL, reason = NULL, error = NULL
WHERE id = :id AND state = 'queued' AND waiting = FALSE AND node = :node
  AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = :node AND lost_at IS NOT NULL)
RETURNING id
"""
_STARTED = f"""
SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
WHERE r.id = :id AND r.state = 'running' AND r.node = :node
"""


async def queue_bound(
    db: C, parts: Parts[C], run: NewRun, node: NodeId, now: Micros, *, wait: bool, is_full: bool
) -> Bound:
    """Put a run into the queue of its session for this node alone; if it must not `wait`, only if it would not."""
    session = run.session
    assert session is not None
    if not wait and (before := await _before(db, session, run, is_full=is_full)) is not None:
        return Bound(None, before)
    id = await parts.insert_new(db, run)
    await db.run(_BIND, {"id": id, "node": node})
    await link_ended(db, id, run.after)
    if run.mode is None:
        await parts.give_turns(db, [session])
    else:
        await let_in(db, parts, session, [id], now)
    return Bound(id)


async def _before(db: Connection, session: str, run: NewRun, *, is_full: bool) -> RunId | None:
    """The run for whose end this one would have to wait, if its session is full or is not."""
    key = {"key": session}
    in_turn = await db.fetch(_IN_TURN, key)
    waiting = await db.fetch_value(_WAITING, key)
    rows = await db.fetch(_MOST, key)
    has_room = len(in_turn) < (rows[0][0] if rows and not is_full else 1)
    is_alone = any(goes_alone(*one) for one in [(run.mode, run.kind, run.work), *(one for _, *one in in_turn)])
    if waiting is None and has_room and not (in_turn and is_alone):
        return None
    return RunId(in_turn[0][0] if in_turn else waiting)


async def start_bound(
    db: C, parts: Parts[C], id: RunId, node: NodeId, now: Micros, sessions: Sequence[str], is_full: bool | None
) -> Claimed:
    """Start it, as a claim does, if it is its turn. Whoever asks again, because the answer was lost, gets it again."""
    values = {"id": id, "node": node, "now": now}
    if await db.fetch(_EXPIRED, values):
        return Claimed(expired=await end_queued(db, parts, [id], WAITED_TOO_LONG, now))
    for session in sessions if is_full else ():
        await throttle_now(db, session)
    if is_full is False:
        await unthrottle_now(db, parts, sessions)
    if await db.fetch(_START, values):
        await note_runs(db, EventKind.STARTED, [id], now)
    rows = await db.fetch(_STARTED, values)
    return Claimed([load_claimed(row) for row in rows])
