"""Final writes of every kind, with all that follows, inside the caller's transaction.

How an end itself is written, fenced by its token, is in each store's finishes.py: they come by the thousand. Whatever
more there is to do is done only where a finish asks for it. Neighbours: output.py, budgets.py, ends.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

from ostinato.clock import Micros
from ostinato.models.chain import RunEnd
from ostinato.models.finishes import cancelled
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish, concerns_people
from ostinato.models.run_notices import broken_notice, notice_of
from ostinato.models.session import used
from ostinato.models.states import Cause, RunState
from ostinato.stores.rows import load_ending
from ostinato.stores.runs import NOTHING_TOLD, Told
from ostinato.stores.sql.after_run import end_schedules
from ostinato.stores.sql.budgets import settle_costs
from ostinato.stores.sql.connection import Connection, Values
from ostinato.stores.sql.given_up import mark_given_up
from ostinato.stores.sql.output import drop_tails, keep_tails
from ostinato.stores.sql.parts import NO_ENDS, Parts
from ostinato.stores.sql.pauses import end_pauses, find_paused
from ostinato.stores.sql.recovery import recover
from ostinato.stores.sql.telling import tell
from ostinato.stores.sql.upstreams import ended_runs

__all__ = ["Written", "find_lost", "finish_all"]

C = TypeVar("C", bound=Connection)


class Written(NamedTuple):
    """What final writes did, as in stores.base.Finished."""

    lost: Sequence[RunId] = ()
    broken: Sequence[ScheduleId] = ()
    instead: Sequence[Finish] = ()
    told: Told = NOTHING_TOLD
    left: Collection[RunId] = ()
    """Ends that were not written, for which other runs wait: those are to be written by `finish_all`."""


# Locked, so that whoever asks from here on waits, and then finds the run queued.
_ASKED = "SELECT id, cause, cancel FROM runs WHERE id = ANY (:ids::bigint[]) ORDER BY id FOR NO KEY UPDATE"
_AS_WRITTEN = "SELECT id, token, state, finished_at FROM runs WHERE id = ANY (:ids::bigint[])"
# The state is written so that no index on what runs fits it: each row is to be found by its id.
_KEEP_ATTEMPT = """
INSERT INTO attempts (run_id, number, started_at, finished_at, state, error, node)
SELECT r.id, (SELECT coalesce(max(number), 0) + 1 FROM attempts WHERE run_id = r.id),
       coalesce(f.started_at, r.started_at), f.finished_at, f.attempt_state, f.error, r.node
FROM unnest(:ids::bigint[], :tokens::bigint[], :started::bigint[], :finished::bigint[], :attempt_states::text[],
            :errors::text[]) f (id, token, started_at, finished_at, attempt_state, error)
JOIN runs r ON r.id = f.id AND r.token = f.token AND r.state || '' = 'running'
WHERE f.attempt_state IS NOT NULL
"""
_REQUEUE = """
UPDATE runs AS r SET state = 'queued', cause = f.cause, reason = f.reason, error = f.error, ready_at = f.ready_at,
                     attempt = r.attempt - CASE WHEN f.counted THEN 0 ELSE 1 END, started_at = NULL, node = NULL,
                     cancel = NULL, expires_at = CASE WHEN f.begun THEN NULL ELSE r.expires_at END,
                     totals = coalesce(f.totals, r.totals), progress = coalesce(f.progress, r.progress)
FROM unnest(:ids::bigint[], :tokens::bigint[], :causes::text[], :reasons::text[], :errors::text[],
            :ready::bigint[], :counted::boolean[], :begun::boolean[], :totals::text[], :progress::text[])
     f (run_id, run_token, cause, reason, error, ready_at, counted, begun, totals, progress)
WHERE r.id = f.run_id AND r.token = f.run_token AND r.state || '' = 'running' RETURNING id
"""
# By the row as it was left, or, if that has gone on since, by its attempt: a rescue has another error.
_PUT_BACK_BEFORE = """
SELECT f.id FROM unnest(:ids::bigint[], :tokens::bigint[], :ready::bigint[], :finished::bigint[],
                        :attempt_states::text[], :errors::text[])
                 f (id, token, ready_at, finished_at, attempt_state, error)
WHERE EXISTS (SELECT 1 FROM runs r
              WHERE r.id = f.id AND r.token = f.token AND r.state = 'queued' AND r.ready_at = f.ready_at)
   OR EXISTS (SELECT 1 FROM attempts a
              WHERE a.run_id = f.id AND a.finished_at = f.finished_at AND a.state = f.attempt_state
                AND a.error IS NOT DISTINCT FROM f.error)
"""
_CONVERSE = """
INSERT INTO conversations (key, id, updated_at, project)
SELECT c.key, c.id, c.updated_at, c.project
FROM unnest(:keys::text[], :ids::text[], :updated::bigint[], :projects::text[]) c (key, id, updated_at, project)
WHERE c.project IS NULL OR EXISTS (SELECT 1 FROM projects WHERE name = c.project)
ORDER BY c.key
ON CONFLICT (key) DO UPDATE SET id = excluded.id, updated_at = excluded.updated_at, project = excluded.project
"""
# The sums of whoever uses the session; how full its context is, as it was told last.
_USE = """
UPDATE sessions SET cost = cost + :cost, tokens_in = tokens_in + :tokens_in, tokens_out = tokens_out + :tokens_out,
                    turns = turns + :turns, context_used = coalesce(:context_used::bigint, context_used),
                    context_window = coalesce(:context_window::bigint, context_window)
WHERE key = :key
"""
_BEGIN_TRACE = """
UPDATE runs AS r SET trace = f.trace FROM unnest(:ids::bigint[], :traces::text[]) f (run_id, trace)
WHERE r.id = f.run_id AND r.trace IS NULL
"""
_THROTTLE = "UPDATE sessions SET throttled = :throttled WHERE key = :key AND throttled <> :throttled"
_FORGET_FAILURES = "UPDATE schedules SET failures = 0 WHERE id = ANY (:ids::bigint[]) AND failures > 0"
_COUNT_FAILURE = "UPDATE schedules SET failures = failures + 1 WHERE id = :id"
_TRIP = """
UPDATE schedules SET enabled = FALSE, broken = :broken, version = version + 1, updated_at = :at
WHERE id = :id AND failures >= :break_after::bigint AND enabled
"""
# What a success of an older policy would shorten stays.
_FRESHEN = """
UPDATE schedules AS s SET fresh_at = f.fresh_at
FROM unnest(:ids::bigint[], :until::bigint[]) f (schedule_id, fresh_at)
WHERE s.id = f.schedule_id AND (s.fresh_at IS NULL OR s.fresh_at < f.fresh_at)
"""
_ENABLED = "SELECT id FROM schedules WHERE id = ANY (:ids::bigint[]) AND enabled"
# What follows others has no time of its own at which it could be tried.
_REST = "UPDATE schedules SET next_at = CASE WHEN follows THEN NULL ELSE :probe_at::bigint END WHERE id = :id"


async def finish_all(db: C, parts: Parts[C], finishes: Sequence[Finish], now: Micros | None = None) -> Written:
    """Write the finishes whose token holds; `now`, if that is later than they ended."""
    await parts.lock_schedules(db, finishes)
    given, finishes = finishes, await _obey_cancels(db, finishes)
    instead = [new for old, new in zip(given, finishes, strict=True) if new is not old] if given is not finishes else []
    await mark_given_up(db, finishes)
    ended = [finish for finish in finishes if finish.state is not RunState.QUEUED]
    written, followed = await parts.end_runs(db, ended) if ended else NO_ENDS
    lost = await find_lost(db, ended, written) if len(written) != len(ended) else []
    again = [finish for finish in finishes if finish.state is RunState.QUEUED]
    put_back = await _requeue(db, again) if again else set()
    if len(put_back) != len(again):
        lost += await _lost_tries(db, [finish for finish in again if finish.id not in put_back])
    # What was written before had its consequences then.
    done = put_back | written
    if len(done) != len(finishes):
        finishes = [finish for finish in finishes if finish.id in done]
        ended = [finish for finish in ended if finish.id in done]
    await _leave(db, parts, finishes)
    broken = await _follow(db, parts, ended)
    if followed:
        ends = [RunEnd(finish.id, finish.state, finish.finished_at) for finish in ended if finish.id in followed]
        await parts.follow_ends(db, ends)
    return Written(lost, broken, instead, await _tell(db, ended, broken, now or 0))


async def _tell(db: Connection, ended: Sequence[Finish], broken: Sequence[ScheduleId], now: Micros) -> Told:
    """Whatever people may have to know of these ends, and of the schedules that they switched off."""
    concerning = [finish for finish in ended if concerns_people(finish)]
    if not concerning:
        return NOTHING_TOLD
    notices = [notice_of(finish) for finish in concerning]
    tripped = {finish.schedule_id: finish for finish in ended if finish.broken and finish.schedule_id in broken}
    notices += [broken_notice(finish) for finish in tripped.values()]
    return await tell(db, notices, max(now, *(finish.finished_at for finish in concerning)))


async def _obey_cancels(db: Connection, finishes: Sequence[Finish]) -> Sequence[Finish]:
    """What somebody asked to cancel meanwhile gets no other try; and what was lost before it could has ended so."""
    undecided = [finish.id for finish in finishes if finish.state is RunState.QUEUED or finish.cause is Cause.NODE_LOST]
    if not undecided:
        return finishes
    rows = await db.fetch(_ASKED, {"ids": undecided})
    asked = {id: load_ending(cause, reason) for id, cause, reason in rows if reason is not None}
    return [cancelled(finish, asked[finish.id]) if finish.id in asked else finish for finish in finishes]


async def find_lost(db: Connection, ended: Sequence[Finish], written: set[RunId]) -> list[RunId]:
    """Which ends are not written: their run is gone, or another holds its token now.

    What stands there already word for word was written by the same call, before its connection broke.
    """
    missing = {finish.id: finish for finish in ended if finish.id not in written}
    for id, *found in await db.fetch(_AS_WRITTEN, {"ids": list(missing)}):
        finish = missing[id]
        if found == [finish.token, finish.state, finish.finished_at]:
            del missing[id]
    return list(missing)


async def _requeue(db: Connection, again: Sequence[Finish]) -> set[RunId]:
    """Put runs back for another try; the attempt that ended keeps its own row. Answers which were put back."""
    values = _tries(again)
    await db.run(_KEEP_ATTEMPT, values)
    return {RunId(id) for (id,) in await db.fetch(_REQUEUE, values)}


def _tries(again: Sequence[Finish]) -> Values:
    """The columns of finishes that put their runs back."""
    return {
        "ids": [finish.id for finish in again],
        "tokens": [finish.token for finish in again],
        "causes": [finish.cause for finish in again],
        "reasons": [finish.reason for finish in again],
        "errors": [finish.error for finish in again],
        "ready": [finish.ready_at for finish in again],
        "counted": [finish.counted for finish in again],
        "attempt_states": [finish.attempt_state for finish in again],
        "begun": [
            finish.begun and finish.attempt_state is not None for finish in again
        ],  # it waits as long as it takes
        "started": [finish.started_at for finish in again],
        "finished": [finish.finished_at for finish in again],
        "totals": [finish.totals for finish in again],
        "progress": [finish.progress for finish in again],
    }


async def _lost_tries(db: Connection, missing: Sequence[Finish]) -> list[RunId]:
    """Which runs were not put back by these finishes, neither now nor by an earlier call whose connection broke."""
    before = {id for (id,) in await db.fetch(_PUT_BACK_BEFORE, _tries(missing))}
    return [finish.id for finish in missing if finish.id not in before]


async def _leave(db: C, parts: Parts[C], written: Sequence[Finish]) -> None:
    """What attempts leave behind: output, a trace, a conversation, what they used, the rest of what they reserved."""
    said = [finish for finish in written if finish.output]
    if said:
        await drop_tails(db, [finish.id for finish in said])
        await parts.add_output(db, [(finish.id, finish.token, finish.output) for finish in said])
    await keep_tails(db, [finish.id for finish in written if finish.abandoned and not finish.output])
    traced = [finish for finish in written if finish.begins_trace]
    if traced:
        values = {"ids": [finish.id for finish in traced], "traces": [finish.trace for finish in traced]}
        await db.run(_BEGIN_TRACE, values)
    # Of several of one key the last counts.
    left = {each.conversation.key: (each.conversation, each.finished_at) for each in written if each.conversation}
    if left:
        conversed = {
            "keys": list(left),
            "ids": [conversation.id for conversation, _ in left.values()],
            "updated": [finished_at for _, finished_at in left.values()],
            "projects": [conversation.project for conversation, _ in left.values()],
        }
        await db.run(_CONVERSE, conversed)
    for finish in written:
        if finish.usage is not None:
            await db.run(_USE, {"key": finish.usage.session, **used(finish.usage.used)})
    await settle_costs(db, written)


async def _follow(db: C, parts: Parts[C], ended: Sequence[Finish]) -> list[ScheduleId]:
    """What ends mean for schedules and sessions; answers the schedules that broke."""
    scheduled = [(finish.schedule_id, finish) for finish in ended if finish.schedule_id is not None]
    broken: list[ScheduleId] = []
    if scheduled:
        broken = await _breaker(db, parts, scheduled)
        await parts.count_from_finish(db, {id: finish.finished_at for id, finish in scheduled})
        await _freshen(db, scheduled)
        await parts.note_ends(db, ended_runs(ended))
        broken += await end_schedules(db, scheduled)
    in_session = [(finish.session, finish) for finish in ended if finish.session is not None]
    if in_session:
        for session, finish in in_session:
            if finish.throttled is not None:
                await db.run(_THROTTLE, {"key": session, "throttled": finish.throttled})
        await parts.give_turns(db, {session for session, _ in in_session})
    return broken


async def _freshen(db: Connection, scheduled: Sequence[tuple[ScheduleId, Finish]]) -> None:
    """Schedules that are to succeed in time have done so, and have the same time again."""
    until = sorted((id, finish.finished_at + finish.fresh) for id, finish in scheduled if finish.fresh is not None)
    if until:
        latest = dict(until)
        await db.run(_FRESHEN, {"ids": list(latest), "until": list(latest.values())})


async def _breaker(db: C, parts: Parts[C], scheduled: Sequence[tuple[ScheduleId, Finish]]) -> list[ScheduleId]:
    """Count failed scheduled runs, or forget the count; answers the schedules for which it was one too many."""
    counted = [(id, finish) for id, finish in scheduled if finish.breaks is not None]
    for id, finish in counted:
        if finish.probe is not None and not finish.breaks:
            await recover(db, id, finish.finished_at)
    failing = {"ids": [id for id, finish in counted if finish.breaks]}
    if not failing["ids"]:
        if counted:
            await db.run(_FORGET_FAILURES, {"ids": [id for id, _ in counted]})
        return []
    before = await db.fetch(_ENABLED, failing)
    for id, finish in counted:
        # One by one: the order of a failure and a success of the same schedule matters.
        if not finish.breaks:
            await db.run(_FORGET_FAILURES, {"ids": [id]})
            continue
        await db.run(_COUNT_FAILURE, {"id": id})
        trip = {"id": id, "broken": finish.broken, "at": finish.finished_at, "break_after": finish.break_after}
        await db.run(_TRIP, trip)
    tripped = [ScheduleId(id) for (id,) in set(before) - set(await db.fetch(_ENABLED, failing))]
    if tripped:
        paused = await find_paused(db, "s.id = ANY (:ids::bigint[])", {"ids": tripped})
        await end_pauses(db, parts, paused, max(finish.finished_at for _, finish in counted))
        for id, finish in counted:
            if id in tripped and finish.breaks:
                probe_at = None if finish.probe is None else finish.finished_at + finish.probe
                await db.run(_REST, {"id": id, "probe_at": probe_at})
    return sorted(tripped)
