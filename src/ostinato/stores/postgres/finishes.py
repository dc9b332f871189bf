"""Ends of runs in PostgreSQL, each fenced by its token, inside the caller's transaction.

The plain end (no schedule, no session, no output, no retry) is one statement for the whole batch, whose answer is
read after the commit. What else there is to do is in stores.sql.finishes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.ids import RunId
from ostinato.models.run import Finish, concerns_people
from ostinato.models.states import Cause, RunState
from ostinato.stores.postgres.events import telling
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.sql.finishes import Written, find_lost
from ostinato.stores.sql.followers import FOLLOWERS
from ostinato.stores.sql.parts import EndedRuns

__all__ = ["are_plain", "end_rows", "lock_schedules", "send_ends"]

# The state is written so that no index on what runs fits it: each row is to be found by its id, however few the
# planner believes are running.
_WRITE = """
UPDATE runs r SET state = f.state, cause = f.cause, reason = f.reason,
                  started_at = coalesce(f.started_at, r.started_at), finished_at = f.finished_at,
                  error = f.error, result = f.result, totals = coalesce(f.totals, r.totals),
                  progress = coalesce(f.progress, r.progress)
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[],
            %s::text[], %s::text[], %s::text[])
     f (id, token, state, cause, reason, started_at, finished_at, error, result, totals, progress)
WHERE r.id = f.id AND r.token = f.token AND r.state || '' = 'running' RETURNING
"""
_END = f"{_WRITE} r.id, r.followed"
# For whose end others wait, that is written the other way: this has no time to look who they are.
_END_PLAIN = f"{_WRITE} r.id".replace("RETURNING", "AND NOT r.followed RETURNING")
_LEFT = "SELECT id FROM runs WHERE id = ANY (%s::bigint[]) AND followed AND state = 'running'"
# In the same statement, so that an end that was written before (see _lost) is not told again.
_END_AND_TELL = f"""
WITH ended AS ({_WRITE} r.id, r.session, r.mode, r.state, r.attempt, r.cause, r.reason, r.finished_at, r.followed),
told AS ({telling("finished_at", "'finished'", "ended")})
SELECT id, followed FROM ended
"""
# Before the runs, as everywhere: whoever fires a schedule holds it and may then cancel a run of it.
_LOCK_SCHEDULES = f"""
SELECT id FROM schedules WHERE (id = ANY (%(ids)s::bigint[])
   AND (after_finish IS NOT NULL OR failures > 0 OR id = ANY (%(written)s::bigint[])))
   OR id = ANY (ARRAY({FOLLOWERS} WHERE n.id = ANY (%(ids)s::bigint[]))) ORDER BY id FOR NO KEY UPDATE
"""


def are_plain(finishes: Sequence[Finish]) -> bool:
    """Whether their rows are all that there is to write."""
    return all(map(_is_plain, finishes))


def _is_plain(finish: Finish) -> bool:
    """Whether its row is all that there is to write."""
    return (
        finish.state is not RunState.QUEUED
        and finish.schedule_id is None
        and finish.session is None
        and not finish.output
        and not finish.abandoned
        and not finish.given_up
        and not finish.begins_trace
        and finish.conversation is None
        and finish.cause is not Cause.NODE_LOST
        and not concerns_people(finish)
    )


async def send_ends(connection: Connection, ended: Sequence[Finish]) -> Answer[Written]:
    """Write plain ends; which tokens held is read after the commit, and for which of these others wait: those are not
    written."""
    cursor = await connection.execute(_END_PLAIN, _end_values(ended))

    async def answer() -> Written:
        written = {RunId(id) for (id,) in await cursor.fetchall()}
        if len(written) == len(ended):
            return Written()
        missing = [finish.id for finish in ended if finish.id not in written]
        left = {RunId(id) for (id,) in await fetch(connection, _LEFT, (numbers(missing),))}
        return Written(await find_lost(connection, ended, written | left), left=left)

    return answer


async def end_rows(connection: Connection, ended: Sequence[Finish]) -> EndedRuns:
    """Write ends, and tell those of sessions; answers whose token held."""
    end = _END_AND_TELL if any(finish.session is not None for finish in ended) else _END
    rows = await fetch(connection, end, _end_values(ended))
    return EndedRuns({RunId(id) for id, _ in rows}, [RunId(id) for id, followed in rows if followed])


def _end_values(ended: Sequence[Finish]) -> tuple[str | None, ...]:
    return (
        numbers([finish.id for finish in ended]),
        numbers([finish.token for finish in ended]),
        texts([finish.state for finish in ended]),
        texts([finish.cause for finish in ended]),
        texts([finish.reason for finish in ended]),
        numbers([finish.started_at for finish in ended]),
        numbers([finish.finished_at for finish in ended]),
        texts([finish.error for finish in ended]),
        texts([finish.result for finish in ended]),
        texts([finish.totals for finish in ended]),
        texts([finish.progress for finish in ended]),
    )


async def lock_schedules(connection: Connection, ended: Sequence[Finish]) -> None:
    """Take the locks of the schedules that these ends may change, in the order that every node takes them."""
    ids = {finish.schedule_id for finish in ended if finish.schedule_id is not None}
    written = {
        one.schedule_id for one in ended if one.breaks or one.probe or one.ends_schedule or one.fresh is not None
    } & ids
    if ids:
        await connection.execute(_LOCK_SCHEDULES, {"ids": numbers(ids), "written": numbers(written)})
