"""Rows into the ledger of PostgreSQL: one statement for a batch, in its order, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.errors import KeyBusy, StoreUnavailable
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, RunIds
from ostinato.models.run import NewRun
from ostinato.models.states import RunState
from ostinato.stores.postgres.commits import NOTE_INSERTED, Inserted, inserted
from ostinato.stores.postgres.events import TOLD_BY, telling
from ostinato.stores.postgres.query import Connection, Row, booleans, fetch, numbers, texts

__all__ = [
    "KeyedInsert",
    "insert_all",
    "insert_due",
    "insert_due_and_tell",
    "insert_due_late",
    "send_arrivals",
    "send_insert",
    "send_skipped",
    "take_keys",
]


class _Columns:
    """Some columns of runs: how a statement names them, and what it is given for them."""

    def __init__(self, types: dict[str, str]) -> None:
        self.names = ", ".join(types)
        self._arrays = [(_LITERALS[type], attrgetter(name)) for name, type in types.items()]
        arrays = ", ".join(f"%s::{type}[]" for type in types.values())
        self.given = f"FROM unnest({arrays}) WITH ORDINALITY n ({self.names}, place) ORDER BY place"
        self.insert = f"INSERT INTO runs ({self.names}) SELECT {self.names} {self.given}"

    def values(self, runs: Sequence[NewRun]) -> tuple[Any, ...]:
        """One array for each column."""
        return tuple([literal(list(map(get, runs))) for literal, get in self._arrays])


_LITERALS: dict[str, Callable[[list[Any]], str | None]] = {"text": texts, "bigint": numbers, "boolean": booleans}
_OF_ALL = {
    "kind": "text",
    "task": "text",
    "work": "text",
    "policy": "text",
    "trigger": "text",
    "due_at": "bigint",
    "ready_at": "bigint",
    "lane": "text",
    "priority": "bigint",
    "project": "text",
    "state": "text",
}
_COLUMNS = _Columns(
    _OF_ALL
    | {
        "cause": "text",
        "reason": "text",
        "schedule_id": "bigint",
        "last_due_at": "bigint",
        "count": "bigint",
        "expires_at": "bigint",
        "session": "text",
        "waiting": "boolean",
        "mode": "text",
        "burst": "boolean",
        "later": "boolean",
        "key": "text",
        "key_scope": "text",
        "trace": "text",
        "started_by": "text",
        "finished_at": "bigint",
        "followed": "boolean",
    }
)
_PLAIN = _Columns(_OF_ALL)
"""What there is to say of work in the background: it is half of the columns, and they come by the thousand."""
_INSERT = _COLUMNS.insert
_ADD = """
WITH arrived AS ({insert} RETURNING id), noted AS MATERIALIZED ({note} FROM arrived)
SELECT id FROM arrived, noted ORDER BY id
"""
_INSERT_ANY = _ADD.format(insert=_INSERT, note=NOTE_INSERTED)
_INSERT_PLAIN = _ADD.format(insert=_PLAIN.insert, note=NOTE_INSERTED)
_ARRIVE = f"""
WITH arrived AS ({_INSERT} RETURNING {TOLD_BY}), told AS ({telling("%s", "'enqueued'", "arrived")}),
noted AS MATERIALIZED ({NOTE_INSERTED} FROM arrived)
SELECT id FROM arrived, noted ORDER BY id
"""
_SKIP = f"""
WITH arrived AS (
    INSERT INTO runs ({_COLUMNS.names}, result) SELECT {_COLUMNS.names}, %s::text {_COLUMNS.given}
    RETURNING id, session
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
ON CONFLICT (key, key_scope) WHERE key IS NOT NULL AND state IN ('queued', 'running') DO NOTHING
RETURNING id, key, key_scope
"""
# A key that the open transaction of a caller has inserted could only be waited for, and the writer waits for nobody.
# So both take a lock of the key first: nodes share it, and a caller has it alone until his transaction ends.
_KEY_LOCKS = int.from_bytes(b"okey")
_TRY_KEYS = f"""
SELECT key FROM unnest(%s::text[], %s::text[]) k (key, key_scope)
WHERE NOT pg_try_advisory_xact_lock_shared({_KEY_LOCKS}, hashtext(current_schema() || '.' || key_scope || '.' || key))
"""
_TAKE_KEYS = f"""
SELECT pg_advisory_xact_lock({_KEY_LOCKS}, hashtext(%s || '.' || key_scope || '.' || key))::text
FROM (SELECT key, key_scope FROM unnest(%s::text[], %s::text[]) k (key, key_scope) ORDER BY key, key_scope) keys
"""
_TRIES = 20
_Fetch = Callable[[str, Sequence[Any]], Awaitable[Sequence[Row]]]
_Key = tuple[str, str | None]
"""A key, and where it is unique."""


class KeyedInsert:
    """Inserts rows into a table of runs, of which some may have a key that is active already.

    With a channel, its listeners are told by the statement that inserts.
    """

    def __init__(self, table: str = "runs", channel: str | None = None) -> None:
        self._insert = _INSERT.replace("INTO runs", f"INTO {table}", 1) + _ONE_FOR_EACH_KEY
        self._told: tuple[str, ...] = ()
        if channel is not None:
            self._insert = f"""
            WITH arrived AS ({self._insert}), told AS MATERIALIZED (SELECT pg_notify(%s, ''))
            SELECT id, key, key_scope FROM arrived, told ORDER BY id"""
            self._told = (channel,)
        self._known = f"""
            SELECT key, key_scope, id FROM {table}
            WHERE (key, key_scope) IN (SELECT * FROM unnest(%s::text[], %s::text[]))
              AND key IS NOT NULL AND state IN ('queued', 'running')"""

    async def insert_all(self, fetch: _Fetch, runs: Sequence[NewRun]) -> RunIds:
        """Where a key is active already in its scope, the answer is that run's id."""
        ids: dict[int, RunId] = {}
        keys: dict[_Key, RunId] = {}
        known: set[RunId] = set()
        places = list(enumerate(runs))
        for _ in range(_TRIES):
            rows = await fetch(self._insert, (*_COLUMNS.values([run for _, run in places]), *self._told))
            plain = iter([RunId(id) for id, key, _ in rows if key is None])
            keys.update(((key, scope), RunId(id)) for id, key, scope in rows if key is not None)
            missing = _keys([run for _, run in places]) - keys.keys()
            if missing:
                there = {(key, scope): RunId(id) for key, scope, id in await fetch(self._known, _arrays(missing))}
                known.update(there.values())
                keys.update(there)
            for place, run in places:
                found = next(plain) if run.key is None else keys.get((run.key, run.key_scope))
                if found is not None:
                    ids[place] = found
            places = [(place, run) for place, run in places if place not in ids]
            if not places:
                return RunIds([ids[place] for place in range(len(runs))], known)
            # The run that held the key ended between the two statements: it is free now.
        raise StoreUnavailable(f"the key {places[0][1].key!r} changes owners too fast; it is tried again")


_KEYED = KeyedInsert()


async def insert_due(connection: Connection, runs: Sequence[NewRun]) -> None:
    """Insert runs of due times; a due time that has its row already (a clock went back) gets no second one."""
    await connection.execute(_FIRE, _COLUMNS.values(runs))


async def insert_due_and_tell(connection: Connection, runs: Sequence[NewRun], now: Micros) -> None:
    """The same, with an event for each that came into a user session."""
    await connection.execute(_FIRE_AND_TELL, (*_COLUMNS.values(runs), now))


async def insert_due_late(connection: Connection, runs: Sequence[NewRun]) -> list[RunId]:
    """The same, for those that are to be ended at once; answers their ids."""
    return [RunId(id) for (id,) in await fetch(connection, f"{_FIRE} RETURNING id", _COLUMNS.values(runs))]


async def send_insert(connection: Connection, runs: Sequence[NewRun]) -> Inserted:
    """Insert rows without a key."""
    if all(map(_is_plain, runs)):
        return await _send(connection, _INSERT_PLAIN, _PLAIN.values(runs))
    return await _send(connection, _INSERT_ANY, _COLUMNS.values(runs))


async def send_arrivals(connection: Connection, runs: Sequence[NewRun], now: Micros) -> Inserted:
    """Insert rows without a key into the queues of sessions, and tell it."""
    return await _send(connection, _ARRIVE, (*_COLUMNS.values(runs), now))


async def send_skipped(
    connection: Connection, run: NewRun, now: Micros, kind: EventKind, data: object, result: str | None = None
) -> Inserted:
    """Insert the row of a message that gets no run of its own, and tell it."""
    said = msgspec.json.encode(data).decode()
    return await _send(connection, _SKIP, (result, *_COLUMNS.values([run]), now, kind, said))


async def _send(connection: Connection, query: str, values: tuple[Any, ...]) -> Inserted:
    """Send an insert that notes its ids; they are read after the commit."""
    made = Inserted(await connection.execute(query, values))
    inserted.get().append(made)
    return made


async def insert_all(connection: Connection, runs: Sequence[NewRun]) -> RunIds:
    """Insert rows. Where a key is active already in its scope, the answer is that run's id."""
    if not any(run.key is not None for run in runs):
        return RunIds(await (await send_insert(connection, runs)).ids())
    if busy := await fetch(connection, _TRY_KEYS, _arrays(_keys(runs))):
        raise KeyBusy(
            f"a transaction that is still open has enqueued with the key {busy[0][0]!r}; commit it, or try later"
        )
    return await _KEYED.insert_all(lambda query, values: fetch(connection, query, values), runs)


async def take_keys(fetch: _Fetch, schema: str, runs: Sequence[NewRun]) -> None:
    """For a caller's transaction: from here to its end, nobody else inserts these keys."""
    if any(run.key is not None for run in runs):
        await fetch(_TAKE_KEYS, (schema, *_arrays(_keys(runs))))


def _keys(runs: Sequence[NewRun]) -> set[_Key]:
    return {(run.key, run.key_scope) for run in runs if run.key is not None}


def _arrays(keys: Iterable[_Key]) -> tuple[str | None, str | None]:
    """The keys and their scopes, each as one array."""
    ordered = sorted(keys)
    return texts([key for key, _ in ordered]), texts([scope for _, scope in ordered])


def _is_plain(run: NewRun) -> bool:
    """Whether its columns are `_PLAIN`, and the others as the table has them by default."""
    return (
        run.state is RunState.QUEUED
        and run.schedule_id is None
        and run.session is None
        and run.key is None
        and run.trace is None
        and run.started_by is None
        and run.expires_at is None
        and run.cause is None
        and run.reason is None
        and run.last_due_at is None
        and run.count == 1
        and not run.waiting
        and run.mode is None
        and not run.burst
        and not run.later
        and not run.followed
    )
