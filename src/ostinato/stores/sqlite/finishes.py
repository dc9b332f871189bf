"""Final writes in SQLite: each is fenced by its token, and carries what follows from it into the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish, cancelled
from ostinato.models.states import RunState
from ostinato.stores.access_rows import REMOVED_AFTER_RUN
from ostinato.stores.sql.holds import end_holds, find_held
from ostinato.stores.sqlite.batches import ROWS, batched, placeholders
from ostinato.stores.sqlite.budgets import settle_cost
from ostinato.stores.sqlite.conversations import keep_conversation
from ostinato.stores.sqlite.ends import count_from_finish
from ostinato.stores.sqlite.events import note_runs
from ostinato.stores.sqlite.given_up import mark_given_up
from ostinato.stores.sqlite.output import add_output, drop_tail, keep_tail
from ostinato.stores.sqlite.parts import SqliteParts
from ostinato.stores.sqlite.query import Connection, drive, fetch
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["finish_now"]

# The plus keeps the index on what runs away: each row is to be found by its id, however few the planner believes are
# running.
_END = f"""
WITH f (id, token, state, reason, started_at, finished_at, error, result, totals, progress) AS (
    VALUES {placeholders(10)}
)
UPDATE runs SET state = f.state, reason = f.reason, started_at = coalesce(f.started_at, runs.started_at),
                finished_at = f.finished_at, error = f.error, result = f.result,
                totals = coalesce(f.totals, runs.totals), progress = coalesce(f.progress, runs.progress)
FROM f WHERE runs.id = f.id AND runs.token = f.token AND +runs.state = 'running'
"""
_NO_END = (None,) * 10
"""Fills a statement up: it has no run's id."""
_KEEP_ATTEMPT = """
INSERT INTO attempts (run_id, number, started_at, finished_at, state, error, node)
SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM attempts WHERE run_id = runs.id),
       coalesce(?, started_at), ?, ?, ?, node
FROM runs WHERE id = ? AND token = ? AND state = 'running'
"""
_REQUEUE = """
UPDATE runs SET state = 'queued', reason = ?, error = ?, ready_at = ?, attempt = attempt - ?, started_at = NULL,
                node = NULL, cancel = NULL, expires_at = CASE WHEN ? THEN NULL ELSE expires_at END,
                totals = coalesce(?, totals), progress = coalesce(?, progress)
WHERE id = ? AND token = ? AND state = 'running'
"""

_DELETE_FINISHED = """
DELETE FROM schedules WHERE id = ? AND next_at IS NULL AND broken IS NULL AND NOT orphaned
   AND (enabled OR remaining = 0)
   AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))
RETURNING name
"""


def finish_now(connection: Connection, finishes: Sequence[Finish]) -> tuple[list[RunId], list[ScheduleId]]:
    """Write the finishes whose token holds, inside the caller's transaction; answers the lost and the broken."""
    finishes = _obey_cancels(connection, finishes)
    mark_given_up(connection, finishes)
    ended = [finish for finish in finishes if finish.state is not RunState.QUEUED]
    written = _end(connection, ended)
    lost: list[RunId] = []
    if len(written) != len(ended):
        lost = _lost(connection, [finish for finish in ended if finish.id not in written])
        # What was written before had its consequences then.
        ended = [finish for finish in ended if finish.id in written]
    for finish in finishes:
        if finish.state is RunState.QUEUED:
            if not _requeue(connection, finish):
                lost.append(finish.id)
                continue
        elif finish.id not in written:
            continue
        _leave(connection, finish)
    return lost, _follow(connection, ended)


def _end(connection: Connection, ended: Sequence[Finish]) -> set[RunId]:
    """Write these ends; answers whose token held. To count the changes is cheaper than to let each row answer."""
    rows: list[tuple[Any, ...]] = [
        (
            finish.id,
            finish.token,
            finish.state,
            finish.reason,
            finish.started_at,
            finish.finished_at,
            finish.error,
            finish.result,
            finish.totals,
            finish.progress,
        )
        for finish in ended
    ]
    values = batched(rows + [_NO_END] * (-len(rows) % ROWS))
    before = connection.total_changes()
    with suppress(_SomeLost), connection:
        connection.executemany(_END, values)
        if connection.total_changes() - before != len(rows):
            raise _SomeLost  # takes the writes back
        return {finish.id for finish in ended}
    return {RunId(id) for (id,) in connection.executemany(f"{_END} RETURNING id", values)}


class _SomeLost(Exception):
    """Not every token held."""


def _obey_cancels(connection: Connection, finishes: Sequence[Finish]) -> Sequence[Finish]:
    """What somebody asked to cancel meanwhile gets no other try."""
    again = [finish.id for finish in finishes if finish.state is RunState.QUEUED]
    if not again:
        return finishes
    asked = dict(
        fetch(
            connection,
            "SELECT id, cancel FROM runs WHERE id IN (SELECT value FROM json_each(?)) AND cancel IS NOT NULL",
            (msgspec.json.encode(again).decode(),),
        )
    )
    return [cancelled(finish, asked[finish.id]) if finish.id in asked else finish for finish in finishes]


def _lost(connection: Connection, ended: Sequence[Finish]) -> list[RunId]:
    """Which of these cannot be written: their run is gone, or another holds its token now. The others are, already."""
    wanted = {finish.id: finish for finish in ended}
    rows = fetch(
        connection,
        "SELECT id, token, state, finished_at FROM runs WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(wanted)).decode(),),
    )
    written = {
        id
        for id, token, state, finished_at in rows
        if (token, state, finished_at) == (wanted[id].token, wanted[id].state, wanted[id].finished_at)
    }
    return [id for id in wanted if id not in written]


def _requeue(connection: Connection, finish: Finish) -> bool:
    """Put a run back for another try; the attempt that ended keeps its own row."""
    if finish.attempt_state is not None:
        connection.execute(
            _KEEP_ATTEMPT,
            (finish.started_at, finish.finished_at, finish.attempt_state, finish.error, finish.id, finish.token),
        )
    connection.execute(
        _REQUEUE,
        (
            finish.reason,
            finish.error,
            finish.ready_at,
            0 if finish.counted else 1,
            finish.attempt_state is not None,  # what has started once cannot wait too long any more
            finish.totals,
            finish.progress,
            finish.id,
            finish.token,
        ),
    )
    return bool(connection.changes())


def _leave(connection: Connection, finish: Finish) -> None:
    """What an attempt leaves behind: output, a conversation, the rest of what it reserved."""
    if finish.output:
        drop_tail(connection, finish.id)
        add_output(connection, finish.id, finish.token, finish.output)
    elif finish.abandoned:
        keep_tail(connection, finish.id)
    if finish.conversation is not None:
        keep_conversation(connection, finish.conversation, finish.finished_at)
    if finish.cost is not None:
        settle_cost(connection, finish.id, finish.cost)


def _follow(connection: Connection, ended: Sequence[Finish]) -> list[ScheduleId]:
    """What ends mean for schedules and sessions; answers the schedules that broke."""
    broken: list[ScheduleId] = []
    schedules: dict[ScheduleId, int] = {}
    in_session: list[Finish] = []
    for finish in ended:
        if finish.session is not None:
            in_session.append(finish)
        if finish.schedule_id is None:
            continue
        schedules[finish.schedule_id] = finish.finished_at
        if finish.breaks is not None and _breaker(connection, finish):
            broken.append(finish.schedule_id)
    for schedule_id, finished_at in schedules.items():
        count_from_finish(connection, schedule_id, finished_at)
    if in_session:
        _end_turns(connection, in_session)
    done = {finish.schedule_id: finish.finished_at for finish in ended if finish.delete_schedule and finish.schedule_id}
    for schedule_id, finished_at in done.items():
        for (name,) in fetch(connection, _DELETE_FINISHED, (schedule_id,)):
            connection.execute(
                f"INSERT INTO audit (at, who, door, verb, object, detail) VALUES (?, {REMOVED_AFTER_RUN}, ?, '{{}}')",
                (finished_at, name),
            )
    return broken


def _end_turns(connection: Connection, ended: Sequence[Finish]) -> None:
    """Tell the ends of runs in sessions, and let the next ones go."""
    note_runs(connection, EventKind.FINISHED, [finish.id for finish in ended], None)
    connection.executemany(
        "UPDATE sessions SET throttled = ?2 WHERE key = ?1 AND throttled <> ?2",
        [(finish.session, finish.throttled) for finish in ended if finish.throttled is not None],
    )
    give_turns(connection, {finish.session for finish in ended if finish.session is not None})


def _breaker(connection: Connection, finish: Finish) -> bool:
    """Count a failed scheduled run, or forget the count; True when it was one too many."""
    if not finish.breaks:
        connection.execute("UPDATE schedules SET failures = 0 WHERE id = ? AND failures > 0", (finish.schedule_id,))
        return False
    connection.execute("UPDATE schedules SET failures = failures + 1 WHERE id = ?", (finish.schedule_id,))
    connection.execute(
        "UPDATE schedules SET enabled = 0, broken = ?, version = version + 1, updated_at = ? "
        "WHERE id = ? AND failures >= ? AND enabled",
        (finish.broken, finish.finished_at, finish.schedule_id, finish.break_after),
    )
    if not connection.changes():
        return False

    async def end_hold(db: Connection) -> None:
        held = await find_held(db, "s.id = :id", {"id": finish.schedule_id})
        await end_holds(db, SqliteParts(), held, finish.finished_at)

    drive(end_hold)(connection)
    connection.execute("UPDATE schedules SET next_at = NULL WHERE id = ?", (finish.schedule_id,))
    return True
