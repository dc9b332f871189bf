"""What the processes of a simulated cluster stand on: a clock for each, and one database in memory for all.

Every process has its own store, as it has in life; their transactions go to the one SQLite connection inline, a moment
after they were asked for. `simulation.py` breaks it, `simulated_loop.py` lets the moments pass.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from random import Random
from typing import TypeVar

from ostinato.clock import SECOND, Micros, SystemClock
from ostinato.errors import StoreError, StoreUnavailable
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.jobs import Job, Operation, deliver
from ostinato.stores.sqlite.locks import close
from ostinato.stores.sqlite.query import Connection
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.stores.sqlite.waiting import LockWait
from ostinato.stores.sqlite.writer import Writer
from ostinato.testing.chaos.simulated_loop import SimulatedLoop
from ostinato.tuning import Tuning

__all__ = ["SharedDatabase", "SimulatedClock"]

T = TypeVar("T")

_WATCH = """
CREATE TEMP TABLE rewritten (id INTEGER, before TEXT, after TEXT);
CREATE TEMP TRIGGER rewrites AFTER UPDATE OF state, token, finished_at ON main.runs
WHEN OLD.state NOT IN ('queued', 'running')
     AND (OLD.state, OLD.token, OLD.finished_at) IS NOT (NEW.state, NEW.token, NEW.finished_at)
BEGIN
    INSERT INTO rewritten VALUES (
        OLD.id,
        format('%s by token %d at %d', OLD.state, OLD.token, OLD.finished_at),
        format('%s by token %d at %d', NEW.state, NEW.token, NEW.finished_at)
    );
END;
"""
_POLL = 0.075
"""How long other processes take to see a commit: as often as they look at the file."""


class SimulatedClock(SystemClock):
    """The clock of one process, which may be wrong."""

    def __init__(self, loop: SimulatedLoop, began_at: Micros, fast_by: Micros = 0) -> None:
        self._loop = loop
        self._began_at = began_at
        self._fast_by = fast_by

    def now(self) -> Micros:
        return self._began_at + self._loop.now + self._fast_by

    def steady(self) -> Micros:
        return self._loop.now

    def uptime(self) -> Micros:
        return self._loop.now


class SharedDatabase:
    """One database in memory, which all processes have open."""

    def __init__(self, loop: SimulatedLoop, random: Random, tuning: Tuning) -> None:
        self.loop = loop
        self.slowness = 1.0
        """How many times longer than usual everything takes."""
        self.locked_until: Micros = 0
        """Until then another program has its lock."""
        self.writers: list[InlineWriter] = []
        self.connection = _Database(self, tuning).connect_once()
        self._random = random
        self._tuning = tuning
        self.connection.execute(_WATCH)

    def rewritten(self) -> list[str]:
        """Runs that had ended and were changed after that."""
        found = self.connection.execute("SELECT id, before, after FROM temp.rewritten").fetchall()
        return [f"run {id} was {before}, and is {after}" for id, before, after in found]

    def new_store(self) -> SqliteStore:
        """That of one more process."""
        return SqliteStore(":memory:", self._tuning, _Database(self, self._tuning))

    def close(self) -> None:
        close(self.connection)

    def delay(self) -> float:
        """How many seconds a transaction takes; now and then many, as disks do."""
        seconds = self._random.uniform(0.0002, 0.004) * self.slowness
        return seconds + (self._random.uniform(0.05, 1.5) if self._random.random() < 0.002 else 0.0)

    def changed(self, by: InlineWriter) -> None:
        """Something was committed: the other processes find out when they look next."""
        self.writers = [writer for writer in self.writers if writer.is_alive]
        for writer in self.writers:
            if writer is not by:
                writer.look_within(self._random.uniform(0, _POLL))


class _Database(Database):
    """That of one process: its writer works inline, on the connection of all."""

    def __init__(self, shared: SharedDatabase, tuning: Tuning) -> None:
        super().__init__(":memory:", tuning)
        self._shared = shared
        self._writer = InlineWriter(shared, self._wait)

    def connect_once(self) -> Connection:
        """The connection that all processes share, to a migrated database."""
        connection = super()._connect_writer()
        self._migrate(connection)
        return connection


class InlineWriter(Writer):
    """The writer of one process, without a thread."""

    def __init__(self, shared: SharedDatabase, wait: LockWait) -> None:
        super().__init__(lambda: shared.connection, wait, lambda: None)
        self._shared = shared
        self._context: Context | None = None
        """In which its process runs, while it is open."""
        self._process = shared.loop.current
        self._is_planned = False
        self._looks = False

    @property
    def is_alive(self) -> bool:
        """Whether its process was not killed."""
        return self._process.is_alive

    async def start(self, first: Operation[None]) -> None:
        # Not `first`: what all have open is migrated.
        self._context = copy_context()
        self._shared.writers.append(self)

    def submit(self, operation: Operation[T], *, wakes: bool = False) -> asyncio.Future[T]:
        loop = self._shared.loop
        future: asyncio.Future[T] = loop.create_future()
        if self._context is None:
            future.set_exception(StoreError("the database is closed"))
            return future
        self._queue.put(Job(operation, future, loop, self._wait.seconds, wakes=wakes))
        if not self._is_planned:
            self._is_planned = True
            self._plan(loop.now)
        return future

    async def stop(self) -> None:
        self._context = None
        self._shared.writers.remove(self)
        if not self._queue.empty():
            self._commit_all()

    def look_within(self, seconds: float) -> None:
        """Another process has changed something."""
        if self.listeners and not self._looks:
            self._looks = True
            self._shared.loop.call_later(seconds, self._look_now, context=self._context)

    def _look_now(self) -> None:
        self._looks = False
        for _, listener in tuple(self.listeners):
            listener()

    def _plan(self, asked_at: Micros) -> None:
        """Take a moment; while another program has the lock, as long as that, or until it has been waited for too
        long."""
        loop, shared = self._shared.loop, self._shared
        if shared.locked_until <= loop.now:
            loop.call_later(shared.delay(), self._turn)
        elif loop.now - asked_at >= self._wait.seconds * SECOND:
            self._give_up()
        else:
            pause = min(shared.locked_until - loop.now, asked_at + round(self._wait.seconds * SECOND) - loop.now)
            loop.call_later(pause / SECOND, self._plan, asked_at)

    def _turn(self) -> None:
        self._is_planned = False
        self._commit_all()

    def _commit_all(self) -> None:
        before = self._shared.connection.total_changes()
        while not self._queue.empty():
            self._run_group(self._shared.connection)
        if self._shared.connection.total_changes() != before:
            self._shared.changed(self)

    def _give_up(self) -> None:
        self._is_planned = False
        given_up: list[Job] = []
        while not self._queue.empty():
            job = self._queue.get()
            assert job is not None
            job.error = StoreUnavailable("another process held the lock of the database")
            given_up.append(job)
        deliver(given_up)
