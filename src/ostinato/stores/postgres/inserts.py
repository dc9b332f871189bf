"""Rows into the ledger of PostgreSQL: one statement for a batch, in its order, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.errors import StoreUnavailable
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.models.session import STALE
from ostinato.models.states import ENDS, RunState
from ostinato.stores.postgres.commits import NOTE_INSERTED, Inserted, inserted
from ostinato.stores.postgres.ends import end_queued
from ostinato.stores.postgres.events import TOLD_BY, telling
from ostinato.stores.postgres.query import Connection, Row, booleans, fetch, numbers, texts
from ostinato.stores.postgres.turns import arrived, cut_off, give_turns, remember

__all__ = ["insert_all", "insert_fires", "let_in", "send_arrivals", "send_insert", "send_skipped"]

_COLUMNS = (
    "kind, task, work, policy, trigger, due_at, ready_at, lane, state, reason, schedule_id, last_due_at, count, "
    "priority, expires_at, session, waiting, mode, burst, later, key, project, finished_at"
)
_GIVEN = f"""
FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[], %s::text[],
    %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::boolean[],
    %s::text[], %s::boolean[], %s::boolean[], %s::text[], %s::text[], %s::bigint[]
) WITH ORDINALITY n ({_COLUMNS}, place) ORDER BY place
"""
_INSERT = f"INSERT INTO runs ({_COLUMNS}) SELECT {_COLUMNS} {_GIVEN}"
_INSERT_PLAIN = f"""
WITH arrived AS ({_INSERT} RETURNING id), noted AS MATERIALIZED ({NOTE_INSERTED} FROM arrived)
SELECT id FROM arrived, noted ORDER BY id
"""
_ARRIVE = f"""
WITH arrived AS ({_INSERT} RETURNING {TOLD_BY}), told AS ({telling("%s", "'enqueued'", "arrived")}),
noted AS MATERIALIZED ({NOTE_INSERTED} FROM arrived)
SELECT id FROM arrived, noted ORDER BY id
"""
_SKIP = f"""
WITH arrived AS (
    INSERT INTO runs ({_COLUMNS}, result) SELECT {_COLUMNS}, %s::text {_GIVEN} RETURNING id, session
), told AS (
    INSERT INTO events (at, kind, session, run_id, data)
    SELECT %s::bigint, %s::text, session, id, %s::text FROM arrived
), noted AS MATERIALIZED ({NOTE_INSERTED} FROM arrived)
SELECT id FROM arrived, noted
"""
_FIRE = f"{_INSERT} ON CONFLICT DO NOTHING"
_FIRE_AND_TELL = f"""
WITH fired AS ({_FIRE} RETURNING {TOLD_BY})
{telling("%s", "'enqueued'", "fired")}
"""
_ONE_FOR_EACH_KEY = """
ON CONFLICT (key) WHERE key IS NOT NULL AND state IN ('queued', 'running') DO NOTHING RETURNING id, key
"""
_KNOWN = "SELECT key, id FROM runs WHERE key = ANY (%s::text[]) AND state IN ('queued', 'running')"
_TRIES = 20


async def insert_fires(connection: Connection, runs: Sequence[NewRun], now: Micros) -> None:
    """Insert runs of due times; a due time that has its row already (a clock went back) gets no second one.

    The caller has locked their sessions.
    """
    mailboxes = {run.session for run in runs if run.session is not None and run.mode is not None}
    if mailboxes and (closed := await cut_off(connection, mailboxes, now)):
        rows = await fetch(connection, f"{_FIRE} RETURNING id", _values([run for run in runs if run.session in closed]))
        await end_queued(connection, [RunId(id) for (id,) in rows], RunState.SKIPPED, STALE, now)
        runs = [run for run in runs if run.session not in closed]
        mailboxes -= closed
    if not runs:
        return
    if mailboxes:
        for run in runs:
            run.later = run.mode is not None and run.ready_at > now
        await remember(connection, dict.fromkeys(mailboxes, now))
        await connection.execute(_FIRE_AND_TELL, (*_values(runs), now))
    else:
        await connection.execute(_FIRE, _values(runs))
    await give_turns(connection, {run.session for run in runs if run.session is not None})


async def let_in(connection: Connection, session: str, ids: Sequence[RunId], now: Micros) -> None:
    """Runs were put into a session of people's by something that began at this instant: let them queue up, unless it is
    too late. The caller has locked the session."""
    if await cut_off(connection, [session], now):
        await end_queued(connection, ids, RunState.SKIPPED, STALE, now)
    else:
        await arrived(connection, {session: now}, ids, now)


async def send_insert(connection: Connection, runs: Sequence[NewRun]) -> Inserted:
    """Insert rows without a key."""
    return await _send(connection, _INSERT_PLAIN, _values(runs))


async def send_arrivals(connection: Connection, runs: Sequence[NewRun], now: Micros) -> Inserted:
    """Insert rows without a key into the queues of sessions, and tell it."""
    return await _send(connection, _ARRIVE, (*_values(runs), now))


async def send_skipped(
    connection: Connection, run: NewRun, now: Micros, kind: EventKind, data: object, result: str | None = None
) -> Inserted:
    """Insert the row of a message that gets no run of its own, and tell it."""
    said = msgspec.json.encode(data).decode()
    return await _send(connection, _SKIP, (result, *_values([run]), now, kind, said))


async def _send(connection: Connection, query: str, values: tuple[Any, ...]) -> Inserted:
    """Send an insert that notes its ids; they are read after the commit."""
    made = Inserted(await connection.execute(query, values))
    inserted.get().append(made)
    return made


async def insert_all(connection: Connection, runs: Sequence[NewRun]) -> list[RunId]:
    """Insert rows. Where a key is active already, the answer is that run's id."""
    if not any(run.key is not None for run in runs):
        return await (await send_insert(connection, runs)).ids()
    ids: dict[int, RunId] = {}
    keys: dict[str, RunId] = {}
    places = list(enumerate(runs))
    for _ in range(_TRIES):
        rows = await fetch(connection, _INSERT + _ONE_FOR_EACH_KEY, _values([run for _, run in places]))
        plain = iter([RunId(id) for id, key in rows if key is None])
        keys.update((key, RunId(id)) for id, key in rows if key is not None)
        missing = {run.key for _, run in places if run.key is not None} - keys.keys()
        if missing:
            keys.update(_as_keys(await fetch(connection, _KNOWN, (texts(sorted(missing)),))))
        for place, run in places:
            found = next(plain) if run.key is None else keys.get(run.key)
            if found is not None:
                ids[place] = found
        places = [(place, run) for place, run in places if place not in ids]
        if not places:
            return [ids[place] for place in range(len(runs))]
        # The run that held the key ended between the two statements: it is free now.
    raise StoreUnavailable(f"the key {places[0][1].key!r} changes hands too fast; it is tried again")


def _as_keys(rows: Sequence[Row]) -> dict[str, RunId]:
    return {key: RunId(id) for key, id in rows}


def _values(runs: Sequence[NewRun]) -> tuple[Any, ...]:
    return (
        texts([run.kind for run in runs]),
        texts([run.task for run in runs]),
        texts([run.work for run in runs]),
        texts([run.policy for run in runs]),
        texts([run.trigger for run in runs]),
        numbers([run.due_at for run in runs]),
        numbers([run.ready_at for run in runs]),
        texts([run.lane for run in runs]),
        texts([run.state for run in runs]),
        texts([run.reason for run in runs]),
        numbers([run.schedule_id for run in runs]),
        numbers([run.last_due_at for run in runs]),
        numbers([run.count for run in runs]),
        numbers([run.priority for run in runs]),
        numbers([run.expires_at for run in runs]),
        texts([run.session for run in runs]),
        booleans([run.waiting for run in runs]),
        texts([run.mode for run in runs]),
        booleans([run.burst for run in runs]),
        booleans([run.later for run in runs]),
        texts([run.key for run in runs]),
        texts([run.project for run in runs]),
        numbers([run.ready_at if run.state in ENDS else None for run in runs]),
    )
