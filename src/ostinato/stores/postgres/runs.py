"""Runs of PostgreSQL claimed and finished, and put in by the thousand; the rest is in stores.sql.runs.

Neighbours: inserts.py, claims.py, finishes.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ostinato.clock import Micros
from ostinato.errors import StoreError
from ostinato.models.ids import NodeId, RunId, RunIds
from ostinato.models.run import Finish, NewRun, tells
from ostinato.models.states import RunState
from ostinato.stores.base import NONE_ENDED, Claim, Claimed, Finished
from ostinato.stores.postgres.claims import ClaimAnswer, give_back, send_claim, settle_now, unsettled_sessions
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.finishes import are_plain, send_ends
from ostinato.stores.postgres.inserts import insert_all, send_insert
from ostinato.stores.postgres.nodes import declare_lost
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.writer import Answer, Operation
from ostinato.stores.sql.budgets import budget_locks
from ostinato.stores.sql.finishes import Written, finish_all
from ostinato.stores.sql.runs import Runs

__all__ = ["PostgresRuns"]


class PostgresRuns(Runs[Connection]):
    """Answers stores.base.RunStore."""

    _database: Database

    async def insert_runs(self, runs: Sequence[NewRun]) -> RunIds:
        if not runs:
            return RunIds()
        if any(run.key is not None for run in runs):
            return await self._database.write(lambda connection: insert_all(connection, runs), wakes=True)

        async def insert(connection: Connection) -> Answer[list[RunId]]:
            return (await send_insert(connection, runs)).ids

        return RunIds(await self._database.send(insert, wakes=True))

    async def claim_runs(self, claim: Claim) -> Claimed:
        return (await self._write_and_claim(None, claim))[1]

    async def finish_runs(
        self, finishes: Sequence[Finish], claim: Claim | None = None, now: Micros | None = None
    ) -> Finished:
        async def finish(connection: Connection) -> Answer[Written]:
            if are_plain(finishes):
                return await send_ends(connection, finishes)
            written = await finish_all(connection, self._parts, finishes, now)

            async def answer() -> Written:
                return written

            return answer

        sessions = {finish.session for finish in finishes if finish.session is not None} | budget_locks(finishes)
        sessions |= {finish.usage.session for finish in finishes if finish.usage is not None}
        # An end that was written before is known again by its row; another try is not.
        once = any(finish.state is RunState.QUEUED for finish in finishes)
        if claim is None:
            if not finishes:
                return Finished()
            written = await self._database.send(finish, wakes=tells(finishes), once=once, sessions=sessions)
            lost, broken, instead, told, _ = await self._finished(finishes, written, now)
            return Finished(lost, broken, Claimed(), instead, told)
        written, claimed = await self._write_and_claim(finish if finishes else None, claim, sessions, once=once)
        try:
            lost, broken, instead, told, _ = await self._finished(finishes, written or Written(), now)
        except BaseException:
            # The caller never hears what it got.
            self._database.take_back(self._undo(claim))
            raise
        return Finished(lost, broken, claimed, instead, told)

    async def _finished(self, finishes: Sequence[Finish], written: Written, now: Micros | None) -> Written:
        """The same, with the plain ends for which others wait: seldom any, so that nobody looks beforehand."""
        lost, broken, instead, told, left = written
        if left:
            ends = [finish for finish in finishes if finish.id in left]
            late = await self._database.write(
                lambda connection: finish_all(connection, self._parts, ends, now), once=False
            )
            lost, instead, told = [*lost, *late.lost], late.instead, late.told
        return Written(lost, broken, instead, told)

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

        expired = NONE_ENDED
        try:
            sessions = await self._database.read(lambda connection: unsettled_sessions(connection, claim))
            expired = await self._database.write(
                lambda connection: settle_now(connection, claim), once=False, sessions=sessions
            )
            _, (claimed, _) = await self._database.send_last(None, take, self._undo(claim))
        except StoreError:
            # The caller must hear what it has written; it asks again soon.
            return Claimed(crowded=True, expired=expired)
        return replace(claimed, expired=expired)

    def _undo(self, claim: Claim) -> Operation[None]:
        async def undo(connection: Connection) -> Answer[None]:
            return await give_back(connection, claim)

        return undo

    async def _declare_lost(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[NodeId]:
        return await declare_lost(self._database, silent, now)
