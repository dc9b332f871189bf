"""What becomes of a schedule with `delete_after_run` when a run of it has ended and it is not due again.

After a success it is deleted. Its runs belong to the ledger: they stay until retention, and keep its name. After a
failure, or a success that counted errors, it stays, off, with the reason. Everything here happens inside the caller's
transaction; finishes.py asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.ids import ScheduleId
from ostinato.models.run import Finish
from ostinato.models.states import Cause, RunState
from ostinato.stores.retention import keep_of
from ostinato.stores.sql.access import REMOVED_AFTER_RUN
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.run_relations import IS_READ

__all__ = ["end_schedules"]

# Whoever puts a run in meanwhile is seen by the next statement, or finds no schedule.
_LOCK = "SELECT name, policy FROM schedules WHERE id = :id FOR UPDATE"
_IS_OVER = """
SELECT 1 FROM schedules WHERE id = :id AND next_at IS NULL AND broken IS NULL AND NOT orphaned
   AND (enabled OR remaining = 0) AND (NOT follows OR remaining = 0)
   AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))
"""
_KEEP_RUNS = "UPDATE runs SET schedule_name = :name, schedule_id = NULL WHERE schedule_id = :id"
# Retention by count has no schedule to ask any more: nothing is added to these runs but here.
_TRIM = f"""
DELETE FROM runs WHERE schedule_name = :name AND id <=
    (SELECT id FROM runs WHERE schedule_name = :name ORDER BY id DESC LIMIT 1 OFFSET :count)
    AND NOT ({IS_READ.format("runs")})
"""
_DELETE = "DELETE FROM schedules WHERE id = :id"
_NOTE_DELETED = f"""
INSERT INTO audit (at, who, door, verb, object, detail) VALUES (:at, {REMOVED_AFTER_RUN}, :name, '{{}}')
"""
_SWITCH_OFF = """
UPDATE schedules SET enabled = FALSE, broken = :broken, version = version + 1, updated_at = :at WHERE id = :id
"""


async def end_schedules(db: Connection, scheduled: Sequence[tuple[ScheduleId, Finish]]) -> list[ScheduleId]:
    """Delete what is done, and switch off what failed; answers the schedules that it switched off."""
    failed = []
    for id, finish in {id: finish for id, finish in scheduled if finish.ends_schedule}.items():
        rows = await db.fetch(_LOCK, {"id": id})
        if not rows or not await db.fetch(_IS_OVER, {"id": id}):
            continue
        name, policy = rows[0]
        if finish.state is RunState.SUCCEEDED and finish.cause is not Cause.ERRORS:
            await _delete(db, id, name, policy)
            await db.run(_NOTE_DELETED, {"at": finish.finished_at, "name": name})
        else:
            how = "failed:" if finish.state is RunState.FAILED else "succeeded with"
            finish.broken = f"its last run {how} {finish.reason}"  # whoever tells of it reads it here
            await db.run(_SWITCH_OFF, {"id": id, "broken": finish.broken, "at": finish.finished_at})
            failed.append(id)
    return failed


async def _delete(db: Connection, id: ScheduleId, name: str, policy: str) -> None:
    await db.run(_KEEP_RUNS, {"id": id, "name": name})
    count = keep_of(policy).count
    if count is not None:
        await db.run(_TRIM, {"name": name, "count": count})
    await db.run(_DELETE, {"id": id})
