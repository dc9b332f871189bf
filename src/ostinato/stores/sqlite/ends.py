"""What follows from the end of runs, whoever ends them: the next turn of the session, and the due time that counts
from a finish. Everything here happens inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.states import RunState, check_transition
from ostinato.stores.sqlite.events import note_runs
from ostinato.stores.sqlite.query import Connection, fetch
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["count_from_finish", "end_queued"]


def end_queued(connection: Connection, ids: Sequence[RunId], state: str, reason: str, now: Micros) -> list[RunId]:
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
    ended = [RunId(row[0]) for row in rows]
    sessions = {row[2] for row in rows if row[2] is not None}
    if sessions:
        kind = EventKind.DROPPED if state == RunState.SKIPPED else EventKind.FINISHED
        note_runs(connection, kind, ended, now)
        give_turns(connection, sessions)
    return ended


def count_from_finish(connection: Connection, schedule_id: ScheduleId, finished_at: Micros) -> None:
    """Set the next due time of a schedule that counts from the end of its last run. One that has come and was not
    recorded stays: it is to have its row."""
    connection.execute(
        "UPDATE schedules SET next_at = ?1 + after_finish WHERE id = ?2 AND after_finish IS NOT NULL "
        "AND enabled AND broken IS NULL AND NOT orphaned AND held_since IS NULL AND (next_at IS NULL OR next_at > ?1) "
        "AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))",
        (finished_at, schedule_id),
    )
