"""What follows from the end of runs, whoever ends them: the next turn of the session, and the due time that counts
from a finish. Everything here happens inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.states import RunState, check_transition
from ostinato.stores.sqlite.query import fetch

__all__ = ["count_from_finish", "end_queued", "give_turns"]


def end_queued(connection: apsw.Connection, ids: Sequence[RunId], state: str, reason: str, now: Micros) -> list[RunId]:
    """End those of the runs that are still queued."""
    check_transition(RunState.QUEUED, RunState(state))
    rows = fetch(
        connection,
        "UPDATE runs SET state = ?, reason = ?, finished_at = ?, waiting = 0 "
        "WHERE id IN (SELECT value FROM json_each(?)) AND state = 'queued' RETURNING id, schedule_id, session",
        (state, reason, now, msgspec.json.encode(ids).decode()),
    )
    for schedule_id in {row[1] for row in rows if row[1] is not None}:
        count_from_finish(connection, schedule_id, now)
    give_turns(connection, {row[2] for row in rows if row[2] is not None})
    return [RunId(row[0]) for row in rows]


def count_from_finish(connection: apsw.Connection, schedule_id: ScheduleId, finished_at: Micros) -> None:
    """Set the next due time of a schedule that counts from the end of its last run."""
    connection.execute(
        "UPDATE schedules SET next_at = ? + after_finish WHERE id = ? AND after_finish IS NOT NULL "
        "AND enabled AND broken IS NULL AND NOT orphaned AND NOT EXISTS "
        "(SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))",
        (finished_at, schedule_id),
    )


def give_turns(connection: apsw.Connection, sessions: Iterable[str]) -> None:
    """In each session where nothing is under way, let the run that waits longest go."""
    for session in sessions:
        connection.execute(
            "UPDATE runs SET waiting = 0 WHERE id = (SELECT min(id) FROM runs WHERE session = ? AND waiting = 1 "
            "AND state IN ('queued', 'running')) AND NOT EXISTS (SELECT 1 FROM runs WHERE session = ? "
            "AND waiting = 0 AND state IN ('queued', 'running'))",
            (session, session),
        )
