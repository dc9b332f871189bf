"""Rows into the ledger of SQLite, inside the caller's transaction. Neighbours: ends.py, turns.py."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.stores.sqlite.batches import ROWS, batched, placeholders
from ostinato.stores.sqlite.query import Connection, fetch

__all__ = ["insert_all", "insert_due", "insert_due_one", "insert_one"]

_COLUMNS = """kind, task, work, policy, trigger, due_at, ready_at, lane, state, cause, reason, schedule_id,
                  last_due_at, count, priority, expires_at, session, waiting, mode, burst, later, key, project,
                  finished_at"""
_INSERT = f"INSERT INTO runs ({_COLUMNS}) VALUES {placeholders(24, 1)}"
_INSERT_BATCH = f"INSERT INTO runs ({_COLUMNS}) VALUES {placeholders(24)}"
# Most runs are not traced, and do not pay for the column.
_INSERT_TRACED = f"INSERT INTO runs ({_COLUMNS}, trace) VALUES {placeholders(25, 1)}"
_INSERT_BATCH_TRACED = f"INSERT INTO runs ({_COLUMNS}, trace) VALUES {placeholders(25)}"
_trace_of = attrgetter("trace")


def insert_due(connection: Connection, runs: Sequence[NewRun]) -> None:
    """Insert runs of due times; a due time that has its row already (a clock went back) gets no second one."""
    if runs:
        _insert(connection, runs, "ON CONFLICT DO NOTHING")


def insert_due_one(connection: Connection, run: NewRun) -> list[RunId]:
    """The same for one, whose id is the answer, if it got its row."""
    insert, values = _one(run)
    rows = fetch(connection, f"{insert} ON CONFLICT DO NOTHING RETURNING id", values)
    return [RunId(id) for (id,) in rows]


def insert_all(connection: Connection, runs: Sequence[NewRun]) -> list[RunId]:
    """Insert rows inside the caller's transaction. Where a key is active already, the answer is that run's id."""
    if not runs:
        return []
    if any(run.key is not None for run in runs):
        return [_insert_keyed(connection, run) for run in runs]
    _insert(connection, runs)
    # Nobody else writes during the transaction, so the ids are consecutive.
    last = connection.last_insert_rowid()
    return [RunId(id) for id in range(last - len(runs) + 1, last + 1)]


def _insert(connection: Connection, runs: Sequence[NewRun], on_conflict: str = "") -> None:
    if any(map(_trace_of, runs)):
        batch, one = _INSERT_BATCH_TRACED, _INSERT_TRACED
        rows = [(*_values(run), run.trace) for run in runs]
    else:
        batch, one = _INSERT_BATCH, _INSERT
        rows = [_values(run) for run in runs]
    whole = len(rows) // ROWS * ROWS
    connection.executemany(f"{batch} {on_conflict}", batched(rows[:whole]))
    connection.executemany(f"{one} {on_conflict}", rows[whole:])


def _insert_keyed(connection: Connection, run: NewRun) -> RunId:
    if run.key is not None:
        known = fetch(connection, "SELECT id FROM runs WHERE key = ? AND state IN ('queued', 'running')", (run.key,))
        if known:
            return RunId(known[0][0])
    return insert_one(connection, run)


def insert_one(connection: Connection, run: NewRun) -> RunId:
    """Insert a row; a key that is active already is an error."""
    connection.execute(*_one(run))
    return RunId(connection.last_insert_rowid())


def _one(run: NewRun) -> tuple[str, tuple[Any, ...]]:
    """The statement for a run, and its values."""
    return (_INSERT, _values(run)) if run.trace is None else (_INSERT_TRACED, (*_values(run), run.trace))


def _values(run: NewRun) -> tuple[Any, ...]:
    return (
        run.kind,
        run.task,
        run.work,
        run.policy,
        run.trigger,
        run.due_at,
        run.ready_at,
        run.lane,
        run.state,
        run.cause,
        run.reason,
        run.schedule_id,
        run.last_due_at,
        run.count,
        run.priority,
        run.expires_at,
        run.session,
        run.waiting,
        run.mode,
        run.burst,
        run.later,
        run.key,
        run.project,
        run.finished_at,
    )
