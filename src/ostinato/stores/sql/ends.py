"""What follows from the end of runs, whoever ends them: the next turn of the session, and the due time that counts
from a finish. Everything here happens inside the caller's transaction.

Nodes write at the same time, so whatever looks at other runs of a schedule or session first takes a lock, in a
statement of its own: the one that comes second then sees what the first one did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ostinato.clock import Micros
from ostinato.models.chain import RunEnd
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.policy import notify_of
from ostinato.models.run import Ending, Finish
from ostinato.models.run_notices import notice_of
from ostinato.models.states import RunState, check_transition
from ostinato.models.upstream import EndedRun
from ostinato.models.work_kinds import counted_as, subject_of
from ostinato.stores.runs import NONE_ENDED, Unstarted
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.events import note_runs
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.telling import tell

__all__ = ["end_queued", "wait_for_finish"]

C = TypeVar("C", bound=Connection)

_END = """
UPDATE runs SET state = :state, cause = :cause, reason = :reason, cancelled_by = :by::text, finished_at = :now,
                waiting = FALSE
WHERE id = ANY (:ids::bigint[]) AND state = 'queued' RETURNING id, schedule_id, session, followed
"""
_ENDED = """
SELECT r.id, r.token, s.name, r.task, r.kind, r.schedule_id, r.project, r.policy, r.attempt, r.due_at, r.count,
       r.work, r.session
FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE r.id = ANY (:ids::bigint[]) ORDER BY r.id
"""
_TOLD = frozenset({RunState.EXPIRED, RunState.FAILED})
_LOCK = "SELECT id FROM schedules WHERE id = :id AND after_finish IS NOT NULL FOR NO KEY UPDATE"
_WAIT = """
UPDATE schedules SET next_at = NULL
WHERE id = :id AND after_finish IS NOT NULL AND broken IS NULL AND paused_since IS NULL AND next_at > :now
  AND EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))
"""


async def end_queued(
    db: C, parts: Parts[C], ids: Sequence[RunId], ending: Ending, now: Micros, by: str | None = None
) -> Unstarted:
    """End those of the runs that are still queued, and tell it if that is what people have to know."""
    check_transition(RunState.QUEUED, ending.state)
    if not ids:
        return NONE_ENDED
    await parts.lock_ends(db, ids)
    values = {"ids": sorted(ids), "state": ending.state, **ending._asdict(), "now": now, "by": by}
    rows = await db.fetch(_END, values)
    ended = sorted(RunId(id) for id, *_ in rows)
    answer = Unstarted(ended)
    if ended and ending.state in _TOLD:
        finishes = [_finish(row, ending, now) for row in await db.fetch(_ENDED, {"ids": ended})]
        answer = Unstarted(ended, finishes, await tell(db, [notice_of(finish) for finish in finishes], now))
    await parts.count_from_finish(db, {schedule_id: now for _, schedule_id, *_ in rows if schedule_id is not None})
    scheduled = [(id, schedule_id) for id, schedule_id, *_ in rows if schedule_id is not None]
    if scheduled:
        await parts.note_ends(db, [EndedRun(RunId(id), of, ending.state, now) for id, of in scheduled])
    if followed := [RunEnd(RunId(id), ending.state, now) for id, *_, followed in rows if followed]:
        await parts.follow_ends(db, followed)
    sessions = {session for _, _, session, _ in rows if session is not None}
    if sessions:
        await note_runs(db, EventKind.DROPPED if ending.state is RunState.SKIPPED else EventKind.FINISHED, ended, now)
        await parts.give_turns(db, sessions)
    return answer


def _finish(row: Sequence[Any], ending: Ending, now: Micros) -> Finish:
    """The end of a run that never started, from _ENDED."""
    id, token, schedule, task, kind, schedule_id, project, policy, attempt, due_at, count, work, session = row
    return Finish(
        id=RunId(id),
        token=token,
        state=ending.state,
        started_at=None,
        finished_at=now,
        cause=ending.cause,
        reason=ending.reason,
        schedule_id=schedule_id,
        schedule=schedule,
        task=task,
        attempt=attempt,
        due_at=due_at,
        count=count,
        name=counted_as(task, schedule, kind),
        subject="" if schedule else subject_of(task, kind, work, session),
        project=project,
        notify=notify_of(policy),
    )


async def wait_for_finish(db: Connection, schedule_id: ScheduleId | None, now: Micros) -> None:
    """Take back the next due time of a schedule that counts from the end of its last run, if that is to come."""
    await db.run(_LOCK, {"id": schedule_id})
    await db.run(_WAIT, {"id": schedule_id, "now": now})
