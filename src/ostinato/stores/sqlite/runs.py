"""Runs of SQLite claimed and finished, and put in by the thousand; the rest is in stores.sql.runs.

Neighbours: inserts.py, claims.py, finishes.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.ids import NodeId, RunIds
from ostinato.models.run import Finish, NewRun, tells
from ostinato.stores.base import Claim, Claimed, Finished
from ostinato.stores.sql.finishes import finish_all
from ostinato.stores.sql.runs import Runs
from ostinato.stores.sqlite.claims import claim_now
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.inserts import insert_all
from ostinato.stores.sqlite.query import Connection

__all__ = ["SqliteRuns"]

_LOSE = "UPDATE nodes SET lost_at = ?, statistics = '{}' WHERE id = ? AND seen_at = ? AND lost_at IS NULL"


class SqliteRuns(Runs[Connection]):
    """Answers stores.base.RunStore."""

    _database: Database

    async def insert_runs(self, runs: Sequence[NewRun]) -> RunIds:
        return await self._database.submit(lambda connection: insert_all(connection, runs), wakes=True)

    async def claim_runs(self, claim: Claim) -> Claimed:
        return await self._database.write(lambda db: claim_now(db, claim))

    async def finish_runs(
        self, finishes: Sequence[Finish], claim: Claim | None = None, now: Micros | None = None
    ) -> Finished:
        async def finish(db: Connection) -> Finished:
            written = await finish_all(db, self._parts, finishes, now)
            claimed = await claim_now(db, claim) if claim is not None else Claimed()
            return Finished(written.lost, written.broken, claimed, written.instead, written.told)

        return await self._database.write(finish, wakes=tells(finishes))

    async def _declare_lost(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[NodeId]:
        def lose(connection: Connection) -> list[NodeId]:
            lost = []
            for id, seen_at in silent:
                connection.execute(_LOSE, (now, id, seen_at))
                if connection.changes():
                    lost.append(id)
            return lost

        return await self._database.submit(lose)
