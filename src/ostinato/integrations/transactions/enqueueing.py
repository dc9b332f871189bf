"""Enqueues through a connection of the caller: into the ledger, if it leads there, or into the outbox of its database.

What is wrong with the calls is found before the connection is touched, so that a refusal leaves the caller's
transaction as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

from ostinato.clock import Clock, Micros
from ostinato.errors import InvalidInput
from ostinato.integrations.transactions import table
from ostinato.integrations.transactions.connections import Caller, Connection, recognise
from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.models.work import Work
from ostinato.models.work_values import GivenCall
from ostinato.service.runs import EnqueueSpec, make_runs
from ostinato.service.transactions import Prepared
from ostinato.sync_async import Async, Runs, Sync, Transactions
from ostinato.tracing import sending
from ostinato.transactions import AioPendingRun, PendingRun, Target

__all__ = ["TransactionEnqueuer"]


class _Written(NamedTuple):
    """Where a run is: in the ledger, or in a row of an outbox."""

    id: RunId | None
    outbox_id: str | None = None


class TransactionEnqueuer:
    """Answers transactions.TransactionDoor."""

    def __init__(
        self,
        clock: Clock,
        runs: tuple[Runs[Sync], Runs[Async]],
        transactions: tuple[Transactions[Sync], Transactions[Async]],
        encode: Callable[[str, Iterable[GivenCall]], Sequence[Work]],
        in_postgres: Callable[[], bool],
        poke: Callable[..., None],
    ) -> None:
        self._clock = clock
        self._runs, self._aio_runs = runs
        self._transactions, self._aio_transactions = transactions
        self._encode = encode
        """Calls of a task as they are stored."""
        self._in_postgres = in_postgres
        """Whether the ledger is."""
        self._poke = poke
        """Called after a commit that may have left something in an outbox."""
        self._lock = threading.Lock()
        self._last: Micros = 0

    def enqueue(self, target: Target, spec: EnqueueSpec, calls: Iterable[Any]) -> Sequence[PendingRun]:
        """From sync code."""
        given = list(calls)
        if target.on_commit:
            return self._enqueue_on_commit(target, spec, given)
        with sending("enqueue", spec.task, len(given)):
            return self._enqueue(target, spec, given)

    def _enqueue(self, target: Target, spec: EnqueueSpec, given: Sequence[GivenCall]) -> Sequence[PendingRun]:
        caller = recognise(target.connection)
        if caller.is_async:
            raise InvalidInput(
                f"{type(target.connection).__name__} has to be awaited",
                field="connection",
                hint="await task.using(connection=…).aio.enqueue(…)",
            )
        if self._may_be_ledger(caller):
            prepared = self._transactions.prepare(spec, given)
        else:
            prepared = Prepared(self._made(spec, given), None)
        written = caller.run(lambda db: self._write(caller, db, prepared)) if given else []
        return [PendingRun(id, row, self._runs, self._transactions) for id, row in written]

    async def aio_enqueue(self, target: Target, spec: EnqueueSpec, calls: Iterable[Any]) -> Sequence[AioPendingRun]:
        """From coroutines."""
        given = list(calls)
        if target.on_commit:
            raise InvalidInput(
                "on_commit is for sync code: Django's transactions are", field="on_commit", hint="leave out .aio"
            )
        caller = recognise(target.connection)
        with sending("enqueue", spec.task, len(given)):
            if self._may_be_ledger(caller):
                prepared = await self._aio_transactions.prepare(spec, given)
            else:
                prepared = Prepared(self._made(spec, given), None)
            written = await caller.arun(lambda db: self._write(caller, db, prepared)) if given else []
        return [AioPendingRun(id, row, self._aio_runs, self._aio_transactions) for id, row in written]

    def _made(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> Sequence[NewRun]:
        return make_runs(spec, self._encode(spec.task, calls), self._clock.now())

    def _may_be_ledger(self, caller: Caller) -> bool:
        return self._in_postgres() and caller.dialect == "postgresql"

    async def _write(self, caller: Caller, db: Connection, prepared: Prepared) -> list[_Written]:
        runs, ledger = prepared.runs, prepared.ledger
        if ledger is not None and await ledger.is_behind(db):
            return [_Written(id) for id in await ledger.insert_runs(db, runs)]
        rows = await table.put(db, caller.dialect, runs, self._instants(len(runs)))
        caller.after_commit(self._poke)
        return [_Written(None, row) for row in rows]

    def _instants(self, count: int) -> Micros:
        """The first of so many instants that nothing else of this process has, which keeps the order of its rows."""
        with self._lock:
            first = max(self._clock.now(), self._last + 1)
            self._last = first + count - 1
            return first

    def _enqueue_on_commit(self, target: Target, spec: EnqueueSpec, calls: Sequence[GivenCall]) -> Sequence[PendingRun]:
        """After the commit of Django, which knows when that is; at once, if there is no transaction."""
        from django.db import transaction

        alias = None if target.connection is None else getattr(target.connection, "alias", None)
        if target.connection is not None and alias is None:
            raise InvalidInput(
                f"{type(target.connection).__name__} is no connection of Django",
                field="connection",
                hint="leave it out, or give django.db.connections['name']",
            )
        self._made(spec, calls)  # what is wrong is told now, not after the commit
        pending = [PendingRun(None, None, self._runs, self._transactions) for _ in calls]

        def enqueue() -> None:
            for one, id in zip(pending, self._runs.enqueue(spec, calls), strict=True):
                one.id = id

        # In the context of here: what it belongs to is the trace of whoever asks, and not of whoever commits.
        transaction.on_commit(partial(copy_context().run, enqueue), using=alias)
        return pending
