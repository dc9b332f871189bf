"""Sessions whose window is full, or no longer, inside the caller's transaction, which has locked them.

A node says so when it is about to start runs of them. Only claims do not ask for these locks: a queued run that has its
turn may be claimed between two statements, so each write looks at the state once more. Called by sessions.py, and by
bound.py for what a node starts without a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.run import ClaimedRun, Ending
from ostinato.models.states import RunState
from ostinato.stores.rows import load_ending
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.parts import Parts

__all__ = ["hold_back_now", "throttle_now", "throttled_among", "unthrottle_now"]

C = TypeVar("C", bound=Connection)

_THROTTLED = "SELECT key FROM sessions WHERE key = ANY (:keys::text[]) AND throttled = TRUE"
_THROTTLE = "UPDATE sessions SET throttled = TRUE WHERE key = ANY (:keys::text[]) AND throttled = FALSE"
_UNTHROTTLE = """
UPDATE sessions SET throttled = FALSE WHERE key = ANY (:keys::text[]) AND throttled = TRUE RETURNING key
"""
_IN_TURN = """
SELECT id, session, state, token, started_at, cause, cancel FROM runs
WHERE session = ANY (:keys::text[]) AND waiting = FALSE AND state IN ('queued', 'running') ORDER BY id
"""
_TAKE_BACK = "UPDATE runs SET waiting = TRUE WHERE id = ANY (:ids::bigint[]) AND state = 'queued'"
# As if it had not been claimed, but for its token: whoever holds that must find that it no longer runs.
_UNCLAIM = """
UPDATE runs SET state = 'queued', waiting = TRUE, node = NULL, started_at = NULL, attempt = attempt - 1
WHERE id = ANY (:ids::bigint[]) AND state = 'running'
"""
_UNTELL = """
DELETE FROM events WHERE at = ANY (:at::bigint[]) AND kind = 'started' AND run_id = ANY (:ids::bigint[])
"""


class _InTurn(NamedTuple):
    """A run that has its turn: the columns of _IN_TURN."""

    id: RunId
    session: str
    state: str
    token: int
    started_at: Micros | None
    cause: str | None
    cancel: str | None


async def throttled_among(db: Connection, sessions: Sequence[str]) -> list[str]:
    """Which of these go one at a time because they were full."""
    return [key for (key,) in await db.fetch(_THROTTLED, {"keys": sorted(sessions)})]


async def unthrottle_now(db: C, parts: Parts[C], sessions: Sequence[str]) -> None:
    """Let sessions that are full no longer go as many at a time as they allow."""
    rows = await db.fetch(_UNTHROTTLE, {"keys": sorted(sessions)})
    await parts.give_turns(db, [key for (key,) in rows])


async def hold_back_now(db: C, parts: Parts[C], claimed: Sequence[ClaimedRun], now: Micros) -> list[RunId]:
    """Let the sessions of these runs go one at a time; answers which of the runs may start."""
    sessions = {run.session for run in claimed if run.session is not None}
    ours, next_up = await _keep_one(db, sessions, {(run.id, run.token) for run in claimed})
    if held := [run for run in ours if run.id not in next_up]:
        await _unclaim(db, parts, held, now)
    return [run.id for run in ours if run.id in next_up]


async def throttle_now(db: Connection, session: str) -> None:
    """Let a session go one at a time: of what has its turn and has not started, only that keeps it which is next."""
    await _keep_one(db, {session}, set())


async def _keep_one(
    db: Connection, sessions: set[str], unstarted: set[tuple[RunId, int]]
) -> tuple[list[_InTurn], set[RunId]]:
    """Throttle these sessions, and take back the turns that they can no longer give; answers those of the claimed and
    unstarted runs that are still so, and which runs keep their turn."""
    keys = {"keys": sorted(sessions)}
    await db.run(_THROTTLE, keys)
    in_turn = [_InTurn(*row) for row in await db.fetch(_IN_TURN, keys)]
    ours = [run for run in in_turn if run.state == RunState.RUNNING and (run.id, run.token) in unstarted]
    next_up = _next_up(in_turn, ours)
    queued = [run.id for run in in_turn if run.state == RunState.QUEUED and run.id not in next_up]
    if queued:
        await db.run(_TAKE_BACK, {"ids": queued})
    return ours, next_up


def _next_up(in_turn: Sequence[_InTurn], unstarted: Sequence[_InTurn]) -> set[RunId]:
    """The run of each session that keeps its turn: none where something is under way, and else the oldest."""
    under_way = {run.session for run in in_turn if run.state == RunState.RUNNING and run not in unstarted}
    oldest: dict[str, RunId] = {}
    for run in in_turn:
        if run.session not in under_way and run.cancel is None:
            oldest.setdefault(run.session, run.id)
    return set(oldest.values())


async def _unclaim(db: C, parts: Parts[C], held: Sequence[_InTurn], now: Micros) -> None:
    """Put claimed runs back to where they wait for their turn."""
    asked: dict[Ending, list[RunId]] = {}
    for run in held:
        if run.cancel is not None:
            asked.setdefault(load_ending(run.cause, run.cancel), []).append(run.id)
    await parts.lock_ends(db, [id for ids in asked.values() for id in ids])
    ids = [run.id for run in held]
    await db.run(_UNCLAIM, {"ids": ids})
    await db.run(_UNTELL, {"ids": ids, "at": sorted({run.started_at for run in held if run.started_at is not None})})
    # What somebody wanted to stop meanwhile must not be claimed again.
    for ending, stopped in asked.items():
        await end_queued(db, parts, stopped, ending, now)
