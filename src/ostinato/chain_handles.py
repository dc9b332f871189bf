"""What enqueueing a chain gives: a handle on the whole of it, for sync code and for coroutines.

`run_handles.py` has that on one run, `chains.py` makes these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ostinato.durations import Duration
from ostinato.errors import NotFound
from ostinato.models.ids import RunId
from ostinato.models.run import Run
from ostinato.models.states import Cause, RunState
from ostinato.run_handles import RunHandle
from ostinato.service.runs import check_succeeded

if TYPE_CHECKING:
    from typing import Protocol

    class ChainVerbs(Protocol):
        """What the handle of a chain needs of its app, in the sync form."""

        def get(self, ids: Sequence[RunId]) -> Sequence[Run]: ...
        def wait(
            self, ids: Sequence[RunId], *, last: Sequence[RunId] | None = None, timeout: Duration | None = None
        ) -> Sequence[Run]: ...
        def cancel(self, ids: Sequence[RunId]) -> Sequence[Run]: ...

    class AioChainVerbs(Protocol):
        """The same for coroutines."""

        async def get(self, ids: Sequence[RunId]) -> Sequence[Run]: ...
        async def wait(
            self, ids: Sequence[RunId], *, last: Sequence[RunId] | None = None, timeout: Duration | None = None
        ) -> Sequence[Run]: ...
        async def cancel(self, ids: Sequence[RunId]) -> Sequence[Run]: ...


__all__ = ["AioChainHandle", "ChainHandle", "Shape", "places_of"]

R = TypeVar("R", covariant=True)
Shape: TypeAlias = "int | Sequence[Shape]"
"""The place of a step; or for a group, one for what each of its branches ends with."""


@dataclass(frozen=True, slots=True, repr=False)
class ChainHandle(Generic[R]):
    """A chain that was enqueued."""

    steps: Sequence[RunHandle[Any]]
    """Its runs, each behind those that it runs after."""
    _chains: ChainVerbs
    _last: Shape

    @property
    def ids(self) -> Sequence[RunId]:
        """The numbers of its runs."""
        return [step.id for step in self.steps]

    def get(self) -> Sequence[Run]:
        """Its runs, as they are now; without those that retention has removed."""
        return self._chains.get(self.ids)

    def wait(self, timeout: Duration | None = None) -> Sequence[Run]:
        """Wait until all of it has ended."""
        return self._chains.wait(self.ids, timeout=timeout)

    def result(self, timeout: Duration | None = None) -> R:
        """Wait for the last step; what that returned, or for a group at the end the list of what its steps did. If
        there is none, it raises what the step raises that ended otherwise: RunFailed, RunCancelled, NotExecuted."""
        ids = self.ids
        runs = self._chains.wait(ids, last=[ids[place] for place in places_of(self._last)], timeout=timeout)
        result: R = _result(ids, runs, self._last, [step._decode for step in self.steps])
        return result

    def cancel(self) -> Sequence[Run]:
        """Cancel all of it that has not ended."""
        return self._chains.cancel(self.ids)

    def __repr__(self) -> str:
        return _repr(self.ids)


@dataclass(frozen=True, slots=True, repr=False)
class AioChainHandle(Generic[R]):
    """The same for coroutines."""

    ids: Sequence[RunId]
    """The numbers of its runs, each behind those that it runs after."""
    _chains: AioChainVerbs
    _decodes: Sequence[Callable[[Any], Any]]
    _last: Shape

    async def get(self) -> Sequence[Run]:
        """Its runs, as they are now; without those that retention has removed."""
        return await self._chains.get(self.ids)

    async def wait(self, timeout: Duration | None = None) -> Sequence[Run]:
        """Wait until all of it has ended."""
        return await self._chains.wait(self.ids, timeout=timeout)

    async def result(self, timeout: Duration | None = None) -> R:
        """Wait for the last step; what that returned, or raises as `ChainHandle.result` does."""
        last = [self.ids[place] for place in places_of(self._last)]
        runs = await self._chains.wait(self.ids, last=last, timeout=timeout)
        result: R = _result(self.ids, runs, self._last, self._decodes)
        return result

    async def cancel(self) -> Sequence[Run]:
        """Cancel all of it that has not ended."""
        return await self._chains.cancel(self.ids)

    def __repr__(self) -> str:
        return _repr(self.ids)


def places_of(shape: Shape) -> list[int]:
    """The places in it, in their order."""
    return [shape] if isinstance(shape, int) else [place for one in shape for place in places_of(one)]


def _result(ids: Sequence[RunId], runs: Sequence[Run], last: Shape, decodes: Sequence[Callable[[Any], Any]]) -> Any:
    """What the last of these runs, which have ended, returned. If one of them was left out, the first that did not
    succeed says why."""
    found = {run.id: run for run in runs}
    for place in places_of(last):
        if (run := found.get(ids[place])) is None:
            raise NotFound(f"the result of run {ids[place]} was removed by retention; 'keep' says how long it stays")
        if run.cause is Cause.UPSTREAM:
            check_succeeded(next(one for one in runs if one.ended and one.state is not RunState.SUCCEEDED))
        check_succeeded(run)

    def value(shape: Shape) -> Any:
        return decodes[shape](found[ids[shape]].result) if isinstance(shape, int) else [value(one) for one in shape]

    return value(last)


def _repr(ids: Sequence[RunId]) -> str:
    return f"<chain of runs {', '.join(map(str, ids))}>"
