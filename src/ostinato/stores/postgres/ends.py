"""What of an end is PostgreSQL's own: its locks, and the due time that counts from a finish, which wakes the engines.

Everything here happens inside the caller's transaction. Neighbour: stores.sql.ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.upstream import EndedRun
from ostinato.stores.postgres.query import Connection, numbers
from ostinato.stores.postgres.turns import TELL, lock_sessions_of
from ostinato.stores.sql.followers import FOLLOWERS, NOTE, note_values

__all__ = ["count_from_finish", "lock_ends", "note_ends"]

_OF_RUNS = "SELECT schedule_id FROM runs WHERE id = ANY (%(ids)s::bigint[]) AND schedule_id IS NOT NULL"
_LOCK_OF_RUNS = f"""
SELECT id FROM schedules WHERE (after_finish IS NOT NULL AND id = ANY (ARRAY({_OF_RUNS})))
   OR id = ANY (ARRAY({FOLLOWERS} WHERE n.id = ANY (ARRAY({_OF_RUNS}))))
ORDER BY id FOR NO KEY UPDATE
"""
_COUNT = f"""
WITH moved AS (
UPDATE schedules s SET next_at = f.finished_at + s.after_finish
FROM unnest(%s::bigint[], %s::bigint[]) f (id, finished_at)
WHERE s.id = f.id AND s.after_finish IS NOT NULL AND s.enabled AND s.broken IS NULL AND NOT s.orphaned
  AND s.paused_since IS NULL AND (s.next_at IS NULL OR s.next_at > f.finished_at)
  AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))
RETURNING 1
) {TELL}
"""

# One statement, whose answer nobody reads. Those who follow are locked.
_NOTE = f"""
WITH noted AS ({NOTE} RETURNING schedule_id, ended_at),
moved AS (
UPDATE schedules s SET next_at = e.at
FROM (SELECT schedule_id, min(ended_at) AS at FROM noted GROUP BY schedule_id) e
WHERE s.id = e.schedule_id AND (s.next_at IS NULL OR s.next_at > e.at)
RETURNING 1
) {TELL}
"""


async def lock_ends(connection: Connection, ids: Sequence[RunId]) -> None:
    """Hold what the end of these runs may change, before the runs themselves."""
    if ids:
        await lock_sessions_of(connection, ids)
        await connection.execute(_LOCK_OF_RUNS, {"ids": numbers(sorted(ids))})


async def count_from_finish(connection: Connection, finished: Mapping[ScheduleId, Micros]) -> None:
    """Set the next due time of schedules that count from the end of their last run; the caller has locked them. One
    that has come and was not recorded stays: it is to have its row."""
    if finished:
        await connection.execute(_COUNT, (numbers(finished), numbers(finished.values())))


async def note_ends(connection: Connection, ended: Sequence[EndedRun]) -> None:
    """Note ends of runs for the schedules that follow theirs, and make those due; the caller has locked them."""
    await connection.run(_NOTE, note_values(ended))
