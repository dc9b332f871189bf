"""What enqueueing gives to sync code: a handle on the run. `chain_handles.py` has that on a whole chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ostinato.durations import Duration
from ostinato.models.ids import RunId
from ostinato.models.run import Run
from ostinato.service.runs import check_succeeded

if TYPE_CHECKING:
    from typing import Protocol

    class RunVerbs(Protocol):
        """What the handle of a run needs of its app, in the sync form."""

        def get(self, id: int) -> Run: ...
        def cancel(self, id: int) -> Run: ...
        def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...

    class SessionVerbs(Protocol):
        """What the handle of a message needs of its app."""

        def wait(self, id: int, *, timeout: Duration | None = None) -> Run: ...


__all__ = ["MessageHandle", "RunHandle", "as_it_is"]

R = TypeVar("R", covariant=True)


def as_it_is(result: Any) -> Any:
    """The result of work that has no signature."""
    return result


@dataclass(frozen=True, slots=True)
class RunHandle(Generic[R]):
    """A run that was enqueued."""

    id: RunId
    _runs: RunVerbs
    _decode: Callable[[Any], Any] = as_it_is
    """From the stored result to what the function returned."""
    is_new: bool = True
    """Whether it was made for this call. False if its key was active: then it is the run that has it."""

    def get(self) -> Run:
        """Its row, as it is now."""
        return self._runs.get(self.id)

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended."""
        return self._runs.wait(self.id, timeout=timeout)

    def result(self, timeout: Duration | None = None) -> R:
        """Wait until it has ended; what the function returned. Raises RunFailed, RunCancelled or NotExecuted if there
        is no result, and WaitTimeout if that takes too long."""
        result: R = self._decode(check_succeeded(self.wait(timeout)).result)
        return result

    def cancel(self) -> Run:
        """Cancel it."""
        return self._runs.cancel(self.id)

    def __repr__(self) -> str:
        return f"<run {self.id}>"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class MessageHandle(RunHandle[Any]):
    """The run that carries a message."""

    _sessions: SessionVerbs

    def wait(self, timeout: Duration | None = None) -> Run:
        """Wait until it has ended; raises what kept it from starting: QueueDropped, LaneCleared, MessageStale."""
        return self._sessions.wait(self.id, timeout=timeout)
