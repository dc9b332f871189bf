"""What was given up and goes on, in SQLite. finishes.py marks it, claims.py and schedules.py look at it."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec

from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish
from ostinato.stores.given_up import ALLOWS, GIVEN_UP_COLUMNS, LIVING, load_given_up
from ostinato.stores.sqlite.query import fetch

__all__ = [
    "ANY_GIVEN_UP",
    "COUNT_GIVEN_UP",
    "MAY_START",
    "forget_given_up",
    "given_up_of",
    "list_given_up",
    "mark_given_up",
    "mark_removed",
]

ANY_GIVEN_UP = "SELECT 1 FROM given_up LIMIT 1"
"""Asked first: there is hardly ever one, and a claim without the condition below is faster by a tenth."""
MAY_START = f"""
(s.name IS NULL OR s.name NOT IN (SELECT g.schedule FROM {LIVING}) OR instr(r.policy, '{ALLOWS}') > 0)
"""
COUNT_GIVEN_UP = f"SELECT count(*) FROM {LIVING} JOIN schedules s ON s.name = g.schedule WHERE s.id = ?"
_MARK = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT coalesce(s.name, ''), r.id, r.token, coalesce(s.name, r.task, r.kind), r.node, ?
FROM runs r JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL LEFT JOIN schedules s ON s.id = r.schedule_id
WHERE r.id = ? AND r.token = ? AND r.state = 'running' ON CONFLICT DO NOTHING
"""
_MARK_REMOVED = """
INSERT INTO given_up (schedule, run_id, token, name, node, at)
SELECT s.name, r.id, r.token, s.name, r.node, r.started_at
FROM runs r JOIN nodes n ON n.id = r.node AND n.lost_at IS NULL JOIN schedules s ON s.id = r.schedule_id
WHERE s.id = ? AND r.state = 'running' AND r.mode IS NULL ON CONFLICT DO NOTHING
"""
_OF = f"""
SELECT s.id, g.run_id FROM {LIVING} JOIN schedules s ON s.name = g.schedule
WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY g.run_id
"""
_LIST = f"SELECT {GIVEN_UP_COLUMNS} FROM {LIVING} ORDER BY g.at, g.run_id"


def mark_given_up(connection: apsw.Connection, finishes: Sequence[Finish]) -> None:
    """Before they are finished: a run that goes back to the queue forgets its node."""
    for finish in finishes:
        if finish.given_up:
            connection.execute(_MARK, (finish.finished_at, finish.id, finish.token))


def mark_removed(connection: apsw.Connection, id: ScheduleId) -> None:
    """What still runs of a schedule goes on without a row: its node tells when that has ended."""
    connection.execute(_MARK_REMOVED, (id,))


def forget_given_up(connection: apsw.Connection, ended: Sequence[tuple[RunId, int]]) -> None:
    """This code has ended."""
    connection.executemany("DELETE FROM given_up WHERE run_id = ? AND token = ?", list(ended))


def list_given_up(connection: apsw.Connection) -> list[GivenUp]:
    """All of it, the oldest first."""
    return [load_given_up(row) for row in fetch(connection, _LIST)]


def given_up_of(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[RunId, ...]]:
    """By schedule: the runs whose code goes on under its name."""
    found: dict[int, tuple[RunId, ...]] = {}
    if not fetch(connection, ANY_GIVEN_UP):
        return found
    for schedule_id, run_id in fetch(connection, _OF, (msgspec.json.encode(ids).decode(),)):
        found[schedule_id] = (*found.get(schedule_id, ()), RunId(run_id))
    return found
