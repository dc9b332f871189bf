"""Rows of SQLite that break the rules, which include bytes that are not UTF-8. stores.sql.quarantine finds and keeps
them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from ostinato.clock import Micros
from ostinato.errors import StoreUnavailable
from ostinato.logs import get_logger
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.stores.quarantine import Queries
from ostinato.stores.rules import KEYS, Dialect
from ostinato.stores.sql.quarantine import Quarantine
from ostinato.stores.sqlite.query import Connection

__all__ = ["DIALECT", "SqliteQuarantine"]

log = get_logger("ostinato.stores")

DIALECT = Dialect(
    yes="1",
    no="0",
    json_kind="CASE WHEN json_valid(COLUMN) THEN json_type(COLUMN) ELSE 'none' END",
    readable="utf8(CAST(EXPRESSION AS BLOB))",
    # The comma keeps the end of one text and the beginning of the next from making a letter together.
    undecodable="NOT is_utf8(CAST(concat_ws(',', COLUMNS) AS BLOB))",
    is_sqlite=True,
)
_TEXTS = "SELECT name FROM pragma_table_info(:table) WHERE type = 'TEXT'"


class SqliteQuarantine(Quarantine[Connection]):
    """Answers stores.quarantine.QuarantineStore."""

    async def _prepare(self) -> dict[str, Queries]:
        """The queries for every table; they name its texts."""

        async def look(db: Connection) -> dict[str, Queries]:
            texts = {table: [name for (name,) in await db.fetch(_TEXTS, {"table": table})] for table in KEYS}
            return {table: Queries(DIALECT, table, texts[table]) for table in KEYS}

        if not self._queries:
            self._queries = await self._database.read(look)
        return self._queries

    async def set_aside(self, bad: Sequence[BadRow], now: Micros) -> list[Quarantined]:
        await self._prepare()
        # Each by itself: they share a commit, and one that cannot be set aside keeps no other from it.
        writes = [self._database.write(partial(self._set_aside, bad=row, now=now), wakes=True) for row in bad]
        kept: list[Quarantined] = []
        for row, answer in zip(bad, await asyncio.gather(*writes, return_exceptions=True), strict=True):
            if isinstance(answer, Quarantined):
                kept.append(answer)
            elif isinstance(answer, StoreUnavailable) or not isinstance(answer, Exception | None):
                raise answer
            elif answer is not None:
                log.error("%s %r cannot be quarantined: %s", row.table, row.row, answer)
        return kept
