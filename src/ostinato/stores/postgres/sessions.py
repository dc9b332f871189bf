"""Messages into sessions of PostgreSQL; the rest is in stores.sql.sessions. Neighbours: turns.py and events.py.

Whatever changes a session names it to the writer, which holds its lock until the commit. Only claims do not ask for
it: a queued run that has its turn may start between two statements, so each write looks at the state once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import PAYLOADS_END
from ostinato.stores.postgres.commits import Inserted
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.inserts import insert_all, send_arrivals, send_skipped
from ostinato.stores.postgres.parts import PARTS
from ostinato.stores.postgres.query import Connection, fetch
from ostinato.stores.postgres.turns import give_turns
from ostinato.stores.postgres.writer import Answer
from ostinato.stores.sql.arrivals import cutoffs_of, remember
from ostinato.stores.sql.cancels import tell_to_stop
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.events import note, note_runs
from ostinato.stores.sql.sessions import Sessions

__all__ = ["PostgresSessions"]

# By two indexes, as everywhere: what waits for its turn, and what has it.
_WAITING = "session = %(key)s AND state = 'queued' AND waiting"
_IN_TURN = "session = %(key)s AND NOT waiting AND state IN ('queued', 'running')"
_ACTIVE_COLUMNS = "id, task, mode, trigger, ready_at, due_at, state, burst, later, token"
_ACTIVE = f"""
SELECT {_ACTIVE_COLUMNS} FROM runs WHERE {_WAITING}
UNION ALL
SELECT {_ACTIVE_COLUMNS} FROM runs WHERE {_IN_TURN}
ORDER BY id
"""
_CUTOFF = "SELECT (SELECT cutoff_at FROM sessions WHERE key = %(key)s)"
_LOOK = f"SELECT c.cutoff_at, a.* FROM ({_CUTOFF}) c LEFT JOIN ({_ACTIVE}) a ON true ORDER BY a.id"
_JOIN = f"""
UPDATE runs SET work = left(work, -{len(PAYLOADS_END)}) || ',' || %s::text || '{PAYLOADS_END}', ready_at = %s
WHERE id = %s AND state = 'queued' AND burst RETURNING id
"""


class _Active(NamedTuple):
    """A run of a session that has not ended: _ACTIVE_COLUMNS."""

    id: RunId
    task: str | None
    mode: str | None
    trigger: str
    ready_at: Micros
    due_at: Micros
    state: str
    burst: bool
    later: bool
    token: int


class PostgresSessions(Sessions[Connection]):
    """Answers stores.sessions.SessionStore."""

    _database: Database

    async def send(self, messages: Sequence[Message], now: Micros) -> list[Sent]:
        async def send(connection: Connection) -> Answer[list[Sent]]:
            if _are_plain(messages):
                answers = await _send_plain(connection, messages, now)
            else:
                answers = [await _send(connection, message, now) for message in messages]

            async def answer() -> list[Sent]:
                return [await one() for one in answers]

            return answer

        if not messages:
            return []
        sessions = {message.key for message in messages}
        return await self._database.send(send, wakes=True, sessions=sessions)


async def _send(connection: Connection, message: Message, now: Micros) -> Answer[Sent]:
    key = message.key
    known, cutoff, active = await _look(connection, message)
    if known is not None:
        return _said(known)
    if is_stale(message.sent_at, cutoff, now):
        return _with_id(await _send_stale(connection, message, now), Delivery.STALE)
    await remember(connection, {key: message.sent_at}, message.max_concurrent, message.throttled)
    into = await _join(connection, message, active, now)
    cancelled: Sequence[RunId] = ()
    if message.mode is Mode.INTERRUPT:
        # All but the burst that it has joined.
        cancelled = await _interrupt(connection, [run.id for run in active if run.id != into], now)
        active = []
    if into is not None:
        skipped = skipped_message(message, debounced(into), now)
        await send_skipped(connection, skipped, now, EventKind.DEBOUNCED, {"into": into}, carrier_text(into))
        await give_turns(connection, [key])
        return _said(Sent(Delivery.DEBOUNCED, into, cancelled=cancelled))
    dropped = await _make_room(connection, message, active, now)
    if dropped is None:
        await note(connection, EventKind.DROPPED, key, now, reason=REFUSED)
        await give_turns(connection, [key])
        return _said(Sent(Delivery.REFUSED, None))
    if message.sent_at < now:
        await remember(connection, {key: now})
    run = queued_message(message, now)
    if run.key is not None:
        (id,) = await insert_all(connection, [run])
        await note_runs(connection, EventKind.ENQUEUED, [id], now)
        await give_turns(connection, [key])
        return _said(Sent(Delivery.QUEUED, id, dropped, cancelled))
    inserted = await send_arrivals(connection, [run], now)
    await give_turns(connection, [key])
    return _with_id(inserted, Delivery.QUEUED, dropped, cancelled)


def _said(sent: Sent) -> Answer[Sent]:
    async def answer() -> Sent:
        return sent

    return answer


def _with_id(
    inserted: Inserted,
    delivery: Delivery,
    dropped: Sequence[RunId] = (),
    cancelled: Sequence[RunId] = (),
) -> Answer[Sent]:
    """An answer whose id is read after the commit."""

    async def answer() -> Sent:
        (id,) = await inserted.ids()
        return Sent(delivery, id, dropped, cancelled)

    return answer


def _are_plain(messages: Sequence[Message]) -> bool:
    """Whether they only queue: nothing to look up but the cutoff, and no setting of their sessions."""
    return all(m == Message(m.run, m.sent_at) and m.run.key is None for m in messages)


async def _send_plain(connection: Connection, messages: Sequence[Message], now: Micros) -> list[Answer[Sent]]:
    """Many messages that only queue, in as few statements as one takes."""
    latest: dict[str, Micros] = {}
    for message in messages:
        latest[message.key] = max(message.sent_at, now, latest.get(message.key, now))
    cutoffs = await cutoffs_of(connection, latest)
    if any(is_stale(message.sent_at, cutoffs.get(message.key), now) for message in messages):
        return [await _send(connection, message, now) for message in messages]
    await remember(connection, latest)
    inserted = await send_arrivals(connection, [queued_message(message, now) for message in messages], now)
    await give_turns(connection, latest)

    def sent(place: int) -> Answer[Sent]:
        async def answer() -> Sent:
            return Sent(Delivery.QUEUED, (await inserted.ids())[place])

        return answer

    return [sent(place) for place in range(len(messages))]


async def _look(connection: Connection, message: Message) -> tuple[Sent | None, Micros | None, list[_Active]]:
    """What became of the same message, the cutoff, and the session's runs, so far as they matter.

    The same message is found by its key: for good if it has a payload, else while it is active.
    """
    if message.run.key is not None:
        found = "mode IS NOT NULL" if message.payload is not None else "state IN ('queued', 'running')"
        known = await fetch(
            connection,
            f"SELECT id, state, reason, result FROM runs WHERE key = %s AND {found} LIMIT 1",
            (message.run.key,),
        )
        if known:
            return known_message(*known[0]), None, []
    looks = message.mode is Mode.INTERRUPT or message.cap is not None or message.debounce > 0
    rows = await fetch(connection, _LOOK if looks else _CUTOFF, {"key": message.key})
    return None, rows[0][0], [_Active(*row[1:]) for row in rows if looks and row[1] is not None]


async def _send_stale(connection: Connection, message: Message, now: Micros) -> Inserted:
    skipped = skipped_message(message, STALE, now)
    said = {"state": skipped.state, "attempt": 0, "reason": skipped.reason}
    return await send_skipped(connection, skipped, now, EventKind.DROPPED, said)


async def _join(connection: Connection, message: Message, active: Sequence[_Active], now: Micros) -> RunId | None:
    """Add the payload to the open burst at the end of the queue, if there is one; answers its run."""
    queue = [run for run in active if run.state == RunState.QUEUED and not run.later]
    if not message.debounce or message.payload is None or not queue:
        return None
    newest = queue[-1]
    if not newest.burst or not message.joins(newest.task, newest.mode, newest.ready_at, now):
        return None
    rows = await fetch(connection, _JOIN, (message.payload, message.closes_at(newest.due_at, now), newest.id))
    return newest.id if rows else None


async def _interrupt(connection: Connection, ids: Sequence[RunId], now: Micros) -> Sequence[RunId]:
    """End what is queued and stop what is under way; answers the latter."""
    await end_queued(connection, PARTS, ids, RunState.SUPERSEDED, INTERRUPTED, now)
    return await tell_to_stop(connection, ids, INTERRUPTED)


async def _make_room(
    connection: Connection, message: Message, active: Sequence[_Active], now: Micros
) -> Sequence[RunId] | None:
    """Drop the oldest of a full queue; None when it is the new message that has to go."""
    if message.cap is None:
        return ()
    never_started = (RunState.QUEUED, Trigger.MESSAGE, 0)
    queue = [run.id for run in active if (run.state, run.trigger, run.token) == never_started]
    excess = len(queue) - message.cap + 1
    if excess <= 0:
        return ()
    if message.drop is Drop.NEW:
        return None
    return await end_queued(connection, PARTS, queue[:excess], RunState.SKIPPED, DROPPED, now)
