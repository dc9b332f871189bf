"""Messages into sessions of SQLite; the rest is in stores.sql.sessions. Neighbours: turns.py and events.py."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.models.run import INTERRUPTED
from ostinato.models.session import (
    DROPPED,
    REFUSED,
    STALE,
    Delivery,
    Drop,
    Message,
    Mode,
    Sent,
    carrier_text,
    debounced,
    is_stale,
    known_message,
    queued_message,
    skipped_message,
)
from ostinato.models.states import RunState
from ostinato.models.work import PAYLOADS_END
from ostinato.stores.sql.arrivals import cutoffs_of, remember
from ostinato.stores.sql.cancels import tell_to_stop
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.events import note, note_runs
from ostinato.stores.sql.sessions import Sessions
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.inserts import insert_all
from ostinato.stores.sqlite.parts import PARTS
from ostinato.stores.sqlite.query import Connection, fetch
from ostinato.stores.sqlite.turns import give_turns

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


class SqliteSessions(Sessions[Connection]):
    """Answers stores.sessions.SessionStore."""

    _database: Database

    async def send(self, messages: Sequence[Message], now: Micros) -> list[Sent]:
        async def send(connection: Connection) -> list[Sent]:
            return [await _send(connection, message, now) for message in messages]

        return await self._database.write(send, wakes=True)


async def _send(connection: Connection, message: Message, now: Micros) -> Sent:
    key = message.key
    if (known := await _known(connection, message)) is not None:
        return known
    if is_stale(message.sent_at, (await cutoffs_of(connection, [key])).get(key), now):
        id = await _insert_skipped(connection, message, STALE, now)
        await note_runs(connection, EventKind.DROPPED, [id], now)
        return Sent(Delivery.STALE, id)
    await remember(connection, {key: message.sent_at}, message.max_concurrent, message.throttled)
    into = await _join(connection, message, now)
    cancelled: Sequence[RunId] = ()
    if message.mode is Mode.INTERRUPT:
        cancelled = await _interrupt(connection, key, into, now)
    if into is not None:
        id = await _insert_skipped(connection, message, debounced(into), now, carried_by=into)
        await note(connection, EventKind.DEBOUNCED, key, now, id, into=into)
        give_turns(connection, [key])
        return Sent(Delivery.DEBOUNCED, into, cancelled=cancelled)
    dropped = await _make_room(connection, message, now)
    if dropped is None:
        await note(connection, EventKind.DROPPED, key, now, reason=REFUSED)
        give_turns(connection, [key])
        return Sent(Delivery.REFUSED, None)
    (id,) = insert_all(connection, [queued_message(message, now)])
    await remember(connection, {key: now})
    await note_runs(connection, EventKind.ENQUEUED, [id], now)
    give_turns(connection, [key])
    return Sent(Delivery.QUEUED, id, dropped, cancelled)


async def _known(connection: Connection, message: Message) -> Sent | None:
    """What became of the same message, by its key: for good of one with a payload, else while it is active."""
    key = message.run.key
    if key is None:
        return None
    found = "mode IS NOT NULL" if message.payload is not None else "state IN ('queued', 'running')"
    rows = fetch(connection, f"SELECT id, state, reason, result FROM runs WHERE key = ? AND {found} LIMIT 1", (key,))
    return known_message(*rows[0]) if rows else None


async def _insert_skipped(
    connection: Connection, message: Message, reason: str, now: Micros, carried_by: RunId | None = None
) -> RunId:
    """The row of a message that gets no run of its own."""
    (id,) = insert_all(connection, [skipped_message(message, reason, now)])
    if carried_by is not None:
        connection.execute("UPDATE runs SET result = ? WHERE id = ?", (carrier_text(carried_by), id))
    return id


async def _join(connection: Connection, message: Message, now: Micros) -> RunId | None:
    """Add the payload to the open burst at the end of the queue, if there is one; answers its run."""
    if not message.debounce or message.payload is None:
        return None
    for id, task, mode, ready_at, due_at in fetch(connection, _NEWEST, (message.key, message.key)):
        if message.joins(task, mode, ready_at, now):
            connection.execute(_JOIN, (message.payload, message.closes_at(due_at, now), id))
            return RunId(id)
    return None


async def _interrupt(connection: Connection, key: str, joined: RunId | None, now: Micros) -> Sequence[RunId]:
    """End what is queued, but for the burst that the message has joined, and stop what is under way."""
    rows = fetch(connection, f"SELECT id FROM runs WHERE {_ACTIVE} ORDER BY id", (key,))
    ids = [RunId(id) for (id,) in rows if id != joined]
    await end_queued(connection, PARTS, ids, RunState.SUPERSEDED, INTERRUPTED, now)
    return await tell_to_stop(connection, ids, INTERRUPTED)


async def _make_room(connection: Connection, message: Message, now: Micros) -> Sequence[RunId] | None:
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
    return await end_queued(connection, PARTS, [RunId(id) for (id,) in rows[:excess]], RunState.SKIPPED, DROPPED, now)
