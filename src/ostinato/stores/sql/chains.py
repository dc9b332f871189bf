"""Chains: runs that wait for the ends of others, parked until all of those have succeeded.

An end is noted for whoever waits for it in the transaction that writes it, and decides there: a run whose upstreams
have all succeeded is released; one of whose upstreams something else has become is skipped, with all that waits for it.
Nodes end runs at the same time, so those that wait are locked first, in the order of their numbers and in a statement
of its own. Everything here happens inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.models.chain import ChainStep, Released, RunEnd, released, why_left_out
from ostinato.models.ids import RunId, RunIds
from ostinato.models.session import STALE, Mode, is_stale
from ostinato.models.states import ACTIVE, Cause, RunState
from ostinato.models.work_kinds import counted_as
from ostinato.stores.rows import known_state
from ostinato.stores.sql.arrivals import cutoffs_of, let_in
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.parts import Parts

__all__ = ["any_overdue", "follow_ends", "insert_chain", "link_ended", "settle_parked"]

C = TypeVar("C", bound=Connection)

_LINK = """
INSERT INTO run_upstreams (run_id, place, upstream_run, upstream)
SELECT l.run_id, l.place, l.upstream_run, l.upstream
FROM unnest(:runs::bigint[], :places::bigint[], :upstreams::bigint[], :names::text[])
     l (run_id, place, upstream_run, upstream)
"""
_LINK_ENDED = """
INSERT INTO run_upstreams (run_id, place, upstream_run, upstream, state, ended_at)
SELECT :id::bigint, a.place, r.id, coalesce(r.task, r.kind), r.state, r.finished_at
FROM unnest(:after::bigint[]) WITH ORDINALITY a (id, place) JOIN runs r ON r.id = a.id WHERE TRUE
"""
_LOCK = "SELECT id FROM runs WHERE id = ANY (:ids::bigint[]) ORDER BY id FOR NO KEY UPDATE"
# Whoever writes its end meanwhile waits for this, and finds it then.
_MARK = "UPDATE runs SET followed = TRUE WHERE id = ANY (:ids::bigint[]) AND state IN ('queued', 'running')"
_STATES = "SELECT id, state, finished_at FROM runs WHERE id = ANY (:ids::bigint[])"
_FOLLOWING = """
SELECT run_id, upstream_run, upstream FROM run_upstreams
WHERE upstream_run = ANY (:ids::bigint[]) AND state IS NULL ORDER BY run_id, place
"""
_NOTE = """
UPDATE run_upstreams AS u SET state = e.state, ended_at = e.ended_at
FROM unnest(:ids::bigint[], :states::text[], :ended::bigint[]) e (id, state, ended_at)
WHERE u.upstream_run = e.id AND u.state IS NULL
"""
_PARKED = "waiting = TRUE AND state = 'queued' AND session IS NULL"
_SKIP = f"""
UPDATE runs AS r SET state = '{RunState.SKIPPED}', cause = '{Cause.UPSTREAM}', reason = s.why, waiting = FALSE,
                     finished_at = s.at
FROM unnest(:ids::bigint[], :reasons::text[], :at::bigint[]) s (run_id, why, at)
WHERE r.id = s.run_id AND r.waiting = TRUE AND r.state = 'queued' AND r.session IS NULL RETURNING id, finished_at
"""
_WAIT_NO_MORE = f"""
SELECT id, policy, due_at, ready_at,
       (SELECT max(ended_at) FROM run_upstreams WHERE run_id = runs.id)
FROM runs WHERE id = ANY (:ids::bigint[]) AND {_PARKED}
  AND NOT EXISTS (SELECT 1 FROM run_upstreams WHERE run_id = runs.id AND state IS NULL)
ORDER BY id
"""
_RELEASE = """
UPDATE runs AS r SET due_at = f.due_at, ready_at = f.due_at, expires_at = f.expires_at, session = f.session,
                     waiting = f.session IS NOT NULL, mode = CASE WHEN f.session IS NOT NULL THEN :mode END,
                     later = f.session IS NOT NULL AND f.due_at > f.at
FROM unnest(:ids::bigint[], :released::bigint[], :due::bigint[], :expires::bigint[], :sessions::text[])
     f (id, at, due_at, expires_at, session)
WHERE r.id = f.id
"""
# Of no end that was written by a program that knows of chains.
_OVERDUE = """
SELECT DISTINCT u.upstream_run, r.state, r.finished_at FROM run_upstreams u LEFT JOIN runs r ON r.id = u.upstream_run
WHERE u.state IS NULL AND (r.id IS NULL OR r.state NOT IN ('queued', 'running')) LIMIT 1000
"""


async def insert_chain(db: C, parts: Parts[C], steps: Sequence[ChainStep], now: Micros) -> RunIds:
    """Insert the runs of a chain; one whose key is active already is that run, and waits for none of the chain."""
    ids = await parts.insert_all(db, [step.run for step in steps])
    first = {id: place for place, id in reversed(list(enumerate(ids)))}
    new = [(id, step) for place, (id, step) in enumerate(zip(ids, steps, strict=True)) if _is_new(ids, first, place)]
    links = [(id, place, ids[at], _name(steps[at])) for id, step in new for place, at in enumerate(step.after)]
    if links:
        runs, places, upstreams, names = zip(*links, strict=True)
        await db.run(_LINK, {"runs": runs, "places": places, "upstreams": upstreams, "names": names})
    if unmarked := {upstream for _, _, upstream, _ in links} - {id for id, step in new if step.run.followed}:
        await _follow_known(db, parts, sorted(unmarked), now)
    for session in sorted({step.run.session for _, step in new if step.run.session is not None}):
        await let_in(db, parts, session, [id for id, step in new if step.run.session == session], now)
    return ids


async def link_ended(db: Connection, id: RunId, after: Sequence[RunId]) -> None:
    """Note that a run that begins at once comes after these, which have ended."""
    if after:
        await db.run(_LINK_ENDED, {"id": id, "after": after})


def _is_new(ids: RunIds, first: dict[RunId, int], place: int) -> bool:
    """Whether this step is a row of its own, and not the run that has its key."""
    return ids[place] not in ids.known and first[ids[place]] == place


def _name(step: ChainStep) -> str:
    return counted_as(step.run.task, None, step.run.kind)


async def _follow_known(db: C, parts: Parts[C], ids: Sequence[RunId], now: Micros) -> None:
    """Wait for runs, too, that another call with their key has made; what has ended meanwhile decides at once."""
    await _lock(db, ids)
    await db.run(_MARK, {"ids": ids})
    found = {id: (known_state(state), at) for id, state, at in await db.fetch(_STATES, {"ids": ids})}
    gone = [RunEnd(id, None, now) for id in ids if id not in found]
    ended = [RunEnd(RunId(id), state, at) for id, (state, at) in found.items() if state not in ACTIVE]
    await follow_ends(db, parts, ended + gone)


async def _lock(db: Connection, ids: Sequence[RunId]) -> None:
    if db.dialect == "postgres":
        await db.run(_LOCK, {"ids": ids})


async def follow_ends(db: C, parts: Parts[C], ended: Sequence[RunEnd]) -> None:
    """Note the ends of these runs for those that wait for them, and let these go on or leave them out."""
    awake = False
    while ended:
        ends = {end.run: end for end in ended}
        links = [
            (RunId(run), ends[upstream], name)
            for run, upstream, name in await db.fetch(_FOLLOWING, {"ids": sorted(ends)})
        ]
        if not links:
            break
        waiting = sorted({run for run, _, _ in links})
        await _lock(db, waiting)
        await _note(db, sorted({end for _, end, _ in links}))
        reasons: dict[RunId, tuple[str, Micros]] = {}
        for run, end, name in links:
            if (why := why_left_out(name, end)) is not None:
                reasons.setdefault(run, (why, end.at))
        ended = await _skip(db, reasons)
        awake |= await _release(db, parts, [run for run in waiting if run not in reasons])
    if awake:
        await parts.wake(db)


async def _note(db: Connection, ends: Sequence[RunEnd]) -> None:
    # One that was removed is as if it had been cancelled: nothing is known of it any more.
    states = [end.state or RunState.CANCELLED for end in ends]
    await db.run(_NOTE, {"ids": [end.run for end in ends], "states": states, "ended": [end.at for end in ends]})


async def _skip(db: Connection, reasons: dict[RunId, tuple[str, Micros]]) -> list[RunEnd]:
    """End parked runs that are not to be run, each with its reason; answers their ends."""
    if not reasons:
        return []
    said = list(reasons.values())
    values = {"ids": list(reasons), "reasons": [why for why, _ in said], "at": [at for _, at in said]}
    return [RunEnd(RunId(id), RunState.SKIPPED, at) for id, at in await db.fetch(_SKIP, values)]


async def _release(db: C, parts: Parts[C], ids: Sequence[RunId]) -> bool:
    """Let those of these parked runs go that wait for nothing any more; says whether there are any."""
    if not ids:
        return False
    runs = [released(RunId(id), *row) for id, *row in await db.fetch(_WAIT_NO_MORE, {"ids": ids})]
    if not runs:
        return False
    sessions = sorted({run.session for run in runs if run.session is not None})
    if sessions:
        await parts.lock_sessions(db, sessions)
    values = {
        "ids": [run.id for run in runs],
        "released": [run.released_at for run in runs],
        "due": [run.due_at for run in runs],
        "expires": [run.expires_at for run in runs],
        "sessions": [run.session for run in runs],
        "mode": Mode.QUEUE,
    }
    await db.run(_RELEASE, values)
    if sessions:
        cutoffs = await cutoffs_of(db, sessions)
        for session in sessions:
            mine = [run for run in runs if run.session == session]
            await _into_session(db, parts, session, mine, cutoffs.get(session))
    return True


async def _into_session(db: C, parts: Parts[C], session: str, runs: Sequence[Released], cutoff: Micros | None) -> None:
    """They queue up there now; what was asked for before the session was stopped does not."""
    now = max(run.released_at for run in runs)
    stale = [run.id for run in runs if is_stale(run.asked_at, cutoff, now)]
    await end_queued(db, parts, stale, STALE, now)
    if fresh := [run.id for run in runs if run.id not in stale]:
        await let_in(db, parts, session, fresh, now)


async def any_overdue(db: Connection) -> bool:
    """Whether there is anything to settle."""
    return bool(await db.fetch(_OVERDUE))


async def settle_parked(db: C, parts: Parts[C], now: Micros) -> int:
    """Decide for runs that wait for one that ended unnoted: an older program wrote its end, or it was removed; answers
    how many such ends there were."""
    ended = [
        RunEnd(RunId(id), None if state is None else known_state(state), now if at is None else at)
        for id, state, at in await db.fetch(_OVERDUE)
    ]
    await follow_ends(db, parts, ended)
    return len(ended)
