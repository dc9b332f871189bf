"""Turns in SQLite: which of a session's runs may go. Everything here happens inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ostinato.clock import Micros
from ostinato.models.session import CONTINUES
from ostinato.stores.sqlite.query import Connection, fetch, fetch_value

__all__ = ["give_late_turns", "give_turns"]

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
_CONTINUES = " OR ".join(f"instr(work, '{words}') > 0" for words in CONTINUES)
_ALONE = f"(mode = 'followup' OR (kind = 'agent' AND ({_CONTINUES})))"
_UNDER_WAY = f"""
SELECT coalesce({_ALONE}, 0) FROM runs WHERE session = ? AND waiting = 0 AND state IN ('queued', 'running')
"""
_WAITING = f"""
SELECT id, coalesce({_ALONE}, 0) FROM runs
WHERE session = ? AND waiting = 1 AND later = 0 AND state IN ('queued', 'running') ORDER BY id LIMIT ?
"""
_LATE = "state = 'queued' AND waiting = 1 AND later = 1"
_COME = f"UPDATE runs SET later = 0 WHERE {_LATE} AND ready_at <= ? RETURNING session"
_NEXT_LATE = f"SELECT min(ready_at) FROM runs WHERE {_LATE}"


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
    """Turns for a session with room for more than one, unless one of them goes alone."""
    under_way = fetch(connection, _UNDER_WAY, (session,))
    if len(under_way) >= limit or (1,) in under_way:
        return
    turn: list[int] = []
    for id, alone in fetch(connection, _WAITING, (session, limit - len(under_way))):
        if alone and (under_way or turn):
            break
        turn.append(id)
        if alone:
            break
    connection.execute(
        "UPDATE runs SET waiting = 0 WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(turn).decode(),),
    )
