"""Upkeep in PostgreSQL: what retention removes, and what `ostinato db status` and `db check` show."""

from __future__ import annotations

from collections.abc import Callable

from ostinato.clock import Micros
from ostinato.errors import StoreError
from ostinato.models.states import ACTIVE
from ostinato.stores.access_rows import REQUEST_KEPT
from ostinato.stores.invariants import INVARIANTS, broken
from ostinato.stores.postgres.database import MIGRATIONS, Database, schema_version
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers
from ostinato.stores.retention import AUDIT_KEPT, EVENTS_KEPT, NODE_KEPT, TOKEN_KEPT, keep_of, old_day, past_age
from ostinato.stores.upkeep import PruneCursor, Pruned, Remark, Status

__all__ = ["PostgresUpkeep"]

_TRIM = """
DELETE FROM runs WHERE id = ANY (ARRAY(
    SELECT r.id FROM unnest(%s::bigint[], %s::bigint[]) k (schedule_id, count)
    CROSS JOIN LATERAL (
        SELECT id FROM runs WHERE schedule_id = k.schedule_id ORDER BY id DESC LIMIT 1 OFFSET k.count
    ) oldest
    JOIN runs r ON r.schedule_id = k.schedule_id AND r.id <= oldest.id AND r.state NOT IN ('queued', 'running')
))
"""
_OLD_EVENTS = """
DELETE FROM events WHERE id = ANY (ARRAY(SELECT id FROM events WHERE at < %s ORDER BY at LIMIT %s)) RETURNING 1
"""
_IDLE_SESSIONS = """
DELETE FROM sessions WHERE sent_at < %(past)s AND key = ANY (ARRAY(
    SELECT key FROM sessions s WHERE sent_at < %(past)s AND coalesce(cutoff_at, 0) < %(past)s
      AND NOT EXISTS (SELECT 1 FROM runs WHERE session = s.key AND state = 'queued' AND waiting)
      AND NOT EXISTS (SELECT 1 FROM runs WHERE session = s.key AND NOT waiting AND state IN ('queued', 'running'))
    ORDER BY sent_at LIMIT %(limit)s
)) RETURNING 1
"""
_OLD_SPENDING = """
DELETE FROM spending s USING (SELECT schedule_id, day FROM spending WHERE day < %s ORDER BY day LIMIT %s) old
WHERE s.schedule_id = old.schedule_id AND s.day = old.day RETURNING 1
"""
# Each with the instant before which they go.
_OLD_ACCESS = (
    "DELETE FROM login_codes WHERE hash = ANY (ARRAY(SELECT hash FROM login_codes WHERE expires_at <= %s LIMIT %s))",
    "DELETE FROM logins WHERE hash = ANY (ARRAY(SELECT hash FROM logins WHERE expires_at <= %s LIMIT %s))",
    "DELETE FROM tokens WHERE id = ANY (ARRAY(SELECT id FROM tokens WHERE expires_at <= %s LIMIT %s))",
    "DELETE FROM requests r USING (SELECT who, key FROM requests WHERE begun_at <= %s LIMIT %s) old "
    "WHERE r.who = old.who AND r.key = old.key",
    "DELETE FROM audit WHERE id = ANY (ARRAY(SELECT id FROM audit WHERE at < %s ORDER BY at LIMIT %s))",
)
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'
"""


class PostgresUpkeep:
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
        query = "SELECT id, finished_at, policy, state FROM runs WHERE id > %s ORDER BY id LIMIT %s"
        rows = await self._database.read(lambda connection: fetch(connection, query, (cursor.run, limit)))
        old = past_age(((row[0], row[1], row[2]) for row in rows if row[3] not in ACTIVE), now)
        removed = await self._delete(old) if old else 0
        through = len(rows) < limit
        return Pruned(removed, cursor=PruneCursor(run=rows[-1][0] if rows else cursor.run, runs_done=through))

    async def _prune_by_count(self, cursor: PruneCursor, limit: int) -> Pruned:
        query = "SELECT id, policy FROM schedules WHERE id > %s ORDER BY id LIMIT %s"
        rows = await self._database.read(lambda connection: fetch(connection, query, (cursor.schedule, limit)))
        counts = {id: count for id, policy in rows if (count := keep_of(policy).count) is not None}

        async def trim(connection: Connection) -> Pruned:
            kept = (numbers(counts), numbers(counts.values()))
            removed = len(await fetch(connection, _TRIM + " RETURNING id", kept))
            last = rows[-1][0] if rows else cursor.schedule
            through = len(rows) < limit
            return Pruned(removed, cursor=PruneCursor(cursor.run, last, runs_done=True, schedules_done=through))

        return await self._database.write(trim, once=False)

    async def _prune_rest(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        past = now - EVENTS_KEPT

        async def remove(connection: Connection) -> Pruned:
            events = await fetch(connection, _OLD_EVENTS, (past, limit))
            sessions = await fetch(connection, _IDLE_SESSIONS, {"past": past, "limit": limit})
            spending = await fetch(connection, _OLD_SPENDING, (old_day(now), limit))
            access = await _prune_access(connection, now, limit)
            if limit in (len(events), len(sessions), len(spending), *access):
                return Pruned(cursor=cursor)
            await connection.execute("DELETE FROM commits WHERE at < %s", (now - NODE_KEPT,))
            nodes = await fetch(connection, "DELETE FROM nodes WHERE lost_at < %s RETURNING id", (now - NODE_KEPT,))
            return Pruned(nodes=len(nodes))

        return await self._database.write(remove, once=False)

    async def _delete(self, ids: list[int]) -> int:
        query = "DELETE FROM runs WHERE id = ANY (%s::bigint[]) RETURNING id"
        rows = await self._database.write(lambda connection: fetch(connection, query, (numbers(ids),)), once=False)
        return len(rows)

    async def status(self) -> Status:
        server = self._database.server

        async def look(connection: Connection) -> Status:
            return Status(
                url=server.shown,
                version=await schema_version(connection, server.schema),
                latest=MIGRATIONS[-1].version,
                size_bytes=await fetch_value(connection, _SIZE, (server.schema,)),
                schedules=await fetch_value(connection, "SELECT count(*) FROM schedules"),
                runs=dict(await fetch(connection, "SELECT state, count(*) FROM runs GROUP BY state ORDER BY state")),
            )

        return await self._database.read(look)

    async def remarks(self) -> list[Remark]:
        return []

    async def check(self) -> list[str]:
        async def look(connection: Connection) -> list[str]:
            found = []
            version = await schema_version(connection, self._database.server.schema)
            if version != MIGRATIONS[-1].version:
                found.append(f"it is at version {version}, not {MIGRATIONS[-1].version}: run 'ostinato db migrate'")
            for text, query in INVARIANTS:
                found += broken(text, await fetch(connection, query))
            return found

        return await self._database.read(look)

    async def back_up(self, target: str, told: Callable[[int, int], None], *, overwrite: bool) -> int:
        schema, url = self._database.server.schema, self._database.server.shown
        raise StoreError(
            f"'ostinato db backup' copies SQLite files; copy a PostgreSQL database with "
            f"'pg_dump --schema={schema} --file={target} {url}'"
        )


async def _prune_access(connection: Connection, now: Micros, limit: int) -> list[int]:
    """Remove what of access and audit is past its time; answers how many of each."""
    past = (now, now, now - TOKEN_KEPT, now - REQUEST_KEPT, now - AUDIT_KEPT)
    return [
        len(await fetch(connection, f"{query} RETURNING 1", (instant, limit)))
        for query, instant in zip(_OLD_ACCESS, past, strict=True)
    ]
