"""Rows into the ledger of SQLite, inside the caller's transaction. Neighbours: ends.py, turns.py."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from ostinato.models.ids import RunId, RunIds
from ostinato.models.run import NewRun
from ostinato.stores.sqlite.batches import ROWS, batched, placeholders
from ostinato.stores.sqlite.query import Connection, fetch

__all__ = ["insert_all", "insert_due", "insert_due_one", "insert_one"]

_COLUMNS = """kind, task, work, policy, trigger, due_at, ready_at, lane, state, cause, reason, schedule_id,
                  last_due_at, count, priority, expires_at, session, waiting, mode, burst, later, key, project,
                  finished_at"""
_INSERT = f"INSERT INTO runs ({_COLUMNS}) VALUES {placeholders(24, 1)}"
_INSERT_BATCH = f"INSERT INTO runs ({_COLUMNS}) VALUES {placeholders(24)}"
# Most runs have no key, are not traced, were not asked for by a person and are no part of a chain, and do not pay for
# the columns.
_RARE = attrgetter("key_scope", "trace", "started_by", "followed")
_NOTHING = (None, None, None, False)
_INSERT_RARE = f"INSERT INTO runs ({_COLUMNS}, key_scope, trace, started_by, followed) VALUES {placeholders(28, 1)}"
_INSERT_BATCH_RARE = f"INSERT INTO runs ({_COLUMNS}, key_scope, trace, started_by, followed) VALUES {placeholders(28)}"
_KNOWN = "SELECT id FROM runs WHERE key = ? AND key_scope = ? AND state IN ('queued', 'running')"


def insert_due(connection: Connection, runs: Sequence[NewRun]) -> None:
    """Insert runs of due times; a due time that has its row already (a clock went back) gets no second one."""
    if runs:
        _insert(connection, runs, "ON CONFLICT DO NOTHING")


def insert_due_one(connection: Connection, run: NewRun) -> list[RunId]:
    """The same for one, whose id is the answer, if it got its row."""
    insert, values = _one(run)
    rows = fetch(connection, f"{insert} ON CONFLICT DO NOTHING RETURNING id", values)
    return [RunId(id) for (id,) in rows]


def insert_all(connection: Connection, runs: Sequence[NewRun]) -> RunIds:
    """Insert rows inside the caller's transaction. Where a key is active already in its scope, the answer is that run's
    id."""
    if not runs:
        return RunIds()
    if any(run.key is not None for run in runs):
        return _insert_keyed(connection, runs)
    _insert(connection, runs)
    # Nobody else writes during the transaction, so the ids are consecutive.
    last = connection.last_insert_rowid()
    return RunIds([RunId(id) for id in range(last - len(runs) + 1, last + 1)])


def _insert(connection: Connection, runs: Sequence[NewRun], on_conflict: str = "") -> None:
    if any(_RARE(run) != _NOTHING for run in runs):
        batch, one = _INSERT_BATCH_RARE, _INSERT_RARE
        rows = [(*_values(run), *_RARE(run)) for run in runs]
    else:
        batch, one = _INSERT_BATCH, _INSERT
        rows = [_values(run) for run in runs]
    whole = len(rows) // ROWS * ROWS
    connection.executemany(f"{batch} {on_conflict}", batched(rows[:whole]))
    connection.executemany(f"{one} {on_conflict}", rows[whole:])


def _insert_keyed(connection: Connection, runs: Sequence[NewRun]) -> RunIds:
    ids, new = RunIds(), set[RunId]()
    for run in runs:
        known = [] if run.key is None else fetch(connection, _KNOWN, (run.key, run.key_scope))
        if known:
            ids.append(RunId(known[0][0]))
        else:
            ids.append(insert_one(connection, run))
            new.add(ids[-1])
    return RunIds(ids, set(ids) - new)


def insert_one(connection: Connection, run: NewRun) -> RunId:
    """Insert a row; a key that is active already is an error."""
    connection.execute(*_one(run))
    return RunId(connection.last_insert_rowid())


def _one(run: NewRun) -> tuple[str, tuple[Any, ...]]:
    """The statement for a run, and its values."""
    rare = _RARE(run)
    return (_INSERT, _values(run)) if rare == _NOTHING else (_INSERT_RARE, (*_values(run), *rare))


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
