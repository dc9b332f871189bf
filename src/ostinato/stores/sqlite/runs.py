"""The ledger in SQLite: runs put in, read and cancelled. Neighbours: inserts.py, claims.py, finishes.py, ends.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.models.ids import NodeId, RunId
from ostinato.models.output import OutputPart
from ostinato.models.run import ClaimedRun, Finish, NewRun, Report, Run, RunFilter, tells
from ostinato.models.states import ENDS, RunState
from ostinato.stores.base import Cancelled, Claim, Claimed, Finished
from ostinato.stores.rows import ATTEMPT_COLUMNS, CLAIM_COLUMNS, RUN_COLUMNS, load_attempt, load_claimed, load_run
from ostinato.stores.sqlite.claims import claim_now
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.ends import end_queued
from ostinato.stores.sqlite.finishes import finish_now
from ostinato.stores.sqlite.inserts import insert_all, insert_one, let_in
from ostinato.stores.sqlite.output import add_output, output_mark, read_output
from ostinato.stores.sqlite.query import fetch, fetch_value

__all__ = ["SqliteRuns", "cancel_now", "tell_to_stop"]

# In a session of people's it waits its turn again.
_REPEAT = """
INSERT INTO runs (schedule_id, kind, task, work, policy, lane, priority, state, trigger, due_at, ready_at, project,
                  session, mode, waiting)
SELECT schedule_id, kind, task, work, policy, lane, priority, 'queued', 'manual', ?1, ?1, project,
       CASE WHEN mode IS NOT NULL THEN session END, CASE WHEN mode IS NOT NULL THEN 'queue' END, mode IS NOT NULL
FROM runs WHERE id = ?2 RETURNING id, session
"""
_CLAIMED = f"SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE r.id = ?"
_UNHAPPY = ENDS - {RunState.SUCCEEDED}


class SqliteRuns:
    """Answers stores.base.RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert_runs(self, runs: Sequence[NewRun]) -> list[RunId]:
        return await self._database.write(lambda connection: insert_all(connection, runs), wakes=True)

    async def trigger_run(self, run: NewRun, allowed: int | None) -> RunId | None:
        def trigger(connection: apsw.Connection) -> RunId | None:
            if allowed is not None:
                active = fetch_value(
                    connection,
                    "SELECT count(*) FROM runs WHERE schedule_id = ? AND state IN ('queued', 'running')",
                    (run.schedule_id,),
                )
                if active > allowed:
                    return None
            (id,) = insert_all(connection, [run])
            if run.session is not None:
                let_in(connection, run.session, id, run.ready_at)
            return id

        return await self._database.write(trigger, wakes=True)

    async def start_run(self, run: NewRun, node: NodeId, now: Micros) -> ClaimedRun:
        def start(connection: apsw.Connection) -> ClaimedRun:
            id = insert_one(connection, run)
            connection.execute(
                "UPDATE runs SET state = 'running', token = 1, attempt = 1, node = ?, started_at = ? WHERE id = ?",
                (node, now, id),
            )
            (row,) = fetch(connection, _CLAIMED, (id,))
            return load_claimed(row)

        return await self._database.write(start)

    async def repeat_run(self, id: RunId, now: Micros) -> RunId | None:
        def repeat(connection: apsw.Connection) -> RunId | None:
            rows = fetch(connection, _REPEAT, (now, id))
            if not rows:
                return None
            new, session = RunId(rows[0][0]), rows[0][1]
            if session is not None:
                let_in(connection, session, new, now)
            return new

        return await self._database.write(repeat, wakes=True)

    async def claim_runs(self, claim: Claim) -> Claimed:
        return await self._database.write(lambda connection: claim_now(connection, claim))

    async def finish_runs(self, finishes: Sequence[Finish], claim: Claim | None = None) -> Finished:
        def finish(connection: apsw.Connection) -> Finished:
            lost, broken = finish_now(connection, finishes)
            return Finished(lost, broken, claim_now(connection, claim) if claim is not None else Claimed())

        return await self._database.write(finish, wakes=tells(finishes))

    async def report_runs(self, reports: Sequence[Report]) -> None:
        def report(connection: apsw.Connection) -> None:
            for one in reports:
                connection.execute(
                    "UPDATE runs SET progress = coalesce(?, progress), totals = coalesce(?, totals) "
                    "WHERE id = ? AND token = ? AND state = 'running'",
                    (one.progress, one.totals, one.id, one.token),
                )
                if connection.changes() and one.output:
                    add_output(connection, one.id, one.output)

        await self._database.write(report)

    async def cancel_runs(self, ids: Sequence[RunId], reason: str, now: Micros) -> Cancelled:
        return await self._database.write(lambda connection: cancel_now(connection, ids, reason, now), wakes=True)

    async def stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[ClaimedRun]:
        def stale(connection: apsw.Connection) -> list[ClaimedRun]:
            connection.executemany(
                "UPDATE nodes SET lost_at = ? WHERE id = ? AND seen_at = ? AND lost_at IS NULL",
                [(now, id, seen_at) for id, seen_at in silent],
            )
            rows = fetch(
                connection,
                f"SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id "
                "LEFT JOIN nodes n ON n.id = r.node "
                "WHERE r.state = 'running' AND (n.id IS NULL OR n.lost_at IS NOT NULL)",
            )
            return [load_claimed(row) for row in rows]

        return await self._database.write(stale)

    async def unclaimable_runs(self, ready_before: Micros) -> list[ClaimedRun]:
        query = f"""
            SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
            WHERE r.state = 'queued' AND r.waiting = 0 AND r.ready_at < ? AND r.task IS NOT NULL
              AND r.task NOT IN (SELECT t.value FROM nodes n, json_each(n.tasks) t WHERE n.lost_at IS NULL)
            LIMIT 1000"""
        rows = await self._database.read(lambda connection: fetch(connection, query, (ready_before,)))
        return [load_claimed(row) for row in rows]

    async def explain_queued(self, ids: Sequence[RunId], reason: str) -> None:
        def explain(connection: apsw.Connection) -> None:
            connection.execute(
                "UPDATE runs SET reason = ? WHERE id IN (SELECT value FROM json_each(?)) AND state = 'queued' "
                "AND reason IS NOT ?",
                (reason, msgspec.json.encode(ids).decode(), reason),
            )

        await self._database.write(explain)

    async def get_run(self, id: RunId) -> Run | None:
        found = await self._list("WHERE r.id = ?", [id], 1)
        return found[0] if found else None

    async def list_runs(self, wanted: RunFilter) -> list[Run]:
        clauses: list[str] = []
        values: list[Any] = []
        if wanted.schedule_id is not None:
            clauses.append("r.schedule_id = ?")
            values.append(wanted.schedule_id)
        if wanted.task is not None:
            clauses.append("r.task = ?")
            values.append(wanted.task)
        if wanted.project is not None:
            clauses.append("r.project = ?")
            values.append(wanted.project)
        if wanted.session is not None:
            clauses.append("r.session = ? AND r.mode IS NOT NULL")
            values.append(wanted.session)
        if wanted.states:
            clauses.append(f"r.state IN ({', '.join('?' * len(wanted.states))})")
            values.extend(wanted.states)
            if _UNHAPPY.issuperset(wanted.states):
                # Word for word the condition of the index runs_unhappy, or SQLite would not use it.
                clauses.append("r.state NOT IN ('succeeded', 'queued', 'running')")
        if wanted.due_from is not None:
            clauses.append("coalesce(r.last_due_at, r.due_at) >= ?")
            values.append(wanted.due_from)
        if wanted.due_until is not None:
            clauses.append("r.due_at <= ?")
            values.append(wanted.due_until)
        if wanted.before_id is not None:
            clauses.append("r.id < ?")
            values.append(wanted.before_id)
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        return await self._list(where, values, wanted.limit)

    async def _list(self, where: str, values: list[Any], limit: int) -> list[Run]:
        query = f"""
            SELECT {RUN_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
            {where} ORDER BY r.id DESC LIMIT {int(limit)}"""

        def look(connection: apsw.Connection) -> list[Run]:
            rows = fetch(connection, query, values)
            # Only a run that was tried more than once has rows of earlier attempts.
            earlier: dict[int, list[Any]] = {}
            ids = msgspec.json.encode([row[0] for row in rows if row[12]]).decode()
            for row in connection.execute(
                f"SELECT {ATTEMPT_COLUMNS} FROM attempts a WHERE a.run_id IN (SELECT value FROM json_each(?)) "
                "ORDER BY a.run_id, a.number",
                (ids,),
            ):
                earlier.setdefault(row[0], []).append(load_attempt(row))
            return [load_run(row, earlier.get(row[0], ())) for row in rows]

        return await self._database.read(look)

    async def read_output(self, id: RunId) -> list[OutputPart]:
        return await self._database.read(lambda connection: read_output(connection, id))

    async def output_mark(self, id: RunId) -> object:
        return await self._database.read(lambda connection: output_mark(connection, id))

    async def count_active(self, now: Micros) -> int:
        # One count for each partial index: together in one WHERE they would be a scan of the whole ledger.
        query = """
            SELECT (SELECT count(*) FROM runs WHERE state = 'running')
                 + (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND ready_at <= ?1)
                 + (SELECT count(*) FROM runs WHERE state = 'queued' AND waiting = 0 AND burst = 1 AND ready_at > ?1)
                 + (SELECT count(*) FROM runs WHERE session IS NOT NULL AND waiting = 1
                    AND state IN ('queued', 'running') AND (later = 0 OR ready_at <= ?1))"""
        return int(await self._database.read(lambda connection: fetch_value(connection, query, (now,))))


def cancel_now(connection: apsw.Connection, ids: Sequence[RunId], reason: str, now: Micros) -> Cancelled:
    """End queued runs and ask the nodes of running ones, inside the caller's transaction."""
    ended = end_queued(connection, ids, "cancelled", reason, now)
    return Cancelled(ended, tell_to_stop(connection, ids, reason))


def tell_to_stop(connection: apsw.Connection, ids: Sequence[RunId], reason: str) -> list[RunId]:
    """Ask the nodes of running ones; who was asked before keeps the first reason."""
    rows = fetch(
        connection,
        "UPDATE runs SET cancel = ? WHERE id IN (SELECT value FROM json_each(?)) AND state = 'running' "
        "AND cancel IS NULL RETURNING id",
        (reason, msgspec.json.encode(ids).decode()),
    )
    return sorted(RunId(id) for (id,) in rows)
