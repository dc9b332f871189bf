"""The database of an ordeal: how it is made, read by plain SQL, disturbed, checked and removed again."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from ostinato.config import Settings
from ostinato.errors import InvalidInput

__all__ = ["RealDatabase", "open_database"]

_ENDS = """
SELECT id, state, token, finished_at FROM runs WHERE id > {after} AND state NOT IN ('queued', 'running') ORDER BY id
"""
_BETWEEN_CUTS = 0.2


class RealDatabase(Protocol):
    """What an ordeal does with its database beside the nodes."""

    @property
    def url(self) -> str: ...

    @property
    def schema(self) -> str: ...

    @property
    def has_one_lock(self) -> bool:
        """Whether one process can keep all others from writing."""
        ...

    def select(self, text: str) -> list[tuple[Any, ...]]:
        """Read, as any other program would."""
        ...

    def disturb(self, seconds: float) -> None:
        """Keep the nodes from it for so long."""
        ...

    def damage(self) -> str | None:
        """What its own check finds."""
        ...


def ends_after(database: RealDatabase, id: int) -> list[tuple[Any, ...]]:
    """How runs ended whose number is greater than that."""
    return database.select(_ENDS.format(after=id))


class _Sqlite:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.schema = Settings().schema
        self.has_one_lock = True
        self._path = path
        self.url = f"sqlite:///{path}"

    def select(self, text: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=60)) as connection:
            return connection.execute(text).fetchall()

    def disturb(self, seconds: float) -> None:
        """Lock it, as a program does that forgets a transaction."""
        with closing(sqlite3.connect(self._path, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    def damage(self) -> str | None:
        found = self.select("PRAGMA integrity_check") + self.select("PRAGMA foreign_key_check")
        return None if found == [("ok",)] else repr(found[:5])


class _Postgres:
    """A schema of its own on somebody's server."""

    def __init__(self, url: str, mark: str) -> None:
        import psycopg

        self._server = url
        self._program = f"ostinato-chaos-{mark}"
        self.schema = f"ostinato_chaos_{mark}"
        self.has_one_lock = False
        self.url = f"{url}{'&' if '?' in url else '?'}application_name={self._program}"
        self._connection = psycopg.connect(url, autocommit=True, options=f"-c search_path={self.schema}")

    def select(self, text: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(text.encode()).fetchall()

    def disturb(self, seconds: float) -> None:
        """End the connections of all nodes, several times a second."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (self._program,)
            )
            time.sleep(_BETWEEN_CUTS)

    def damage(self) -> str | None:
        return None  # there is no check that any user of a server may ask for

    def remove(self) -> None:
        """Leave nothing behind."""
        from psycopg import sql

        self._connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self.schema)))
        self._connection.close()


@contextmanager
def open_database(url: str | None, folder: Path, mark: str) -> Iterator[RealDatabase]:
    """A new one, gone afterwards."""
    if url is None:
        yield _Sqlite(folder / "jobs.db")
        return
    if not url.startswith(("postgresql:", "postgres:")):
        hint = "leave it out for an SQLite file of its own, or name a PostgreSQL"
        raise InvalidInput(f"an ordeal cannot use {url!r}", field="db", hint=hint)
    database = _Postgres(url, mark)
    try:
        yield database
    finally:
        database.remove()
