"""Sessions in SQLite: messages in, sessions stopped, both read. Neighbours: turns.py gives turns, events.py tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.event import Event, EventKind
from ostinato.models.ids import RunId
from ostinato.models.run import INTERRUPTED
from ostinato.models.session import (
    DROPPED,
    REFUSED,
    STALE,
    STOPPED,
    Delivery,
    Drop,
    Message,
    Mode,
    Sent,
    Session,
    Stopped,
    carrier_text,
    debounced,
    known_message,
    queued_message,
    skipped_message,
)
from ostinato.models.states import RunState
from ostinato.models.work import PAYLOADS_END
from ostinato.stores.rows import EVENT_COLUMNS, load_all, load_event, load_session
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.ends import end_queued
from ostinato.stores.sqlite.events import note, note_runs
from ostinato.stores.sqlite.inserts import insert_all
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value
from ostinato.stores.sqlite.runs import cancel_now, tell_to_stop
from ostinato.stores.sqlite.turns import arrived, give_turns, is_cut_off, remember

__all__ = ["SqliteSessions"]

_ACTIVE = "session = ? AND state IN ('queued', 'running')"
# The newest in the queue, of those that wait and of those that have their turn: a seek for each.
_NEWEST = f"""
SELECT id, task, mode, ready_at, due_at FROM runs WHERE id = max(
    coalesce((SELECT max(id) FROM runs WHERE {_ACTIVE} AND waiting = 1 AND later = 0), 0),
    coalesce((SELECT max(id) FROM runs WHERE {_ACTIVE} AND waiting = 0 AND state = 'queued'), 0)
) AND burst = 1
"""
_JOIN = f"""
UPDATE runs SET work = substr(work, 1, length(work) - {len(PAYLOADS_END)}) || ',' || ? || '{PAYLOADS_END}', ready_at = ?
WHERE id = ?
"""
_OF_SESSION = "FROM runs WHERE session = s.key AND state IN ('queued', 'running')"
_COUNTED = f"""
SELECT s.key, s.max_concurrent, s.throttled, s.cutoff_at, s.sent_at,
       (SELECT count(*) {_OF_SESSION} AND state = 'running'), (SELECT count(*) {_OF_SESSION} AND state = 'queued'),
       (SELECT min(due_at) {_OF_SESSION} AND state = 'queued' AND later = 0)
"""


class SqliteSessions:
    """Answers stores.sessions.SessionStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, messages: Sequence[Message], now: Micros) -> list[Sent]:
        def send(connection: Connection) -> list[Sent]:
            return [_send(connection, message, now) for message in messages]

        return await self._database.submit(send, wakes=True)

    async def stop(self, key: str, *, everything: bool, now: Micros) -> Stopped:
        def stop(connection: Connection) -> Stopped:
            stopped = _stop_all(connection, key, now) if everything else _stop_oldest(connection, key, now)
            if stopped is None:
                return Stopped()
            note(connection, EventKind.STOPPED, key, now, cancelled=stopped.cancelled, dropped=stopped.dropped)
            return stopped

        return await self._database.submit(stop, wakes=True)

    async def get_session(self, key: str) -> Session | None:
        query = f"{_COUNTED} FROM sessions s WHERE s.key = ?"
        rows = await self._database.query(lambda connection: fetch(connection, query, (key,)))
        return load_session(rows[0]) if rows else None

    async def list_sessions(self, search: str | None, busy: bool, limit: int) -> list[Session]:
        where = "instr(lower(s.key), lower(?)) > 0"
        if busy:
            where += " AND EXISTS (SELECT 1 FROM runs WHERE session = s.key AND state IN ('queued', 'running'))"
        query = f"{_COUNTED} FROM sessions s WHERE {where} ORDER BY s.sent_at DESC, s.key LIMIT ?"
        rows = await self._database.query(lambda connection: fetch(connection, query, (search or "", limit)))
        return load_all(load_session, rows)

    async def list_events(self, session: str | None, after: int, limit: int, *, newest: bool = False) -> list[Event]:
        where, values = ("session = ? AND id > ?", [session, after]) if session is not None else ("id > ?", [after])
        order = "DESC" if newest else "ASC"
        query = f"SELECT {EVENT_COLUMNS} FROM events WHERE {where} ORDER BY id {order} LIMIT ?"
        rows = await self._database.query(lambda connection: fetch(connection, query, [*values, limit]))
        return load_all(load_event, reversed(rows) if newest else rows)


def _send(connection: Connection, message: Message, now: Micros) -> Sent:
    key = message.key
    if (known := _known(connection, message)) is not None:
        return known
    if is_cut_off(connection, key, message.sent_at, now):
        id = _insert_skipped(connection, message, STALE, now)
        note_runs(connection, EventKind.DROPPED, [id], now)
        return Sent(Delivery.STALE, id)
    remember(connection, key, message.sent_at, message.max_concurrent, message.throttled)
    into = _join(connection, message, now)
    cancelled: Sequence[RunId] = ()
    if message.mode is Mode.INTERRUPT:
        cancelled = _interrupt(connection, key, into, now)
    if into is not None:
        id = _insert_skipped(connection, message, debounced(into), now, carried_by=into)
        note(connection, EventKind.DEBOUNCED, key, now, id, into=into)
        give_turns(connection, [key])
        return Sent(Delivery.DEBOUNCED, into, cancelled=cancelled)
    dropped = _make_room(connection, message, now)
    if dropped is None:
        note(connection, EventKind.DROPPED, key, now, reason=REFUSED)
        give_turns(connection, [key])
        return Sent(Delivery.REFUSED, None)
    (id,) = insert_all(connection, [queued_message(message, now)])
    arrived(connection, key, [id], now)
    return Sent(Delivery.QUEUED, id, dropped, cancelled)


def _known(connection: Connection, message: Message) -> Sent | None:
    """What became of the same message, by its key: for good of one with a payload, else while it is active."""
    key = message.run.key
    if key is None:
        return None
    found = "mode IS NOT NULL" if message.payload is not None else "state IN ('queued', 'running')"
    rows = fetch(connection, f"SELECT id, state, reason, result FROM runs WHERE key = ? AND {found} LIMIT 1", (key,))
    return known_message(*rows[0]) if rows else None


def _insert_skipped(
    connection: Connection, message: Message, reason: str, now: Micros, carried_by: RunId | None = None
) -> RunId:
    """The row of a message that gets no run of its own."""
    (id,) = insert_all(connection, [skipped_message(message, reason, now)])
    if carried_by is not None:
        connection.execute("UPDATE runs SET result = ? WHERE id = ?", (carrier_text(carried_by), id))
    return id


def _join(connection: Connection, message: Message, now: Micros) -> RunId | None:
    """Add the payload to the open burst at the end of the queue, if there is one; answers its run."""
    if not message.debounce or message.payload is None:
        return None
    for id, task, mode, ready_at, due_at in fetch(connection, _NEWEST, (message.key, message.key)):
        if message.joins(task, mode, ready_at, now):
            connection.execute(_JOIN, (message.payload, message.closes_at(due_at, now), id))
            return RunId(id)
    return None


def _interrupt(connection: Connection, key: str, joined: RunId | None, now: Micros) -> Sequence[RunId]:
    """End what is queued, but for the burst that the message has joined, and stop what is under way."""
    rows = fetch(connection, f"SELECT id FROM runs WHERE {_ACTIVE} ORDER BY id", (key,))
    ids = [RunId(id) for (id,) in rows if id != joined]
    end_queued(connection, ids, RunState.SUPERSEDED, INTERRUPTED, now)
    return tell_to_stop(connection, ids, INTERRUPTED)


def _make_room(connection: Connection, message: Message, now: Micros) -> Sequence[RunId] | None:
    """Drop the oldest of a full queue; None when it is the new message that has to go."""
    if message.cap is None:
        return ()
    never_started = "state = 'queued' AND trigger = 'message' AND token = 0"
    rows = fetch(connection, f"SELECT id FROM runs WHERE {_ACTIVE} AND {never_started} ORDER BY id", (message.key,))
    excess = len(rows) - message.cap + 1
    if excess <= 0:
        return ()
    if message.drop is Drop.NEW:
        return None
    return end_queued(connection, [RunId(id) for (id,) in rows[:excess]], RunState.SKIPPED, DROPPED, now)


def _stop_oldest(connection: Connection, key: str, now: Micros) -> Stopped | None:
    if not fetch(connection, "SELECT 1 FROM sessions WHERE key = ?", (key,)):
        return None
    query = f"SELECT min(id) FROM runs WHERE {_ACTIVE} AND waiting = 0 AND cancel IS NULL"
    oldest = fetch_value(connection, query, (key,))
    if oldest is None:
        return Stopped()
    done = cancel_now(connection, [RunId(oldest)], STOPPED, now)
    return Stopped(cancelled=len(done.asked), dropped=len(done.ended))


def _stop_all(connection: Connection, key: str, now: Micros) -> Stopped:
    connection.execute(
        "INSERT INTO sessions (key, cutoff_at, sent_at) VALUES (?1, ?2, ?2) "
        "ON CONFLICT (key) DO UPDATE SET cutoff_at = max(coalesce(cutoff_at, 0), ?2)",
        (key, now),
    )
    rows: list[Any] = fetch(connection, f"SELECT id FROM runs WHERE {_ACTIVE} ORDER BY id", (key,))
    done = cancel_now(connection, [RunId(id) for (id,) in rows], STOPPED, now)
    return Stopped(cancelled=len(done.asked), dropped=len(done.ended))
