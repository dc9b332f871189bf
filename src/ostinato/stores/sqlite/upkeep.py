"""Upkeep of an SQLite file: its size, its damage, its locks, and `ostinato db backup`. What of it is rows is in
stores.sql.upkeep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import apsw

from ostinato.errors import StoreError
from ostinato.stores.sql.upkeep import Upkeep
from ostinato.stores.sqlite.backup import back_up
from ostinato.stores.sqlite.database import MIGRATIONS, Database, schema_version
from ostinato.stores.sqlite.jobs import named_error
from ostinato.stores.sqlite.locks import are_safe, close
from ostinato.stores.sqlite.query import Connection, fetch_value
from ostinato.stores.sqlite.waiting import LockWait
from ostinato.stores.upkeep import Remark

__all__ = ["SqliteUpkeep"]

_SAFE_VERSION = (3, 51, 3)


class SqliteUpkeep(Upkeep[Connection]):
    """Answers stores.base.UpkeepStore."""

    _database: Database
    latest = MIGRATIONS[-1].version

    async def _version(self, db: Connection) -> int:
        return schema_version(db)

    async def _size(self, db: Connection) -> tuple[str, int]:
        pages, size = await db.fetch_value("PRAGMA page_count"), await db.fetch_value("PRAGMA page_size")
        return self._database.url, pages * size

    async def remarks(self) -> list[Remark]:
        mode = await self._database.query(lambda connection: fetch_value(connection, "PRAGMA journal_mode"))
        found = [_journal(mode), _locks(self._database.path)]
        if not self._database.in_memory:
            found.append(await asyncio.to_thread(_writes, self._database))
        return found

    async def check(self) -> list[str]:
        async def look(db: Connection) -> list[str]:
            async with db.snapshot():
                return await self._damage(db) or await self._dangling(db) + await self._wrong(db)

        return await self._database.read(look)

    async def _damage(self, db: Connection) -> list[str]:
        """What is read from a damaged file says nothing, so this is asked first."""
        # A row that breaks a check is no damage: it is found by its rule, with the reason.
        lines = [line for (line,) in await db.fetch("PRAGMA integrity_check(20)")]
        return [f"damaged: {line}" for line in lines if line != "ok" and not line.startswith("CHECK constraint")]

    async def _dangling(self, db: Connection) -> list[str]:
        rows = await db.fetch("PRAGMA foreign_key_check")
        return [
            f"row {row} of {table} refers to a row of {parent} that does not exist"
            for table, row, parent, _ in rows[:20]
        ]

    async def back_up(self, target: str, told: Callable[[int, int], None], *, overwrite: bool) -> int:
        path = self._database.path
        if self._database.in_memory:
            raise StoreError("a database in memory cannot be copied to a file")
        return await self._database.query(
            lambda connection: back_up(connection, path, target, told, overwrite=overwrite)
        )


def _journal(mode: str) -> Remark:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < _SAFE_VERSION:
        return Remark("journal", "fail", f"SQLite {version} can corrupt a WAL", "pip install --upgrade apsw")
    if mode != "wal":
        return Remark("journal", "warn", "the file is not in WAL mode", "run 'ostinato db migrate'")
    return Remark("journal", "ok", "write-ahead log")


def _locks(path: str) -> Remark:
    if are_safe():
        return Remark("locks", "ok", "other code in the same process cannot drop them")
    return Remark(
        "locks",
        "warn",
        f"on this system any code in the same process that opens and closes {path} drops SQLite's locks: acknowledged "
        "runs can be lost",
        "open it with nothing else (sqlite3, Django, open) in a process that runs Ostinato; copy it with "
        "'ostinato db backup'",
    )


def _writes(database: Database) -> Remark:
    """Whether it can be written, by asking for the lock that a write needs and giving it back at once."""
    connection = database.connect_reader()
    tuning = database.tuning
    seconds = tuning.sqlite_lock_warning_seconds
    try:
        before = fetch_value(connection, "PRAGMA data_version")
        connection.execute("PRAGMA query_only = OFF")
        connection.set_busy_handler(LockWait(database.path, seconds, seconds))
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except apsw.BusyError:
            # Where others commit one after the other, the file is busy, and nobody sits on it.
            if fetch_value(connection, "PRAGMA data_version") == before:
                return Remark(
                    "writes",
                    "warn",
                    f"another process held the lock of {database.path} for all of the {seconds:g} s that doctor "
                    "waited: nothing can be written",
                    f"'fuser {database.path}' or 'lsof {database.path}' shows who has it open; let its transaction "
                    "end, or end it",
                )
    except apsw.Error as error:
        raise named_error(error, database.path, tuning.sqlite_lock_seconds) from error
    finally:
        close(connection)
    return Remark("writes", "ok", "no process keeps the file locked")
