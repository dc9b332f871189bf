"""What follows from the end of runs, whoever ends them: the next turn of the session, and the due time that counts
from a finish. Everything here happens inside the caller's transaction.

Nodes write at the same time, so whatever looks at other runs of a schedule or session first takes a lock, in a
statement of its own: the one that comes second then sees what the first one did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.states import RunState, check_transition
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts

__all__ = ["count_from_finish", "end_queued", "give_turns"]

_LOCK_OF_RUNS = """
SELECT id FROM schedules WHERE after_finish IS NOT NULL
   AND id = ANY (ARRAY(SELECT schedule_id FROM runs WHERE id = ANY (%s::bigint[]) AND schedule_id IS NOT NULL))
ORDER BY id FOR NO KEY UPDATE
"""
_END = """
UPDATE runs SET state = %s, reason = %s, finished_at = %s, waiting = false
WHERE id = ANY (%s::bigint[]) AND state = 'queued' RETURNING id, schedule_id, session
"""
# Whoever counts a due time or gives a turn tells the engines, in the same transaction; nobody reads the answer.
_TELL = "SELECT pg_notify(left(current_schema(), 50) || '.changed', '') FROM (SELECT 1 FROM moved LIMIT 1) m"
_COUNT = f"""
WITH moved AS (
UPDATE schedules s SET next_at = f.finished_at + s.after_finish
FROM unnest(%s::bigint[], %s::bigint[]) f (id, finished_at)
WHERE s.id = f.id AND s.after_finish IS NOT NULL AND s.enabled AND s.broken IS NULL AND NOT s.orphaned
  AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))
RETURNING 1
) {_TELL}
"""
_LOCK_SESSIONS = """
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || session, 0))
FROM (SELECT unnest(%s::text[]) AS session ORDER BY 1) s
"""
_TURN = f"""
WITH moved AS (
UPDATE runs SET waiting = false WHERE id = ANY (ARRAY(
    SELECT (SELECT min(id) FROM runs WHERE session = s.session AND state = 'queued' AND waiting)
    FROM unnest(%s::text[]) s (session)
    WHERE NOT EXISTS (SELECT 1 FROM runs WHERE session = s.session AND NOT waiting AND state IN ('queued', 'running'))
))
RETURNING 1
) {_TELL}
"""


async def end_queued(connection: Connection, ids: Sequence[RunId], state: str, reason: str, now: Micros) -> list[RunId]:
    """End those of the runs that are still queued."""
    check_transition(RunState.QUEUED, RunState(state))
    wanted = numbers(sorted(ids))
    await connection.execute(_LOCK_OF_RUNS, (wanted,))
    rows = await fetch(connection, _END, (state, reason, now, wanted))
    await count_from_finish(connection, {row[1]: now for row in rows if row[1] is not None})
    await give_turns(connection, {row[2] for row in rows if row[2] is not None})
    return [RunId(row[0]) for row in rows]


async def count_from_finish(connection: Connection, finished: Mapping[ScheduleId, Micros]) -> None:
    """Set the next due time of schedules that count from the end of their last run; the caller has locked them."""
    if finished:
        await connection.execute(_COUNT, (numbers(finished), numbers(finished.values())))


async def give_turns(connection: Connection, sessions: Iterable[str]) -> None:
    """In each session where nothing is under way, let the run that waits longest go."""
    wanted = texts(sorted(set(sessions)))
    if wanted != "{}":
        await connection.execute(_LOCK_SESSIONS, (wanted,))
        await connection.execute(_TURN, (wanted,))
