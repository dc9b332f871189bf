"""Databases of PostgreSQL for tests: one that is made for a test, and one that is emptied for the next.

To make one and to migrate it takes twenty times as long as to empty it. What a test did to more than the rows is found
by the catalogue: such a database is dropped.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from ostinato.stores.base import Store
from ostinato.stores.postgres.store import PostgresStore

__all__ = ["KeptDatabase", "fresh_database", "migrate", "with_database"]

Admin = psycopg.Connection[Any]

_CATALOGUE = """
WITH spaces AS (SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema')
SELECT coalesce(string_agg(part, ' ' ORDER BY part), '') FROM (
    SELECT nspname AS part FROM spaces
    UNION ALL SELECT concat(c.oid, c.relname, c.reloptions) FROM pg_class c JOIN spaces s ON s.oid = c.relnamespace
    UNION ALL SELECT concat(a.attrelid, a.attname, a.atttypid, a.attnotnull, a.atthasdef) FROM pg_attribute a
              JOIN pg_class c ON c.oid = a.attrelid JOIN spaces s ON s.oid = c.relnamespace
    UNION ALL SELECT concat(c.oid, c.conname) FROM pg_constraint c JOIN spaces s ON s.oid = c.connamespace
    UNION ALL SELECT concat(p.oid, p.proname) FROM pg_proc p JOIN spaces s ON s.oid = p.pronamespace
    UNION ALL SELECT concat(t.oid, t.tgname, t.tgenabled) FROM pg_trigger t WHERE NOT t.tgisinternal
    UNION ALL SELECT setconfig::text FROM pg_db_role_setting
) parts
"""
_MIGRATIONS = "SELECT array_agg(version ORDER BY version) FROM ostinato.migrations"
_END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
_FILLED = """
SELECT c.oid::regclass::text, pg_relation_size(c.oid) > 10 * 8192 OR c.reltuples >= 0
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'ostinato' AND c.relkind = 'r' AND c.relname <> 'migrations' AND pg_relation_size(c.oid) > 0
"""
_RESTART = """
SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
FROM pg_sequences WHERE schemaname = 'ostinato' AND last_value IS NOT NULL
"""


@contextmanager
def fresh_database(admin: Admin, server: str, template: str = "template0") -> Iterator[str]:
    """The URL of a new database, dropped at the end with whoever is still connected to it.

    It is empty, or a copy of a template that nobody is connected to.
    """
    name = _new_name()
    _create(admin, name, template)
    try:
        yield with_database(server, name)
    finally:
        _drop(admin, name)


class KeptDatabase:
    """A migrated database without a row, for one test after the other."""

    def __init__(self, admin: Admin, server: str) -> None:
        self._admin = admin
        self._server = server
        self._name: str | None = None
        self._shape: tuple[Any, ...] = ()

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The URL of it, for one test: its name is another one afterwards, so nobody comes back late."""
        name = self._name or self._make()
        self._name = None
        try:
            yield with_database(self._server, name)
        finally:
            self._take_back(name)

    def drop(self) -> None:
        if self._name is not None:
            _drop(self._admin, self._name)

    def _make(self) -> str:
        name = _new_name()
        _create(self._admin, name, "template0")
        url = with_database(self._server, name)
        with ThreadPoolExecutor(1) as thread:  # a test may ask for it on its own loop
            thread.submit(asyncio.run, migrate(PostgresStore(url))).result()
        with psycopg.connect(url, autocommit=True) as connection:
            self._shape = _shape(connection)
        return name

    def _take_back(self, name: str) -> None:
        kept = _new_name()
        with suppress(psycopg.Error):
            self._disconnect_all(name)
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            self._admin.execute(rename.format(sql.Identifier(name), sql.Identifier(kept)))
            name = kept
            with psycopg.connect(with_database(self._server, name), autocommit=True) as connection:
                if _shape(connection) == self._shape:
                    _empty(connection)
                    self._name = name
        if self._name is None:
            _drop(self._admin, name)

    def _disconnect_all(self, name: str) -> None:
        """Looked for here: the server itself looks only every tenth of a second."""
        for _ in range(5_000):
            if not self._admin.execute(_END_ALL, [name]).fetchall():
                return
            time.sleep(0.001)


def with_database(url: str, name: str) -> str:
    """The same server's URL, for another database."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{name}{query}"


def _new_name() -> str:
    return f"ostinato_test_{uuid.uuid4().hex[:12]}"


def _create(admin: Admin, name: str, template: str) -> None:
    # WAL_LOG needs no checkpoint: 20 ms alone, 40 ms beside another worker; FILE_COPY takes 25 and 65.
    # Nobody can be connected to template0, so no creation ever waits for someone to leave it.
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log")
    admin.execute(create.format(sql.Identifier(name), sql.Identifier(template)))


def _drop(admin: Admin, name: str) -> None:
    admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


async def migrate(store: Store) -> None:
    await store.open()
    await store.close()


def _empty(connection: Admin) -> None:
    """Truncating takes five times as long as deleting. What is deleted leaves its pages behind, which the planner does
    not see: it takes a table that was never vacuumed for one of ten pages at least."""
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")  # parents may go before their children
        for name, is_large in connection.execute(_FILLED).fetchall():
            empty = "TRUNCATE {} CASCADE" if is_large else "DELETE FROM {}"
            connection.execute(sql.SQL(empty).format(sql.SQL(name)))
        connection.execute(_RESTART)


def _shape(connection: Admin) -> tuple[Any, ...]:
    """What no test may leave behind. Without the table of migrations it is an error, and another shape too."""
    return _value(connection, _CATALOGUE), _value(connection, _MIGRATIONS)


def _value(connection: Admin, query: str) -> Any:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]
