"""Enqueueing in a transaction of the caller: `task.using(connection=…)`, or `task.using(on_commit=True)`.

What is done with the connection is in `integrations/transactions`; the app hands it in.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from ostinato.chain_handles import Shape
from ostinato.chains import Chainable, ChainDoors, InTransaction, Plan
from ostinato.durations import Duration
from ostinato.errors import NotFound
from ostinato.models.ids import RunId
from ostinato.models.run import Run
from ostinato.models.work_values import GivenCall
from ostinato.service.chains import ChainCall
from ostinato.service.runs import EnqueueSpec, check_succeeded
from ostinato.waiting import left_of, until_after

if TYPE_CHECKING:
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

        def enqueue(
            self, target: Target, spec: EnqueueSpec, calls: Iterable[Any], decode: Decode
        ) -> Sequence[PendingRun[Any]]: ...

        async def aio_enqueue(
            self, target: Target, spec: EnqueueSpec, calls: Iterable[Any], decode: Decode
        ) -> Sequence[AioPendingRun[Any]]: ...


__all__ = ["AioPendingRun", "AioTransactionCalls", "Call", "PendingRun", "Target", "TaskCall", "TransactionCalls"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")
Decode = Callable[[Any], Any]
"""From the stored result to what the function returned."""
Arguments = Callable[[Iterable[Any]], Iterable[GivenCall]]


class TaskCall(Chainable[[], R], Generic[P, R]):
    """One call for `enqueue_many`, or of a chain, made by `task.call(…)`: a type checker sees its arguments."""

    def __init__(
        self, spec: EnqueueSpec, args: tuple[Any, ...], kwargs: Mapping[str, Any], doors: ChainDoors, decode: Decode
    ) -> None:
        self.task = spec.task
        self.args = args
        self.kwargs = kwargs
        self._spec = spec
        self._doors = doors
        self._decode = decode

    def _lay(self, plan: Plan, after: Sequence[int], given: GivenCall) -> Shape:
        return plan.add(ChainCall(self._spec, (self.args, self.kwargs), after), self._doors, self._decode)

    def _label(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.task}({', '.join(given)})"

    def __repr__(self) -> str:
        return f"<call {self._label()}>"


Call = TaskCall[P, Any] | tuple[Any, ...] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Through what is enqueued."""

    connection: object | None
    """A connection or session of the caller."""
    on_commit: bool = False
    """Not in the transaction, but by a callback after its commit (Django)."""


@dataclass(slots=True, eq=False)
class PendingRun(Generic[R]):
    """A run that was enqueued in a transaction: it exists once that is committed."""

    id: RunId | None
    """Its number. None until the commit, if it is enqueued on commit; None until `get` or `wait` has found it, if it
    comes by way of an outbox."""
    outbox_id: str | None
    """Its row in the outbox of the caller's database; None if it is in the ledger itself."""
    _runs: RunVerbs
    _outbox: OutboxVerbs
    _decode: Decode

    def get(self) -> Run:
        """Its row, as it is now; NotFound before the commit, and after a rollback."""
        if self.id is None:
            self.id = self._outbox.find(_row_of(self))
        with _Committed(self.id):
            return self._runs.get(self.id)

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended. Commit first: what is not committed cannot start."""
        until = until_after(timeout)
        if self.id is None:
            self.id = self._outbox.arrive(_row_of(self), timeout=timeout)
        with _Committed(self.id):
            return self._runs.wait(self.id, timeout=left_of(until))

    def result(self, timeout: Duration | None = None) -> R:
        """Wait until it has ended; what the function returned, or raises as `RunHandle.result` does. Commit first."""
        result: R = self._decode(check_succeeded(self.wait(timeout)).result)
        return result

    def cancel(self) -> Run:
        """Cancel it."""
        return self._runs.cancel(self.get().id)

    def __repr__(self) -> str:
        return _repr(self)


@dataclass(slots=True, eq=False)
class AioPendingRun(Generic[R]):
    """The same for coroutines."""

    id: RunId | None
    outbox_id: str | None
    _runs: AioRunVerbs
    _outbox: AioOutboxVerbs
    _decode: Decode

    async def get(self) -> Run:
        """Its row, as it is now; NotFound before the commit, and after a rollback."""
        if self.id is None:
            self.id = await self._outbox.find(_row_of(self))
        with _Committed(self.id):
            return await self._runs.get(self.id)

    async def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended. Commit first: what is not committed cannot start."""
        until = until_after(timeout)
        if self.id is None:
            self.id = await self._outbox.arrive(_row_of(self), timeout=timeout)
        with _Committed(self.id):
            return await self._runs.wait(self.id, timeout=left_of(until))

    async def result(self, timeout: Duration | None = None) -> R:
        """Wait until it has ended; what the function returned, or raises as `RunHandle.result` does. Commit first."""
        result: R = self._decode(check_succeeded(await self.wait(timeout)).result)
        return result

    async def cancel(self) -> Run:
        """Cancel it."""
        return await self._runs.cancel((await self.get()).id)

    def __repr__(self) -> str:
        return _repr(self)


class TransactionCalls(InTransaction, Generic[P, R]):
    """How calls of a task are enqueued in a transaction of the caller."""

    def __init__(
        self, target: Target, spec: EnqueueSpec, door: TransactionDoor, arguments: Arguments, decode: Decode
    ) -> None:
        self._target = target
        self._spec = spec
        self._door = door
        self._arguments = arguments
        self._decode = decode

    @overload
    def enqueue(
        self: TransactionCalls[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> PendingRun[T]: ...

    @overload
    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> PendingRun[R]: ...

    def enqueue(self, *args: Any, **kwargs: Any) -> PendingRun[Any]:
        """Run it once the transaction is committed, on any node that knows the task."""
        (pending,) = self._door.enqueue(self._target, self._spec, [(args, kwargs)], self._decode)
        return pending

    @overload
    def enqueue_many(
        self: TransactionCalls[P, Coroutine[Any, Any, T]], calls: Iterable[Call[P]]
    ) -> list[PendingRun[T]]: ...

    @overload
    def enqueue_many(self, calls: Iterable[Call[P]]) -> list[PendingRun[R]]: ...

    def enqueue_many(self, calls: Iterable[Any]) -> list[PendingRun[Any]]:
        """One run for each call."""
        return list(self._door.enqueue(self._target, self._spec, self._arguments(calls), self._decode))

    @property
    def aio(self) -> AioTransactionCalls[P, R]:
        """The same for coroutines."""
        return AioTransactionCalls(self._target, self._spec, self._door, self._arguments, self._decode)


class AioTransactionCalls(Generic[P, R]):
    """The same from coroutines."""

    def __init__(
        self, target: Target, spec: EnqueueSpec, door: TransactionDoor, arguments: Arguments, decode: Decode
    ) -> None:
        self._target = target
        self._spec = spec
        self._door = door
        self._arguments = arguments
        self._decode = decode

    @overload
    async def enqueue(
        self: AioTransactionCalls[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> AioPendingRun[T]: ...

    @overload
    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> AioPendingRun[R]: ...

    async def enqueue(self, *args: Any, **kwargs: Any) -> AioPendingRun[Any]:
        """Run it once the transaction is committed."""
        (pending,) = await self._door.aio_enqueue(self._target, self._spec, [(args, kwargs)], self._decode)
        return pending

    @overload
    async def enqueue_many(
        self: AioTransactionCalls[P, Coroutine[Any, Any, T]], calls: Iterable[Call[P]]
    ) -> list[AioPendingRun[T]]: ...

    @overload
    async def enqueue_many(self, calls: Iterable[Call[P]]) -> list[AioPendingRun[R]]: ...

    async def enqueue_many(self, calls: Iterable[Any]) -> list[AioPendingRun[Any]]:
        """One run for each call."""
        return list(await self._door.aio_enqueue(self._target, self._spec, self._arguments(calls), self._decode))


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


def _row_of(pending: PendingRun[Any] | AioPendingRun[Any]) -> str:
    if pending.outbox_id is None:
        raise NotFound("there is no run yet: it is enqueued when the transaction is committed")
    return pending.outbox_id


def _repr(pending: PendingRun[Any] | AioPendingRun[Any]) -> str:
    if pending.id is not None:
        return f"<run {pending.id}>"
    return "<run, once it is committed>" if pending.outbox_id is None else f"<run of outbox row {pending.outbox_id}>"
