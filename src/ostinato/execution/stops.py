"""Why a run was told to stop before its time, and what its end is called then: the runner asks, above."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from ostinato.execution.executors.function import ThreadFunctions
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.models.states import Cause
from ostinato.models.work_kinds import is_task

if TYPE_CHECKING:
    from ostinato.execution.context import RunContext
    from ostinato.execution.runner import ActiveRun

__all__ = ["Stop", "disarm", "halt", "obeyed", "softened", "stopped_outcome"]


class Stop(Enum):
    """Why a run was told to stop before its time."""

    CANCELLED = auto()
    TIMED_OUT = auto()
    SILENT = auto()
    CUT_OFF = auto()
    UNLEASED = auto()


def obeyed(active: ActiveRun, outcome: Outcome) -> bool:
    """Whether the work ended because it was told to, and not by itself at the same moment."""
    if outcome.kind is OutcomeKind.RETURNED:
        return active.context.saw_cancel
    # Of a stopping node, work may say itself what is to become of it.
    return active.stop is not Stop.CUT_OFF or outcome.kind not in (OutcomeKind.SNOOZED, OutcomeKind.ABORTED)


def stopped_outcome(active: ActiveRun, *, ended: bool) -> Outcome:
    cause, reason = active.ending
    if not ended:
        reason += "; it did not end when told to and may still be running"
        if isinstance(active.executor, ThreadFunctions) and is_task(active.claimed.task):
            reason += " (isolation='process' can be killed)"
    match active.stop:
        case Stop.TIMED_OUT | Stop.SILENT:
            return Outcome(OutcomeKind.FAILED, reason, cause=cause)
        case Stop.CUT_OFF if active.executor is None:
            return Outcome(OutcomeKind.PUT_OFF, "its node was stopped before the work began")
        case Stop.UNLEASED if active.executor is None:
            return Outcome(OutcomeKind.PUT_OFF, f"{reason}, and the work had not begun")
        case Stop.CUT_OFF:
            return Outcome(OutcomeKind.PUT_BACK if _goes_back(active) else OutcomeKind.CUT_OFF, reason)
        case Stop.UNLEASED:
            return Outcome(OutcomeKind.FAILED, reason, cause=cause, blame=Blame.NODE)
        case _:
            return Outcome(OutcomeKind.CANCELLED, reason, cause=cause)


def _goes_back(active: ActiveRun) -> bool:
    """Whether its task asks for it, if a node that stops cuts it off."""
    definition = None if active.call is None else active.call.definition
    return definition is not None and definition.requeue_on_drain


def softened(context: RunContext, outcome: Outcome) -> Outcome:
    """The outcome; of what returned because it saw that its soft timeout was over, that."""
    limit = context.soft_limit
    if limit is None or not limit.is_over or not context.saw_cancel or outcome.kind is not OutcomeKind.RETURNED:
        return outcome
    return Outcome(OutcomeKind.FAILED, f"stopped early: {limit.text}", cause=Cause.TIMED_OUT)


def halt(active: ActiveRun, *, now: bool = False) -> None:
    """Ask what is under way to end, the work or what comes before it; or end it now, before others start it anew."""
    if active.preparing is not None:
        active.preparing.cancel()
    elif active.executor is not None and active.call is not None:
        end = active.executor.kill if now else active.executor.stop
        end(active.call)


def disarm(active: ActiveRun) -> None:
    if active.timer is not None:
        active.timer.cancel()
        active.timer = None
    if active.soft_timer is not None:
        active.soft_timer.cancel()
        active.soft_timer = None
    if active.silence is not None:
        active.silence.cancel()
        active.silence = None
