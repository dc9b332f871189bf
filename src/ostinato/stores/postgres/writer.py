"""The one writer: it takes every waiting operation into one transaction, so that one fsync serves many.

An operation sends its statements and answers how to read what came of them, which happens after the commit: the
whole group is one pipeline, and costs one round trip unless an operation has to look before it goes on. The sessions
that it works on are locked first, in the order that every node takes them; what holds locks that all other nodes wait
for (a claim) is sent last. If one of a group fails, the group is rolled back and each is run alone, so that one bad
operation cannot undo its neighbours. Called by database.py for every other file.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

import psycopg

from ostinato.clock import Signal
from ostinato.errors import OutcomeUnknown, StoreError, StoreUnavailable
from ostinato.stores.postgres.connection import Server, is_lost, is_passing, named
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.turns import lock_sessions

__all__ = ["Answer", "Operation", "Writer"]

T = TypeVar("T")
Answer = Callable[[], Awaitable[T]]
Operation = Callable[[Connection], Awaitable[Answer[T]]]

_GROUP = 256
"""How many operations share one transaction at most: bounds how long others wait for its locks."""
_EFFORT_SECONDS = 3.0
"""How long a group waits for a server that is gone before its callers learn it."""
_TRIES = 5
"""How often a transaction is begun that meets deadlocks or breaking connections."""


class Writer:
    """Runs operations one group after the other on its own connection. It belongs to the loop that started it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._jobs: deque[_Job] = deque()
        self._signal = Signal()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._connection: Connection | None = None
        self._undo: list[Operation[None]] = []
        """What to take back once there is a connection: claims whose commit may or may not have happened."""

    async def start(self, first: Callable[[Connection], Awaitable[None]]) -> None:
        """Connect, and run `first` outside of any transaction."""
        self._closing = False
        try:
            self._connection = await self._server.connect(writes=True)
            await first(self._connection)
        except psycopg.Error as error:
            await self._disconnect()
            raise named(error) from error
        except BaseException:
            await self._disconnect()
            raise
        self._task = asyncio.create_task(self._run(), name="ostinato-postgres-writer")

    def submit(
        self,
        operation: Operation[T] | None,
        *,
        last: Operation[Any] | None = None,
        undo: Operation[None] | None = None,
        wakes: bool = False,
        repeatable: bool = True,
        sessions: Collection[str] = (),
    ) -> asyncio.Future[Any]:
        """Run the operation in the next group; the future is done after the commit.

        `last` goes at the end of the group, and the result is then both answers. `wakes` notifies every node.
        Nobody else works on the given `sessions` meanwhile.
        When the connection breaks during the commit, nobody knows whether it happened: what is `repeatable` is
        run again, after its `undo`, and the rest raises.
        """
        job = _Job(operation, last, undo, wakes, repeatable, sessions, asyncio.get_running_loop().create_future())
        if self._task is None or self._closing:
            job.future.set_exception(StoreError("the database is closed"))
        else:
            self._jobs.append(job)
            self._signal.set()
        return job.future

    async def stop(self) -> None:
        """Finish what is queued, then close."""
        if self._task is not None and not self._closing:
            self._closing = True
            self._signal.set()
            await self._task
            self._task = None
            await self._disconnect()

    async def _run(self) -> None:
        while True:
            if not self._jobs:
                if self._closing:
                    return
                await self._signal.wait()
                continue
            group = [self._jobs.popleft() for _ in range(min(len(self._jobs), _GROUP))]
            await self._commit(group, asyncio.get_running_loop().time() + _EFFORT_SECONDS)
            for job in group:
                job.deliver()

    async def _commit(self, group: list[_Job], deadline: float) -> None:
        """Bring the group through; each job has its result or its error afterwards."""
        failure: BaseException = StoreUnavailable("the transaction was begun too often; it is tried again")
        for tries in range(1, _TRIES + 1):
            try:
                connection = await self._connected(deadline)
            except Exception as error:
                _fail(group, named(error))
                return
            try:
                await self._transact(connection, group)
                return
            except _Uncertain as uncertain:
                failure = uncertain.error
                await self._disconnect()
                group = self._repeatable(group, failure)
                if not group:
                    return
            except Exception as error:  # whatever it is, its caller learns it; the writer lives on
                failure = error
                await self._recover(failure)
                if self._connection is not None:
                    if len(group) > 1:
                        for job in group:
                            await self._commit([job], deadline)
                        return
                    if not is_passing(failure):
                        break
                    await asyncio.sleep(random.uniform(0, 0.02 * tries))
        _fail(group, named(failure))

    async def _transact(self, connection: Connection, group: list[_Job]) -> None:
        """One implicit transaction: from the first statement of the pipeline to the Sync at its end."""
        # Notices that the server hung up while nothing was under way, before anything is sent into the void: the
        # first look takes its last words, the second finds the line dead.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
        undone = len(self._undo)
        answers: list[tuple[_Job, Answer[Any] | None, Answer[Any] | None]] = []
        committing = False
        try:
            async with connection.pipeline():
                try:
                    await lock_sessions(connection, [session for job in group for session in job.sessions])
                    for undo in self._undo:
                        await undo(connection)
                    firsts = [await job.operation(connection) if job.operation else None for job in group]
                    if any(job.wakes for job in group):
                        await connection.execute("SELECT pg_notify(%s, '')", (self._server.channel,))
                    for job, first in zip(group, firsts, strict=True):
                        answers.append((job, first, await job.last(connection) if job.last else None))
                except BaseException:
                    # The Sync that ends the pipeline commits; where the server has not failed itself, make it.
                    with suppress(psycopg.Error):
                        await connection.execute("ROLLBACK", prepare=False)
                    raise
                committing = True
        except BaseException as error:
            if committing and is_lost(error, connection):
                raise _Uncertain(error) from error
            raise
        del self._undo[:undone]
        for job, first, last in answers:
            await job.read(first, last)

    async def _connected(self, deadline: float) -> Connection:
        """The connection, made anew if it was lost; StoreUnavailable when the server stays away."""
        delay = 0.05
        while self._connection is None or self._connection.closed:
            try:
                self._connection = await self._server.connect(writes=True)
            except psycopg.Error as error:
                if asyncio.get_running_loop().time() + delay > deadline:
                    raise named(error) from error
                await asyncio.sleep(delay)
                delay = min(delay * 2, 0.5)
        return self._connection

    async def _recover(self, error: BaseException) -> None:
        """Make the connection fit again after a failed transaction, or give it up."""
        if self._connection is not None and not is_lost(error, self._connection):
            # psycopg believes that what followed the failing statement was prepared; the server skipped it.
            with suppress(psycopg.Error):
                await self._connection.execute("DEALLOCATE ALL", prepare=False)
                return
        await self._disconnect()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _repeatable(self, group: list[_Job], error: BaseException) -> list[_Job]:
        """Which jobs to run again after a commit whose outcome nobody knows; the others learn that."""
        self._undo += [job.undo for job in group if job.undo is not None]
        refused = [job for job in group if not job.repeatable]
        for job in group:
            job.uncertain = True
        _fail(refused, error)
        return [job for job in group if job.repeatable]


class _Uncertain(Exception):
    """The connection was lost after the commit had been sent."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class _Job:
    __slots__ = (
        "error",
        "future",
        "last",
        "operation",
        "repeatable",
        "result",
        "sessions",
        "uncertain",
        "undo",
        "wakes",
    )

    def __init__(
        self,
        operation: Operation[Any] | None,
        last: Operation[Any] | None,
        undo: Operation[None] | None,
        wakes: bool,
        repeatable: bool,
        sessions: Collection[str],
        future: asyncio.Future[Any],
    ) -> None:
        self.operation = operation
        self.last = last
        self.undo = undo
        self.wakes = wakes
        self.repeatable = repeatable
        self.sessions = sessions
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.uncertain = False
        """It was committed once, and nobody knows whether that happened."""

    async def read(self, first: Answer[Any] | None, last: Answer[Any] | None) -> None:
        """Take the answers. What goes wrong here goes wrong after the commit, and nothing is run again for it."""
        try:
            value = await first() if first is not None else None
            self.result = (value, await last()) if last is not None else value
        except Exception as error:
            self.error = named(error)

    def deliver(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def _fail(group: list[_Job], error: BaseException) -> None:
    for job in group:
        job.error = _unknown(error) if job.uncertain else error


def _unknown(error: BaseException) -> OutcomeUnknown:
    reason = "the connection broke during the commit: look whether the change is there before you repeat it"
    unknown = OutcomeUnknown(reason)
    unknown.__cause__ = error
    return unknown
