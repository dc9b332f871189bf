"""How this store connects, what each connection is set to, and what a PostgreSQL error is called in the house."""

from __future__ import annotations

import hashlib
import re
from typing import TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.waiting import Ready, Wait

from ostinato.config import without_password
from ostinato.errors import InvalidInput, StoreError, StoreUnavailable
from ostinato.stores.postgres.query import Connection, Row

__all__ = ["Server", "is_lost", "is_passing", "named"]

T = TypeVar("T")

_EAGER = 8
"""How often in a row a connection is believed to be writable."""
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_DEFAULTS: dict[str, str | int] = {
    "application_name": "ostinato",
    "connect_timeout": 5,
    # A peer that vanished without a word is noticed in half a minute, where the system's default is two hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
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
    (r"read-only transaction", StoreUnavailable, "the server is read-only just now: {}; it is tried again"),
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


class _EagerConnection(psycopg.AsyncConnection[Row]):
    """Sends without asking the event loop first whether it may.

    psycopg waits for the socket to be writable before every statement of a pipeline, which costs more than the
    sending (measured: 200 µs against 50 µs for each). It nearly always is writable; where it is not, the
    statement stays in libpq's buffer and the true wait that follows sends it.
    """

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        try:
            wanted = next(gen)
            for _ in range(_EAGER):
                if not wanted & Wait.W:
                    break
                wanted = gen.send(Ready.W)
        except StopIteration as end:
            result: T = end.value
            return result
        return await super().wait(_resumed(gen, wanted), interval, timeout)


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

    def __init__(self, url: str, schema: str) -> None:
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

    @property
    def shown(self) -> str:
        """The URL without its password, for people."""
        return without_password(self.url)

    def lock_key(self, purpose: str) -> int:
        """The number of an advisory lock of this schema; advisory locks belong to the whole database."""
        digest = hashlib.blake2b(f"ostinato/{self.schema}/{purpose}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    async def connect(self, *, writes: bool = False) -> Connection:
        """A connection in autocommit mode, in our schema; its owner closes it."""
        connection = await _EagerConnection.connect(
            self._conninfo(), autocommit=True, prepare_threshold=0 if writes else 2
        )
        try:
            settings = {"search_path": sql.Identifier(self.schema).as_string(connection), **_SETTINGS}
            if writes:
                settings.update(_WRITER_SETTINGS)
            calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
            values = [part for setting in settings.items() for part in setting]
            await connection.execute(f"SELECT {calls}", values, prepare=False)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _conninfo(self) -> str:
        try:
            given = conninfo_to_dict(self.url)
        except psycopg.Error as error:
            raise StoreError(
                f"the database URL {self.shown!r} is not readable: {_reason(error)}; "
                "write it as postgresql://user@host/name"
            ) from error
        return make_conninfo("", **{**_DEFAULTS, **given})


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
        elif isinstance(error, errors.DiskFull):
            result = StoreUnavailable(f"PostgreSQL has no room: {reason}; nothing was written")
        elif unreachable:
            result = StoreUnavailable(f"PostgreSQL cannot be reached: {reason}")
        else:
            result = StoreError(f"PostgreSQL refused: {reason}")
    result.__cause__ = error
    return result


def _reason(error: psycopg.Error) -> str:
    """What the server said, in one line."""
    primary = error.diag.message_primary
    lines = (primary or str(error)).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    # What failed while connecting comes with the whole way there, and its words at the end.
    return line.rpartition("FATAL:")[2].strip()
