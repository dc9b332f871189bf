"""Turns in PostgreSQL: which of a session's runs may go. Everything here happens inside the caller's transaction.

Nodes write at the same time, so whoever looks at a session's runs holds the session's lock, taken in a statement of
its own: the one that comes second then sees what the first one did. The writer takes the locks of a whole group first
and in one order (see writer.py), for all operations that name their sessions. Who finds them out on the way locks them
then, and may have to begin again if others do so at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.session import CONTINUES
from ostinato.stores.postgres.events import TOLD_BY, telling
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts
from ostinato.stores.sql.arrivals import remember

__all__ = [
    "FIND_LATE",
    "LATE",
    "TELL",
    "WAKE",
    "give_late_turns",
    "give_turns",
    "lock_sessions",
    "lock_sessions_of",
]

# Whoever counts a due time or gives a turn tells the engines, in the same transaction; nobody reads the answer.
WAKE = "SELECT pg_notify(left(current_schema(), 50) || '.changed', '')"
TELL = f"{WAKE} FROM (SELECT 1 FROM moved LIMIT 1) m"
_LOCK = """
SELECT pg_advisory_xact_lock(number) FROM (
    SELECT DISTINCT hashtextextended(current_schema() || '/' || session, 0) AS number FROM {} ORDER BY 1
) s
"""
_LOCK_SESSIONS = _LOCK.format("unnest(%s::text[]) k (session)")
_LOCK_SESSIONS_OF = _LOCK.format("runs WHERE id = ANY (%s::bigint[]) AND session IS NOT NULL")
LATE = "state = 'queued' AND waiting AND later"
"""Runs that queue up in their session only when they are ready."""
FIND_LATE = f"SELECT id, session FROM runs WHERE {LATE} AND ready_at <= %s LIMIT 1000"
# What goes alone: only when nothing is under way, and nothing goes beside it or past it. The text of its work is looked
# at only where more than one may go.
_CONTINUES = " OR ".join(f"position('{words}' IN work) > 0" for words in CONTINUES)
_ALONE = f"(mode = 'followup' OR (kind = 'agent' AND k.most > 1 AND ({_CONTINUES})))"
_TURN = f"""
WITH moved AS (
UPDATE runs SET waiting = false WHERE id = ANY (ARRAY(
    SELECT w.id FROM (
        SELECT k.session, CASE WHEN s.throttled THEN 1 ELSE coalesce(s.max_concurrent, 1) END AS most
        FROM unnest(%s::text[]) k (session) LEFT JOIN sessions s ON s.key = k.session
    ) k
    CROSS JOIN LATERAL (
        SELECT count(*) AS runs, coalesce(bool_or(alone), false) AS alone FROM (
            SELECT {_ALONE} AS alone FROM runs
            WHERE session = k.session AND NOT waiting AND state IN ('queued', 'running') LIMIT k.most
        ) in_turn
    ) u
    CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY id) AS place,
               count(*) FILTER (WHERE alone) OVER (ORDER BY id) AS alone
        FROM (
            SELECT id, {_ALONE} AS alone FROM runs
            WHERE session = k.session AND state = 'queued' AND waiting AND NOT later ORDER BY id LIMIT k.most - u.runs
        ) longest
    ) w
    WHERE NOT u.alone AND (w.alone = 0 OR (w.place = 1 AND u.runs = 0))
))
RETURNING 1
) {TELL}
"""
# Of runs that came with the transaction of somebody else nothing was told yet.
_TELL_ARRIVED = f"""
WITH arrived AS (
    SELECT {TOLD_BY} FROM runs r WHERE id = ANY (%s::bigint[]) AND trigger = 'api' AND mode IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM events e WHERE e.session = r.session AND e.run_id = r.id)
), told AS ({telling("%s", "'enqueued'", "arrived")})
SELECT DISTINCT session FROM arrived
"""


async def lock_sessions(connection: Connection, sessions: Iterable[str]) -> None:
    """Hold these sessions until the transaction ends."""
    wanted = sorted(set(sessions))
    if wanted:
        await connection.execute(_LOCK_SESSIONS, (texts(wanted),))


async def lock_sessions_of(connection: Connection, runs: Sequence[RunId]) -> None:
    """Hold the sessions that these runs are in."""
    await connection.execute(_LOCK_SESSIONS_OF, (numbers(runs),))


async def give_turns(connection: Connection, sessions: Iterable[str]) -> None:
    """In each session that has room, let the runs that wait longest go; the caller has locked them."""
    wanted = texts(sorted(set(sessions)))
    if wanted != "{}":
        await connection.execute(_TURN, (wanted,))


async def give_late_turns(connection: Connection, now: Micros, horizon: Micros) -> None:
    """Let runs that were put into a session ahead of their time queue up, now that it has come; and those that came
    with the transaction of somebody else, of which the session does not know yet."""
    rows = await fetch(connection, FIND_LATE, (horizon,))
    if rows:
        sessions = {session for _, session in rows}
        ids = numbers(sorted(id for id, _ in rows))
        await lock_sessions(connection, sessions)
        unknown = {session for (session,) in await fetch(connection, _TELL_ARRIVED, (ids, now))}
        if unknown:
            await remember(connection, dict.fromkeys(sorted(unknown), now))
        await connection.execute("UPDATE runs SET later = false WHERE id = ANY (%s::bigint[])", (ids,))
        await give_turns(connection, sessions)
