"""Sessions: messages in (see messages.py), sessions stopped or throttled (throttle.py), read, and their events.

Whatever changes a session names it to the writer, which holds its lock until the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros
from ostinato.models.event import Event, EventKind
from ostinato.models.ids import RunId
from ostinato.models.run import ClaimedRun
from ostinato.models.session import STOPPED, Message, Sent, Session, Stopped
from ostinato.stores.rows import EVENT_COLUMNS, load_all, load_event, load_session
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.connection import Connection, Database, Dialect
from ostinato.stores.sql.events import note
from ostinato.stores.sql.messages import send_all
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.throttle import hold_back_now, throttled_among, unthrottle_now
from ostinato.stores.sql.turns import IN_TURN, WAITING

__all__ = ["Sessions"]

C = TypeVar("C", bound=Connection)

_ACTIVE = f"""
SELECT id FROM runs WHERE {WAITING}
UNION ALL
SELECT id FROM runs WHERE {IN_TURN}
ORDER BY id
"""
_OLDEST = f"SELECT min(id) FROM runs WHERE {IN_TURN} AND cancel IS NULL"
_CUT_OFF = """
INSERT INTO sessions AS s (key, cutoff_at, sent_at) VALUES (:key, :now, :now)
ON CONFLICT (key) DO UPDATE SET
    cutoff_at = CASE WHEN s.cutoff_at > excluded.cutoff_at THEN s.cutoff_at ELSE excluded.cutoff_at END
"""
_SETTINGS = (
    "SELECT s.key, s.max_concurrent, s.throttled, s.cutoff_at, s.sent_at, s.cost, s.tokens_in, s.tokens_out, s.turns, "
    "s.context_used, s.context_window"
)
_OF_SESSION = "FROM runs WHERE session = s.key AND state IN ('queued', 'running')"
_BUSY: dict[Dialect, str] = {
    "sqlite": f"EXISTS (SELECT 1 {_OF_SESSION})",
    "postgres": "t.running + t.queued + w.queued > 0",
}
_SEARCH: dict[Dialect, str] = {
    "sqlite": "instr(lower(s.key), lower(:search)) > 0",
    "postgres": 'position(lower(:search::text COLLATE "C") IN lower(s.key)) > 0',
}
_SESSIONS: dict[Dialect, str] = {
    "sqlite": f"""
        {_SETTINGS}, (SELECT count(*) {_OF_SESSION} AND state = 'running'),
               (SELECT count(*) {_OF_SESSION} AND state = 'queued'),
               (SELECT min(due_at) {_OF_SESSION} AND state = 'queued' AND later = FALSE)
        FROM sessions s""",
    "postgres": f"""
        {_SETTINGS}, t.running, t.queued + w.queued, least(t.oldest_at, w.oldest_at)
        FROM sessions s
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE state = 'running') AS running,
                   count(*) FILTER (WHERE state = 'queued') AS queued,
                   min(due_at) FILTER (WHERE state = 'queued') AS oldest_at
            FROM runs WHERE session = s.key AND NOT waiting AND state IN ('queued', 'running')
        ) t
        CROSS JOIN LATERAL (
            SELECT count(*) AS queued, min(due_at) FILTER (WHERE NOT later) AS oldest_at FROM runs
            WHERE session = s.key AND state = 'queued' AND waiting
        ) w""",
}


class Sessions(Generic[C]):
    """Answers stores.sessions.SessionStore."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    async def send(self, messages: Sequence[Message], now: Micros) -> list[Sent]:
        if not messages:
            return []
        sessions = {message.key for message in messages}
        return await self._database.send(
            lambda db: send_all(db, self._parts, messages, now), wakes=True, sessions=sessions
        )

    async def stop(self, key: str, *, everything: bool, now: Micros, by: str | None = None) -> Stopped:
        async def stop(db: C) -> Stopped:
            ids = await self._stopped(db, key, now) if everything else await _oldest(db, key)
            if ids is None:
                return Stopped()
            done = await cancel_now(db, self._parts, ids, STOPPED, now, by) if ids else None
            stopped = Stopped() if done is None else Stopped(cancelled=len(done.asked), dropped=len(done.ended))
            await note(db, EventKind.STOPPED, key, now, cancelled=stopped.cancelled, dropped=stopped.dropped)
            return stopped

        return await self._database.write(stop, wakes=True, sessions=[key])

    async def hold_back(self, claimed: Sequence[ClaimedRun], now: Micros) -> list[RunId]:
        sessions = {run.session for run in claimed if run.session is not None}
        # Done twice, it asks anew about what it left claimed.
        return await self._database.write(
            lambda db: hold_back_now(db, self._parts, claimed, now), wakes=True, once=False, sessions=sessions
        )

    async def unthrottle(self, sessions: Sequence[str]) -> None:
        # Asked at each start, and seldom anything to do: a look takes no lock.
        throttled = await self._database.read(lambda db: throttled_among(db, sessions))
        if throttled:
            await self._database.write(
                lambda db: unthrottle_now(db, self._parts, throttled), wakes=True, once=False, sessions=throttled
            )

    async def get_session(self, key: str) -> Session | None:
        def query(db: C) -> Any:
            return db.fetch(f"{_SESSIONS[db.dialect]} WHERE s.key = :key", {"key": key})

        rows: list[Any] = await self._database.read(query)
        return load_session(rows[0]) if rows else None

    async def list_sessions(self, search: str | None, busy: bool, limit: int) -> list[Session]:
        def query(db: C) -> Any:
            where = _SEARCH[db.dialect] + (f" AND {_BUSY[db.dialect]}" if busy else "")
            listed = f"{_SESSIONS[db.dialect]} WHERE {where} ORDER BY s.sent_at DESC, s.key LIMIT :limit"
            return db.fetch(listed, {"search": search or "", "limit": limit})

        return load_all(load_session, await self._database.read(query))

    async def list_events(self, session: str | None, after: int, limit: int, *, newest: bool = False) -> list[Event]:
        of_session = "" if session is None else "AND session = :session"
        order = "DESC" if newest else "ASC"
        query = f"""
            SELECT {EVENT_COLUMNS} FROM events WHERE id > :after AND id <= :last {of_session}
            ORDER BY id {order} LIMIT :limit"""

        async def look(db: C) -> list[tuple[Any, ...]]:
            last = await self._parts.last_event(db)
            return await db.fetch(query, {"session": session, "after": after, "last": last, "limit": limit})

        rows = await self._database.read(look)
        return load_all(load_event, reversed(rows) if newest else rows)

    async def _stopped(self, db: C, key: str, now: Micros) -> list[RunId]:
        """Cut the session off; answers everything that is in it."""
        await db.run(_CUT_OFF, {"key": key, "now": now})
        return [RunId(id) for (id,) in await db.fetch(_ACTIVE, {"key": key})]


async def _oldest(db: Connection, key: str) -> list[RunId] | None:
    """The oldest run that has its turn, if there is one; None if nobody has used the session."""
    if not await db.fetch("SELECT 1 FROM sessions WHERE key = :key", {"key": key}):
        return None
    oldest = await db.fetch_value(_OLDEST, {"key": key})
    return [] if oldest is None else [RunId(oldest)]
