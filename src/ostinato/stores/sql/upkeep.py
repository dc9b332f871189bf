"""Upkeep: what retention removes, and what `ostinato db status` and `db check` show of the rows.

What each database knows of itself (its size, its damage, its copies) is in its own upkeep.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros
from ostinato.models.states import ACTIVE
from ostinato.stores.invariants import INVARIANTS, broken
from ostinato.stores.retention import (
    AUDIT_KEPT,
    DELIVERIES_KEPT,
    EVENTS_KEPT,
    INCIDENTS_KEPT,
    NODE_KEPT,
    OUTBOX_IDS_KEPT,
    TOKEN_KEPT,
    keep_of,
    old_day,
    past_age,
)
from ostinato.stores.sql.access import REQUEST_KEPT
from ostinato.stores.sql.connection import Connection, Database, Dialect
from ostinato.stores.sql.run_relations import IS_READ
from ostinato.stores.upkeep import PruneCursor, Pruned, Status

__all__ = ["Upkeep"]

C = TypeVar("C", bound=Connection)

_NEXT_RUNS = "SELECT id, finished_at, policy, state FROM runs WHERE id > :after ORDER BY id LIMIT :limit"
_NEXT_SCHEDULES = "SELECT id, policy FROM schedules WHERE id > :after ORDER BY id LIMIT :limit"
_DELETE_RUNS = f"DELETE FROM runs WHERE id = ANY (:ids::bigint[]) AND NOT ({IS_READ.format('runs')}) RETURNING id"
_TRIM = f"""
DELETE FROM runs WHERE id = ANY (ARRAY(
    SELECT r.id FROM unnest(:ids::bigint[], :counts::bigint[]) k (schedule_id, count)
    CROSS JOIN LATERAL (
        SELECT id FROM runs WHERE schedule_id = k.schedule_id ORDER BY id DESC LIMIT 1 OFFSET k.count
    ) oldest
    JOIN runs r ON r.schedule_id = k.schedule_id AND r.id <= oldest.id AND r.state NOT IN ('queued', 'running')
                AND NOT ({IS_READ.format("r")})
)) RETURNING id
"""
_TRIM_ONE = f"""
DELETE FROM runs WHERE schedule_id = :id AND state NOT IN ('queued', 'running') AND id <=
    (SELECT id FROM runs WHERE schedule_id = :id ORDER BY id DESC LIMIT 1 OFFSET :count)
    AND NOT ({IS_READ.format("runs")}) RETURNING id
"""
_OLD_EVENTS = """
DELETE FROM events WHERE id = ANY (ARRAY(SELECT id FROM events WHERE at < :past ORDER BY at LIMIT :limit)) RETURNING 1
"""
_IDLE_SESSIONS = """
DELETE FROM sessions WHERE sent_at < :past AND key = ANY (ARRAY(
    SELECT key FROM sessions s WHERE sent_at < :past AND coalesce(cutoff_at, 0) < :past
      AND NOT EXISTS (SELECT 1 FROM runs WHERE session = s.key AND state = 'queued' AND waiting = TRUE)
      AND NOT EXISTS (SELECT 1 FROM runs WHERE session = s.key AND waiting = FALSE AND state IN ('queued', 'running'))
    ORDER BY sent_at LIMIT :limit
)) RETURNING 1
"""
_OLD_SPENDING: dict[Dialect, str] = {
    "sqlite": """
        DELETE FROM {table} WHERE ({owner}, day) IN
            (SELECT {owner}, day FROM {table} WHERE day < :past ORDER BY day LIMIT :limit) RETURNING 1""",
    "postgres": """
        DELETE FROM {table} s
        USING (SELECT {owner}, day FROM {table} WHERE day < :past ORDER BY day LIMIT :limit) old
        WHERE s.{owner} = old.{owner} AND s.day = old.day RETURNING 1""",
}
_OLD_REQUESTS: dict[Dialect, str] = {
    "sqlite": """
        DELETE FROM requests WHERE (who, key) IN
            (SELECT who, key FROM requests WHERE begun_at <= :past LIMIT :limit) RETURNING 1""",
    "postgres": """
        DELETE FROM requests r USING (SELECT who, key FROM requests WHERE begun_at <= :past LIMIT :limit) old
        WHERE r.who = old.who AND r.key = old.key RETURNING 1""",
}
_EXPIRED = """
DELETE FROM {table} WHERE {key} = ANY (ARRAY(SELECT {key} FROM {table} WHERE expires_at <= :past LIMIT :limit))
RETURNING 1
"""
_OLD_AUDIT = """
DELETE FROM audit WHERE id = ANY (ARRAY(SELECT id FROM audit WHERE at < :past ORDER BY at LIMIT :limit)) RETURNING 1
"""
_OLD_DELIVERIES = """
DELETE FROM deliveries WHERE id = ANY (ARRAY(
    SELECT id FROM deliveries WHERE at < :past AND state NOT IN ('pending', 'sending') ORDER BY at LIMIT :limit
)) RETURNING 1
"""
# With what was told of them.
_OLD_INCIDENTS = """
DELETE FROM incidents WHERE id = ANY (ARRAY(
    SELECT id FROM incidents WHERE closed_at < :past ORDER BY closed_at LIMIT :limit
)) RETURNING 1
"""
_OLD_OUTBOX_IDS = """
DELETE FROM outbox_ids WHERE id = ANY (ARRAY(
    SELECT id FROM outbox_ids WHERE at < :past ORDER BY at LIMIT :limit
)) RETURNING 1
"""
_LOST_NODES = "DELETE FROM nodes WHERE lost_at < :past RETURNING id"
_STATES = "SELECT state, count(*) FROM runs GROUP BY state ORDER BY state"


class Upkeep(ABC, Generic[C]):
    """What of stores.upkeep.UpkeepStore is the same for every store."""

    latest: int
    """The last migration there is."""

    def __init__(self, database: Database[C]) -> None:
        self._database = database

    @abstractmethod
    async def _version(self, db: C) -> int: ...

    @abstractmethod
    async def _size(self, db: C) -> tuple[str, int]:
        """Where the database is, for people, and how many bytes it has."""

    async def prune(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        if not cursor.runs_done:
            return await self._prune_by_age(now, cursor, limit)
        if not cursor.schedules_done:
            return await self._prune_by_count(cursor, limit)
        return await self._database.write(lambda db: _prune_rest(db, now, cursor, limit), once=False)

    async def _prune_by_age(self, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
        rows = await self._database.read(lambda db: db.fetch(_NEXT_RUNS, {"after": cursor.run, "limit": limit}))
        old = past_age(((row[0], row[1], row[2]) for row in rows if row[3] not in ACTIVE), now)
        removed = 0
        if old:
            removed = len(await self._database.write(lambda db: db.fetch(_DELETE_RUNS, {"ids": old}), once=False))
        through = len(rows) < limit
        return Pruned(removed, cursor=PruneCursor(run=rows[-1][0] if rows else cursor.run, runs_done=through))

    async def _prune_by_count(self, cursor: PruneCursor, limit: int) -> Pruned:
        after = {"after": cursor.schedule, "limit": limit}
        rows = await self._database.read(lambda db: db.fetch(_NEXT_SCHEDULES, after))
        counts = {id: count for id, policy in rows if (count := keep_of(policy).count) is not None}
        removed = await self._database.write(lambda db: _trim(db, counts), once=False)
        last = rows[-1][0] if rows else cursor.schedule
        through = len(rows) < limit
        return Pruned(removed, cursor=PruneCursor(cursor.run, last, runs_done=True, schedules_done=through))

    async def status(self) -> Status:
        async def look(db: C) -> Status:
            url, size = await self._size(db)
            schedules = await db.fetch_value("SELECT count(*) FROM schedules")
            runs: list[Any] = await db.fetch(_STATES)
            return Status(url, await self._version(db), self.latest, size, schedules, dict(runs))

        return await self._database.read(look)

    async def _wrong(self, db: C) -> list[str]:
        """What of the rows breaks what must hold."""
        found = []
        version = await self._version(db)
        if version != self.latest:
            found.append(f"it is at version {version}, not {self.latest}: run 'ostinato db migrate'")
        for text, query in INVARIANTS:
            found += broken(text, await db.fetch(query))
        return found


async def _trim(db: Connection, counts: Mapping[int, int]) -> int:
    """Remove what each of these schedules has more than so many of; answers how many runs."""
    if db.dialect == "postgres":
        return len(await db.fetch(_TRIM, {"ids": list(counts), "counts": list(counts.values())}))
    return sum([len(await db.fetch(_TRIM_ONE, {"id": id, "count": count})) for id, count in counts.items()])


async def _prune_rest(db: Connection, now: Micros, cursor: PruneCursor, limit: int) -> Pruned:
    """What is no run: events, sessions, budgets, access, the audit log, what was told; at last lost nodes."""
    removed = [
        len(await db.fetch(query, {"past": past, "limit": limit}))
        for query, past in (
            (_OLD_EVENTS, now - EVENTS_KEPT),
            (_IDLE_SESSIONS, now - EVENTS_KEPT),
            (_OLD_SPENDING[db.dialect].format(table="spending", owner="schedule_id"), old_day(now)),
            (_OLD_SPENDING[db.dialect].format(table="session_spending", owner="session"), old_day(now)),
            (_EXPIRED.format(table="login_codes", key="hash"), now),
            (_EXPIRED.format(table="logins", key="hash"), now),
            (_EXPIRED.format(table="tokens", key="id"), now - TOKEN_KEPT),
            (_OLD_REQUESTS[db.dialect], now - REQUEST_KEPT),
            (_OLD_AUDIT, now - AUDIT_KEPT),
            (_OLD_DELIVERIES, now - DELIVERIES_KEPT),
            (_OLD_INCIDENTS, now - INCIDENTS_KEPT),
            (_OLD_OUTBOX_IDS, now - OUTBOX_IDS_KEPT),
        )
    ]
    if limit in removed:
        return Pruned(cursor=cursor)
    if db.dialect == "postgres":
        await db.run("DELETE FROM commits WHERE at < :past", {"past": now - NODE_KEPT})
    return Pruned(nodes=len(await db.fetch(_LOST_NODES, {"past": now - NODE_KEPT})))
