"""What enqueueing a chain gives: a handle on the whole of it, for sync code and for coroutines.

`run_handles.py` has that on one run, `chains.py` makes these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ostinato.durations import Duration
from ostinato.models.ids import RunId
from ostinato.models.run import Run
from ostinato.models.states import Cause, RunState
from ostinato.run_handles import RunHandle
from ostinato.service.runs import check_succeeded
from ostinato.waiting import left_of, until_after

if TYPE_CHECKING:
    from typing import Protocol

    class ChainVerbs(Protocol):
        """What the handle of a chain needs of its app, in the sync form."""

        def get(self, ids: Sequence[RunId]) -> Sequence[Run]: ...
        def cancel(self, ids: Sequence[RunId]) -> Sequence[Run]: ...

    class AioChainVerbs(Protocol):
        """The same for coroutines."""

        async def get(self, ids: Sequence[RunId]) -> Sequence[Run]: ...
        async def cancel(self, ids: Sequence[RunId]) -> Sequence[Run]: ...

    class AioRunVerbs(Protocol):
        """How coroutines wait for one of its runs."""

        async def wait(self, id: RunId, *, timeout: Duration | None = None) -> Run: ...


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
        """Its runs, as they are now."""
        return self._chains.get(self.ids)

    def wait(self, timeout: Duration | None = None) -> Sequence[Run]:
        """Wait until all of it has ended."""
        until = until_after(timeout)
        return [step.wait(left_of(until)) for step in self.steps]

    def result(self, timeout: Duration | None = None) -> R:
        """Wait for the last step; what that returned, or for a group at the end the list of what its steps did. If
        there is none, it raises what the step raises that ended otherwise: RunFailed, RunCancelled, NotExecuted."""
        until = until_after(timeout)
        ended: dict[int, Run] = {}
        for place, step in enumerate(self.steps):  # in order, so that a run that waits lends its slot to what can start
            ended[place] = step.wait(left_of(until))
            if ended[place].state is not RunState.SUCCEEDED:
                break
        for place in places_of(self._last):
            ended[place] = ended.get(place) or self.steps[place].wait(left_of(until))
        result: R = _result(ended, self._last, [step._decode for step in self.steps])
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
    _runs: AioRunVerbs
    _chains: AioChainVerbs
    _decodes: Sequence[Callable[[Any], Any]]
    _last: Shape

    async def get(self) -> Sequence[Run]:
        """Its runs, as they are now."""
        return await self._chains.get(self.ids)

    async def wait(self, timeout: Duration | None = None) -> Sequence[Run]:
        """Wait until all of it has ended."""
        until = until_after(timeout)
        return [await self._runs.wait(id, timeout=left_of(until)) for id in self.ids]

    async def result(self, timeout: Duration | None = None) -> R:
        """Wait for the last step; what that returned, or raises as `ChainHandle.result` does."""
        until = until_after(timeout)
        ended: dict[int, Run] = {}
        for place, id in enumerate(self.ids):
            ended[place] = await self._runs.wait(id, timeout=left_of(until))
            if ended[place].state is not RunState.SUCCEEDED:
                break
        for place in places_of(self._last):
            ended[place] = ended.get(place) or await self._runs.wait(self.ids[place], timeout=left_of(until))
        result: R = _result(ended, self._last, self._decodes)
        return result

    async def cancel(self) -> Sequence[Run]:
        """Cancel all of it that has not ended."""
        return await self._chains.cancel(self.ids)

    def __repr__(self) -> str:
        return _repr(self.ids)


def places_of(shape: Shape) -> list[int]:
    """The places in it, in their order."""
    return [shape] if isinstance(shape, int) else [place for one in shape for place in places_of(one)]


def _result(runs: Mapping[int, Run], last: Shape, decodes: Sequence[Callable[[Any], Any]]) -> Any:
    """What the last of these ended runs returned. If one of them was left out, the first that did not succeed says
    why."""
    for place in places_of(last):
        if runs[place].cause is Cause.UPSTREAM:
            check_succeeded(next(run for _, run in sorted(runs.items()) if run.state is not RunState.SUCCEEDED))
        check_succeeded(runs[place])

    def value(shape: Shape) -> Any:
        return decodes[shape](runs[shape].result) if isinstance(shape, int) else [value(one) for one in shape]

    return value(last)


def _repr(ids: Sequence[RunId]) -> str:
    return f"<chain of runs {', '.join(map(str, ids))}>"
