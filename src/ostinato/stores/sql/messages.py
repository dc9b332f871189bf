"""Messages into sessions, inside the caller's transaction; what comes of each is read after the commit.

Called by sessions.py, which has named them to the writer. Only claims do not ask for their locks: a queued run that has
its turn may start between two statements, so each write looks at the state once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

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
from ostinato.stores.sql.arrivals import cutoffs_of, remember
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.connection import Answer, Connection
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.events import note, note_runs
from ostinato.stores.sql.parts import Inserted, Parts
from ostinato.stores.sql.turns import IN_TURN, WAITING

__all__ = ["send_all"]

C = TypeVar("C", bound=Connection)

_COLUMNS = "id, mode, trigger, ready_at, due_at, state, burst, later, token"
_ACTIVE = f"""
SELECT {_COLUMNS} FROM runs WHERE {WAITING}
UNION ALL
SELECT {_COLUMNS} FROM runs WHERE {IN_TURN}
"""
_NEWEST = f"""
SELECT {_COLUMNS} FROM runs WHERE id = (SELECT max(id) FROM (
    SELECT max(id) AS id FROM runs WHERE {WAITING} AND later = FALSE
    UNION ALL
    SELECT max(id) FROM runs WHERE {IN_TURN} AND state = 'queued'
) newest)
"""
_CUTOFF = "SELECT (SELECT cutoff_at FROM sessions WHERE key = :key) AS cutoff_at"
_LOOK = f"SELECT c.cutoff_at, a.* FROM ({_CUTOFF}) c LEFT JOIN ({_ACTIVE}) a ON true ORDER BY a.id"
_LOOK_AT_NEWEST = f"SELECT c.cutoff_at, a.* FROM ({_CUTOFF}) c LEFT JOIN ({_NEWEST}) a ON true"
_KNOWN = "SELECT id, cause, result FROM runs WHERE key = :key AND key_scope = :scope"
_MOST_TRACES = 8_000
"""How many characters the traces of a burst may have: those of about a hundred messages."""
# To the end of the work's text, if it begins as that of the message does: the same task, or the same agent. Another
# policy makes another run: a budget must hold for what it was given for.
_JOIN = """
UPDATE runs SET work = substr(work, 1, length(work) - length(:end::text)) || :between::text || :payload::text
                       || :end::text,
                ready_at = :closes_at,
                trace = CASE WHEN length(trace) > :most THEN trace
                             ELSE coalesce(trace || :line::text || :trace::text, trace, :trace::text) END
WHERE id = :id AND state = 'queued' AND burst AND substr(work, 1, length(:head::text)) = :head::text
  AND project IS NOT DISTINCT FROM :project::text AND policy = :policy::text RETURNING id
"""


class _Active(NamedTuple):
    """A run of a session that has not ended: _COLUMNS."""

    id: RunId
    mode: str | None
    trigger: str
    ready_at: Micros
    due_at: Micros
    state: str
    burst: bool
    later: bool
    token: int


async def send_all(db: C, parts: Parts[C], messages: Sequence[Message], now: Micros) -> Answer[list[Sent]]:
    """Put messages into their sessions, in order."""
    if _are_plain(messages):
        answers = await _send_plain(db, parts, messages, now)
    else:
        answers = [await _send(db, parts, message, now) for message in messages]

    async def answer() -> list[Sent]:
        return [await one() for one in answers]

    return answer


async def _send(db: C, parts: Parts[C], message: Message, now: Micros) -> Answer[Sent]:
    key = message.key
    known, cutoff, active = await _look(db, message)
    if known is not None:
        return _said(known)
    if is_stale(message.sent_at, cutoff, now):
        return _with_id(await _send_stale(db, parts, message, now), Delivery.STALE)
    await remember(db, {key: message.sent_at}, message.max_concurrent)
    into = await _join(db, message, active, now)
    cancelled: Sequence[RunId] = ()
    if message.mode is Mode.INTERRUPT:
        # All but the burst that it has joined.
        cancelled = await _interrupt(db, parts, [run.id for run in active if run.id != into], now)
        active = []
    if into is not None:
        skipped = skipped_message(message, debounced(into), now)
        await parts.send_skipped(db, skipped, now, EventKind.DEBOUNCED, {"into": into}, carrier_text(into))
        await parts.give_turns(db, [key])
        return _said(Sent(Delivery.DEBOUNCED, into, cancelled=cancelled))
    dropped = await _make_room(db, parts, message, active, now)
    if dropped is None:
        await note(db, EventKind.DROPPED, key, now, reason=REFUSED)
        await parts.give_turns(db, [key])
        return _said(Sent(Delivery.REFUSED, None))
    if message.sent_at < now:
        await remember(db, {key: now})
    run = queued_message(message, now)
    if run.key is not None:
        (id,) = await parts.insert_all(db, [run])
        await note_runs(db, EventKind.ENQUEUED, [id], now)
        await parts.give_turns(db, [key])
        return _said(Sent(Delivery.QUEUED, id, dropped, cancelled))
    inserted = await parts.send_arrivals(db, [run], now)
    await parts.give_turns(db, [key])
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


async def _send_plain(db: C, parts: Parts[C], messages: Sequence[Message], now: Micros) -> list[Answer[Sent]]:
    """Many messages that only queue, in as few statements as one takes."""
    latest: dict[str, Micros] = {}
    for message in messages:
        latest[message.key] = max(message.sent_at, now, latest.get(message.key, now))
    cutoffs = await cutoffs_of(db, latest)
    if any(is_stale(message.sent_at, cutoffs.get(message.key), now) for message in messages):
        return [await _send(db, parts, message, now) for message in messages]
    await remember(db, latest)
    inserted = await parts.send_arrivals(db, [queued_message(message, now) for message in messages], now)
    await parts.give_turns(db, latest)

    def sent(place: int) -> Answer[Sent]:
        async def answer() -> Sent:
            return Sent(Delivery.QUEUED, (await inserted.ids())[place])

        return answer

    return [sent(place) for place in range(len(messages))]


async def _look(db: Connection, message: Message) -> tuple[Sent | None, Micros | None, list[_Active]]:
    """What became of the same message, the cutoff, and the session's runs, so far as they matter.

    The same message is found by its key: for good if it is one, else while the run is active.
    """
    if message.run.key is not None:
        found = "mode IS NOT NULL" if message.joinable is not None else "state IN ('queued', 'running')"
        of = {"key": message.run.key, "scope": message.run.key_scope}
        known = await db.fetch(f"{_KNOWN} AND {found} LIMIT 1", of)
        if known:
            return known_message(*known[0]), None, []
    query = _CUTOFF
    if message.mode is Mode.INTERRUPT or message.cap is not None:
        query = _LOOK
    elif message.debounce > 0:
        query = _LOOK_AT_NEWEST
    rows = await db.fetch(query, {"key": message.key})
    return None, rows[0][0], [_Active(*row[1:]) for row in rows if len(row) > 1 and row[1] is not None]


async def _send_stale(db: C, parts: Parts[C], message: Message, now: Micros) -> Inserted:
    skipped = skipped_message(message, STALE, now)
    said = {"state": skipped.state, "attempt": 0, "cause": skipped.cause, "reason": skipped.reason}
    return await parts.send_skipped(db, skipped, now, EventKind.DROPPED, said)


async def _join(db: Connection, message: Message, active: Sequence[_Active], now: Micros) -> RunId | None:
    """Add the payload to the open burst at the end of the queue, if there is one; answers its run."""
    queue = [run for run in active if run.state == RunState.QUEUED and not run.later]
    if not message.debounce or message.joinable is None or not queue:
        return None
    newest = queue[-1]
    if not newest.burst or not message.joins(newest.mode, newest.ready_at, now):
        return None
    closes_at = message.closes_at(newest.due_at, now)
    of_run = {"id": newest.id, "project": message.run.project, "policy": message.run.policy, "closes_at": closes_at}
    of_trace = {"trace": message.run.trace, "line": "\n", "most": _MOST_TRACES}
    rows = await db.fetch(_JOIN, {**message.joinable._asdict(), **of_run, **of_trace})
    return newest.id if rows else None


async def _interrupt(db: C, parts: Parts[C], ids: Sequence[RunId], now: Micros) -> Sequence[RunId]:
    """End what is queued and stop what is under way; answers the latter."""
    return (await cancel_now(db, parts, ids, INTERRUPTED, now)).asked


async def _make_room(
    db: C, parts: Parts[C], message: Message, active: Sequence[_Active], now: Micros
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
    return (await end_queued(db, parts, queue[:excess], DROPPED, now)).ids
