"""The ledger in SQLite: runs put in, claimed, finished and cancelled. Neighbours: inserts.py, claims.py, finishes.py,
ends.py, and for reading overview.py and look.py."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.live import Changes, Mark
from ostinato.models.output import OutputPart
from ostinato.models.run import ClaimedRun, Finish, NewRun, Report, Run, RunFilter, tells
from ostinato.stores.base import Cancelled, Claim, Claimed, Finished, RunCounts, Tally
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.ends import wait_for_finish
from ostinato.stores.sql.given_up import COUNT_GIVEN_UP, forget_given_up, list_given_up
from ostinato.stores.sql.output import output_mark, read_output
from ostinato.stores.sqlite.claims import claim_now
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.finishes import finish_now
from ostinato.stores.sqlite.inserts import insert_all, insert_one, let_in
from ostinato.stores.sqlite.look import look
from ostinato.stores.sqlite.output import add_output
from ostinato.stores.sqlite.overview import (
    answered_due,
    count_active,
    count_runs,
    find_runs,
    late_runs,
    list_runs,
    runs_between,
    tally_ended,
)
from ostinato.stores.sqlite.parts import SqliteParts
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value

__all__ = ["SqliteRuns"]

# In a session of people's it waits its turn again.
_REPEAT = """
INSERT INTO runs (schedule_id, kind, task, work, policy, lane, priority, state, trigger, due_at, ready_at, project,
                  session, mode, waiting)
SELECT schedule_id, kind, task, work, policy, lane, priority, 'queued', 'manual', ?1, ?1, project,
       CASE WHEN mode IS NOT NULL THEN session END, CASE WHEN mode IS NOT NULL THEN 'queue' END, mode IS NOT NULL
FROM runs WHERE id = ?2 RETURNING id, session, schedule_id
"""
_CLAIMED = f"SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE r.id = ?"


class SqliteRuns:
    """Answers stores.base.RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert_runs(self, runs: Sequence[NewRun]) -> list[RunId]:
        return await self._database.submit(lambda connection: insert_all(connection, runs), wakes=True)

    async def queue_runs(self, runs: Sequence[NewRun], now: Micros) -> list[RunId]:
        def queue(connection: Connection) -> list[RunId]:
            ids = insert_all(connection, runs)
            for session in dict.fromkeys(run.session for run in runs if run.session is not None):
                let_in(
                    connection, session, [id for id, run in zip(ids, runs, strict=True) if run.session == session], now
                )
            return ids

        return await self._database.submit(queue, wakes=True)

    async def trigger_run(self, run: NewRun, allowed: int | None) -> RunId | None:
        async def trigger(connection: Connection) -> RunId | None:
            if allowed is not None:
                active = fetch_value(
                    connection,
                    "SELECT count(*) FROM runs WHERE schedule_id = ? AND state IN ('queued', 'running')",
                    (run.schedule_id,),
                ) + await connection.fetch_value(COUNT_GIVEN_UP, {"id": run.schedule_id})
                if active > allowed:
                    return None
            (id,) = insert_all(connection, [run])
            await wait_for_finish(connection, run.schedule_id, run.ready_at)
            if run.session is not None:
                let_in(connection, run.session, [id], run.ready_at)
            return id

        return await self._database.write(trigger, wakes=True)

    async def start_run(self, run: NewRun, node: NodeId, now: Micros) -> ClaimedRun:
        def start(connection: Connection) -> ClaimedRun:
            id = insert_one(connection, run)
            connection.execute(
                "UPDATE runs SET state = 'running', token = 1, attempt = 1, node = ?, started_at = ? WHERE id = ?",
                (node, now, id),
            )
            (row,) = fetch(connection, _CLAIMED, (id,))
            return load_claimed(row)

        return await self._database.submit(start)

    async def repeat_run(self, id: RunId, now: Micros) -> RunId | None:
        async def repeat(connection: Connection) -> RunId | None:
            rows = fetch(connection, _REPEAT, (now, id))
            if not rows:
                return None
            new, session, schedule_id = rows[0]
            await wait_for_finish(connection, schedule_id, now)
            if session is not None:
                let_in(connection, session, [RunId(new)], now)
            return RunId(new)

        return await self._database.write(repeat, wakes=True)

    async def claim_runs(self, claim: Claim) -> Claimed:
        return await self._database.submit(lambda connection: claim_now(connection, claim))

    async def finish_runs(self, finishes: Sequence[Finish], claim: Claim | None = None) -> Finished:
        def finish(connection: Connection) -> Finished:
            lost, broken = finish_now(connection, finishes)
            return Finished(lost, broken, claim_now(connection, claim) if claim is not None else Claimed())

        return await self._database.submit(finish, wakes=tells(finishes))

    async def forget_given_up(self, ended: Sequence[tuple[RunId, int]]) -> None:
        await self._database.write(lambda connection: forget_given_up(connection, ended), wakes=True)

    async def list_given_up(self) -> list[GivenUp]:
        return await self._database.read(list_given_up)

    async def report_runs(self, reports: Sequence[Report]) -> None:
        def report(connection: Connection) -> None:
            for one in reports:
                connection.execute(
                    "UPDATE runs SET progress = coalesce(?, progress), totals = coalesce(?, totals) "
                    "WHERE id = ? AND token = ? AND state = 'running'",
                    (one.progress, one.totals, one.id, one.token),
                )
                if connection.changes() and one.output:
                    add_output(connection, one.id, one.token, one.output)

        await self._database.submit(report)

    async def cancel_runs(self, ids: Sequence[RunId], reason: str, now: Micros) -> Cancelled:
        return await self._database.write(lambda db: cancel_now(db, SqliteParts(), ids, reason, now), wakes=True)

    async def stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[ClaimedRun]:
        def stale(connection: Connection) -> list[ClaimedRun]:
            connection.executemany(
                "UPDATE nodes SET lost_at = ?, statistics = '{}' WHERE id = ? AND seen_at = ? AND lost_at IS NULL",
                [(now, id, seen_at) for id, seen_at in silent],
            )
            rows = fetch(
                connection,
                f"SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id "
                "LEFT JOIN nodes n ON n.id = r.node "
                "WHERE r.state = 'running' AND (n.id IS NULL OR n.lost_at IS NOT NULL)",
            )
            return [load_claimed(row) for row in rows]

        return await self._database.submit(stale)

    async def unclaimable_runs(self, ready_before: Micros) -> list[ClaimedRun]:
        query = f"""
            SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
            WHERE r.state = 'queued' AND r.waiting = 0 AND r.ready_at < ? AND r.task IS NOT NULL
              AND r.task NOT IN (SELECT t.value FROM nodes n, json_each(n.tasks) t WHERE n.lost_at IS NULL)
            LIMIT 1000"""
        rows = await self._database.query(lambda connection: fetch(connection, query, (ready_before,)))
        return [load_claimed(row) for row in rows]

    async def explain_queued(self, ids: Sequence[RunId], reason: str) -> None:
        def explain(connection: Connection) -> None:
            connection.execute(
                "UPDATE runs SET reason = ? WHERE id IN (SELECT value FROM json_each(?)) AND state = 'queued' "
                "AND reason IS NOT ?",
                (reason, msgspec.json.encode(ids).decode(), reason),
            )

        await self._database.submit(explain)

    async def get_run(self, id: RunId) -> Run | None:
        found = await self._database.query(lambda connection: find_runs(connection, "WHERE r.id = ?", [id], 1))
        return found[0] if found else None

    async def list_runs(self, wanted: RunFilter) -> list[Run]:
        return await self._database.query(lambda connection: list_runs(connection, wanted))

    async def runs_between(
        self, start: Micros, end: Micros, schedule_ids: Sequence[ScheduleId] | None, limit: int
    ) -> tuple[list[Run], bool]:
        return await self._database.query(lambda connection: runs_between(connection, start, end, schedule_ids, limit))

    async def count_runs(self, now: Micros, late_before: Micros) -> RunCounts:
        return await self._database.query(lambda connection: count_runs(connection, now, late_before))

    async def late_runs(self, late_before: Micros, limit: int) -> list[Run]:
        return await self._database.query(lambda connection: late_runs(connection, late_before, limit))

    async def tally_ended(self, since: Micros, until: Micros, bucket: Micros) -> list[Tally]:
        return await self._database.query(lambda connection: tally_ended(connection, since, until, bucket))

    async def answered_due(self, id: ScheduleId, start: Micros, end: Micros) -> set[Micros]:
        return await self._database.query(lambda connection: answered_due(connection, id, start, end))

    async def look(self, mark: Mark, limit: int) -> Changes:
        return await self._database.query(lambda connection: look(connection, mark, limit))

    async def read_output(self, id: RunId) -> list[OutputPart]:
        return await self._database.read(lambda connection: read_output(connection, id))

    async def output_mark(self, id: RunId) -> object:
        return await self._database.read(lambda connection: output_mark(connection, id))

    async def count_active(self, now: Micros) -> int:
        return await self._database.query(lambda connection: count_active(connection, now))
