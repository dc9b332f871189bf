"""Upkeep in SQLite: what retention removes, what `ostinato db status` and `db check` show, and `db backup`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.errors import StoreError
from ostinato.models.states import ACTIVE
from ostinato.stores.access_rows import REQUEST_KEPT
from ostinato.stores.invariants import INVARIANTS, broken
from ostinato.stores.retention import AUDIT_KEPT, EVENTS_KEPT, NODE_KEPT, TOKEN_KEPT, keep_of, old_day, past_age
from ostinato.stores.sqlite.backup import back_up
from ostinato.stores.sqlite.database import MIGRATIONS, Database, schema_version
from ostinato.stores.sqlite.jobs import named_error
from ostinato.stores.sqlite.locks import are_safe, close
from ostinato.stores.sqlite.query import fetch, fetch_value, snapshot
from ostinato.stores.sqlite.waiting import LockWait
from ostinato.stores.upkeep import PruneCursor, Pruned, Remark, Status

__all__ = ["SqliteUpkeep"]

_OLD_EVENTS = "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at < ? ORDER BY at LIMIT ?)"
_IDLE_SESSIONS = """
DELETE FROM sessions WHERE key IN (
    SELECT key FROM sessions s WHERE sent_at < ?1 AND coalesce(cutoff_at, 0) < ?1 AND NOT EXISTS
    (SELECT 1 FROM runs WHERE session = s.key AND state IN ('queued', 'running')) LIMIT ?2
)
"""
_OLD_SPENDING = """
DELETE FROM spending WHERE (schedule_id, day) IN
    (SELECT schedule_id, day FROM spending WHERE day < ? ORDER BY day LIMIT ?)
"""
# Each with the instant before which they go.
_OLD_ACCESS = (
    "DELETE FROM login_codes WHERE hash IN (SELECT hash FROM login_codes WHERE expires_at <= ? LIMIT ?)",
    "DELETE FROM logins WHERE hash IN (SELECT hash FROM logins WHERE expires_at <= ? LIMIT ?)",
    "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE expires_at <= ? LIMIT ?)",
    "DELETE FROM requests WHERE (who, key) IN (SELECT who, key FROM requests WHERE begun_at <= ? LIMIT ?)",
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
)

_SAFE_VERSION = (3, 51, 3)


class SqliteUpkeep:
    """Answers stores.base.UpkeepStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prune(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        if not cursor.runs_done:
            return await self._prune_by_age(now, cursor, limit)
        if not cursor.schedules_done:
            return await self._prune_by_count(cursor, limit)
        return await self._prune_rest(now, cursor, limit)

    async def _prune_by_age(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        query = "SELECT id, finished_at, policy, state FROM runs WHERE id > ? ORDER BY id LIMIT ?"
        rows = await self._database.query(lambda connection: fetch(connection, query, (cursor.run, limit)))
        old = past_age((row[:3] for row in rows if row[3] not in ACTIVE), now)
        removed = await self._delete(old) if old else 0
        through = len(rows) < limit
        return Pruned(removed, cursor=PruneCursor(run=rows[-1][0] if rows else cursor.run, runs_done=through))

    async def _prune_by_count(self, cursor: PruneCursor, limit: int) -> Pruned:
        query = "SELECT id, policy FROM schedules WHERE id > ? ORDER BY id LIMIT ?"
        rows = await self._database.query(lambda connection: fetch(connection, query, (cursor.schedule, limit)))
        counts = [(id, count) for id, policy in rows if (count := keep_of(policy).count) is not None]

        def trim(connection: apsw.Connection) -> Pruned:
            removed = 0
            for id, count in counts:
                connection.execute(
                    "DELETE FROM runs WHERE schedule_id = :id AND state NOT IN ('queued', 'running') AND id <= "
                    "(SELECT id FROM runs WHERE schedule_id = :id ORDER BY id DESC LIMIT 1 OFFSET :count)",
                    {"id": id, "count": count},
                )
                # Not total_changes(), which also counts the attempts and output that went with them.
                removed += connection.changes()
            last = rows[-1][0] if rows else cursor.schedule
            through = len(rows) < limit
            return Pruned(removed, cursor=PruneCursor(cursor.run, last, runs_done=True, schedules_done=through))

        return await self._database.submit(trim)

    async def _prune_rest(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        def remove(connection: apsw.Connection) -> Pruned:
            connection.execute(_OLD_EVENTS, (now - EVENTS_KEPT, limit))
            events = connection.changes()
            connection.execute(_IDLE_SESSIONS, (now - EVENTS_KEPT, limit))
            sessions = connection.changes()
            connection.execute(_OLD_SPENDING, (old_day(now), limit))
            if limit in (events, sessions, connection.changes(), *_prune_access(connection, now, limit)):
                return Pruned(cursor=cursor)
            connection.execute("DELETE FROM nodes WHERE lost_at < ?", (now - NODE_KEPT,))
            return Pruned(nodes=connection.changes())

        return await self._database.submit(remove)

    async def _delete(self, ids: list[int]) -> int:
        def remove(connection: apsw.Connection) -> int:
            connection.execute(
                "DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(ids).decode(),),
            )
            return connection.changes()

        return await self._database.submit(remove)

    async def status(self) -> Status:
        def look(connection: apsw.Connection) -> Status:
            pages = fetch_value(connection, "PRAGMA page_count")
            size = fetch_value(connection, "PRAGMA page_size")
            schedules = fetch_value(connection, "SELECT count(*) FROM schedules")
            runs = dict(fetch(connection, "SELECT state, count(*) FROM runs GROUP BY state ORDER BY state"))
            return Status(
                url=self._database.url,
                version=schema_version(connection),
                latest=MIGRATIONS[-1].version,
                size_bytes=pages * size,
                schedules=schedules,
                runs=runs,
            )

        return await self._database.query(look)

    async def remarks(self) -> list[Remark]:
        mode = await self._database.query(lambda connection: fetch_value(connection, "PRAGMA journal_mode"))
        found = [_journal(mode), _locks(self._database.path)]
        if not self._database.in_memory:
            found.append(await asyncio.to_thread(_writes, self._database))
        return found

    async def check(self) -> list[str]:
        return await self._database.query(_check)

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
                    f"'fuser {database.path}' or 'lsof {database.path}' names who has it open; let its transaction "
                    "end, or end it",
                )
    except apsw.Error as error:
        raise named_error(error, database.path, tuning.sqlite_lock_seconds) from error
    finally:
        close(connection)
    return Remark("writes", "ok", "nobody keeps the file locked")


def _check(connection: apsw.Connection) -> list[str]:
    with snapshot(connection):
        # A row that breaks a check is no damage: it is found by its rule, with the reason.
        lines = [line for (line,) in fetch(connection, "PRAGMA integrity_check(20)")]
        found = [f"damaged: {line}" for line in lines if line != "ok" and not line.startswith("CHECK constraint")]
        if found:
            return found  # what is read from a damaged file says nothing
        for table, row, parent, _ in fetch(connection, "PRAGMA foreign_key_check")[:20]:
            found.append(f"row {row} of {table} refers to a row of {parent} that does not exist")
        version = schema_version(connection)
        if version != MIGRATIONS[-1].version:
            found.append(f"it is at version {version}, not {MIGRATIONS[-1].version}: run 'ostinato db migrate'")
        for text, query in INVARIANTS:
            found += broken(text, fetch(connection, query))
        return found


def _prune_access(connection: apsw.Connection, now: Micros, limit: int) -> list[int]:
    """Remove what of access and audit is past its time; answers how many of each."""
    past = (now, now, now - TOKEN_KEPT, now - REQUEST_KEPT, now - AUDIT_KEPT)
    removed = []
    for query, instant in zip(_OLD_ACCESS, past, strict=True):
        connection.execute(query, (instant, limit))
        removed.append(connection.changes())
    return removed
