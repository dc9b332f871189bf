"""Final writes in PostgreSQL: each is fenced by its token, and carries what follows from it into the same transaction.

The plain end (no schedule, no session, no output, no retry) is one statement for the whole batch, whose answer is
read after the commit. Whatever more there is to do is done only where a finish asks for it. Neighbours: output.py,
budgets.py, conversations.py, ends.py, turns.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish, cancelled
from ostinato.models.states import RunState
from ostinato.stores.access_rows import REMOVED_AFTER_RUN
from ostinato.stores.postgres.budgets import settle_costs
from ostinato.stores.postgres.conversations import keep_conversations
from ostinato.stores.postgres.ends import count_from_finish
from ostinato.stores.postgres.events import telling
from ostinato.stores.postgres.given_up import mark_given_up
from ostinato.stores.postgres.output import add_output, drop_tails, keep_tails
from ostinato.stores.postgres.parts import PostgresParts
from ostinato.stores.postgres.query import Connection, booleans, fetch, numbers, readable, texts
from ostinato.stores.postgres.turns import give_turns
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.sql.holds import end_holds, find_held

__all__ = ["Written", "send_finishes"]

Written = tuple[list[RunId], list[ScheduleId]]
"""The runs whose token no longer held, and the schedules whose breaker tripped."""

# The state is written so that no index on what runs fits it: each row is to be found by its id, however few the
# planner believes are running.
_WRITE = """
UPDATE runs r SET state = f.state, reason = f.reason, started_at = coalesce(f.started_at, r.started_at),
                  finished_at = f.finished_at, error = f.error, result = f.result,
                  totals = coalesce(f.totals, r.totals), progress = coalesce(f.progress, r.progress)
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::text[],
            %s::text[], %s::text[])
     f (id, token, state, reason, started_at, finished_at, error, result, totals, progress)
WHERE r.id = f.id AND r.token = f.token AND r.state || '' = 'running' RETURNING
"""
_END = f"{_WRITE} r.id"
# In the same statement, so that an end that was written before (see _lost) is not told again.
_END_AND_TELL = f"""
WITH ended AS ({_WRITE} r.id, r.session, r.mode, r.state, r.attempt, r.reason, r.finished_at),
told AS ({telling("finished_at", "'finished'", "ended")})
SELECT id FROM ended
"""
_THROTTLE = """
UPDATE sessions s SET throttled = f.throttled FROM unnest(%s::text[], %s::boolean[]) f (key, throttled)
WHERE s.key = f.key AND s.throttled <> f.throttled
"""
_KEEP_ATTEMPT = """
INSERT INTO attempts (run_id, number, started_at, finished_at, state, error, node)
SELECT r.id, (SELECT coalesce(max(number), 0) + 1 FROM attempts WHERE run_id = r.id),
       coalesce(f.started_at, r.started_at), f.finished_at, f.attempt_state, f.error, r.node
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[])
     f (id, token, started_at, finished_at, attempt_state, error)
JOIN runs r ON r.id = f.id AND r.token = f.token AND r.state || '' = 'running'
WHERE f.attempt_state IS NOT NULL
"""
_REQUEUE = """
UPDATE runs r SET state = 'queued', reason = f.reason, error = f.error, ready_at = f.ready_at,
                  attempt = r.attempt - CASE WHEN f.counted THEN 0 ELSE 1 END, started_at = NULL, node = NULL,
                  cancel = NULL, expires_at = CASE WHEN f.attempt_state IS NOT NULL THEN NULL ELSE r.expires_at END,
                  totals = coalesce(f.totals, r.totals), progress = coalesce(f.progress, r.progress)
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::boolean[], %s::text[], %s::text[],
            %s::text[])
     f (id, token, reason, error, ready_at, counted, attempt_state, totals, progress)
WHERE r.id = f.id AND r.token = f.token AND r.state || '' = 'running' RETURNING r.id
"""
# By the row as it was left, or, if that has gone on since, by its attempt: a rescue has another error.
_PUT_BACK_BEFORE = """
SELECT f.id FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[])
                 f (id, token, ready_at, finished_at, attempt_state, error)
WHERE EXISTS (SELECT 1 FROM runs r
              WHERE r.id = f.id AND r.token = f.token AND r.state = 'queued' AND r.ready_at = f.ready_at)
   OR EXISTS (SELECT 1 FROM attempts a
              WHERE a.run_id = f.id AND a.finished_at = f.finished_at AND a.state = f.attempt_state
                AND a.error IS NOT DISTINCT FROM f.error)
"""
# Before the runs, as everywhere: whoever fires a schedule holds it and may then cancel a run of it.
_LOCK_SCHEDULES = """
SELECT id FROM schedules WHERE id = ANY (%s::bigint[])
   AND (after_finish IS NOT NULL OR failures > 0 OR id = ANY (%s::bigint[])) ORDER BY id FOR NO KEY UPDATE
"""
_TRIP = """
UPDATE schedules SET enabled = false, broken = %s, version = version + 1, updated_at = %s
WHERE id = %s AND failures >= %s AND enabled RETURNING id
"""
_REST = "UPDATE schedules SET next_at = NULL WHERE id = ANY (%s::bigint[])"
_DELETE_FINISHED = f"""
WITH gone AS (
    DELETE FROM schedules s USING unnest(%s::bigint[], %s::bigint[]) f (id, finished_at)
    WHERE s.id = f.id AND next_at IS NULL AND broken IS NULL AND NOT orphaned AND (enabled OR remaining = 0)
      AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))
    RETURNING s.name, f.finished_at
)
INSERT INTO audit (at, who, door, verb, object, detail)
SELECT finished_at, {REMOVED_AFTER_RUN}, name, '{{}}' FROM gone ORDER BY name
"""


async def send_finishes(connection: Connection, finishes: Sequence[Finish]) -> Answer[Written]:
    """Write the finishes whose token holds, inside the caller's transaction."""
    ended = [finish for finish in finishes if finish.state is not RunState.QUEUED]
    if len(ended) == len(finishes) and all(map(_is_plain, ended)):
        cursor = await connection.execute(_END, _end_values(ended))

        async def answer() -> Written:
            written = await cursor.fetchall()
            return (await _lost(connection, ended, written) if len(written) != len(ended) else []), []

        return answer
    result = await _finish_all(connection, finishes)

    async def known() -> Written:
        return result

    return known


def _is_plain(finish: Finish) -> bool:
    """Whether its row is all that there is to write."""
    return (
        finish.schedule_id is None
        and finish.session is None
        and not finish.output
        and not finish.abandoned
        and not finish.given_up
        and finish.conversation is None
    )


async def _finish_all(connection: Connection, finishes: Sequence[Finish]) -> Written:
    """Finishes of every kind, with all that follows."""
    await _lock_schedules(connection, finishes)
    finishes = await _obey_cancels(connection, finishes)
    await mark_given_up(connection, finishes)
    ended = [finish for finish in finishes if finish.state is not RunState.QUEUED]
    end = _END_AND_TELL if any(finish.session is not None for finish in ended) else _END
    written = await fetch(connection, end, _end_values(ended)) if ended else []
    lost = await _lost(connection, ended, written) if len(written) != len(ended) else []
    again = [finish for finish in finishes if finish.state is RunState.QUEUED]
    put_back = await _requeue(connection, again)
    if len(put_back) != len(again):
        lost += await _lost_tries(connection, [finish for finish in again if finish.id not in put_back])
    # What was written before had its consequences then.
    done = put_back.union(id for (id,) in written)
    await _leave(connection, [finish for finish in finishes if finish.id in done])
    return lost, await _follow(connection, [finish for finish in ended if finish.id in done])


async def _obey_cancels(connection: Connection, finishes: Sequence[Finish]) -> Sequence[Finish]:
    """What somebody asked to cancel meanwhile gets no other try."""
    again = [finish.id for finish in finishes if finish.state is RunState.QUEUED]
    if not again:
        return finishes
    # Locked, so that whoever asks from here on waits, and then finds the run queued.
    rows = await fetch(
        connection,
        "SELECT id, cancel FROM runs WHERE id = ANY (%s::bigint[]) ORDER BY id FOR NO KEY UPDATE",
        (numbers(again),),
    )
    asked = {id: reason for id, reason in rows if reason is not None}
    return [cancelled(finish, asked[finish.id]) if finish.id in asked else finish for finish in finishes]


def _end_values(ended: Sequence[Finish]) -> tuple[str | None, ...]:
    return (
        numbers([finish.id for finish in ended]),
        numbers([finish.token for finish in ended]),
        texts([finish.state for finish in ended]),
        texts([finish.reason for finish in ended]),
        numbers([finish.started_at for finish in ended]),
        numbers([finish.finished_at for finish in ended]),
        texts([finish.error for finish in ended]),
        texts([finish.result for finish in ended]),
        texts([finish.totals for finish in ended]),
        texts([finish.progress for finish in ended]),
    )


async def _lost(connection: Connection, ended: Sequence[Finish], written: Sequence[tuple[int]]) -> list[RunId]:
    """Which ends are not written: their run is gone, or another holds its token now.

    What stands there already word for word was written by the same call, before its connection broke.
    """
    known = {id for (id,) in written}
    missing = {finish.id: finish for finish in ended if finish.id not in known}
    rows = await fetch(
        connection,
        "SELECT id, token, state, finished_at FROM runs WHERE id = ANY (%s::bigint[])",
        (numbers(missing),),
    )
    for id, *found in rows:
        finish = missing[id]
        if found == [finish.token, finish.state, finish.finished_at]:
            del missing[id]
    return list(missing)


async def _requeue(connection: Connection, again: Sequence[Finish]) -> set[RunId]:
    """Put runs back for another try; the attempt that ended keeps its own row. Answers which were put back."""
    if not again:
        return set()
    ids = numbers([finish.id for finish in again])
    tokens = numbers([finish.token for finish in again])
    errors = texts([finish.error for finish in again])
    attempt_states = texts([finish.attempt_state for finish in again])
    started = numbers([finish.started_at for finish in again])
    finished = numbers([finish.finished_at for finish in again])
    await connection.execute(_KEEP_ATTEMPT, (ids, tokens, started, finished, attempt_states, errors))
    rows = await fetch(
        connection,
        _REQUEUE,
        (
            ids,
            tokens,
            texts([finish.reason for finish in again]),
            errors,
            numbers([finish.ready_at for finish in again]),
            booleans([finish.counted for finish in again]),
            attempt_states,  # what has started once cannot wait too long any more
            texts([finish.totals for finish in again]),
            texts([finish.progress for finish in again]),
        ),
    )
    return {RunId(id) for (id,) in rows}


async def _lost_tries(connection: Connection, missing: Sequence[Finish]) -> list[RunId]:
    """Which runs were not put back by these finishes, neither now nor by an earlier call whose connection broke."""
    rows = await fetch(
        connection,
        _PUT_BACK_BEFORE,
        (
            numbers([finish.id for finish in missing]),
            numbers([finish.token for finish in missing]),
            numbers([finish.ready_at for finish in missing]),
            numbers([finish.finished_at for finish in missing]),
            texts([finish.attempt_state for finish in missing]),
            texts([finish.error for finish in missing]),
        ),
    )
    before = {id for (id,) in rows}
    return [finish.id for finish in missing if finish.id not in before]


async def _lock_schedules(connection: Connection, ended: Sequence[Finish]) -> None:
    """Take the locks of the schedules that these ends may change, in the order that every node takes them."""
    ids = {finish.schedule_id for finish in ended if finish.schedule_id is not None}
    failing = {finish.schedule_id for finish in ended if finish.breaks or finish.delete_schedule} & ids
    if ids:
        await connection.execute(_LOCK_SCHEDULES, (numbers(ids), numbers(failing)))


async def _leave(connection: Connection, written: Sequence[Finish]) -> None:
    """What attempts leave behind: output, a conversation, the rest of what they reserved."""
    said = [finish for finish in written if finish.output]
    if said:
        await drop_tails(connection, [finish.id for finish in said])
        await add_output(connection, [(finish.id, finish.token, finish.output) for finish in said])
    await keep_tails(connection, [finish.id for finish in written if finish.abandoned and not finish.output])
    await keep_conversations(connection, written)
    await settle_costs(connection, written)


async def _follow(connection: Connection, ended: Sequence[Finish]) -> list[ScheduleId]:
    """What ends mean for schedules and sessions; answers the schedules that broke."""
    scheduled = [(finish.schedule_id, finish) for finish in ended if finish.schedule_id is not None]
    broken = await _breaker(connection, scheduled)
    await count_from_finish(connection, {id: finish.finished_at for id, finish in scheduled})
    await _end_turns(connection, [(finish.session, finish) for finish in ended if finish.session is not None])
    done = {id: finish.finished_at for id, finish in scheduled if finish.delete_schedule}
    if done:
        await connection.execute(_DELETE_FINISHED, (numbers(done), numbers(done.values())))
    return broken


async def _end_turns(connection: Connection, ended: Sequence[tuple[str, Finish]]) -> None:
    """Let the next runs of these sessions go, which the caller has locked."""
    throttled = {session: finish.throttled for session, finish in ended if finish.throttled is not None}
    if throttled:
        await connection.execute(_THROTTLE, (texts(list(throttled)), booleans(throttled.values())))
    await give_turns(connection, [session for session, _ in ended])


async def _breaker(connection: Connection, kept: Sequence[tuple[ScheduleId, Finish]]) -> list[ScheduleId]:
    """Count failed scheduled runs, or forget the count; answers the schedules for which it was one too many."""
    reset = "UPDATE schedules SET failures = 0 WHERE id = ANY (%s::bigint[]) AND failures > 0"
    counted = [(id, finish) for id, finish in kept if finish.breaks is not None]
    if counted and not any(finish.breaks for _, finish in counted):
        await connection.execute(reset, (numbers([id for id, _ in counted]),))
        return []
    tripping = []
    for id, finish in counted:
        # One by one: the order of a failure and a success of the same schedule matters.
        if not finish.breaks:
            await connection.execute(reset, (numbers([id]),))
            continue
        await connection.execute("UPDATE schedules SET failures = failures + 1 WHERE id = %s", (id,))
        reason = readable(finish.broken) if finish.broken is not None else None
        tripping.append(await connection.execute(_TRIP, (reason, finish.finished_at, id, finish.break_after)))
    tripped = [ScheduleId(id) for cursor in tripping for (id,) in await cursor.fetchall()]
    if tripped:
        held = await find_held(connection, "s.id = ANY (:ids::bigint[])", {"ids": tripped})
        await end_holds(connection, PostgresParts(), held, max(finish.finished_at for _, finish in counted))
        await connection.execute(_REST, (numbers(tripped),))
    return tripped
