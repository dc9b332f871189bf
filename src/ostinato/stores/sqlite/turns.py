"""Turns in SQLite: which of a session's runs may go. Everything here happens inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.models.session import Mode, is_stale
from ostinato.stores.sqlite.events import note_runs
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value

__all__ = ["arrived", "give_late_turns", "give_turns", "is_cut_off", "remember"]

_REMEMBER = """
INSERT INTO sessions (key, max_concurrent, throttled, sent_at) VALUES (?1, coalesce(?2, 1), coalesce(?3, 0), ?4)
ON CONFLICT (key) DO UPDATE SET max_concurrent = coalesce(?2, max_concurrent), throttled = coalesce(?3, throttled),
                                sent_at = max(sent_at, ?4)
"""
# One statement for all sessions where one goes at a time.
_TURN = """
UPDATE runs SET waiting = 0 WHERE id IN (
    SELECT (SELECT min(id) FROM runs
            WHERE session = k.value AND waiting = 1 AND later = 0 AND state IN ('queued', 'running'))
    FROM json_each(?) k WHERE NOT EXISTS (
        SELECT 1 FROM runs WHERE session = k.value AND waiting = 0 AND state IN ('queued', 'running')
    )
)
"""
_WIDE = """
SELECT key, max_concurrent FROM sessions
WHERE key IN (SELECT value FROM json_each(?)) AND max_concurrent > 1 AND NOT throttled
"""
_LATE = "state = 'queued' AND waiting = 1 AND later = 1"
_COME = f"UPDATE runs SET later = 0 WHERE {_LATE} AND ready_at <= ? RETURNING session"
_NEXT_LATE = f"SELECT min(ready_at) FROM runs WHERE {_LATE}"


def remember(
    connection: Connection,
    session: str,
    sent_at: Micros,
    max_concurrent: int | None = None,
    throttled: bool | None = None,
) -> None:
    """Make a session be there, with these settings; None leaves what was said last."""
    connection.execute(_REMEMBER, (session, max_concurrent, throttled, sent_at))


def is_cut_off(connection: Connection, session: str, sent_at: Micros, now: Micros) -> bool:
    """Whether the session was stopped after this instant, at which something was sent, or began to be put into it."""
    rows = fetch(connection, "SELECT cutoff_at FROM sessions WHERE key = ?", (session,))
    return bool(rows) and is_stale(sent_at, rows[0][0], now)


def arrived(connection: Connection, session: str, ids: Sequence[RunId], now: Micros) -> None:
    """Runs were put into a session's queue: tell it, and give turns if there is room."""
    if note_runs(connection, EventKind.ENQUEUED, ids, now):
        remember(connection, session, now)
    give_turns(connection, [session])


def give_turns(connection: Connection, sessions: Iterable[str]) -> None:
    """In each session that has room, let the runs that wait longest go."""
    names = list(sessions)
    if not names:
        return
    wide = dict(fetch(connection, _WIDE, (msgspec.json.encode(names).decode(),)))
    for session, limit in wide.items():
        _give_several(connection, session, limit)
    narrow = [session for session in names if session not in wide]
    if narrow:
        connection.execute(_TURN, (msgspec.json.encode(narrow).decode(),))


def give_late_turns(connection: Connection, horizon: Micros) -> Micros | None:
    """Let runs that were put into a session ahead of their time queue up when it comes; answers when the next does."""
    rows = fetch(connection, _COME, (horizon,))
    if rows:
        give_turns(connection, {session for (session,) in rows})
    next_at: Micros | None = fetch_value(connection, _NEXT_LATE)
    return next_at


def _give_several(connection: Connection, session: str, limit: int) -> None:
    """Turns for a session with room for more than one; a followup goes alone."""
    under_way = fetch(
        connection,
        "SELECT mode FROM runs WHERE session = ? AND waiting = 0 AND state IN ('queued', 'running')",
        (session,),
    )
    if len(under_way) >= limit or (Mode.FOLLOWUP,) in under_way:
        return
    waiting = fetch(
        connection,
        "SELECT id, mode FROM runs WHERE session = ? AND waiting = 1 AND later = 0 AND state IN ('queued', 'running') "
        "ORDER BY id LIMIT ?",
        (session, limit - len(under_way)),
    )
    turn: list[int] = []
    for id, mode in waiting:
        if mode == Mode.FOLLOWUP and (under_way or turn):
            break
        turn.append(id)
        if mode == Mode.FOLLOWUP:
            break
    connection.execute(
        "UPDATE runs SET waiting = 0 WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(turn).decode(),),
    )
