"""Enqueueing in a transaction of the caller: `task.using(connection=…)`, or `task.using(on_commit=True)`.

What is done with the connection is in `integrations/transactions`; the app hands it in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from ostinato.durations import Duration, parse_duration
from ostinato.errors import NotFound
from ostinato.models.ids import RunId
from ostinato.models.run import Run
from ostinato.models.work_values import GivenCall
from ostinato.service.runs import EnqueueSpec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class RunVerbs(Protocol):
        """What the handle of a run needs of its app, in the sync form."""

        def get(self, id: int) -> Run: ...
        def cancel(self, id: int) -> Run: ...
        def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...

    class AioRunVerbs(Protocol):
        """The same for coroutines."""

        async def get(self, id: int) -> Run: ...
        async def cancel(self, id: int) -> Run: ...
        async def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...

    class OutboxVerbs(Protocol):
        """How a run is found that comes out of an outbox."""

        def find(self, row: str) -> RunId: ...
        def arrive(self, row: str, *, timeout: Duration | None = None) -> RunId: ...

    class AioOutboxVerbs(Protocol):
        """The same for coroutines."""

        async def find(self, row: str) -> RunId: ...
        async def arrive(self, row: str, *, timeout: Duration | None = None) -> RunId: ...

    class TransactionDoor(Protocol):
        """What a task needs of its app to enqueue in a transaction."""

        def enqueue(self, target: Target, spec: EnqueueSpec, calls: Iterable[Any]) -> Sequence[PendingRun]: ...

        async def aio_enqueue(
            self, target: Target, spec: EnqueueSpec, calls: Iterable[Any]
        ) -> Sequence[AioPendingRun]: ...


__all__ = ["AioPendingRun", "AioTransactionCalls", "PendingRun", "Target", "TransactionCalls"]

P = ParamSpec("P")
Arguments = Callable[[Iterable[Any]], Iterable[GivenCall]]


@dataclass(frozen=True, slots=True)
class Target:
    """Through what is enqueued."""

    connection: object | None
    """A connection or session of the caller."""
    on_commit: bool = False
    """Not in the transaction, but by a callback after its commit (Django)."""


@dataclass(slots=True, eq=False)
class PendingRun:
    """A run that was enqueued in a transaction: it exists once that is committed."""

    id: RunId | None
    """Its number. None until the commit, if it is enqueued on commit; None until `get` or `wait` has found it, if it
    comes by way of an outbox."""
    outbox_id: str | None
    """Its row in the outbox of the caller's database; None if it is in the ledger itself."""
    _runs: RunVerbs
    _outbox: OutboxVerbs

    def get(self) -> Run:
        """Its row, as it is now; NotFound before the commit, and after a rollback."""
        if self.id is None:
            self.id = self._outbox.find(_row_of(self))
        with _Committed(self.id):
            return self._runs.get(self.id)

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended. Commit first: what is not committed cannot start."""
        until = _until(timeout)
        if self.id is None:
            self.id = self._outbox.arrive(_row_of(self), timeout=timeout)
        with _Committed(self.id):
            return self._runs.wait(self.id, timeout=_left(until))

    def cancel(self) -> Run:
        """Cancel it."""
        return self._runs.cancel(self.get().id)

    def __repr__(self) -> str:
        return _repr(self)


@dataclass(slots=True, eq=False)
class AioPendingRun:
    """The same for coroutines."""

    id: RunId | None
    outbox_id: str | None
    _runs: AioRunVerbs
    _outbox: AioOutboxVerbs

    async def get(self) -> Run:
        """Its row, as it is now; NotFound before the commit, and after a rollback."""
        if self.id is None:
            self.id = await self._outbox.find(_row_of(self))
        with _Committed(self.id):
            return await self._runs.get(self.id)

    async def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended. Commit first: what is not committed cannot start."""
        until = _until(timeout)
        if self.id is None:
            self.id = await self._outbox.arrive(_row_of(self), timeout=timeout)
        with _Committed(self.id):
            return await self._runs.wait(self.id, timeout=_left(until))

    async def cancel(self) -> Run:
        """Cancel it."""
        return await self._runs.cancel((await self.get()).id)

    def __repr__(self) -> str:
        return _repr(self)


class TransactionCalls(Generic[P]):
    """How calls of a task are enqueued in a transaction of the caller."""

    def __init__(self, target: Target, spec: EnqueueSpec, door: TransactionDoor, arguments: Arguments) -> None:
        self._target = target
        self._spec = spec
        self._door = door
        self._arguments = arguments

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> PendingRun:
        """Run it once the transaction is committed, on any node that knows the task."""
        (pending,) = self._door.enqueue(self._target, self._spec, [(args, kwargs)])
        return pending

    def enqueue_many(self, calls: Iterable[tuple[Any, ...] | Mapping[str, Any]]) -> list[PendingRun]:
        """One run for each call."""
        return list(self._door.enqueue(self._target, self._spec, self._arguments(calls)))

    @property
    def aio(self) -> AioTransactionCalls[P]:
        """The same for coroutines."""
        return AioTransactionCalls(self._target, self._spec, self._door, self._arguments)


class AioTransactionCalls(Generic[P]):
    """The same from coroutines."""

    def __init__(self, target: Target, spec: EnqueueSpec, door: TransactionDoor, arguments: Arguments) -> None:
        self._target = target
        self._spec = spec
        self._door = door
        self._arguments = arguments

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> AioPendingRun:
        """Run it once the transaction is committed."""
        (pending,) = await self._door.aio_enqueue(self._target, self._spec, [(args, kwargs)])
        return pending

    async def enqueue_many(self, calls: Iterable[tuple[Any, ...] | Mapping[str, Any]]) -> list[AioPendingRun]:
        """One run for each call."""
        return list(await self._door.aio_enqueue(self._target, self._spec, self._arguments(calls)))


class _Committed:
    """Says what it means that there is no such run."""

    def __init__(self, id: RunId) -> None:
        self._id = id

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NotFound):
            raise NotFound(
                f"there is no run {self._id}: the transaction that enqueued it is not committed yet, or was rolled back"
            ) from None


def _row_of(pending: PendingRun | AioPendingRun) -> str:
    if pending.outbox_id is None:
        raise NotFound("there is no run yet: it is enqueued when the transaction is committed")
    return pending.outbox_id


def _repr(pending: PendingRun | AioPendingRun) -> str:
    if pending.id is not None:
        return f"<run {pending.id}>"
    return "<run, once it is committed>" if pending.outbox_id is None else f"<run of outbox row {pending.outbox_id}>"


def _until(timeout: Duration | None) -> float | None:
    return None if timeout is None else time.monotonic() + parse_duration(timeout, field="timeout").total_seconds()


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())
