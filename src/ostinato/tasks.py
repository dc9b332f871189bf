"""A task as its user holds it: the function, still callable, and ways to enqueue calls of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, overload

from ostinato.durations import Duration
from ostinato.errors import InvalidInput
from ostinato.execution.binding import bind_context
from ostinato.execution.context import RunContext
from ostinato.execution.registry import TaskDefinition
from ostinato.models.ids import RunId
from ostinato.models.policy import PolicyOptions
from ostinato.models.run import Run
from ostinato.service.runs import EnqueueSpec
from ostinato.transactions import Target, TransactionCalls

if TYPE_CHECKING:
    from typing import Protocol

    from ostinato.transactions import TransactionDoor

    class RunDoor(Protocol):
        """What a task needs of its app, in the sync form."""

        def enqueue(self, spec: EnqueueSpec, calls: Iterable[Any]) -> Iterable[RunId]: ...
        def get(self, id: int) -> Run: ...
        def cancel(self, id: int) -> Run: ...
        def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...

    class SessionDoor(Protocol):
        """What the handle of a message needs of its app."""

        def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...

    class AioRunDoor(Protocol):
        """The same for coroutines."""

        async def enqueue(self, spec: EnqueueSpec, calls: Iterable[Any]) -> Iterable[RunId]: ...


__all__ = ["MessageHandle", "RunHandle", "Task"]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

CallArguments = tuple[Any, ...] | Mapping[str, Any]
"""One call in enqueue_many: a tuple of arguments, or a mapping of keyword arguments."""


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run that was enqueued."""

    id: RunId
    _runs: RunDoor

    def get(self) -> Run:
        """Its row, as it is now."""
        return self._runs.get(self.id)

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended."""
        return self._runs.wait(self.id, timeout=timeout)

    def cancel(self) -> Run:
        """Cancel it."""
        return self._runs.cancel(self.id)

    def __repr__(self) -> str:
        return f"<run {self.id}>"


@dataclass(frozen=True, slots=True, repr=False)
class MessageHandle(RunHandle):
    """The run that carries a message."""

    _sessions: SessionDoor

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended; raises what kept it from starting: QueueDropped, LaneCleared, MessageStale."""
        return self._sessions.wait(self.id, timeout=timeout)


class Calls(Generic[P]):
    """How calls of a task are enqueued; `using` makes another with other settings."""

    def __init__(self, spec: EnqueueSpec, runs: RunDoor, aio_runs: AioRunDoor, transactions: TransactionDoor) -> None:
        self._spec = spec
        self._runs = runs
        self._aio_runs = aio_runs
        self._transactions = transactions

    @overload
    def using(
        self,
        *,
        key: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Calls[P]: ...

    @overload
    def using(
        self,
        *,
        connection: object,
        on_commit: bool = False,
        key: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> TransactionCalls[P]: ...

    @overload
    def using(
        self,
        *,
        on_commit: bool,
        key: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> TransactionCalls[P]: ...

    def using(
        self,
        *,
        connection: object | None = None,
        on_commit: bool | None = None,
        key: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Calls[P] | TransactionCalls[P]:
        """The same task with a key (unique while active), a delay or time, or another lane, priority, retry, …

        With a `connection` (or session) of psycopg, SQLAlchemy or Django, what is enqueued belongs to its transaction:
        it is committed or rolled back with it. With `on_commit`, Django enqueues it after the commit.
        """
        spec = replace(self._spec, key=key, delay=delay, at=at, options={**self._spec.options, **policy})
        if connection is None and on_commit is None:
            return Calls(spec, self._runs, self._aio_runs, self._transactions)
        return TransactionCalls(Target(connection, bool(on_commit)), spec, self._transactions, _arguments)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle:
        """Run it soon, on any node that knows the task. The run is durable when this returns."""
        (id,) = self._runs.enqueue(self._spec, [(args, kwargs)])
        return RunHandle(id, self._runs)

    def enqueue_many(self, calls: Iterable[CallArguments]) -> list[RunHandle]:
        """One run for each call, all in one transaction."""
        ids = self._runs.enqueue(self._spec, _arguments(calls))
        return [RunHandle(id, self._runs) for id in ids]

    @property
    def aio(self) -> AioCalls[P]:
        """The same for coroutines."""
        return AioCalls(self._spec, self._aio_runs)


class AioCalls(Generic[P]):
    """Enqueueing from coroutines; returns the ids of the runs."""

    def __init__(self, spec: EnqueueSpec, runs: AioRunDoor) -> None:
        self._spec = spec
        self._runs = runs

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> RunId:
        """Run it soon."""
        (id,) = await self._runs.enqueue(self._spec, [(args, kwargs)])
        return id

    async def enqueue_many(self, calls: Iterable[CallArguments]) -> list[RunId]:
        """One run for each call, all in one transaction."""
        return list(await self._runs.enqueue(self._spec, _arguments(calls)))


class Task(Calls[P], Generic[P, R]):
    """A registered function. Calling it calls the function, as if it were not decorated."""

    def __init__(
        self, definition: TaskDefinition, runs: RunDoor, aio_runs: AioRunDoor, transactions: TransactionDoor
    ) -> None:
        super().__init__(EnqueueSpec(definition.name, definition.options), runs, aio_runs, transactions)
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
        """Call the function here and now. Its RunContext may be left out: it gets one that belongs to no run."""
        parameter = self._context_parameter
        if parameter is None or parameter.name in kwargs or any(isinstance(value, RunContext) for value in args):
            result: R = self.function(*args, **kwargs)
            return result
        bound_args, bound_kwargs = bind_context(parameter, args, kwargs, RunContext.detached())
        bound: R = self.function(*bound_args, **bound_kwargs)
        return bound

    def __repr__(self) -> str:
        return f"<task {self.name}>"


def _arguments(calls: Iterable[CallArguments]) -> Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    for call in calls:
        if isinstance(call, tuple):
            yield call, {}
        elif isinstance(call, Mapping):
            yield (), call
        else:
            raise InvalidInput(
                f"a call cannot be {call!r}",
                field="calls",
                hint="give a tuple of arguments, ('a', 1), or a dict of keyword arguments",
            )
