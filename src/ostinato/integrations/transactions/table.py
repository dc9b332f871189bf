"""The table of an outbox, in words that SQLite, PostgreSQL and MySQL read alike, with `%s` for a value.

A row waits from its commit until an engine has taken it into the ledger and deletes it. `try_at` says when to look at
it: 0 for a new one, later after a refusal, NULL when it is not tried any more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from ostinato.clock import Micros
from ostinato.errors import InvalidInput, StoreError
from ostinato.integrations.transactions.connections import Connection
from ostinato.models.outbox import OutboxBody, OutboxRow
from ostinato.models.run import NewRun

__all__ = [
    "TABLE",
    "check_dialect",
    "create",
    "create_statements",
    "delete",
    "due",
    "exists",
    "how_to_make",
    "list_rows",
    "put",
    "refuse",
    "remove",
    "retry",
]

TABLE = "ostinato_outbox"

_COLUMNS = "id, created_at, task, body, tries, error, try_at"
_INDEX = f"{TABLE}_due"
_INDEXED = "(try_at, created_at, id)"
_BODIES = {"mysql": "LONGTEXT", "mariadb": "LONGTEXT"}
_EXISTS = {
    "sqlite": f"SELECT count(*) FROM sqlite_master WHERE name = '{TABLE}'",
    "postgresql": f"SELECT count(*) FROM (SELECT to_regclass('{TABLE}') AS found) t WHERE found IS NOT NULL",
    "mysql": (
        f"SELECT count(*) FROM information_schema.tables WHERE table_name = '{TABLE}' AND table_schema = database()"
    ),
}
_EXISTS["mariadb"] = _EXISTS["mysql"]
_DUE = f"SELECT {_COLUMNS} FROM {TABLE} WHERE try_at <= %s ORDER BY try_at, created_at, id LIMIT %s"
_LIST = f"SELECT {_COLUMNS} FROM {TABLE} ORDER BY created_at, id LIMIT %s"
_REFUSE = f"UPDATE {TABLE} SET tries = %s, error = %s, try_at = %s WHERE id = %s"
_RETRY = f"UPDATE {TABLE} SET tries = 0, error = NULL, try_at = 0 WHERE id = %s"
_LONGEST_ERROR = 2_000
"""A text of MySQL has its bounds, and people theirs."""
_AT_ONCE = 100
"""Rows of one statement: databases bound how many values it may have."""


def create_statements(dialect: str) -> list[str]:
    """What makes the table, if it is not there: for a migration of the caller's own."""
    body = _BODIES.get(dialect, "TEXT")
    columns = (
        "id VARCHAR(36) NOT NULL PRIMARY KEY, created_at BIGINT NOT NULL, try_at BIGINT, "
        f"tries INTEGER NOT NULL DEFAULT 0, task VARCHAR(255) NOT NULL, body {body} NOT NULL, error TEXT"
    )
    if dialect in _BODIES:  # it does not know an index that is only made if it is not there
        # By default a table has the engine and the letters of its server or database: some that know no transactions,
        # or not all letters.
        kind = "ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4"
        return [f"CREATE TABLE IF NOT EXISTS {TABLE} ({columns}, INDEX {_INDEX} {_INDEXED}) {kind}"]
    return [
        f"CREATE TABLE IF NOT EXISTS {TABLE} ({columns})",
        f"CREATE INDEX IF NOT EXISTS {_INDEX} ON {TABLE} {_INDEXED}",
    ]


async def create(db: Connection, dialect: str) -> None:
    """Make the table, if it is not there."""
    for statement in create_statements(check_dialect(dialect)):
        await db.fetch(statement)


def check_dialect(dialect: str) -> str:
    """The database's kind; InvalidInput if it can have no outbox."""
    if dialect not in _EXISTS:
        raise InvalidInput(
            f"there is no outbox in {dialect}", field="connection", hint="it can be in SQLite, PostgreSQL or MySQL"
        )
    return dialect


async def exists(db: Connection, dialect: str) -> bool:
    """Whether the table is there."""
    return bool((await db.fetch(_EXISTS[check_dialect(dialect)]))[0][0])


def how_to_make(alias: str | None = None) -> str:
    """What makes the table where it is missing: in a database, or in one that Django calls so."""
    apps = getattr(sys.modules.get("django.apps"), "apps", None)
    if alias is None or apps is None or not (apps.ready and apps.is_installed("ostinato.integrations.django")):
        return "'ostinato outbox create URL' makes it, or app.outbox(…).create()"
    return f"'manage.py ostinato outbox create {alias}' makes it, or jobs.outbox({alias!r}).create()"


async def put(db: Connection, dialect: str, runs: Sequence[NewRun], first_at: Micros, alias: str | None) -> list[str]:
    """Write the runs into the caller's outbox, each an instant after the one before it, which is the order in which
    they are taken; answers the ids of their rows."""
    if not await exists(db, dialect):
        raise StoreError(
            "this connection does not lead to the database of the ledger, and there is no outbox in its own: "
            f"{how_to_make(alias)}, and add_outbox(…) of the app lets its engine drain it"
        )
    rows = [(str(uuid4()), first_at + place, 0, 0, run.task, _body(run)) for place, run in enumerate(runs)]
    for some in _chunks(rows):
        places = ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(some))
        statement = f"INSERT INTO {TABLE} (id, created_at, try_at, tries, task, body) VALUES {places}"
        await db.fetch(statement, [value for row in some for value in row])
    return [row[0] for row in rows]


async def due(db: Connection, now: Micros, limit: int) -> list[OutboxRow]:
    """The rows to take next, in their order."""
    return [OutboxRow(*row) for row in await db.fetch(_DUE, (now, limit))]


async def list_rows(db: Connection, limit: int) -> list[OutboxRow]:
    """All rows, the oldest first."""
    return [OutboxRow(*row) for row in await db.fetch(_LIST, (limit,))]


async def delete(db: Connection, dialect: str, ids: Sequence[str]) -> None:
    """These rows are in the ledger."""
    # MySQL may look for several ids by reading the whole table, and then waits for the rows of open transactions.
    for some in _chunks(ids, 1 if dialect in _BODIES else _AT_ONCE):
        await db.fetch(f"DELETE FROM {TABLE} WHERE id IN ({', '.join(['%s'] * len(some))})", some)


async def refuse(db: Connection, row: OutboxRow, error: str, try_at: Micros | None) -> None:
    """The ledger does not take this row; when to try it again."""
    await db.fetch(_REFUSE, (row.tries + 1, error[:_LONGEST_ERROR], try_at, row.id))


async def retry(db: Connection, id: str | None) -> int:
    """Let this row, or all that were refused, be tried as if they were new; how many there were."""
    which, values = ("tries > 0", ()) if id is None else ("id = %s", (id,))
    found = await db.fetch(f"SELECT id FROM {TABLE} WHERE {which}", values)
    for row in found:  # each by its id, as in `delete`
        await db.fetch(_RETRY, row)
    return len(found)


async def remove(db: Connection, dialect: str, id: str) -> int:
    """Delete this row; how many there were."""
    found = (await db.fetch(f"SELECT count(*) FROM {TABLE} WHERE id = %s", (id,)))[0][0]
    await delete(db, dialect, [id])
    return int(found)


def _body(run: NewRun) -> str:
    return OutboxBody(run.kind, run.work, run.policy, run.due_at, run.key, run.scope, run.trace).text()


def _chunks(items: Sequence[Any], size: int = _AT_ONCE) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
