"""The ledger in PostgreSQL: runs put in, claimed, finished and cancelled. Neighbours: inserts.py, claims.py,
finishes.py, ends.py, and for reading overview.py and look.py."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.errors import StoreError
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.live import Changes, Mark
from ostinato.models.output import OutputPart
from ostinato.models.run import ClaimedRun, Finish, NewRun, Report, Run, RunFilter, tells
from ostinato.models.states import RunState
from ostinato.stores.base import Cancelled, Claim, Claimed, Finished, RunCounts, Tally
from ostinato.stores.postgres.budgets import budget_locks
from ostinato.stores.postgres.claims import ClaimAnswer, give_back, send_claim, settle_now, unsettled_sessions
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.finishes import Written, send_finishes
from ostinato.stores.postgres.inserts import insert_all, let_in, send_insert
from ostinato.stores.postgres.look import look
from ostinato.stores.postgres.nodes import declare_lost
from ostinato.stores.postgres.output import add_output
from ostinato.stores.postgres.overview import (
    answered_due,
    count_active,
    count_runs,
    find_runs,
    late_runs,
    list_runs,
    runs_between,
    tally_ended,
)
from ostinato.stores.postgres.parts import PostgresParts
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers, texts
from ostinato.stores.postgres.turns import give_turns, lock_sessions_of
from ostinato.stores.postgres.writer import Answer, Operation
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.ends import wait_for_finish
from ostinato.stores.sql.given_up import COUNT_GIVEN_UP, forget_given_up, list_given_up
from ostinato.stores.sql.output import output_mark, read_output

__all__ = ["PostgresRuns"]

_REPORT = """
UPDATE runs r SET progress = coalesce(f.progress, r.progress), totals = coalesce(f.totals, r.totals)
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[]) f (id, token, progress, totals)
WHERE r.id = f.id AND r.token = f.token AND r.state || '' = 'running' RETURNING r.id, r.token
"""
# In a session of people's it waits its turn again.
_REPEAT = """
INSERT INTO runs (schedule_id, kind, task, work, policy, lane, priority, state, trigger, due_at, ready_at, project,
                  session, mode, waiting)
SELECT schedule_id, kind, task, work, policy, lane, priority, 'queued', 'manual', %s, %s, project,
       CASE WHEN mode IS NOT NULL THEN session END, CASE WHEN mode IS NOT NULL THEN 'queue' END, mode IS NOT NULL
FROM runs WHERE id = %s RETURNING id, session, schedule_id
"""
_START = """
UPDATE runs SET state = 'running', token = 1, attempt = 1, node = %s, started_at = %s WHERE id = %s
"""
_CLAIMED = f"SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id WHERE r.id = %s"
_SESSIONS = "SELECT DISTINCT session FROM runs WHERE id = ANY (%s::bigint[]) AND session IS NOT NULL"
_STALE = f"""
SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id LEFT JOIN nodes n ON n.id = r.node
WHERE r.state = 'running' AND (n.id IS NULL OR n.lost_at IS NOT NULL)
"""
_UNCLAIMABLE = f"""
SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id
WHERE r.state = 'queued' AND NOT r.waiting AND r.ready_at < %s AND r.task IS NOT NULL
  AND r.task NOT IN (SELECT t.value FROM nodes n, json_array_elements_text(n.tasks::json) t (value)
                     WHERE n.lost_at IS NULL)
LIMIT 1000
"""


class PostgresRuns:
    """Answers stores.base.RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert_runs(self, runs: Sequence[NewRun]) -> list[RunId]:
        if not runs:
            return []
        if any(run.key is not None for run in runs):
            return await self._database.write(lambda connection: insert_all(connection, runs), wakes=True)

        async def insert(connection: Connection) -> Answer[list[RunId]]:
            return (await send_insert(connection, runs)).ids

        return await self._database.send(insert, wakes=True)

    async def queue_runs(self, runs: Sequence[NewRun], now: Micros) -> list[RunId]:
        async def queue(connection: Connection) -> list[RunId]:
            ids = await insert_all(connection, runs)
            for session in sorted(mailboxes):
                mine = [id for id, run in zip(ids, runs, strict=True) if run.session == session]
                await let_in(connection, session, mine, now)
            await give_turns(connection, sessions - mailboxes)
            return ids

        sessions = {run.session for run in runs if run.session is not None}
        mailboxes = {run.session for run in runs if run.session is not None and run.mode is not None}
        return await self._database.write(queue, wakes=True, sessions=sessions)

    async def trigger_run(self, run: NewRun, allowed: int | None) -> RunId | None:
        async def trigger(connection: Connection) -> RunId | None:
            if allowed is not None:
                # Locked first: who fires or triggers it at the same time is seen by the count, or sees ours.
                await connection.execute("SELECT id FROM schedules WHERE id = %s FOR NO KEY UPDATE", (run.schedule_id,))
                active = await fetch_value(
                    connection,
                    "SELECT count(*) FROM runs WHERE schedule_id = %s AND state IN ('queued', 'running')",
                    (run.schedule_id,),
                )
                active += await connection.fetch_value(COUNT_GIVEN_UP, {"id": run.schedule_id})
                if active > allowed:
                    return None
            (id,) = await insert_all(connection, [run])
            await wait_for_finish(connection, run.schedule_id, run.ready_at)
            if run.session is not None and run.mode is not None:
                await let_in(connection, run.session, [id], run.ready_at)
            else:
                await give_turns(connection, sessions)
            return id

        sessions = () if run.session is None else (run.session,)
        return await self._database.write(trigger, wakes=True, sessions=sessions)

    async def start_run(self, run: NewRun, node: NodeId, now: Micros) -> ClaimedRun:
        async def start(connection: Connection) -> ClaimedRun:
            (id,) = await (await send_insert(connection, [run])).ids()
            await connection.execute(_START, (node, now, id))
            (row,) = await fetch(connection, _CLAIMED, (id,))
            return load_claimed(row)

        return await self._database.write(start)

    async def repeat_run(self, id: RunId, now: Micros) -> RunId | None:
        async def repeat(connection: Connection) -> RunId | None:
            await lock_sessions_of(connection, [id])
            rows = await fetch(connection, _REPEAT, (now, now, id))
            if not rows:
                return None
            new, session, schedule_id = rows[0]
            await wait_for_finish(connection, schedule_id, now)
            if session is not None:
                await let_in(connection, session, [RunId(new)], now)
            return RunId(new)

        sessions = await self._sessions_of([id])
        return await self._database.write(repeat, wakes=True, sessions=sessions)

    async def claim_runs(self, claim: Claim) -> Claimed:
        return (await self._write_and_claim(None, claim))[1]

    async def finish_runs(self, finishes: Sequence[Finish], claim: Claim | None = None) -> Finished:
        async def finish(connection: Connection) -> Answer[Written]:
            return await send_finishes(connection, finishes)

        sessions = {finish.session for finish in finishes if finish.session is not None} | budget_locks(finishes)
        # An end that was written before is known again by its row; another try is not.
        once = any(finish.state is RunState.QUEUED for finish in finishes)
        if claim is None:
            if not finishes:
                return Finished()
            lost, broken = await self._database.send(finish, wakes=tells(finishes), once=once, sessions=sessions)
            return Finished(lost, broken)
        written, claimed = await self._write_and_claim(finish if finishes else None, claim, sessions, once=once)
        lost, broken = written or ([], [])
        return Finished(lost, broken, claimed)

    async def _write_and_claim(
        self, operation: Operation[Written] | None, claim: Claim, sessions: Collection[str] = (), *, once: bool = False
    ) -> tuple[Any, Claimed]:
        """Claim at the end of a group; where something is to be settled first, do that and claim again."""

        async def take(connection: Connection) -> Answer[ClaimAnswer]:
            return await send_claim(connection, self._database.server, claim)

        written, (claimed, unsettled) = await self._database.send_last(
            operation, take, self._undo(claim), once=once, sessions=sessions
        )
        return written, await self._settle_and_claim(claim) if unsettled else claimed

    async def _settle_and_claim(self, claim: Claim) -> Claimed:
        async def take(connection: Connection) -> Answer[ClaimAnswer]:
            return await send_claim(connection, self._database.server, claim, settled=True)

        try:
            sessions = await self._database.read(lambda connection: unsettled_sessions(connection, claim))
            await self._database.write(lambda connection: settle_now(connection, claim), once=False, sessions=sessions)
            _, (claimed, _) = await self._database.send_last(None, take, self._undo(claim))
        except StoreError:
            # The caller must hear what it has written; it asks again soon.
            return Claimed(crowded=True)
        return claimed

    def _undo(self, claim: Claim) -> Operation[None]:
        async def undo(connection: Connection) -> Answer[None]:
            return await give_back(connection, claim)

        return undo

    async def forget_given_up(self, ended: Sequence[tuple[RunId, int]]) -> None:
        await self._database.write(lambda connection: forget_given_up(connection, ended), wakes=True, once=False)

    async def list_given_up(self) -> list[GivenUp]:
        return await self._database.read(list_given_up)

    async def report_runs(self, reports: Sequence[Report]) -> None:
        # The last word of each run counts: one statement updates a row once.
        last: dict[tuple[RunId, int], tuple[str | None, str | None]] = {}
        for one in reports:
            progress, totals = last.get((one.id, one.token), (None, None))
            last[one.id, one.token] = (one.progress or progress, one.totals or totals)
        if not last:
            return
        values = (
            numbers([id for id, _ in last]),
            numbers([token for _, token in last]),
            texts([progress for progress, _ in last.values()]),
            texts([totals for _, totals in last.values()]),
        )

        async def report(connection: Connection) -> None:
            held = set(await fetch(connection, _REPORT, values))
            said = [(one.id, one.token, one.output) for one in reports if (one.id, one.token) in held]
            await add_output(connection, said)

        await self._database.write(report, once=False)

    async def cancel_runs(self, ids: Sequence[RunId], reason: str, now: Micros) -> Cancelled:
        return await self._database.write(
            lambda db: cancel_now(db, PostgresParts(), ids, reason, now),
            wakes=True,
            sessions=await self._sessions_of(ids),
        )

    async def _sessions_of(self, ids: Sequence[RunId]) -> list[str]:
        """Looked up beforehand, for the writer to lock them in its order."""
        rows = await self._database.read(lambda connection: fetch(connection, _SESSIONS, (numbers(ids),)))
        return [session for (session,) in rows]

    async def stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[ClaimedRun]:
        if silent:
            await declare_lost(self._database, silent, now)
        rows = await self._database.read(lambda connection: fetch(connection, _STALE))
        return [load_claimed(row) for row in rows]

    async def unclaimable_runs(self, ready_before: Micros) -> list[ClaimedRun]:
        rows = await self._database.read(lambda connection: fetch(connection, _UNCLAIMABLE, (ready_before,)))
        return [load_claimed(row) for row in rows]

    async def explain_queued(self, ids: Sequence[RunId], reason: str) -> None:
        async def explain(connection: Connection) -> None:
            await connection.execute(
                "UPDATE runs SET reason = %s WHERE id = ANY (%s::bigint[]) AND state = 'queued' "
                "AND reason IS DISTINCT FROM %s",
                (reason, numbers(ids), reason),
            )

        await self._database.write(explain, once=False)

    async def get_run(self, id: RunId) -> Run | None:
        found = await self._database.read(lambda connection: find_runs(connection, "WHERE r.id = %s", [id], 1))
        return found[0] if found else None

    async def list_runs(self, wanted: RunFilter) -> list[Run]:
        return await self._database.read(lambda connection: list_runs(connection, wanted))

    async def runs_between(
        self, start: Micros, end: Micros, schedule_ids: Sequence[ScheduleId] | None, limit: int
    ) -> tuple[list[Run], bool]:
        return await self._database.read(lambda connection: runs_between(connection, start, end, schedule_ids, limit))

    async def count_runs(self, now: Micros, late_before: Micros) -> RunCounts:
        return await self._database.read(lambda connection: count_runs(connection, now, late_before))

    async def late_runs(self, late_before: Micros, limit: int) -> list[Run]:
        return await self._database.read(lambda connection: late_runs(connection, late_before, limit))

    async def tally_ended(self, since: Micros, until: Micros, bucket: Micros) -> list[Tally]:
        return await self._database.read(lambda connection: tally_ended(connection, since, until, bucket))

    async def answered_due(self, id: ScheduleId, start: Micros, end: Micros) -> set[Micros]:
        return await self._database.read(lambda connection: answered_due(connection, id, start, end))

    async def look(self, mark: Mark, limit: int) -> Changes:
        return await self._database.read(lambda connection: look(connection, mark, limit))

    async def read_output(self, id: RunId) -> list[OutputPart]:
        return await self._database.read(lambda connection: read_output(connection, id))

    async def output_mark(self, id: RunId) -> object:
        return await self._database.read(lambda connection: output_mark(connection, id))

    async def count_active(self, now: Micros) -> int:
        return await self._database.read(lambda connection: count_active(connection, now))
