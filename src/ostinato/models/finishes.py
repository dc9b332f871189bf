"""Finishes that are recorded instead of others: of a run that somebody stopped, and of one that cannot be stored."""

from __future__ import annotations

from dataclasses import replace

from ostinato.models.budget import UNKNOWN
from ostinato.models.run import Ending, Finish
from ostinato.models.states import Cause, RunState

__all__ = ["cancelled", "unstorable"]


def cancelled(finish: Finish, ending: Ending) -> Finish:
    """The same finish, if the run was to be tried again and somebody wants it to stop."""
    return replace(
        finish,
        state=ending.state,
        cause=ending.cause,
        reason=ending.reason,
        ready_at=None,
        attempt_state=None,
        counted=True,
    )


def unstorable(finish: Finish, why: str) -> Finish:
    """What is recorded instead of a finish that the database does not take."""
    return Finish(
        id=finish.id,
        token=finish.token,
        state=RunState.FAILED,
        started_at=finish.started_at,
        finished_at=finish.finished_at,
        cause=Cause.NOT_RECORDED,
        reason=f"its outcome could not be stored: {why.encode('ascii', 'backslashreplace').decode()}",
        schedule_id=finish.schedule_id,
        session=finish.session,
        schedule=finish.schedule,
        task=finish.task,
        attempt=finish.attempt,
        due_at=finish.due_at,
        count=finish.count,
        name=finish.name,
        subject=finish.subject,
        cost=None if finish.cost is None else UNKNOWN,
        usage=finish.usage,
        abandoned=True,
        project=finish.project,
        notify=finish.notify,
        trace=finish.trace,
        begins_trace=finish.begins_trace,
    )
