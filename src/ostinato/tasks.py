"""A task as its user holds it: the function, still callable, and ways to enqueue calls of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, Unpack, overload

from ostinato.chain_handles import Shape
from ostinato.chains import Chainable, ChainDoors, Plan
from ostinato.durations import Duration
from ostinato.errors import InvalidInput
from ostinato.execution.binding import bind_context
from ostinato.execution.context import RunContext
from ostinato.execution.registry import TaskDefinition
from ostinato.models.ids import RunId, RunIds, RunLike
from ostinato.models.policy import PolicyOptions
from ostinato.models.run import Run
from ostinato.models.work_values import GivenCall
from ostinato.run_handles import RunHandle, as_it_is
from ostinato.service.chains import ChainCall
from ostinato.service.runs import EnqueueSpec, check_succeeded
from ostinato.transactions import AioPendingRun, Call, Target, TaskCall, TransactionCalls

if TYPE_CHECKING:
    from typing import Protocol

    from ostinato.transactions import TransactionDoor

    class RunDoor(Protocol):
        """What a task needs of its app, in the sync form."""

        def enqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> RunIds: ...
        def get(self, id: int) -> Run: ...
        def cancel(self, id: int) -> Run: ...
        def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...

    class AioRunDoor(Protocol):
        """The same for coroutines."""

        async def enqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> RunIds: ...
        async def wait(self, id: RunLike, *, timeout: Duration | None = None) -> Run: ...


__all__ = ["Task", "TaskCall"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

_NOT_GIVEN = object()
"""A connection that is None was given, and is a mistake."""


class Calls(Chainable[P, R], Generic[P, R]):
    """How calls of a task are enqueued; `using` makes another with other settings."""

    _takes_arguments = True

    def __init__(
        self,
        spec: EnqueueSpec,
        runs: RunDoor,
        aio_runs: AioRunDoor,
        transactions: TransactionDoor,
        chains: ChainDoors,
        decode: Callable[[Any], Any] = as_it_is,
    ) -> None:
        self._spec = spec
        self._runs = runs
        self._aio_runs = aio_runs
        self._transactions = transactions
        self._chains = chains
        self._decode = decode

    @overload
    def using(
        self,
        *,
        on_commit: Literal[False] = False,
        key: str | None = None,
        scope: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Calls[P, R]: ...

    @overload
    def using(
        self,
        *,
        connection: object,
        on_commit: bool = False,
        key: str | None = None,
        scope: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> TransactionCalls[P, R]: ...

    @overload
    def using(
        self,
        *,
        on_commit: Literal[True],
        key: str | None = None,
        scope: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> TransactionCalls[P, R]: ...

    @overload
    def using(
        self,
        *,
        on_commit: bool,
        key: str | None = None,
        scope: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Calls[P, R] | TransactionCalls[P, R]: ...

    def using(
        self,
        *,
        connection: object = _NOT_GIVEN,
        on_commit: bool = False,
        key: str | None = None,
        scope: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Calls[P, R] | TransactionCalls[P, R]:
        """The same task with a key (unique while active, in this task or in a scope that tasks share), a delay or
        time, or another lane, priority, retry, …

        With a `connection` (or session) of psycopg, SQLAlchemy or Django, what is enqueued belongs to its transaction:
        it is committed or rolled back with it. With `on_commit`, Django enqueues it after the commit.
        """
        spec = replace(self._spec, key=key, scope=scope, delay=delay, at=at, options={**self._spec.options, **policy})
        if connection is None:
            raise InvalidInput(
                "connection cannot be None: nothing would commit the run or roll it back",
                field="connection",
                hint="give one of psycopg, SQLAlchemy or Django, or leave it out to enqueue at once",
            )
        if connection is _NOT_GIVEN and not on_commit:
            return Calls(spec, self._runs, self._aio_runs, self._transactions, self._chains, self._decode)
        target = Target(None if connection is _NOT_GIVEN else connection, on_commit)
        return TransactionCalls(target, spec, self._transactions, partial(_given, spec.task), self._decode)

    @overload
    def enqueue(self: Calls[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> RunHandle[T]: ...

    @overload
    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R]: ...

    def enqueue(self, *args: Any, **kwargs: Any) -> RunHandle[Any]:
        """Run it soon, on any node that knows the task. The run is durable when this returns."""
        ids = self._runs.enqueue(self._spec, [(args, kwargs)])
        return RunHandle(ids[0], self._runs, self._decode, is_new=ids[0] not in ids.known)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> TaskCall[P, R]:
        """One call for `enqueue_many`, or of a chain. Nothing is enqueued yet."""
        return TaskCall(self._spec, args, kwargs, self._chains, self._decode)

    @overload
    def enqueue_many(self: Calls[P, Coroutine[Any, Any, T]], calls: Iterable[Call[P]]) -> list[RunHandle[T]]: ...

    @overload
    def enqueue_many(self, calls: Iterable[Call[P]]) -> list[RunHandle[R]]: ...

    def enqueue_many(self, calls: Iterable[Any]) -> list[RunHandle[Any]]:
        """One run for each call, all in one transaction. A call is a `task.call(…)`, which a type checker sees; or a
        tuple of arguments, or a mapping of keyword arguments."""
        ids = self._runs.enqueue(self._spec, _given(self._spec.task, calls))
        return [RunHandle(id, self._runs, self._decode) for id in ids]

    def _lay(self, plan: Plan, after: Sequence[int], given: GivenCall) -> Shape:
        return plan.add(ChainCall(self._spec, given, after), self._chains, self._decode)

    def _label(self) -> str:
        return self._spec.task

    @property
    def aio(self) -> AioCalls[P, R]:
        """The same for coroutines."""
        return AioCalls(self._spec, self._aio_runs, self._decode)


class AioCalls(Generic[P, R]):
    """Enqueueing from coroutines; returns the numbers of the runs, for which `result` waits."""

    def __init__(self, spec: EnqueueSpec, runs: AioRunDoor, decode: Callable[[Any], Any]) -> None:
        self._spec = spec
        self._runs = runs
        self._decode = decode

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunId:
        """Run it soon."""
        return (await self._runs.enqueue(self._spec, [(args, kwargs)]))[0]

    async def enqueue_many(self, calls: Iterable[Call[P]]) -> list[RunId]:
        """One run for each call, all in one transaction."""
        return list(await self._runs.enqueue(self._spec, _given(self._spec.task, calls)))

    @overload
    async def result(self: AioCalls[P, Coroutine[Any, Any, T]], id: RunLike, timeout: Duration | None = None) -> T: ...

    @overload
    async def result(self, id: RunLike, timeout: Duration | None = None) -> R: ...

    async def result(self, id: RunLike, timeout: Duration | None = None) -> Any:
        """Wait until a run of this task has ended; what the function returned, or raises as `RunHandle.result` does.
        Takes its number, or its handle."""
        ended = await (id.wait(timeout) if isinstance(id, AioPendingRun) else self._runs.wait(id, timeout=timeout))
        return self._decode(check_succeeded(ended).result)


class Task(Calls[P, R], Generic[P, R]):
    """A registered function. Calling it calls the function, as if it were not decorated."""

    def __init__(
        self,
        definition: TaskDefinition,
        runs: RunDoor,
        aio_runs: AioRunDoor,
        transactions: TransactionDoor,
        chains: ChainDoors,
    ) -> None:
        decode = as_it_is if definition.signature is None else definition.signature.decode_result
        spec = EnqueueSpec(definition.name, definition.options)
        super().__init__(spec, runs, aio_runs, transactions, chains, decode)
        function = definition.function
        self.name = definition.name
        self.function = function
        self.options = definition.options
        self.contexts = definition.contexts
        """What is entered around each of its runs."""
        self._context_parameter = definition.context_parameter
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", definition.name)
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now. Its RunContext may be left out: it gets one that belongs to no run, unless
        it has a default."""
        parameter = self._context_parameter
        if (
            parameter is None
            or parameter.has_default
            or parameter.name in kwargs
            or any(isinstance(value, RunContext) for value in args)
        ):
            result: R = self.function(*args, **kwargs)
            return result
        bound_args, bound_kwargs = bind_context(parameter, args, kwargs, RunContext.detached())
        bound: R = self.function(*bound_args, **bound_kwargs)
        return bound

    def __repr__(self) -> str:
        return f"<task {self.name}>"


def _given(task: str, calls: Iterable[Any]) -> Iterable[GivenCall]:
    for call in calls:
        if isinstance(call, tuple):
            yield call, {}
        elif isinstance(call, Mapping):
            yield (), call
        elif isinstance(call, TaskCall) and call.task == task:
            yield call.args, call.kwargs
        else:
            raise InvalidInput(
                f"a call cannot be {call!r}",
                field="calls",
                hint="give task.call('a', 1), a tuple of arguments, or a dict of keyword arguments",
            )
