"""How this store connects, what each connection is set to, and what a PostgreSQL error is called here.

A connection that writes holds an advisory lock with a key of its process. So whoever comes after it, in the same
process, knows when it is over, and other nodes find and end the connections of one that is lost (see nodes.py).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait, wait_async

from ostinato import failpoints
from ostinato.config import without_password
from ostinato.errors import InvalidInput, StoreError, StoreUnavailable
from ostinato.stores.postgres.query import Connection, Row

__all__ = ["HELD_KEYS", "Server", "bounded", "held_up", "is_lost", "is_passing", "named"]

T = TypeVar("T")

_EAGER = 8
"""How often in a row a connection is believed to be writable."""
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_LEAST_TRANSACTION_SECONDS = 5.0
_OPENING_SECONDS = 10.0
"""How long a new connection may take to be set up, the end of the one before it included."""
_ENDING_SECONDS = 5.0
_CANCEL_SECONDS = 1.0
"""How long the server has to take a cancellation, and once more to end the query."""
_DEFAULTS: dict[str, str | int] = {"application_name": "ostinato", "connect_timeout": 5}
_SETTINGS = {
    # Each statement must see what others committed before it: claims rely on it.
    "default_transaction_isolation": "read committed",
    "jit": "off",
    "client_min_messages": "error",
}
# By their words: what fails while connecting has no SQLSTATE.
_FIXES: tuple[tuple[str, type[StoreError], str], ...] = (
    (r'database ".*" does not exist', StoreError, "{}; create it with 'createdb', or name another in the URL"),
    (
        r'role ".*" does not exist|authentication failed|no password supplied|no pg_hba.conf entry',
        StoreError,
        "PostgreSQL refused the login: {}; check user and password in the URL",
    ),
    (r"permission denied|must be owner", StoreError, "PostgreSQL refused: {}; grant the user the rights on the schema"),
    (
        r"too many (clients|connections)|remaining connection slots",
        StoreUnavailable,
        "PostgreSQL has no connection left: {}; raise max_connections, or run fewer nodes",
    ),
    (r"read-only transaction", StoreUnavailable, "the server is read-only right now: {}; it is tried again"),
)
_WRITER_SETTINGS = {
    # Every statement of the writer is a few seeks by an index. Table statistics lag behind a queue that fills and
    # empties within seconds, and one hash join over the ledger would stop everything: there is nothing to choose.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "plan_cache_mode": "force_generic_plan",
}
HELD_KEYS = """
SELECT pid, (classid::bigint << 32) | objid::bigint AS key FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""Which backend holds which advisory lock of this database."""
_END_HOLDER = f"SELECT pg_terminate_backend(pid) FROM ({HELD_KEYS}) held WHERE key = %s AND pid <> pg_backend_pid()"


class _EagerConnection(Connection):
    """Sends without asking the event loop first whether it may.

    psycopg waits for the socket to be writable before every statement of a pipeline, which costs more than the
    sending (measured: 200 µs against 50 µs for each). It nearly always is writable; where it is not, the
    statement stays in libpq's buffer and the true wait that follows sends it.
    """

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        if failpoints.ON and self.pgconn.pipeline_status:
            failpoints.reach("postgres.statement")
        try:
            wanted = next(gen)
            for _ in range(_EAGER):
                if not wanted & Wait.W:
                    break
                wanted = gen.send(Ready.W)
        except StopIteration as end:
            result: T = end.value
            return result
        resumed = _resumed(gen, wanted)
        try:
            return await wait_async(resumed, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._cancel_query(resumed, interval)
            raise

    async def _cancel_query(self, gen: PQGen[T], interval: float) -> None:
        """Ask the server to end what nobody waits for, and give the connection up if it does not answer.

        psycopg asks for longer than a process has that is told to stop while the server is silent; and the error of a
        line that breaks meanwhile would take the place of the cancellation, so that its task never ended.
        """
        with suppress(psycopg.Error, OSError):
            await self.cancel_safe(timeout=_CANCEL_SECONDS)
            with suppress(errors.QueryCanceled):
                await wait_async(gen, self.pgconn.socket, interval=interval, timeout=_CANCEL_SECONDS)
            return
        self.pgconn.finish()


def _resumed(gen: PQGen[T], wanted: Wait) -> PQGen[T]:
    """The rest of a generator that has been advanced already: asks first for what it wants now."""
    while True:
        ready = yield wanted
        try:
            wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


class Server:
    """A database server and the schema in it that is ours."""

    def __init__(self, url: str, schema: str, lease: float = 15.0) -> None:
        if not _SCHEMA.fullmatch(schema) or schema.lower().startswith("pg_"):
            raise InvalidInput(
                f"the schema cannot be named {schema!r}",
                field="schema",
                hint="give letters, digits and underscores, at most 63, not starting with pg_",
            )
        self.url = url
        self.schema = schema
        self.channel = f"{schema[:50]}.changed"
        self.claims_lock = self.lock_key("claims")
        self.migrations_lock = self.lock_key("migrations")
        # Of this process alone. Two connections write: the writer, and the one of the heartbeats.
        self.writer_key = secrets.randbits(61) << 1
        self.beats_key = self.writer_key + 1
        self._lease = lease
        self.transaction_seconds = max(lease / 2, _LEAST_TRANSACTION_SECONDS)
        """A transaction that is under way for longer is ended: its process is stopped or cut off, and others wait."""

    @property
    def shown(self) -> str:
        """The URL without its password, for people."""
        return without_password(self.url)

    def lock_key(self, purpose: str) -> int:
        """The number of an advisory lock of this schema; advisory locks belong to the whole database."""
        digest = hashlib.blake2b(f"ostinato/{self.schema}/{purpose}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    async def connect(self, *, key: int | None = None) -> Connection:
        """A connection in autocommit mode, in our schema; its owner closes it.

        With a key it is one that writes. When this returns, the one that had the same key before is over: whatever it
        was about to commit is committed by now, or never will be.
        """
        connection = await _EagerConnection.connect(
            self._conninfo(), autocommit=True, prepare_threshold=2 if key is None else 0
        )
        try:
            with bounded(connection, _OPENING_SECONDS):
                settings = {"search_path": sql.Identifier(self.schema).as_string(connection), **_SETTINGS}
                if key is not None:
                    settings.update(_WRITER_SETTINGS, **self._time_limits(connection.info.server_version))
                calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
                values: list[object] = [part for setting in settings.items() for part in setting]
                cursor = await connection.execute(
                    f"SELECT {calls}, pg_try_advisory_lock(%s)" if key is not None else f"SELECT {calls}",
                    values if key is None else [*values, key],
                    prepare=False,
                )
                row = await cursor.fetchone()
                if key is not None and row is not None and not row[-1]:
                    await _take_over(connection, key)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _time_limits(self, server_version: int) -> dict[str, str]:
        """When the server gives up a connection that writes: others wait for its locks."""
        limits = {f"tcp_{name}": str(value) for name, value in self._keepalives().items()}
        if server_version >= 170000:
            limits["transaction_timeout"] = f"{round(self.transaction_seconds * 1000)}ms"
        return limits

    def _keepalives(self) -> dict[str, int]:
        """A peer that vanished without a word is noticed within the lease; the system's default is two hours."""
        third = max(1, round(self._lease / 3))
        return {
            "keepalives_idle": third,
            "keepalives_interval": max(1, third // 3),
            "keepalives_count": 3,
            "user_timeout": third * 2000,
        }

    def _conninfo(self) -> str:
        try:
            given = conninfo_to_dict(self.url)
        except psycopg.Error as error:
            raise StoreError(
                f"the database URL {self.shown!r} is not readable: {_reason(error)}; "
                "write it as postgresql://user@host/name"
            ) from error
        keepalives = self._keepalives()
        keepalives["tcp_user_timeout"] = keepalives.pop("user_timeout")
        return make_conninfo("", **{**_DEFAULTS, **keepalives, **given})


@contextmanager
def bounded(connection: psycopg.AsyncConnection[Row], seconds: float) -> Iterator[None]:
    """Give up the connection if what is done in here takes longer: a line that is cut may be silent for ever.

    The line is shut down, so that whoever waits for it gets an error; to be cancelled, psycopg would ask the server.
    """
    expired = False

    def expire() -> None:
        nonlocal expired
        expired = True
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = asyncio.get_running_loop().call_later(seconds, expire)
    try:
        yield
    except psycopg.Error as error:
        if expired:
            raise psycopg.OperationalError(f"no answer within {seconds:g} s") from error
        raise
    finally:
        timer.cancel()


async def _take_over(connection: Connection, key: int) -> None:
    """End the connection that has our key, and wait until its last transaction is over."""
    await connection.execute(_END_HOLDER, (key,), prepare=False)
    await connection.execute(f"SET lock_timeout = {round(_ENDING_SECONDS * 1000)}", prepare=False)
    try:
        await connection.execute("SELECT pg_advisory_lock(%s)", (key,), prepare=False)
    except errors.LockNotAvailable as error:
        raise psycopg.OperationalError("the server does not end the last connection of this process") from error
    await connection.execute("SET lock_timeout = 0", prepare=False)


def is_lost(error: BaseException, connection: Connection | None) -> bool:
    """Whether the error means that the connection is gone, so that another one may do better."""
    if connection is not None and connection.closed:
        return True
    return isinstance(
        error,
        errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow | errors.IdleSessionTimeout,
    )


def is_passing(error: BaseException) -> bool:
    """Whether the same transaction may succeed when it is simply run again."""
    return isinstance(error, errors.DeadlockDetected | errors.SerializationFailure | errors.LockNotAvailable)


def named(error: BaseException) -> BaseException:
    """PostgreSQL's error as one of ours, with the fix."""
    if not isinstance(error, psycopg.Error):
        return error
    reason = _reason(error)
    result: StoreError | None = None
    for words, kind, text in _FIXES:
        if re.search(words, reason):
            result = kind(text.format(reason))
            break
    else:
        unreachable = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if is_passing(error):
            result = StoreUnavailable(f"PostgreSQL was busy: {reason}; it is tried again")
        elif isinstance(error, errors.TransactionTimeout):
            return held_up(error)
        elif isinstance(error, errors.DiskFull):
            result = StoreUnavailable(f"PostgreSQL has no room: {reason}; nothing was written")
        elif unreachable:
            result = StoreUnavailable(f"PostgreSQL cannot be reached: {reason}")
        else:
            result = StoreError(f"PostgreSQL refused: {reason}")
    result.__cause__ = error
    return result


def held_up(error: BaseException) -> StoreUnavailable:
    """What ended a transaction after its time, with the fix."""
    result = StoreUnavailable(
        "a transaction waited too long for a lock, or the server is overloaded: 'SELECT pid, query, "
        "pg_blocking_pids(pid) FROM pg_stat_activity' names who holds it; let that transaction end, or end it, and "
        "try again"
    )
    result.__cause__ = error
    return result


def _reason(error: psycopg.Error) -> str:
    """What the server said, in one line."""
    primary = error.diag.message_primary
    lines = (primary or str(error)).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    # What failed while connecting comes with the whole way there, and its words at the end.
    return line.rpartition("FATAL:")[2].strip()
