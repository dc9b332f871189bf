"""The ledger, as the other layers ask for it: a part of base.py, answered in each runs.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ostinato.clock import Micros
from ostinato.models.chain import ChainStep
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId, RunIds, ScheduleId
from ostinato.models.incident import IncidentChange
from ostinato.models.live import Changes, Position
from ostinato.models.output import OutputPart
from ostinato.models.run import ClaimedRun, Ending, Finish, NewRun, OuterRun, Report, Run, RunFilter
from ostinato.models.states import Cause, RunState
from ostinato.models.task import RunningTask
from ostinato.models.upstream import RunRelations, Upstream

__all__ = [
    "NONE_ENDED",
    "NOTHING_TOLD",
    "Bound",
    "Cancelled",
    "Claim",
    "Claimed",
    "Finished",
    "FirstActive",
    "FirstActiveOf",
    "RunCounts",
    "RunStore",
    "Stale",
    "StateCount",
    "Told",
    "Unstarted",
]


class Told(NamedTuple):
    """What came of notices that were recorded with what they tell."""

    incidents: Sequence[IncidentChange] = ()
    """Those that opened and closed."""
    owed: bool = False
    """Whether there is something to send."""


NOTHING_TOLD = Told()


class Unstarted(NamedTuple):
    """Queued runs that were ended before they started."""

    ids: Sequence[RunId] = ()
    finishes: Sequence[Finish] = ()
    """The ends of those that people have to know of: what was to be done and was not."""
    told: Told = NOTHING_TOLD


NONE_ENDED = Unstarted()


@dataclass(frozen=True, slots=True)
class Claim:
    """A node asks for work: what is ready until `horizon`, at most `room` runs, of tasks that it knows or of none."""

    node: NodeId
    now: Micros
    horizon: Micros
    room: int
    tasks: Sequence[str]
    tasks_json: str
    """The same names as a JSON array, made once for every claim of a node."""

    @property
    def ahead(self) -> Micros:
        """How long before its time a run may be claimed."""
        return self.horizon - self.now


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim got, and when to ask again."""

    runs: Sequence[ClaimedRun] = ()
    next_ready_at: Micros | None = None
    """When the next queued run is ready, in a lane that has room; None if none is known. What cannot be claimed ahead
    (an open burst, a lane whose rate is used up) counts as ready that much later."""
    crowded: bool = False
    """Ready runs were left because a lane or the room was full."""
    expired: Unstarted = NONE_ENDED
    """What had waited longer than its max age."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a batch of final writes did: runs whose token no longer held, and what was claimed on the way."""

    lost: Sequence[RunId] = ()
    broken: Sequence[ScheduleId] = ()
    """Schedules whose breaker tripped."""
    claimed: Claimed = Claimed()
    instead: Sequence[Finish] = ()
    """What was written for runs that were to be tried again, and that somebody had asked to cancel meanwhile."""
    told: Told = NOTHING_TOLD
    """What people are told of it."""

    def as_written(self, batch: Sequence[Finish]) -> Sequence[Finish]:
        """This batch with what was written instead."""
        if not self.instead:
            return batch
        instead = {finish.id: finish for finish in self.instead}
        return [instead.get(finish.id, finish) for finish in batch]


@dataclass(frozen=True, slots=True)
class Stale:
    """What runs on nodes that are lost or have vanished, and which of them were declared lost just now."""

    runs: Sequence[ClaimedRun] = ()
    lost: Sequence[NodeId] = ()
    bound: Sequence[RunId] = ()
    """Queued runs that only such a node would have started."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What came of a run that is to wait in its session for the node that asks."""

    id: RunId | None
    """None if it was not to wait, and would have had to."""
    before: RunId | None = None
    """The run for whose end it would have waited."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancel ends queued runs at once and asks the nodes of running ones."""

    unstarted: Unstarted = NONE_ENDED
    asked: Sequence[RunId] = ()

    @property
    def ended(self) -> Sequence[RunId]:
        """Those that were queued."""
        return self.unstarted.ids


@dataclass(frozen=True, slots=True)
class StateCount:
    """So many ended in this state in this bucket of time."""

    at: Micros
    """Where the bucket begins."""
    state: RunState
    count: int
    seconds: float = 0.0
    """How long they ran in total."""
    with_errors: int = 0
    """How many of them succeeded with errors."""


@dataclass(frozen=True, slots=True)
class RunStretch:
    """Runs of one schedule (or of one task, without a schedule) that ended alike, as one stretch of time."""

    schedule: str | None
    task: str | None
    state: RunState
    with_errors: bool
    start: Micros
    end: Micros
    runs: int
    due_times: int
    """How many due times they stand for."""
    run: RunId | None
    """Its only run."""


@dataclass(frozen=True, slots=True)
class CountedRuns:
    """The stretches of a span, by their start."""

    stretches: Sequence[RunStretch]
    known_from: Micros | None
    """What ended before or then was not read; None if all was."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How busy everything is."""

    running: int
    queued: int
    late: int


@dataclass(frozen=True, slots=True)
class FirstActiveOf:
    """Whose longest active runs are asked for."""

    now: Micros
    schedules: Sequence[ScheduleId] = ()
    sessions: Sequence[str] = ()
    lanes: Sequence[str] = ()
    nodes: Sequence[str] = ()
    after: Sequence[RunId] = ()


@dataclass(frozen=True, slots=True)
class FirstActive:
    """The runs that others wait for; what is long in one is cut."""

    queued: Mapping[ScheduleId, Run] = field(default_factory=dict)
    """Of each schedule the oldest that is due and not under way,"""
    running: Mapping[ScheduleId, Run] = field(default_factory=dict)
    """and the oldest that is."""
    sessions: Mapping[str, Run] = field(default_factory=dict)
    """The oldest that has its turn."""
    lanes: Mapping[str, Run] = field(default_factory=dict)
    """The one that is under way longest."""
    nodes: Mapping[str, Run] = field(default_factory=dict)
    """The same."""
    after: Mapping[RunId, Sequence[Run]] = field(default_factory=dict)
    """For a run that waits for the ends of others those, in their order, and for each of them in turn; of very many
    the first ones."""


class RunStore(Protocol):
    """The ledger: in, claimed, finished, read."""

    async def insert_runs(self, runs: Sequence[NewRun]) -> RunIds:
        """Insert them in one transaction. Where a key is active already in its scope, the answer holds that run's
        id."""
        ...

    async def queue_runs(self, runs: Sequence[NewRun], now: Micros) -> list[RunId]:
        """What `insert_runs` does, for runs that wait their turn: the first of each session that may gets it."""
        ...

    async def insert_chain(self, steps: Sequence[ChainStep], now: Micros) -> RunIds:
        """Insert the runs of a chain in one transaction. Each of them that runs after others is claimed when all of
        those have succeeded, and skipped if one of them has not. A key that is active already stands for its run, and
        what comes after that waits for it."""
        ...

    async def settle_parked(self, now: Micros) -> int:
        """Let runs go on, or leave them out, that wait for others whose end nobody noted for them; answers how many
        such ends there were."""
        ...

    async def trigger_run(self, run: NewRun, allowed: int | None) -> RunId | None:
        """Insert a run of a schedule unless it has more than `allowed` active ones (None: no limit). A due time that
        counts from a finish waits for its end."""
        ...

    async def start_run(self, run: NewRun, node: NodeId, now: Micros) -> ClaimedRun:
        """Insert a run that this node executes itself, claimed already: no lane and no session is asked. A key that
        is active already is an error."""
        ...

    async def queue_bound(
        self, run: NewRun, node: NodeId, now: Micros, *, wait: bool = True, is_full: bool = False
    ) -> Bound:
        """Queue a run in its session that this node starts itself when its turn comes, and no claim takes. With `wait`
        False nothing is queued if it would not be its turn at once, in a session that may be full."""
        ...

    async def start_bound(self, id: RunId, node: NodeId, now: Micros, *, is_full: bool | None = None) -> Claimed:
        """Start such a run if it is its turn, whatever lanes say; ask again as often as need be. One that has waited
        longer than its max age is ended. Nothing is claimed if it is not started: its row says why.

        A session that is full goes one at a time from now on: beside something else that is under way, or behind an
        older run, it waits again. One that `is_full` no longer goes as many at a time as it allows.
        """
        ...

    async def repeat_run(
        self,
        id: RunId,
        now: Micros,
        turn: str | None = None,
        trace: str | None = None,
        by: str | None = None,
    ) -> RunId | None:
        """A new run, by hand and ready now, of the same work with the same policy; None if there is no such run. It
        waits in the session of the first, or, if that was in none that people see, in the one of its `turn`. `by` is
        who asks for it."""
        ...

    async def claim_runs(self, claim: Claim) -> Claimed: ...

    async def finish_runs(
        self, finishes: Sequence[Finish], claim: Claim | None = None, now: Micros | None = None
    ) -> Finished:
        """Write each finish whose token holds, with what follows from it (attempts, breaker, turn of the session,
        next due time after a finish, conversation, budget), and claim more work in the same transaction. `now` is when
        they are written, where that may be later than they ended: incidents changed then."""
        ...

    async def upstreams_of(self, id: RunId) -> list[Upstream]:
        """The ended runs that this run came after: those of other schedules in the order in which they ended, the steps
        of a chain in the order of the chain. Of one that is run again, those of the first."""
        ...

    async def related_runs(self, id: RunId) -> RunRelations:
        """The runs that this one comes after, ended or not, and those that come after it."""
        ...

    async def forget_given_up(self, ended: Sequence[tuple[RunId, int]]) -> None:
        """The code of these attempts, by run and token, has ended, that was given up before."""
        ...

    async def list_given_up(self) -> list[GivenUp]:
        """Code that was given up and goes on on a node that is not lost, the oldest first."""
        ...

    async def report_runs(self, reports: Sequence[Report]) -> None: ...

    async def cancel_runs(self, ids: Sequence[RunId], ending: Ending, now: Micros, by: str | None = None) -> Cancelled:
        """End queued runs, and ask the nodes of running ones to stop them; `by` says which person wants it."""
        ...

    async def stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> Stale:
        """Declare nodes lost that have not been heard of since the given `seen_at`, and answer what was running on
        lost or vanished nodes, or waited for them."""
        ...

    async def unclaimable_runs(self, ready_before: Micros) -> list[ClaimedRun]:
        """Queued runs that have been ready since before then and whose task no living node knows."""
        ...

    async def explain_queued(self, ids: Sequence[RunId], cause: Cause, reason: str) -> None:
        """Say on queued runs why they are not started."""
        ...

    async def step_aside(
        self, sessions: Collection[str], task: str, ready_before: Micros, back_at: Micros, reason: str
    ) -> int:
        """In these sessions of people, let what has been queued and ready since before then, of a task that no node
        knows, hold up nobody until `back_at`; answers how many runs."""
        ...

    async def step_back(self, now: Micros) -> int:
        """Let that queue up again whose task a living node knows by now; answers how many runs."""
        ...

    async def lend_slot(self, outer: OuterRun, to: RunId) -> str | None:
        """Let a queued run start by the slot that the run that waits for it has in their lane, if that lane is full and
        the slot is lent to no other; answers which lane."""
        ...

    async def take_back_slot(self, outer: OuterRun, to: RunId) -> None:
        """The run does not wait for it any more."""
        ...

    async def get_run(self, id: RunId) -> Run | None: ...

    async def list_runs(self, wanted: RunFilter) -> list[Run]: ...

    async def runs_between(
        self, start: Micros, end: Micros, schedule_ids: Sequence[ScheduleId] | None, limit: int
    ) -> tuple[list[Run], bool]:
        """Runs that touch the span, oldest first: what is active, then what ended last; and whether there are more."""
        ...

    async def count_runs_between(
        self,
        start: Micros,
        end: Micros,
        schedule_ids: Sequence[ScheduleId] | None,
        *,
        listed: Sequence[RunId],
        bucket: Micros,
        now: Micros,
        most: int,
    ) -> CountedRuns:
        """The runs that touch the span without those that are `listed`, counted by schedule, state and bucket; of what
        has ended, the latest `most` of all schedules are read."""
        ...

    async def count_runs(self, now: Micros, late_before: Micros) -> RunCounts:
        """How many runs are under way, ready and waiting, and ready since before `late_before`."""
        ...

    async def running_tasks(self) -> dict[str, RunningTask]:
        """The tasks that have runs under way, on all nodes."""
        ...

    async def late_runs(self, late_before: Micros, limit: int) -> list[Run]:
        """Queued runs that could have started before then, the longest waiting first."""
        ...

    async def first_active(self, of: FirstActiveOf) -> FirstActive:
        """The runs that others wait for, of these schedules, sessions, lanes and nodes, in one read."""
        ...

    async def tally_ended(self, since: Micros, until: Micros, bucket: Micros) -> list[StateCount]:
        """The runs that ended in this span, by bucket and state; a bucket begins at a multiple of its length."""
        ...

    async def answered_due(self, id: ScheduleId, start: Micros, end: Micros) -> set[Micros]:
        """The due times in this span that have a succeeded or active run of this schedule, whatever triggered it."""
        ...

    async def changes_since(self, position: Position, limit: int) -> Changes:
        """What happened behind a position, in one read."""
        ...

    async def read_output(self, id: RunId) -> list[OutputPart]:
        """What the run has printed so far, in order; a tail comes last."""
        ...

    async def output_mark(self, id: RunId) -> object:
        """Cheap to ask: it differs from the last answer if there is something new to read."""
        ...

    async def count_active(self, now: Micros) -> int:
        """How many runs are queued and ready, waiting for their turn, or running."""
        ...
