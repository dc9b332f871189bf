"""Runs into the ledger of PostgreSQL through the connection of somebody else, in their transaction.

Nothing of their session is changed: the statements name the schema, and each of them is whole in itself, so that they
need no savepoint and no transaction of ours. Their transaction may stay open for long, so it only inserts rows, and
holds no lock that an engine waits for. A key is taken until it ends: an engine tries, and does not wait. A run of a
session gets its turn from the engines, after the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ostinato.errors import StoreError
from ostinato.models.ids import RunIds
from ostinato.models.run import NewRun
from ostinato.models.session import Mode
from ostinato.stores.postgres.inserts import KeyedInsert, take_keys
from ostinato.stores.postgres.query import Connection, fetch
from ostinato.stores.transactions import CallerConnection

__all__ = ["PostgresSharedLedger", "find_place"]

# The instant at which the server was started, and the database in it: whoever sees the same two is in the same
# database, by whatever address, pooler or name. A copy of it has another server, or another number.
_PLACE = """
SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, d.oid::bigint
FROM pg_database d WHERE d.datname = current_database()
"""
_MAY_WRITE = """
SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT')
       AND has_table_privilege(c.oid, 'SELECT'), current_user::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = 'runs'
"""
_BOTH = f"SELECT p.*, m.* FROM ({_PLACE}) p LEFT JOIN ({_MAY_WRITE}) m ON true"

Place = tuple[int, int]


async def find_place(connection: Connection) -> Place:
    """Where a connection of our own is."""
    started_at, database = (await fetch(connection, _PLACE))[0]
    return started_at, database


@dataclass(frozen=True, slots=True)
class PostgresSharedLedger:
    """Answers stores.transactions.SharedLedger."""

    place: Place
    schema: str
    channel: str

    async def is_behind(self, caller: CallerConnection) -> bool:
        started_at, database, may_write, user = (await caller.fetch(_BOTH, (self.schema,)))[0]
        if (started_at, database) != self.place:
            return False
        if not may_write:
            raise StoreError(
                f"the user {user!r} may not enqueue in the schema {self.schema!r}; "
                f"GRANT USAGE ON SCHEMA {self.schema} and GRANT SELECT, INSERT ON {self.schema}.runs to this user"
            )
        return True

    async def insert_runs(self, caller: CallerConnection, runs: Sequence[NewRun]) -> RunIds:
        await take_keys(caller.fetch, self.schema, runs)
        insert = KeyedInsert(f'"{self.schema}".runs', self.channel)
        return await insert.insert_all(caller.fetch, list(map(_after_commit, runs)))


def _after_commit(run: NewRun) -> NewRun:
    """The run as it is put into the queue of its session: an engine lets it line up."""
    return run if run.session is None else replace(run, waiting=True, mode=Mode.QUEUE, later=True)
