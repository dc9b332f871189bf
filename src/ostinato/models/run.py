"""A run: one row of the ledger, and the smaller values that carry it through the layers.

`NewRun` goes in, `ClaimedRun` comes to the runner, `Finish` goes back, `Run` is what people read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ostinato.clock import Micros, micros_of
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.output import OutputPart
from ostinato.models.policy import Policy, policy_text
from ostinato.models.project import Conversation
from ostinato.models.states import BY_ITSELF, ENDS, Cause, RunState, Trigger
from ostinato.models.upstream import Upstream
from ostinato.models.work import Unreadable, Work, work_text

__all__ = [
    "CANCELLED",
    "CLEARED",
    "INTERRUPTED",
    "NEVER_STARTED",
    "USAGE",
    "WAITED_TOO_LONG",
    "Attempt",
    "ClaimedRun",
    "Ending",
    "Finish",
    "NewRun",
    "OuterRun",
    "Progress",
    "Report",
    "Run",
    "RunFilter",
    "SessionUsage",
    "StoredWork",
    "concerns_people",
    "ended_as",
    "is_failing",
    "outer_run_of",
    "queued_run",
    "stored_work",
    "tells",
]


USAGE = ("cost_usd", "tokens_in", "tokens_out", "turns")
"""The totals that are used up by each attempt: those of a run are sums over its attempts."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work says it is."""

    done: float = 0
    total: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One execution of a run."""

    started_at: datetime
    finished_at: datetime | None
    state: str
    error: str | None
    node: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """A row of the ledger as people and scripts see it."""

    id: RunId
    schedule: str | None
    task: str | None
    state: RunState
    cause: Cause | None
    """Why it did not simply succeed, as one word; `reason` says it for people. For a run that waits, why it went back
    to the queue, and for one that is running, why it was asked to stop."""
    reason: str | None
    """The same in words."""
    trigger: Trigger
    due_at: datetime
    last_due_at: datetime | None
    count: int
    ready_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    attempts: tuple[Attempt, ...]
    """All attempts; in a list only the last one."""
    totals: Mapping[str, float]
    progress: Progress | None
    result: Any
    error: str | None
    lane: str
    priority: int
    session: str | None
    key: str
    node: str | None
    work: Work | Unreadable
    project: str | None = None
    schedule_id: ScheduleId | None = None
    """Null, although it has the name of a schedule, if that was deleted after its run."""
    zone: str | None = None
    """Of its schedule."""
    waiting: bool = False
    """Whether it waits for its turn in its session, or, as a step of a chain, for those before it."""
    cancelling: str | None = None
    """Why it was asked to stop, while it has not yet stopped."""
    cut: tuple[str, ...] = ()
    """The fields that are not here as a whole: a list leaves out what is long."""
    trace_id: str | None = None
    """The trace that it belongs to, if whoever asked for it, or its node, was traced: 32 hexadecimal digits."""
    started_by: str | None = None
    """Who asked for it, as the audit log names them; null if that was a schedule or a program."""
    cancelled_by: str | None = None
    """Who asked for its end, while that is to come and when it has come; null if that was no person."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in ENDS


class StoredWork(NamedTuple):
    """What to do and how to treat it, as the ledger keeps both."""

    kind: str
    task: str | None
    work: str
    policy: str


@dataclass(slots=True)
class NewRun:
    """A row to insert: queued, or at its end already (skipped, missed).

    Not frozen: it is made by the thousand, and to freeze one costs as much as to make it.
    """

    kind: str
    task: str | None
    work: str
    policy: str
    trigger: Trigger
    due_at: Micros
    ready_at: Micros
    lane: str
    state: RunState = RunState.QUEUED
    cause: Cause | None = None
    reason: str | None = None
    schedule_id: ScheduleId | None = None
    last_due_at: Micros | None = None
    count: int = 1
    priority: int = 0
    expires_at: Micros | None = None
    session: str | None = None
    waiting: bool = False
    mode: str | None = None
    """How it stands in its session (models.session.Mode); None for a run that is in no user session."""
    burst: bool = False
    """Whether messages may still join it: it is not claimed before it is ready."""
    later: bool = False
    """Whether it queues up in its session only when it is ready, and holds up nobody before."""
    key: str | None = None
    scope: str | None = None
    """Where its key is unique, if that is not its task alone."""
    project: str | None = None
    trace: str | None = None
    """What it is a part of: trace_context.py has the form."""
    started_by: str | None = None
    """Who asked for it; None for a schedule and for a program."""
    after: tuple[RunId, ...] = ()
    """The ended runs that it comes after: those of other schedules whose ends it answers, or steps of a chain."""
    followed: bool = False
    """Whether other runs wait for its end."""

    @property
    def key_scope(self) -> str | None:
        """Where its key is unique while the run is active, as its row has it; None without a key."""
        if self.key is None:
            return None
        if self.scope is not None:
            return f"scope:{self.scope}"
        return f"kind:{self.kind}" if self.task is None else f"task:{self.task}"

    @property
    def finished_at(self) -> Micros | None:
        """When it ended, if it is at its end already."""
        return self.ready_at if self.state in ENDS else None


def stored_work(work: Work, policy: Policy) -> StoredWork:
    """Both as text."""
    return StoredWork(work.kind, work.needs, work_text(work), policy_text(policy))


def queued_run(
    stored: StoredWork,
    policy: Policy,
    trigger: Trigger,
    due_at: Micros,
    *,
    ready_at: Micros | None = None,
    asked_at: Micros | None = None,
    schedule_id: ScheduleId | None = None,
    session: str | None = None,
    key: str | None = None,
    scope: str | None = None,
    project: str | None = None,
    trace: str | None = None,
    started_by: str | None = None,
) -> NewRun:
    """A run that may start when it is ready, which is its due time if nothing else is said.

    It waits for at most its `max_age`: from its due time, or from when it was asked for.
    """
    waits_from = due_at if asked_at is None else asked_at
    return NewRun(
        *stored,
        trigger=trigger,
        due_at=due_at,
        ready_at=due_at if ready_at is None else ready_at,
        lane=policy.lane,
        schedule_id=schedule_id,
        priority=policy.priority,
        expires_at=None if policy.max_age is None else waits_from + micros_of(policy.max_age),
        session=session,
        key=key,
        scope=scope,
        project=project,
        trace=trace,
        started_by=started_by,
    )


@dataclass(slots=True)
class ClaimedRun:
    """A run that this node may execute while it holds the token."""

    id: RunId
    token: int
    kind: str
    task: str | None
    work: str
    policy: str
    trigger: Trigger
    due_at: Micros
    ready_at: Micros
    attempt: int
    schedule_id: ScheduleId | None
    schedule: str | None
    session: str | None
    key: str | None
    count: int = 1
    node: NodeId | None = None
    started_at: Micros | None = None
    project: str | None = None
    zone: str | None = None
    """Of its schedule; the runner fills in that of the settings for a run that has none."""
    totals: str | None = None
    """What its earlier attempts counted, as JSON."""
    trace: str | None = None
    """As its row has it: trace_context.py has the form."""
    outer: Sequence[RunId] = ()
    """The runs that it is executed inside of, the innermost first, if there are any in this database."""
    upstreams: Sequence[Upstream] = ()
    """The runs that it came after, if it did: those of schedules in the order in which they ended, the steps of a chain
    in the order of the chain."""

    @property
    def by_itself(self) -> bool:
        """Whether its schedule started it without anybody asking for it: its checks are asked, its breaker counts."""
        return self.schedule_id is not None and self.trigger in BY_ITSELF


class OuterRun(NamedTuple):
    """A run whose work asks for another one, right there."""

    id: RunId
    node: NodeId | None
    """Where it is executed: no other database has a node of this name."""
    outer: Sequence[RunId] = ()
    """The runs that it is executed inside of itself, the innermost first."""


def outer_run_of(environment: Mapping[str, str]) -> OuterRun | None:
    """The run whose command has this environment."""
    id, node = environment.get("OSTINATO_RUN_ID", ""), environment.get("OSTINATO_NODE")
    if not id.isdecimal() or not node:
        return None
    outer = [RunId(int(each)) for each in environment.get("OSTINATO_OUTER_RUNS", "").split(",") if each.isdecimal()]
    return OuterRun(RunId(int(id)), NodeId(node), outer)


class SessionUsage(NamedTuple):
    """What is added to what a session has used so far."""

    session: str
    used: Mapping[str, float]
    """Of USAGE, and how full its agent's context is then."""


@dataclass(slots=True)
class Finish:
    """What became of a claimed run: an end, or (state queued) another try at `ready_at`.

    Written only while `token` still holds.
    """

    id: RunId
    token: int
    state: RunState
    started_at: Micros | None
    finished_at: Micros
    cause: Cause | None = None
    reason: str | None = None
    error: str | None = None
    result: str | None = None
    totals: str | None = None
    progress: str | None = None
    output: Sequence[OutputPart] = ()
    schedule_id: ScheduleId | None = None
    session: str | None = None
    ready_at: Micros | None = None
    counted: bool = True
    """False for a try that does not count: a snooze, or a drain that cut it off."""
    begun: bool = True
    """Of a run that goes back to the queue: whether its work had begun. If not, it still waits for no longer than its
    max age."""
    attempt_state: str | None = None
    """How the ended attempt is called in the list of attempts, for a run that goes back to the queue."""
    breaks: bool | None = None
    """For scheduled runs: True counts towards the breaker, False resets it, None leaves it."""
    break_after: int | None = None
    """How many failures trip the breaker; None for no number of them."""
    probe: Micros | None = None
    """After how long a run is tried of a schedule that the breaker has switched off, if its policy says so."""
    broken: str | None = None
    """The reason that the schedule gets when the breaker trips, or when its last run has failed."""
    given_up: bool = False
    """Its code was told to stop, did not, and goes on: it occupies its schedule's name until it ends."""
    abandoned: bool = False
    """Nobody is left to say what the attempt printed last: what was seen of it stays."""
    throttled: bool | None = None
    """Whether its session goes one at a time from now on; None leaves what was said last."""
    conversation: Conversation | None = None
    """What the next run of the same conversation resumes."""
    cost: int | None = None
    """For a run with a budget: what this attempt cost, in millionths of a dollar, instead of what it reserved, if it
    did; budget.UNKNOWN counts as all of that."""
    usage: SessionUsage | None = None
    """For a run of a session: what this attempt alone used; None if it told nothing of that."""
    fresh: Micros | None = None
    """Of a success: for how long the schedule counts as fresh by it, if its policy says so."""
    ends_schedule: bool = False
    """If its schedule has nothing left to do, it is deleted after this success, or switched off after this failure."""
    schedule: str | None = None
    """The schedule's name, for the log."""
    task: str | None = None
    attempt: int | None = None
    due_at: Micros | None = None
    count: int = 1
    name: str = ""
    """What it is counted under: its task, its schedule, or its kind of work."""
    subject: str = ""
    """What its incidents are of, if it has neither a schedule nor a task; nothing for what `name` says."""
    project: str | None = None
    notify: Sequence[str] = ()
    """Who is told of it, as its policy says."""
    tells: bool = False
    """Whether somebody may want to be told of it, whatever its policy says."""
    trace: str | None = None
    """What the run is a part of."""
    begins_trace: bool = False
    """Whether its trace began with this attempt: then it is written to the row."""
    recorded: Callable[[], None] | None = None
    """Called by the recorder when this is written, or is nobody's business any more."""

    @property
    def told_as(self) -> str:
        """What people are told it of."""
        return self.schedule or self.subject or self.name


class Ending(NamedTuple):
    """Why a run is ended from outside: the cause decides how, and the reason tells it."""

    cause: Cause
    reason: str

    @property
    def state(self) -> RunState:
        """What becomes of the run."""
        return ended_as(self.cause)


_ENDED_AS = {
    Cause.INTERRUPTED: RunState.SUPERSEDED,
    Cause.DROPPED: RunState.SKIPPED,
    Cause.STALE: RunState.SKIPPED,
    Cause.DEBOUNCED: RunState.SKIPPED,
    Cause.EXPIRED: RunState.EXPIRED,
    Cause.LATE: RunState.MISSED,
    Cause.NODE_LOST: RunState.FAILED,
}
CANCELLED = Ending(Cause.CANCELLED, "cancelled")
INTERRUPTED = Ending(Cause.INTERRUPTED, "interrupted by a newer message of its session")
CLEARED = Ending(Cause.LANE_CLEARED, "lane cleared")
NEVER_STARTED = Ending(
    Cause.NODE_LOST, "the process that was to execute it was lost before its turn came: it never started"
)
WAITED_TOO_LONG = Ending(Cause.EXPIRED, "waited longer than its max age before it could start")


def ended_as(cause: Cause) -> RunState:
    """What becomes of a run that is ended from outside for this cause."""
    return _ENDED_AS.get(cause, RunState.CANCELLED)


def is_failing(finish: Finish) -> bool:
    """Whether it ended in a way that people have to know of."""
    return finish.state is RunState.FAILED or finish.cause is Cause.ERRORS


def concerns_people(finish: Finish) -> bool:
    """Whether somebody may have to be told of this end."""
    return bool(finish.tells or finish.notify) or is_failing(finish)


def tells(finishes: Iterable[Finish]) -> bool:
    """Whether an engine may have something to do after these: another try, a turn, a due time after a finish."""
    return any(
        finish.schedule_id is not None
        or finish.session is not None
        or finish.state is RunState.QUEUED
        or is_failing(finish)  # the others have to know that a success closes an incident
        for finish in finishes
    )


@dataclass(frozen=True, slots=True)
class Report:
    """What running work says of itself before it ends."""

    id: RunId
    token: int
    progress: str | None = None
    totals: str | None = None
    output: Sequence[OutputPart] = ()


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list, newest first."""

    ids: Sequence[RunId] | None = None
    """Of these; those that are gone are left out."""
    schedule_id: ScheduleId | None = None
    removed: str | None = None
    """Those of a schedule of this name that was deleted after its run, beside those of a given `schedule_id`."""
    task: str | None = None
    session: str | None = None
    project: str | None = None
    """Or NO_PROJECT, for those that are in none."""
    lane: str | None = None
    trigger: Trigger | None = None
    states: tuple[RunState, ...] = ()
    causes: tuple[Cause, ...] = ()
    due_from: Micros | None = None
    due_until: Micros | None = None
    search: str | None = None
    """Part of the name of its schedule, of its task or of its session, whatever the case."""
    before_id: RunId | None = None
    from_id: RunId | None = None
    """The oldest to look at. A search goes over the ledger row by row: this bounds it."""
    limit: int = 50
    brief: bool = False
    """Whether what is long is cut."""
