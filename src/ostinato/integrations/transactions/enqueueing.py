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
from ostinato.integrations.transactions.outboxes import Outboxes
from ostinato.logs import get_logger
from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.models.work import Work
from ostinato.models.work_values import GivenCall
from ostinato.service.runs import EnqueueSpec, make_runs
from ostinato.service.transactions import Prepared
from ostinato.sync_async import Async, Runs, Sync, Transactions
from ostinato.tracing import sending
from ostinato.transactions import AioPendingRun, Decode, PendingRun, Target

__all__ = ["TransactionEnqueuer"]

log = get_logger("ostinato.outbox")


class _Written(NamedTuple):
    """Where a run is: in the ledger, or in a row of an outbox."""

    id: RunId | None
    outbox_id: str | None = None


class TransactionEnqueuer:
    """Answers transactions.TransactionDoor."""

    def __init__(
        self,
        clock: Callable[[], Clock],
        runs: tuple[Runs[Sync], Runs[Async]],
        transactions: tuple[Transactions[Sync], Transactions[Async]],
        encode: Callable[[str, Iterable[GivenCall]], Sequence[Work]],
        in_postgres: Callable[[], bool],
        outboxes: Outboxes,
        poke: Callable[..., None],
    ) -> None:
        self._clock = clock
        self._runs, self._aio_runs = runs
        self._transactions, self._aio_transactions = transactions
        self._encode = encode
        """Calls of a task as they are stored."""
        self._in_postgres = in_postgres
        """Whether the ledger is, just now: a rehearsal has another one, and another clock."""
        self._outboxes = outboxes
        self._poke = poke
        """Called after a commit that may have left something in an outbox."""
        self._lock = threading.Lock()
        self._last: Micros = 0
        self._has_warned = False
        self.at_once = False
        """In a rehearsal, whose ledger no transaction of the caller can reach: enqueue beside it, without delay."""

    def enqueue(
        self, target: Target, spec: EnqueueSpec, calls: Iterable[Any], decode: Decode
    ) -> Sequence[PendingRun[Any]]:
        """From sync code."""
        given = list(calls)
        if target.on_commit:
            return self._enqueue_on_commit(target, spec, given, decode)
        caller = recognise(target.connection)
        if caller.is_async:
            raise InvalidInput(
                f"{type(target.connection).__name__} has to be awaited",
                field="connection",
                hint="await task.using(connection=…).aio.enqueue(…)",
            )
        if self.at_once:
            ids = self._runs.enqueue(spec, given)
            return [PendingRun(id, None, self._runs, self._transactions, decode) for id in ids]
        with sending("enqueue", spec.task, len(given)):
            if self._may_be_ledger(caller):
                prepared = self._transactions.prepare(spec, given)
            else:
                prepared = Prepared(self._made(spec, given), None)
            written = caller.run(lambda db: self._write(caller, db, prepared)) if given else []
        return [PendingRun(id, row, self._runs, self._transactions, decode) for id, row in written]

    async def aio_enqueue(
        self, target: Target, spec: EnqueueSpec, calls: Iterable[Any], decode: Decode
    ) -> Sequence[AioPendingRun[Any]]:
        """From coroutines."""
        given = list(calls)
        if target.on_commit:
            raise InvalidInput(
                "on_commit is for sync code: Django's transactions are", field="on_commit", hint="leave out .aio"
            )
        caller = recognise(target.connection)
        if self.at_once:
            ids = await self._aio_runs.enqueue(spec, given)
            return [AioPendingRun(id, None, self._aio_runs, self._aio_transactions, decode) for id in ids]
        with sending("enqueue", spec.task, len(given)):
            if self._may_be_ledger(caller):
                prepared = await self._aio_transactions.prepare(spec, given)
            else:
                prepared = Prepared(self._made(spec, given), None)
            written = await caller.arun(lambda db: self._write(caller, db, prepared)) if given else []
        return [AioPendingRun(id, row, self._aio_runs, self._aio_transactions, decode) for id, row in written]

    def _made(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> Sequence[NewRun]:
        return make_runs(spec, self._encode(spec.task, calls), self._clock().now())

    def _may_be_ledger(self, caller: Caller) -> bool:
        return self._in_postgres() and caller.dialect == "postgresql"

    async def _write(self, caller: Caller, db: Connection, prepared: Prepared) -> list[_Written]:
        runs, ledger = prepared.runs, prepared.ledger
        if ledger is not None and await ledger.is_behind(db):
            if caller.is_two_phase:
                raise InvalidInput(
                    "a run wakes the nodes by NOTIFY, and PostgreSQL prepares no transaction that has one",
                    field="connection",
                    hint="commit in one phase, or enqueue after the commit, without the connection",
                )
            return [_Written(id) for id in await ledger.insert_runs(db, runs)]
        rows = await table.put(db, caller.dialect, runs, self._instants(len(runs)), caller.alias)
        caller.after_commit(self._poke)
        self._warn_if_undrained()
        return [_Written(None, row) for row in rows]

    def _instants(self, count: int) -> Micros:
        """The first of so many instants that nothing else of this process has, which keeps the order of its rows."""
        with self._lock:
            first = max(self._clock().now(), self._last + 1)
            self._last = first + count - 1
            return first

    def _warn_if_undrained(self) -> None:
        """Once: whoever forgot to declare the outbox would wait for its runs for ever."""
        if not self._has_warned and not any(self._outboxes):
            self._has_warned = True
            log.warning(
                "a run waits in the outbox of another database, and this app declares none: it is taken only by nodes "
                "whose app has called app.add_outbox(…)"
            )

    def _enqueue_on_commit(
        self, target: Target, spec: EnqueueSpec, calls: Sequence[GivenCall], decode: Decode
    ) -> Sequence[PendingRun[Any]]:
        """After the commit of Django, which knows when that is; at once, if there is no transaction."""
        alias = None if target.connection is None else getattr(target.connection, "alias", None)
        if target.connection is not None and alias is None:
            raise InvalidInput(
                f"{type(target.connection).__name__} is no connection of Django",
                field="connection",
                hint="leave it out, or give django.db.connections['name']",
            )
        connection = _django_connection(alias)
        self._made(spec, calls)  # what is wrong is told now, not after the commit
        pending: list[PendingRun[Any]] = [PendingRun(None, None, self._runs, self._transactions, decode) for _ in calls]

        def enqueue() -> None:
            for one, id in zip(pending, self._runs.enqueue(spec, calls), strict=True):
                one.id = id

        # In the context of here: what it belongs to is the trace of whoever asks, and not of whoever commits.
        connection.on_commit(partial(copy_context().run, enqueue))
        return pending


def _django_connection(alias: str | None) -> Any:
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.db import transaction
    except ModuleNotFoundError as error:
        raise InvalidInput(
            "on_commit needs Django, which is not installed", field="on_commit", hint="give a connection instead"
        ) from error
    try:
        return transaction.get_connection(using=alias)
    except ImproperlyConfigured as error:
        raise InvalidInput(
            "on_commit needs Django, whose settings are not configured here",
            field="on_commit",
            hint="call django.setup() first, or give a connection instead",
        ) from error
