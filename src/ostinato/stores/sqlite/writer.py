"""The one writer thread: it takes every waiting operation into one transaction, so that one fsync serves many.

An operation is a function of the connection. If one of a group fails, the group is rolled back and each is
run alone, so that one bad operation cannot undo its neighbours. One that waited too long for a lock of another process
is given up by itself. Called by every other file of this store.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

import apsw

from ostinato import failpoints
from ostinato.errors import StoreError, StoreUnavailable
from ostinato.stores.sqlite.jobs import Job, Operation, deliver, named_error
from ostinato.stores.sqlite.locks import close
from ostinato.stores.sqlite.query import Connection
from ostinato.stores.sqlite.waiting import LockWait

__all__ = ["Writer"]

T = TypeVar("T")

_GROUP = 256
"""How many operations share one transaction at most: bounds how long a reader of the future waits."""


class Writer:
    """Runs operations one group after the other on its own thread."""

    def __init__(self, connect: Callable[[], Connection], wait: LockWait, look: Callable[[], str | None]) -> None:
        self._connect = connect
        self._wait = wait
        self._look = look
        """Asked around each commit: why nothing may be written or acknowledged any more, if so it is."""
        self.listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = []
        """Who is told, on its own loop, after a commit that gives an engine something to do."""
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def start(self, first: Operation[None]) -> None:
        """Open the connection on the thread and run `first` outside of any transaction."""
        loop = asyncio.get_running_loop()
        opening = Job(first, loop.create_future(), loop, self._wait.seconds, wakes=False)
        self._thread = threading.Thread(target=self._run, args=(opening,), name="ostinato-sqlite-writer", daemon=True)
        self._thread.start()
        await opening.future

    def submit(self, operation: Operation[T], *, wakes: bool = False) -> asyncio.Future[T]:
        """Run the operation in the next group; the future is done after the commit, which may wake engines."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._thread is None:
            future.set_exception(StoreError("the database is closed"))
        else:
            self._queue.put(Job(operation, future, loop, self._wait.seconds, wakes=wakes))
        return future

    async def stop(self) -> None:
        """Finish what is queued, then close."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            self._queue.put(None)
            await asyncio.to_thread(thread.join)

    def _run(self, opening: Job) -> None:
        connection = self._open(opening)
        deliver([opening])
        if connection is None:
            return
        try:
            while self._run_group(connection):
                pass
        finally:
            close(connection)

    def _open(self, opening: Job) -> Connection | None:
        """The connection, after the first operation on it; None when the opening has an error to tell."""
        connection = None
        try:
            connection = self._connect()
            opening.operation(connection)
        except BaseException as error:  # whatever it is, its caller learns it
            if connection is not None:
                close(connection)
            opening.error = self._named(error)
            return None
        return connection

    def _run_group(self, connection: Connection) -> bool:
        """One transaction over what waits; False when the writer should end."""
        job = self._queue.get()
        if job is None:
            return False
        group, goes_on = [job], True
        try:
            while len(group) < _GROUP:
                job = self._queue.get_nowait()
                if job is None:
                    goes_on = False
                    break
                group.append(job)
        except Empty:
            pass
        self._commit(connection, group)
        # Before the answers: who begins to listen after an answer is not told of what came before it.
        is_woken, connection.is_woken = connection.is_woken, False
        if is_woken or any(job.wakes for job in group):
            for loop, listener in tuple(self.listeners):
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(listener)
        deliver(group)
        return goes_on

    def _commit(self, connection: Connection, group: list[Job]) -> None:
        if self._refuse(group):
            return
        group = self._begin(connection, group)
        if not group:
            return
        try:
            for job in group:
                job.result = job.operation(connection)
            failpoints.reach("sqlite.commit")
            connection.execute("COMMIT")
        except BaseException as error:  # whatever it is, its caller learns it; the writer lives on
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if len(group) == 1:
                group[0].error = self._named(error)
                return
            for job in group:
                self._commit(connection, [job])
        else:
            failpoints.reach("sqlite.committed")
            # What went into a file that is nobody's any more is not acknowledged.
            self._refuse(group)

    def _begin(self, connection: Connection, group: list[Job]) -> list[Job]:
        """Take the write lock; answers who is still to be served. The others have waited too long for it."""
        while group:
            self._wait.until = group[0].until  # the oldest
            try:
                connection.execute("BEGIN IMMEDIATE")
                return group
            except BaseException as error:  # whatever it is, its caller learns it; the writer lives on
                now = time.monotonic()
                patient = [job for job in group if job.until > now] if isinstance(error, apsw.BusyError) else []
                given_up = [job for job in group if job not in patient] or group
                for job in given_up:
                    job.error = self._named(error)
                deliver(given_up)
                group = [] if given_up is group else patient
        return group

    def _named(self, error: BaseException) -> BaseException:
        return named_error(error, self._wait.path, self._wait.seconds)

    def _refuse(self, group: list[Job]) -> bool:
        fault = self._look()
        if fault is not None:
            for job in group:
                job.error = StoreUnavailable(fault)
        return fault is not None
