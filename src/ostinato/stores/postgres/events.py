"""Events of runs in PostgreSQL: recorded in the transaction of what they tell, read by whoever follows them.

Ids are given out before the commit, and nodes commit in any order: who follows the events by their ids must not be
shown one while an earlier one is still on its way, or would never see that. Every transaction that records one holds
its lock on the table until it ends, so a reader can see who is on the way, and holds nobody up.
"""

from __future__ import annotations

import asyncio

from ostinato.stores.postgres.query import Connection, fetch, fetch_value

__all__ = ["TOLD_BY", "last_event", "telling"]

TOLD_BY = "id, session, mode, state, attempt, cause, reason"
"""The columns of a run that its event is made of."""


def telling(at: str, kind: str, runs: str) -> str:
    """SQL that records one event for each of these rows of runs, as it is now, that is in a user session."""
    return f"""
    INSERT INTO events (at, kind, session, run_id, data)
    SELECT {at}::bigint, {kind}::text, session, id,
           json_build_object('state', state, 'attempt', attempt, 'cause', cause, 'reason', reason)::text
    FROM {runs} WHERE mode IS NOT NULL ORDER BY id"""


# Whoever has recorded events and not committed yet; a claim counts too, since it may.
_ON_THE_WAY = """
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'events'::regclass AND mode = 'RowExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_LOOK_AGAIN_SECONDS = 0.005
_LOOKS = 200
"""A node that freezes in the middle of its transaction is not waited for without end."""


async def last_event(connection: Connection) -> int:
    """The number of the last event before which all are there."""
    last: int = await fetch_value(connection, "SELECT last_value FROM events_id_seq")
    on_the_way = set(await fetch(connection, _ON_THE_WAY))
    for _ in range(_LOOKS):
        if not on_the_way:
            break
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        on_the_way &= set(await fetch(connection, _ON_THE_WAY))
    return last
