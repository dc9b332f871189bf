"""Upkeep of a PostgreSQL schema: its size, and why it is not copied here. Everything else is in stores.sql.upkeep."""

from __future__ import annotations

from collections.abc import Callable

from ostinato.errors import StoreError
from ostinato.stores.postgres.database import MIGRATIONS, Database, schema_version
from ostinato.stores.postgres.query import Connection
from ostinato.stores.sql.upkeep import Upkeep
from ostinato.stores.upkeep import Remark

__all__ = ["PostgresUpkeep"]

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema AND c.relkind = 'r'
"""


class PostgresUpkeep(Upkeep[Connection]):
    """Answers stores.base.UpkeepStore."""

    _database: Database
    latest = MIGRATIONS[-1].version

    async def _version(self, db: Connection) -> int:
        return await schema_version(db, self._database.server.schema)

    async def _size(self, db: Connection) -> tuple[str, int]:
        server = self._database.server
        return server.shown, await db.fetch_value(_SIZE, {"schema": server.schema})

    async def remarks(self) -> list[Remark]:
        return []

    async def check(self) -> list[str]:
        return await self._database.read(self._wrong)

    async def back_up(self, target: str, told: Callable[[int, int], None], *, overwrite: bool) -> int:
        schema, url = self._database.server.schema, self._database.server.shown
        raise StoreError(
            f"'ostinato db backup' copies SQLite files; copy a PostgreSQL database with "
            f"'pg_dump --schema={schema} --file={target} {url}'"
        )
