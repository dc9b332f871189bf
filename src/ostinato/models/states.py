"""The states of a run, and the one table of moves between them; docs/lifecycle.md draws it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ostinato.errors import IllegalTransition

__all__ = ["ACTIVE", "ENDS", "STARTS", "TRANSITIONS", "RunState", "Trigger", "check_transition"]


class RunState(StrEnum):
    """What has become of a run."""

    QUEUED = "queued"
    """Recorded, and waiting for its time, its turn or room in its lane."""
    RUNNING = "running"
    """Claimed by a node, which holds a lease and the run's token."""
    SUCCEEDED = "succeeded"
    """The work returned."""
    FAILED = "failed"
    """The last attempt that its retry policy allows ended in an error."""
    CANCELLED = "cancelled"
    """A person, a policy or a newer run stopped it."""
    SKIPPED = "skipped"
    """Not executed: overlap, a check or a gate said no."""
    MISSED = "missed"
    """Due while nobody was there, and catch-up said no. May stand for many due times."""
    EXPIRED = "expired"
    """Waited longer than its max age."""
    SUPERSEDED = "superseded"
    """Interrupted by a newer message of its session."""


class Trigger(StrEnum):
    """What asked for a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    CATCH_UP = "catch_up"
    API = "api"
    MESSAGE = "message"


_Q, _R = RunState.QUEUED, RunState.RUNNING

STARTS: frozenset[RunState] = frozenset({_Q, RunState.SKIPPED, RunState.MISSED})
"""What a new row may say."""

TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    _Q: frozenset({_R, RunState.CANCELLED, RunState.SKIPPED, RunState.EXPIRED, RunState.SUPERSEDED}),
    # Back to queued: a retry, a snooze, a rescue, or a drain that ran out of grace.
    _R: frozenset(
        {
            _Q,
            RunState.SUCCEEDED,
            RunState.FAILED,
            RunState.CANCELLED,
            RunState.SKIPPED,
            RunState.SUPERSEDED,
        }
    ),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.SKIPPED: frozenset(),
    RunState.MISSED: frozenset(),
    RunState.EXPIRED: frozenset(),
    RunState.SUPERSEDED: frozenset(),
}

ACTIVE: frozenset[RunState] = frozenset({_Q, _R})
ENDS: frozenset[RunState] = frozenset(state for state, moves in TRANSITIONS.items() if not moves)


def check_transition(before: RunState, after: RunState) -> None:
    """Raise IllegalTransition unless the table allows the move."""
    if after not in TRANSITIONS[before]:
        allowed = ", ".join(sorted(TRANSITIONS[before])) or "nothing: it has ended"
        raise IllegalTransition(f"a run cannot go from {before} to {after}; from {before} it may go to {allowed}")
