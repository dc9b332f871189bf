"""Claiming in SQLite: every lane's limit is held here, inside the transaction, across all nodes.

Within a lane the highest priority goes first, then what has been ready longest. Each (lane, priority) is one seek
in the index `runs_ready`, so the cost follows what is claimed and not what is queued.
"""

from __future__ import annotations

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.models.lane import Bucket, Rate
from ostinato.models.run import WAITED_TOO_LONG, ClaimedRun
from ostinato.stores.base import NONE_ENDED, Claim, Claimed, Unstarted
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.events import note_runs
from ostinato.stores.sql.slots import BORROWED
from ostinato.stores.sqlite.given_up import ANY_GIVEN_UP, MAY_START
from ostinato.stores.sqlite.parts import PARTS
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value
from ostinato.stores.sqlite.turns import give_late_turns

__all__ = ["claim_now"]

_LANES = f"""
SELECT name, max_running - (SELECT count(*) FROM runs WHERE state = 'running' AND lane = lanes.name)
             + {BORROWED.format(lane="lanes.name")},
       rate_count, rate_per, rate_from
FROM lanes WHERE NOT paused AND EXISTS (SELECT 1 FROM runs WHERE state = 'queued' AND waiting = 0 AND lane = lanes.name)
"""
_PRIORITY = "SELECT max(priority) FROM runs WHERE state = 'queued' AND waiting = 0 AND lane = ? AND priority < ?"
_PICK_WHERE = """
SELECT {columns} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
WHERE r.state = 'queued' AND r.waiting = 0 AND r.lane = ? AND {of} AND r.ready_at <= ?
  AND (r.task IS NULL OR r.task IN (SELECT value FROM json_each(?))) AND (r.expires_at IS NULL OR r.expires_at > ?)
  AND (r.burst = 0 OR r.ready_at <= ?) AND r.node IS NULL {unless}
ORDER BY r.ready_at, r.id LIMIT ?
"""
_LEVEL = "r.priority = ?"
_PICK = _PICK_WHERE.format(columns=CLAIM_COLUMNS, of=_LEVEL, unless="")
_PICK_FREE = _PICK_WHERE.format(columns=CLAIM_COLUMNS, of=_LEVEL, unless=f"AND {MAY_START}")
# By a slot that is counted already: that of a run that waits for it.
_LENT = "r.slot_of IS NOT NULL AND EXISTS (SELECT 1 FROM runs o WHERE o.id = r.slot_of AND o.state = 'running')"
_PICK_LENT = _PICK_WHERE.format(columns=CLAIM_COLUMNS, of=_LENT, unless=f"AND {MAY_START}")
_LATER = """
SELECT ready_at FROM runs
WHERE state = 'queued' AND waiting = 0 AND lane = ? AND priority = ? AND ready_at > ? AND ready_at < ? AND burst = 0
ORDER BY ready_at LIMIT 1
"""
_BURST = """
SELECT ready_at FROM runs WHERE state = 'queued' AND waiting = 0 AND burst = 1 AND ready_at > ?
   AND lane NOT IN (SELECT name FROM lanes WHERE paused) ORDER BY ready_at LIMIT 1
"""
_TAKE = """
UPDATE runs SET state = 'running', token = token + 1, attempt = attempt + 1, node = ?, started_at = ?,
                cause = NULL, reason = NULL, error = NULL, burst = 0
WHERE id IN (SELECT value FROM json_each(?))
"""
_IS_LOST = "SELECT 1 FROM nodes WHERE id = ? AND lost_at IS NOT NULL"
_ABOVE_ALL = 1 << 40
_NEVER = 1 << 62


async def claim_now(connection: Connection, claim: Claim) -> Claimed:
    """Take ready runs for a node, inside the caller's transaction; nothing for one that was declared lost."""
    if fetch(connection, _IS_LOST, (claim.node,)):
        return Claimed()
    expired = await _expire(connection, claim.now)
    next_turn_at = give_late_turns(connection, claim.horizon)
    lanes = fetch(connection, _LANES)
    pick = _PICK_FREE if fetch(connection, ANY_GIVEN_UP) else _PICK
    picked: list[ClaimedRun] = []
    times: list[Micros] = [] if next_turn_at is None else [next_turn_at]
    # An open burst is not claimed ahead. Nobody looks past it for what is ready later still: there may be many.
    times += [ready_at + claim.ahead for (ready_at,) in fetch(connection, _BURST, (claim.now,))]
    until = min(times, default=_NEVER)
    crowded = False
    for position, (lane, free, *rate) in enumerate(lanes):
        # A fair share of the room for each lane, so that a flood in one cannot starve the next on a busy node.
        share = -(-(claim.room - len(picked)) // (len(lanes) - position))
        room = min(free, share)
        if room <= 0:
            crowded = True
            if free <= 0 < share:
                of = (lane, claim.horizon, claim.tasks_json, claim.now, claim.now, share)
                picked += map(load_claimed, fetch(connection, _PICK_LENT, of))
            continue
        bucket = None if rate[0] is None else Bucket(Rate(rate[0], rate[1]), rate[2]).at(claim.now)
        allowed = room if bucket is None else min(room, bucket.holds(claim.now))
        runs, next_at = _pick_lane(connection, pick, claim, lane, allowed, until)
        picked += runs
        if bucket is not None and (runs or bucket.empty_at != rate[2]):
            bucket = bucket.without(len(runs), claim.now)
            connection.execute("UPDATE lanes SET rate_from = ? WHERE name = ?", (bucket.empty_at, lane))
        if next_at is not None:
            times.append(next_at)
        if len(runs) == room:
            crowded = True
        elif bucket is not None and len(runs) == allowed:
            times.append(bucket.next_at(claim.now) + claim.ahead)
    await _take(connection, claim, picked)
    return Claimed(picked, min(times, default=None), crowded, expired)


def _pick_lane(
    connection: Connection, pick: str, claim: Claim, lane: str, room: int, until: Micros
) -> tuple[list[ClaimedRun], Micros | None]:
    """The runs to take from one lane, and when its next one is ready, if that is before `until`."""
    picked: list[ClaimedRun] = []
    later: Micros | None = None
    priority = _ABOVE_ALL
    while len(picked) < room:
        priority = fetch_value(connection, _PRIORITY, (lane, priority))
        if priority is None:
            break
        rows = fetch(
            connection,
            pick,
            (lane, priority, claim.horizon, claim.tasks_json, claim.now, claim.now, room - len(picked)),
        )
        picked.extend(map(load_claimed, rows))
        if len(picked) < room:
            for (next_at,) in fetch(connection, _LATER, (lane, priority, claim.horizon, until)):
                later = next_at if later is None else min(next_at, later)
    return picked, later


async def _take(connection: Connection, claim: Claim, picked: list[ClaimedRun]) -> None:
    if not picked:
        return
    ids = msgspec.json.encode([run.id for run in picked]).decode()
    connection.execute(_TAKE, (claim.node, claim.now, ids))
    for run in picked:
        run.token += 1
        run.attempt += 1
        run.node = claim.node
    in_session = [run.id for run in picked if run.session is not None]
    if in_session:
        await note_runs(connection, EventKind.STARTED, in_session, claim.now)


async def _expire(connection: Connection, now: Micros) -> Unstarted:
    """End what waited longer than its max age."""
    rows = fetch(connection, "SELECT id FROM runs WHERE state = 'queued' AND expires_at <= ? LIMIT 1000", (now,))
    if not rows:
        return NONE_ENDED
    return await end_queued(connection, PARTS, [RunId(id) for (id,) in rows], WAITED_TOO_LONG, now)
