"""What a run has left for whoever asks for its result: `check_succeeded` raises why there is none.

The handles of `tasks.py` and `transactions.py` ask, after `runs.py` has waited for the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.errors import (
    LaneCleared,
    MessageStale,
    NoResult,
    NotExecuted,
    QueueDropped,
    RunCancelled,
    RunFailed,
)
from ostinato.models.run import Run
from ostinato.models.states import Cause, RunState

__all__ = ["RaisedHere", "check_succeeded"]


class RaisedHere(str):
    """The traceback of an exception of this process, with that exception: `ostinato.testing` has it."""

    __slots__ = ("raised",)
    raised: BaseException


def check_succeeded(run: Run) -> Run:
    """The run, which has ended; raises why it has no result, if it has none."""
    if run.state is RunState.SUCCEEDED:
        return run
    kind = _NO_RESULT.get(run.cause) or _ENDED_AS.get(run.state, NotExecuted)
    of = run.schedule or run.task or run.work.kind
    raise kind(
        f"run {run.id} of {of!r} {_ENDED[run.state]}: {run.reason or run.cause}",
        run=run.id,
        state=run.state,
        cause=run.cause,
        reason=run.reason,
        traceback=run.error,
    ) from (run.error.raised if isinstance(run.error, RaisedHere) else None)


_ENDED = {
    RunState.FAILED: "failed",
    RunState.CANCELLED: "was cancelled",
    RunState.SUPERSEDED: "was superseded",
    RunState.SKIPPED: "was skipped",
    RunState.MISSED: "was missed",
    RunState.EXPIRED: "has expired",
    RunState.QUEUED: "is still queued",
    RunState.RUNNING: "is still running",
}
_NO_RESULT: Mapping[Cause | None, type[NoResult]] = {
    Cause.DROPPED: QueueDropped,
    Cause.LANE_CLEARED: LaneCleared,
    Cause.STALE: MessageStale,
}
_ENDED_AS: Mapping[RunState, type[NoResult]] = {
    RunState.FAILED: RunFailed,
    RunState.CANCELLED: RunCancelled,
    RunState.SUPERSEDED: RunCancelled,
}
