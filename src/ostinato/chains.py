"""Chains in code: `a.then(b)`, `group([…]).then(c)`, nested as one likes. A step is a task, or a call of one.

Nothing is in the ledger before `enqueue`, which puts all of it there at once. `tasks.py` has the tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, ParamSpec, TypeVar, overload

from ostinato.chain_handles import AioChainHandle, ChainHandle, Shape, places_of
from ostinato.errors import InvalidInput
from ostinato.models.work_values import GivenCall
from ostinato.run_handles import RunHandle
from ostinato.service.chains import ChainCall

if TYPE_CHECKING:
    from typing import Protocol

    from ostinato import chain_handles, run_handles
    from ostinato.models.ids import RunIds

    class ChainDoor(chain_handles.ChainVerbs, Protocol):
        """What a chain needs of its app, in the sync form."""

        def enqueue(self, calls: Sequence[ChainCall]) -> RunIds: ...

    class AioChainDoor(chain_handles.AioChainVerbs, Protocol):
        """The same for coroutines."""

        async def enqueue(self, calls: Sequence[ChainCall]) -> RunIds: ...


__all__ = [
    "AioChain",
    "Chain",
    "ChainDoors",
    "Chainable",
    "Group",
    "InTransaction",
    "Plan",
    "Step",
    "group",
]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")

_NO_ARGUMENTS: GivenCall = ((), {})
_STEPS = "give a task, task.using(…), task.call(…), a chain or a group"


class ChainDoors(NamedTuple):
    """Where chains are enqueued: one app's, in both forms."""

    chains: ChainDoor
    aio_chains: AioChainDoor
    runs: run_handles.RunVerbs


class Plan:
    """The steps of a chain in the order in which they are put into the ledger."""

    def __init__(self) -> None:
        self.calls: list[ChainCall] = []
        self.decodes: list[Callable[[Any], Any]] = []
        self._doors: ChainDoors | None = None

    def add(self, call: ChainCall, doors: ChainDoors, decode: Callable[[Any], Any]) -> int:
        """Add a step; answers its place."""
        if self._doors is not None and self._doors.chains is not doors.chains:
            raise InvalidInput(f"task {call.spec.task!r} belongs to another app", field="steps", hint=_ONE_APP)
        self._doors = doors
        self.calls.append(call)
        self.decodes.append(decode)
        return len(self.calls) - 1

    @property
    def doors(self) -> ChainDoors:
        """Those of its tasks, of which there is at least one."""
        assert self._doors is not None
        return self._doors


_ONE_APP = "a chain is in one ledger: let its last step there enqueue the first one of the other app"


class Step(ABC, Generic[R]):
    """A part of a chain, whose result is an R."""

    _takes_arguments = False
    """Whether `enqueue` may give it arguments."""

    @abstractmethod
    def _lay(self, plan: Plan, after: Sequence[int], given: GivenCall) -> Shape:
        """Add it to a plan, behind these places; answers with which it ends."""

    @abstractmethod
    def _label(self) -> str:
        """How a chain with it shows it."""


class Chainable(Step[R], Generic[P, R]):
    """What others may run after."""

    @overload
    def then(self, step: Step[Coroutine[Any, Any, T]]) -> Chain[P, T]: ...

    @overload
    def then(self, step: Step[T]) -> Chain[P, T]: ...

    def then(self, step: Step[Any]) -> Chain[P, Any]:
        """A chain: that step runs when this has succeeded, and is skipped if it has not. Of a group, when all of it
        has."""
        return Chain((*self._series(), _checked(step)))

    def _series(self) -> Sequence[Step[Any]]:
        """What runs one after the other in it."""
        return (self,)


class Chain(Chainable[P, R]):
    """Steps that run one after the other."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = tuple(steps)
        self._takes_arguments = steps[0]._takes_arguments

    def _series(self) -> Sequence[Step[Any]]:
        return self._steps

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> ChainHandle[R]:
        """Put all of it into the ledger, in one transaction. The arguments are those of its first step."""
        plan, last = self._planned((args, kwargs))
        ids = plan.doors.chains.enqueue(plan.calls)
        runs = plan.doors.runs
        # Two steps of one key are one run: it was made for the first of them.
        first = {id: place for place, id in reversed(list(enumerate(ids)))}
        steps: list[RunHandle[Any]] = [
            RunHandle(id, runs, decode, is_new=id not in ids.known and first[id] == place)
            for place, (id, decode) in enumerate(zip(ids, plan.decodes, strict=True))
        ]
        return ChainHandle(steps, plan.doors.chains, last)

    @property
    def aio(self) -> AioChain[P, R]:
        """The same for coroutines."""
        return AioChain(self)

    def _planned(self, given: GivenCall) -> tuple[Plan, Shape]:
        if given != _NO_ARGUMENTS and not self._takes_arguments:
            raise InvalidInput(
                "the first step of this chain has its arguments already, or is a group",
                field="args",
                hint="give each step its own: task.call(…)",
            )
        plan = Plan()
        return plan, self._lay(plan, (), given)

    def _lay(self, plan: Plan, after: Sequence[int], given: GivenCall) -> Shape:
        last = self._steps[0]._lay(plan, after, given)
        for step in self._steps[1:]:
            last = step._lay(plan, places_of(last), _NO_ARGUMENTS)
        return last

    def _label(self) -> str:
        return " → ".join(step._label() for step in self._steps)

    def __repr__(self) -> str:
        return f"<chain {self._label()}>"


class AioChain(Generic[P, R]):
    """Enqueueing a chain from coroutines."""

    def __init__(self, chain: Chain[P, R]) -> None:
        self._chain = chain

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> AioChainHandle[R]:
        """Put all of it into the ledger, in one transaction. The arguments are those of its first step."""
        plan, last = self._chain._planned((args, kwargs))
        doors = plan.doors
        ids = await doors.aio_chains.enqueue(plan.calls)
        return AioChainHandle(ids, doors.aio_chains, plan.decodes, last)


class Group(Chainable[[], list[T]]):
    """Steps that run side by side. Its result is the list of theirs, in their order."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = tuple(steps)

    def enqueue(self) -> ChainHandle[list[T]]:
        """Put all of it into the ledger, in one transaction."""
        return self._alone().enqueue()

    @property
    def aio(self) -> AioChain[[], list[T]]:
        """The same for coroutines."""
        return AioChain(self._alone())

    def _alone(self) -> Chain[[], list[T]]:
        return Chain((self,))

    def _lay(self, plan: Plan, after: Sequence[int], given: GivenCall) -> Shape:
        return [step._lay(plan, after, given) for step in self._steps]

    def _label(self) -> str:
        return f"({', '.join(step._label() for step in self._steps)})"

    def __repr__(self) -> str:
        return f"<group {self._label()}>"


@overload
def group(steps: Iterable[Step[Coroutine[Any, Any, T]]]) -> Group[T]: ...


@overload
def group(steps: Iterable[Step[T]]) -> Group[T]: ...


@overload
def group(steps: Iterable[Step[Any]]) -> Group[Any]: ...


def group(steps: Iterable[Step[Any]]) -> Group[Any]:
    """Steps that run side by side: `group([load.call("a"), load.call("b")]).then(merge)` runs `merge` when all have
    succeeded. Each may be a task, a call of one, a chain or another group."""
    given = [_checked(step) for step in steps]
    if not given:
        raise InvalidInput("a group needs a step", field="steps", hint=_STEPS)
    return Group(given)


class InTransaction:
    """Calls in a transaction of the caller: they are no part of a chain."""

    def then(self, step: object) -> NoReturn:
        raise InvalidInput(
            "a chain cannot be enqueued in a transaction of its caller",
            field="connection",
            hint="enqueue one task in it, whose function enqueues the chain: chain.enqueue()",
        )


def _checked(step: Any) -> Step[Any]:
    if isinstance(step, InTransaction):
        step.then(step)
    if not isinstance(step, Step):
        raise InvalidInput(f"a step of a chain cannot be {step!r}", field="steps", hint=_STEPS)
    return step
