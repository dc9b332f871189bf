"""Noticing changes of an SQLite file: this process's own at once, others' by `PRAGMA data_version`."""

from __future__ import annotations

import asyncio
from typing import Self

import apsw

from ostinato.clock import Signal
from ostinato.models.ids import NodeId
from ostinato.stores.base import WakeHints
from ostinato.stores.sql.wake_hints import wake_hints
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.jobs import named_error
from ostinato.stores.sqlite.locks import close
from ostinato.stores.sqlite.query import fetch_value

__all__ = ["SqliteWatch"]

_POLL_SECONDS = 0.075
"""Three quarters of the promise that another process's schedule is seen within 100 ms. A look is a few microseconds;
what costs is the turn of the loop, so there are no more of them than needed."""


class SqliteWatch:
    """Answers stores.base.Watch."""

    def __init__(self, database: Database, connection: apsw.Connection | None) -> None:
        self._database = database
        self._signal = Signal()
        self._unlisten = database.listen(self._signal.set)
        self._connection = connection
        self._version = 0
        self._version = self._data_version()
        self._timer: asyncio.TimerHandle | None = None
        self._error: apsw.Error | None = None

    @classmethod
    async def open(cls, database: Database) -> Self:
        """Connect on a reader's thread: the loop does not wait for a file that somebody has locked."""
        return cls(database, None if database.in_memory else await database.query(lambda _: _connect(database)))

    async def changed(self) -> None:
        self._look_later()
        try:
            await self._signal.wait()
        finally:
            if self._timer is not None:
                self._timer.cancel()
        if self._error is not None:
            raise named_error(self._error, self._database.path, self._database.tuning.sqlite_lock_seconds)

    def _look_later(self) -> None:
        if self._connection is not None:
            self._timer = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._look)

    def _look(self) -> None:
        """In the timer itself: a look that finds nothing wakes nobody."""
        before = self._version
        try:
            self._version = self._data_version()
        except apsw.Error as error:
            self._error = error
        if self._version == before and self._error is None:
            self._look_later()
        else:
            self._signal.set()

    async def wake_hints(self, node: NodeId) -> WakeHints:
        return await self._database.read(lambda db: wake_hints(db, node))

    async def close(self) -> None:
        self._unlisten()
        if self._connection is not None:
            close(self._connection)
            self._connection = None

    def _data_version(self) -> int:
        if self._connection is None:
            return 0
        try:
            version: int = fetch_value(self._connection, "PRAGMA data_version")
        except apsw.BusyError:
            # Somebody holds the file whole (a recovery, a vacuum): look again soon.
            return self._version
        return version


def _connect(database: Database) -> apsw.Connection:
    """Its looks are on the loop: they wait for nobody."""
    connection = database.connect_reader()
    connection.set_busy_timeout(0)
    return connection
