"""What follows from the end of runs, whoever ends them: the next turn of the session, and the due time that counts
from a finish. Everything here happens inside the caller's transaction.

Nodes write at the same time, so whatever looks at other runs of a schedule or session first takes a lock, in a
statement of its own: the one that comes second then sees what the first one did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.states import RunState, check_transition
from ostinato.stores.postgres.events import TOLD_BY, telling
from ostinato.stores.postgres.query import Connection, fetch, numbers
from ostinato.stores.postgres.turns import TELL, give_turns, lock_sessions_of

__all__ = ["count_from_finish", "end_queued", "lock_ends"]

_LOCK_OF_RUNS = """
SELECT id FROM schedules WHERE after_finish IS NOT NULL
   AND id = ANY (ARRAY(SELECT schedule_id FROM runs WHERE id = ANY (%s::bigint[]) AND schedule_id IS NOT NULL))
ORDER BY id FOR NO KEY UPDATE
"""
_END = f"""
WITH ended AS (
UPDATE runs SET state = %s, reason = %s, finished_at = %s, waiting = false
WHERE id = ANY (%s::bigint[]) AND state = 'queued' RETURNING {TOLD_BY}, schedule_id
), told AS ({telling("%s", "%s", "ended")})
SELECT id, schedule_id, session FROM ended ORDER BY id
"""
_COUNT = f"""
WITH moved AS (
UPDATE schedules s SET next_at = f.finished_at + s.after_finish
FROM unnest(%s::bigint[], %s::bigint[]) f (id, finished_at)
WHERE s.id = f.id AND s.after_finish IS NOT NULL AND s.enabled AND s.broken IS NULL AND NOT s.orphaned
  AND s.held_since IS NULL AND (s.next_at IS NULL OR s.next_at > f.finished_at)
  AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))
RETURNING 1
) {TELL}
"""


async def end_queued(connection: Connection, ids: Sequence[RunId], state: str, reason: str, now: Micros) -> list[RunId]:
    """End those of the runs that are still queued."""
    check_transition(RunState.QUEUED, RunState(state))
    if not ids:
        return []
    await lock_ends(connection, ids)
    kind = EventKind.DROPPED if state == RunState.SKIPPED else EventKind.FINISHED
    rows = await fetch(connection, _END, (state, reason, now, numbers(sorted(ids)), now, kind))
    await count_from_finish(connection, {row[1]: now for row in rows if row[1] is not None})
    await give_turns(connection, {row[2] for row in rows if row[2] is not None})
    return [RunId(row[0]) for row in rows]


async def lock_ends(connection: Connection, ids: Sequence[RunId]) -> None:
    """Hold what the end of these runs may change, before the runs themselves."""
    if ids:
        await lock_sessions_of(connection, ids)
        await connection.execute(_LOCK_OF_RUNS, (numbers(sorted(ids)),))


async def count_from_finish(connection: Connection, finished: Mapping[ScheduleId, Micros]) -> None:
    """Set the next due time of schedules that count from the end of their last run; the caller has locked them. One
    that has come and was not recorded stays: it is to have its row."""
    if finished:
        await connection.execute(_COUNT, (numbers(finished), numbers(finished.values())))
