"""The states of a run, the causes of its end, and the one table of moves; docs/lifecycle.md draws it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from ostinato.errors import IllegalTransition

__all__ = ["ACTIVE", "BY_ITSELF", "ENDS", "STARTS", "TRANSITIONS", "Cause", "RunState", "Trigger", "check_transition"]


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
    """Due while no engine was running, and not caught up. May stand for many due times."""
    EXPIRED = "expired"
    """Waited longer than its max age."""
    SUPERSEDED = "superseded"
    """Interrupted by a newer message of its session."""


class Trigger(StrEnum):
    """What started a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    CATCH_UP = "catch_up"
    API = "api"
    MESSAGE = "message"
    CHECK_IN = "check_in"
    """A machine checked in while nothing was due."""
    AFTER = "after"
    """A run of another schedule ended, or the steps before it in a chain."""


BY_ITSELF: frozenset[Trigger] = frozenset({Trigger.SCHEDULE, Trigger.CATCH_UP, Trigger.AFTER})
"""What starts a run of a schedule without anybody asking for it: the breaker counts these."""


class Cause(StrEnum):
    """Why a run did not simply succeed, for programs; `reason` says it for people."""

    OVERLAP = "overlap"
    """Another run of its schedule was active, or took its place."""
    CHECK = "check"
    """One of its checks failed."""
    GATE = "gate"
    """Its gate said no, or failed."""
    BUDGET = "budget"
    """The budget of its schedule, or its own, is used up."""
    UPSTREAM = "upstream"
    """The run that it comes after ended otherwise, or others did not end in time."""
    DEBOUNCED = "debounced"
    """Another run carries its payload."""
    DROPPED = "dropped"
    """The queue of its session was full, and a newer message came."""
    STALE = "stale"
    """It was sent before its session was stopped."""
    INTERRUPTED = "interrupted"
    """A newer message of its session took its place."""
    SESSION_STOPPED = "session_stopped"
    """Its session was stopped."""
    LANE_CLEARED = "lane_cleared"
    """Its lane was cleared."""
    DOWNTIME = "downtime"
    """It was due while no engine ran or could work."""
    OUTSIDE_WINDOW = "outside_window"
    """The same, and it was too long ago, or one too many, to be caught up."""
    EXPIRED = "expired"
    """It waited longer than its max age."""
    LATE = "late"
    """Nobody checked in within the time that its `late_after` allows."""
    RAISED = "raised"
    """The function raised an exception."""
    BAD_ARGUMENTS = "bad_arguments"
    """Its arguments are not those that its task takes."""
    ABORTED = "aborted"
    """The work said that trying again would not help, or returned what cannot be stored."""
    CRASHED = "crashed"
    """The process of the function ended without an answer."""
    EXIT_STATUS = "exit_status"
    """The command ended with another status than 0, or by a signal."""
    HTTP_STATUS = "http_status"
    """The answer had another status than expected."""
    NO_ANSWER = "no_answer"
    """The request got no answer: no connection, or a broken one."""
    REQUEST_REFUSED = "request_refused"
    """The request was not sent, or its answer not taken: an address or a redirect that is not allowed, say."""
    AGENT_ERROR = "agent_error"
    """The agent reported an error, or gave no result."""
    LOGGED_OUT = "logged_out"
    """The agent is not logged in."""
    RATE_LIMITED = "rate_limited"
    """The agent has used up what it may ask of its model for a while."""
    OVERLOADED = "overloaded"
    """The service of the agent's model was overloaded, or failed itself."""
    NO_NETWORK = "no_network"
    """The agent could not reach the service of its model."""
    TIMED_OUT = "timed_out"
    """It ran longer than its timeout."""
    SILENT = "silent"
    """It said nothing for longer than its policy allows."""
    NODE_LOST = "node_lost"
    """Its node was lost while it ran or waited for its turn there, or could not renew its lease."""
    CUT_OFF = "cut_off"
    """Its node was stopped while it ran."""
    CANCELLED = "cancelled"
    """Somebody cancelled it."""
    REMOVED = "removed"
    """Its schedule was being removed."""
    UNKNOWN_TASK = "unknown_task"
    """No running node knows its task."""
    NOT_LOADABLE = "not_loadable"
    """What the ledger says of it cannot be read."""
    NOT_STARTED = "not_started"
    """Something that it needs is not there: its program, folder, project, user or secrets."""
    NOT_RECORDED = "not_recorded"
    """Its outcome could not be stored."""
    ERRORS = "errors"
    """It succeeded, and counted errors."""
    SNOOZED = "snoozed"
    """The work asked to be run again later."""
    POSTPONED = "postponed"
    """Its node could not start it just then: no room, no database, or it was being stopped."""


_Q, _R = RunState.QUEUED, RunState.RUNNING

STARTS: frozenset[RunState] = frozenset({_Q, RunState.SKIPPED, RunState.MISSED})
"""What a new row may say."""

TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    # To failed: the one process that would have started it is gone. To missed: nobody checked in.
    _Q: frozenset(
        {
            _R,
            RunState.FAILED,
            RunState.CANCELLED,
            RunState.SKIPPED,
            RunState.MISSED,
            RunState.EXPIRED,
            RunState.SUPERSEDED,
        }
    ),
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
