"""The one writer: it takes every waiting operation into one transaction, so that one fsync serves many.

An operation sends its statements and answers how to read what came of them, which happens after the commit: the
whole group is one pipeline, and costs one round trip unless an operation has to look before it goes on. The sessions
that it works on are locked first, in the order that every node takes them; what holds locks that all other nodes wait
for (a claim) is sent last. If one of a group fails, the group is rolled back and each is run alone, so that one bad
operation cannot undo its neighbours. Called by database.py for every other file.

When the connection breaks during a commit, the next one is there only when the old one is over (see connection.py).
Then commits.py tells whether it happened: what must not be done twice is done again only if it did not.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import psycopg

from ostinato import failpoints
from ostinato.clock import Signal
from ostinato.errors import OutcomeUnknown, StoreError, StoreUnavailable
from ostinato.stores.postgres.commits import Inserted, inserted, mark_commit, recall
from ostinato.stores.postgres.connection import Server, bounded, held_up, is_lost, is_passing, named
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.turns import lock_sessions
from ostinato.stores.sql.connection import Answer

__all__ = ["Answer", "Operation", "Writer"]

T = TypeVar("T")
Operation = Callable[[Connection], Awaitable[Answer[T]]]

_GROUP = 256
"""How many operations share one transaction at most: bounds how long others wait for its locks."""
_LAST_SECONDS = 1.0
"""How long a close waits for writes whose callers have given up."""
_TRIES = 5
"""How often a transaction is begun that meets deadlocks or breaking connections."""
_LONG_TRIES = 2
"""How often one is begun that waits for a lock until the server ends it."""
_ANSWER_SECONDS = 2.0
"""How much longer than the server, which ends a transaction that takes too long, this side waits for its answer."""


class Writer:
    """Runs operations one group after the other on its own connection. It belongs to the loop that started it."""

    def __init__(self, server: Server, effort_seconds: float) -> None:
        self._server = server
        self._effort_seconds = effort_seconds
        self._jobs: deque[_Job] = deque()
        self._group: list[_Job] = []
        """What is being committed."""
        self._signal = Signal()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._connection: Connection | None = None
        self._undo: list[Operation[None]] = []
        """What to take back once there is a connection: claims whose commit may or may not have happened, or of which
        nobody heard."""
        self._number = 0
        """Of the last group of which something must not be done twice."""
        self._recoveries = 0
        """How often a failed transaction was recovered from."""

    async def start(self, first: Callable[[Connection], Awaitable[None]]) -> None:
        """Connect, and run `first` outside of any transaction."""
        self._closing = False
        try:
            self._connection = await self._server.connect(key=self._server.writer_key)
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
        once: bool = True,
        sessions: Collection[str] = (),
    ) -> asyncio.Future[Any]:
        """Run the operation in the next group; the future is done after the commit.

        `last` goes at the end of the group, and the result is then both answers. `wakes` notifies every node.
        Nobody else works on the given `sessions` meanwhile.
        When the connection breaks during the commit, everything is run again, `last` after its `undo`; but what is
        to be done `once` only if it was not committed. Its answer must then be known: read before, or by `Inserted`.
        """
        job = _Job(operation, last, undo, wakes, once, sessions, asyncio.get_running_loop().create_future())
        if self._task is None or self._closing:
            job.future.set_exception(StoreError("the database is closed"))
        else:
            self._jobs.append(job)
            self._signal.set()
        return job.future

    def take_back(self, undo: Operation[None]) -> None:
        """Run this at the beginning of the next group."""
        self._undo.append(undo)

    async def stop(self) -> None:
        """Finish what is queued, then close. What nobody waits for any more has a moment, and no more than that."""
        if self._task is not None and not self._closing:
            self._closing = True
            self._signal.set()
            while not (await asyncio.wait({self._task}, timeout=_LAST_SECONDS))[0]:
                if all(job.future.done() for job in (*self._group, *self._jobs)):
                    self._task.cancel()
            task, self._task = self._task, None
            await self._disconnect()
            if not task.cancelled():
                task.result()

    async def _run(self) -> None:
        while True:
            if not self._jobs:
                if self._closing:
                    return
                await self._signal.wait()
                continue
            group = [self._jobs.popleft() for _ in range(min(len(self._jobs), _GROUP))]
            self._group = group
            await self._commit(group, asyncio.get_running_loop().time() + self._effort_seconds)
            for job in group:
                job.deliver()
            self._group = []

    async def _commit(self, group: list[_Job], deadline: float) -> None:
        """Bring the group through; each job has its result or its error afterwards."""
        failure: BaseException = StoreUnavailable("the transaction was begun too often; it is tried again")
        uncertain: _Uncertain | None = None
        long_tries = 0
        for tries in range(1, _TRIES + 1):
            try:
                connection, group = await self._connected(deadline, group, uncertain)
            except Exception as error:
                _fail(group, named(error))
                return
            if not group:
                return
            uncertain, begun = None, asyncio.get_running_loop().time()
            try:
                await self._transact(connection, group)
                return
            except _Uncertain as error:
                failure, uncertain = error.error, error
                await self._disconnect()
                self._undo += [job.undo for job in group if job.undo is not None]
                for job in group:
                    job.uncertain = True
            except Exception as error:  # whatever it is, its caller learns it; the writer lives on
                failure = error
                await self._recover(failure)
                if self._connection is not None or isinstance(failure, psycopg.errors.TransactionTimeout):
                    if len(group) > 1:
                        for job in group:
                            await self._commit([job], deadline)
                        return
                    if not is_passing(failure):
                        break
                    await asyncio.sleep(random.uniform(0, 0.02 * tries))
            # Often all that comes is a connection that breaks.
            long_tries += asyncio.get_running_loop().time() - begun >= self._server.transaction_seconds
            if long_tries == _LONG_TRIES:
                failure = held_up(failure)
                break
        if uncertain is not None:
            with suppress(StoreError):  # the server stays away: it stays unknown
                _, group = await self._connected(deadline, group, uncertain)
        _fail(group, named(failure))

    async def _transact(self, connection: Connection, group: list[_Job]) -> None:
        """One implicit transaction: from the first statement of the pipeline to the Sync at its end."""
        # Notices that the server hung up while nothing was under way, before anything is sent into the void: the
        # first look takes its last words, the second finds the line dead.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
        undone = len(self._undo)
        answers = await self._send(connection, group)
        failpoints.reach("postgres.committed")
        del self._undo[:undone]
        for job, first, last in answers:
            await job.read(first, last)

    async def _send(self, connection: Connection, group: list[_Job]) -> list[_Answers]:
        """Send the transaction and see it committed; each job's answers are there to be read then."""
        answers: list[_Answers] = []
        number = None
        if any(job.once for job in group):
            number = self._number = self._number + 1
        inserts: list[Inserted] = []
        inserted.set(inserts)
        committing = False
        try:
            with bounded(connection, self._server.transaction_seconds + _ANSWER_SECONDS):
                async with connection.pipeline():
                    try:
                        await lock_sessions(connection, [session for job in group for session in job.sessions])
                        for undo in self._undo:
                            await undo(connection)
                        firsts = [await job.operation(connection) if job.operation else None for job in group]
                        await self._seal(connection, number, wakes=any(job.wakes for job in group))
                        for job, first in zip(group, firsts, strict=True):
                            answers.append(_Answers(job, first, await job.last(connection) if job.last else None))
                        failpoints.reach("postgres.commit")
                    except BaseException:
                        # The Sync that ends the pipeline commits; where the server has not failed itself, make it.
                        with suppress(psycopg.Error):
                            await connection.execute("ROLLBACK", prepare=False)
                        raise
                    committing = True
        except BaseException as error:
            if committing and is_lost(error, connection):
                raise _Uncertain(error, number, answers, inserts) from error
            raise
        return answers

    async def _seal(self, connection: Connection, number: int | None, *, wakes: bool) -> None:
        """Note that this group was committed, if somebody may have to know, and wake the nodes."""
        channel = self._server.channel if wakes else None
        if number is not None:
            await mark_commit(connection, self._server.writer_key, number, channel)
        elif channel is not None:
            await connection.execute("SELECT pg_notify(%s, '')", (channel,))

    async def _connected(
        self, deadline: float, group: list[_Job], uncertain: _Uncertain | None
    ) -> tuple[Connection, list[_Job]]:
        """The connection, made anew if it was lost, and what of the group is still to be done after an uncertain
        commit; StoreUnavailable when the server stays away."""
        delay = 0.05
        while True:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = await self._server.connect(key=self._server.writer_key)
                if uncertain is not None:
                    group = await self._settle(self._connection, group, uncertain)
                return self._connection, group
            except psycopg.Error as error:
                await self._disconnect()
                if asyncio.get_running_loop().time() + delay > deadline:
                    raise named(error) from error
                await asyncio.sleep(delay)
                delay = min(delay * 2, 0.5)

    async def _settle(self, connection: Connection, group: list[_Job], uncertain: _Uncertain) -> list[_Job]:
        """What is still to be done of a group whose commit got no answer. Whoever sent it is over by now."""
        if uncertain.number is None:
            return group
        with bounded(connection, _ANSWER_SECONDS):
            done = await recall(connection, self._server.writer_key, uncertain.number, uncertain.inserts)
        if not done:
            for job in group:
                job.uncertain = False
            return group
        for job, first, _ in uncertain.answers:
            if job.once:
                await job.read_once(first)
        return [job for job in group if job.error is None and (job.operation or job.last) is not None]

    async def _recover(self, error: BaseException) -> None:
        """Make the connection fit again after a failed transaction, or give it up."""
        if self._connection is not None and not is_lost(error, self._connection):
            # psycopg believes that what followed the failing statement was prepared; the server skipped it.
            # Each time another text: of one that it knows, psycopg does not look at what it did (psycopg 3.3).
            self._recoveries += 1
            with suppress(psycopg.Error):
                await self._connection.execute(f"DEALLOCATE ALL -- {self._recoveries}".encode(), prepare=False)
                return
        await self._disconnect()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class _Answers(NamedTuple):
    """How to read what came of a job."""

    job: _Job
    first: Answer[Any] | None
    last: Answer[Any] | None


class _Uncertain(Exception):
    """The connection was lost after the commit had been sent."""

    def __init__(
        self, error: BaseException, number: int | None, answers: Sequence[_Answers], inserts: list[Inserted]
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.number = number
        """Of the commit, if it has one."""
        self.answers = answers
        self.inserts = inserts


class _Job:
    __slots__ = (
        "error",
        "future",
        "last",
        "once",
        "operation",
        "result",
        "sessions",
        "uncertain",
        "undo",
        "value",
        "wakes",
    )

    def __init__(
        self,
        operation: Operation[Any] | None,
        last: Operation[Any] | None,
        undo: Operation[None] | None,
        wakes: bool,
        once: bool,
        sessions: Collection[str],
        future: asyncio.Future[Any],
    ) -> None:
        self.operation = operation
        self.last = last
        self.undo = undo
        self.wakes = wakes
        self.once = once and operation is not None
        self.sessions = sessions
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.uncertain = False
        """It was committed once, and nobody knows whether that happened."""
        self.value: Any = None
        """What its operation answered, once that is known to be committed."""

    async def read(self, first: Answer[Any] | None, last: Answer[Any] | None) -> None:
        """Take the answers. What goes wrong here goes wrong after the commit, and nothing is run again for it."""
        try:
            value = await first() if first is not None else self.value
            self.result = (value, await last()) if last is not None else value
        except Exception as error:
            self.error = named(error)

    async def read_once(self, first: Answer[Any] | None) -> None:
        """The operation is known to be committed: what is left is its `last`, which goes without it."""
        await self.read(first, None)
        self.value, self.operation, self.once = self.result, None, False

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
    reason = "the connection broke during the commit: check whether the change was made before you repeat it"
    unknown = OutcomeUnknown(reason)
    unknown.__cause__ = error
    return unknown
