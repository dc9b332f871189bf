"""Rows of PostgreSQL that break the rules, set aside behind the locks of what follows. stores.sql.quarantine finds and
keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.stores.postgres.ends import lock_ends
from ostinato.stores.postgres.query import Connection
from ostinato.stores.quarantine import Queries
from ostinato.stores.rules import KEYS, Dialect
from ostinato.stores.sql.quarantine import Quarantine

__all__ = ["DIALECT", "PostgresQuarantine"]

DIALECT = Dialect(
    yes="true",
    no="false",
    json_kind="json_kind(COLUMN)",
    readable="CAST(EXPRESSION AS text)",
    undecodable=None,
    is_sqlite=False,
)
_SESSIONS = "SELECT DISTINCT session FROM runs WHERE id = ANY (:ids::bigint[]) AND session IS NOT NULL"


class PostgresQuarantine(Quarantine[Connection]):
    """Answers stores.quarantine.QuarantineStore."""

    async def _prepare(self) -> dict[str, Queries]:
        self._queries = self._queries or {table: Queries(DIALECT, table) for table in KEYS}
        return self._queries

    async def set_aside(self, bad: Sequence[BadRow], now: Micros) -> list[Quarantined]:
        await self._prepare()
        ids = [int(row.row) for row in bad if row.table == "runs"]

        async def write(connection: Connection) -> list[Quarantined]:
            await lock_ends(connection, [RunId(id) for id in ids])
            return [kept for row in bad if (kept := await self._set_aside(connection, row, now)) is not None]

        sessions = await self._database.read(lambda db: db.fetch(_SESSIONS, {"ids": ids}))
        return await self._database.write(write, wakes=True, sessions=[session for (session,) in sessions])
