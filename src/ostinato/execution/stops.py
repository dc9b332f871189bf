"""Why a run was told to stop before its time, and what its end is called then: the runner asks, above."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from ostinato.execution.executors.function import ThreadFunctions
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.models.work_kinds import is_task

if TYPE_CHECKING:
    from ostinato.execution.runner import ActiveRun

__all__ = ["Stop", "obeyed", "stopped_outcome"]


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
