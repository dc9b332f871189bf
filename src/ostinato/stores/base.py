"""What the house asks of a database: small protocols whose methods are whole transactions.

`stores.sqlite` and `stores.postgres` answer them with the same file names; `tests/stores` runs every test
on both. The engine and the services know only this page, and what it takes from access.py,
quarantine.py, sessions.py and upkeep.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ostinato.clock import SECOND, Micros
from ostinato.models.budget import Grant, Reservation, Spending
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.lane import Lane, Rate
from ostinato.models.live import Changes, Mark
from ostinato.models.node import Node, NodeBeat
from ostinato.models.output import OutputPart
from ostinato.models.project import Ground, Project
from ostinato.models.replanning import Replan
from ostinato.models.run import ClaimedRun, Ending, Finish, NewRun, Report, Run, RunFilter
from ostinato.models.schedule import (
    DueSchedule,
    FirePlan,
    Hold,
    RecentRun,
    Schedule,
    ScheduleChange,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleRow,
    ScheduleState,
)
from ostinato.models.states import Cause, RunState
from ostinato.stores.access import AccessStore
from ostinato.stores.quarantine import QuarantineStore
from ostinato.stores.sessions import SessionStore
from ostinato.stores.upkeep import UpkeepStore

__all__ = [
    "Cancelled",
    "Claim",
    "Claimed",
    "Cleared",
    "Due",
    "Finished",
    "Glance",
    "LaneStore",
    "NodeStore",
    "OwnedRun",
    "ProjectStore",
    "Renewed",
    "RunCounts",
    "RunStore",
    "ScheduleStore",
    "Store",
    "Tally",
    "Watch",
]


@dataclass(frozen=True, slots=True)
class Due:
    """What a tick sees: the schedules due until the horizon, and when the next after it is."""

    schedules: Sequence[DueSchedule]
    next_at: Micros | None
    """The earliest due time past the horizon, or the first one left out by the limit."""


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


@dataclass(frozen=True, slots=True)
class Finished:
    """What a batch of final writes did: runs whose token no longer held, and what was claimed on the way."""

    lost: Sequence[RunId] = ()
    broken: Sequence[ScheduleId] = ()
    """Schedules whose breaker tripped."""
    claimed: Claimed = Claimed()


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancel ends queued runs at once and asks the nodes of running ones."""

    ended: Sequence[RunId] = ()
    asked: Sequence[RunId] = ()


@dataclass(frozen=True, slots=True)
class Cleared:
    """What one step of clearing a lane ended, and up to which run the next one goes; None when it is through."""

    runs: int = 0
    until: RunId | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """So many ended in this state in this bucket of time."""

    at: Micros
    """Where the bucket begins."""
    state: RunState
    count: int
    seconds: float = 0.0
    """How long they ran, in all."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How busy everything is."""

    running: int
    queued: int
    late: int


class OwnedRun(NamedTuple):
    """A run that a node executes, as the database has it."""

    id: RunId
    token: int
    ready_at: Micros
    schedule_id: ScheduleId | None
    session: str | None


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a heartbeat learns."""

    held: bool
    """False if the node was declared lost: its runs belong to others now."""
    drain: bool = False
    """Somebody asks it to take no more work."""
    owned: Sequence[OwnedRun] = ()
    """What runs on it, as the database has it."""


@dataclass(frozen=True, slots=True)
class Glance:
    """One cheap look after a change of the database: who of the engine has something to do."""

    next_at: Micros | None
    ready_at: Micros | None
    cancel: Sequence[tuple[RunId, Ending]]
    drain: bool | None = None
    """Whether somebody asks this node to take no more work; None if the node is not there."""


RECORDED_AHEAD: Micros = 2 * SECOND
"""A due time this near may have been recorded ahead of its time, by a right clock."""


class ScheduleStore(Protocol):
    """Schedules, and the one transaction that turns due times into runs."""

    async def put_schedules(self, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
        """Insert each draft, or update the schedule of its name where timing, work, policy, project, owner or
        note differ. A switch set by a person stays; `next_at` and `anchor_at` change only with the timing, which
        also clears `broken` (and enables again what the breaker had disabled). Another timing or budget ends a hold;
        after another budget it is due at its next due time."""
        ...

    async def insert_schedule(self, draft: ScheduleDraft, now: Micros) -> bool:
        """Insert it, unless there is one of this name; says whether it did."""
        ...

    async def get_schedule(self, name: str) -> Schedule | None: ...

    async def list_schedules(self, wanted: ScheduleFilter) -> list[Schedule]: ...

    async def page_schedules(self, wanted: ScheduleFilter) -> tuple[list[ScheduleRow], int]:
        """One page of a long list, by keyset, and how many the whole list has."""
        ...

    async def recent_runs(self, ids: Sequence[ScheduleId], count: int) -> dict[ScheduleId, list[RecentRun]]:
        """The last `count` runs of each of these schedules, oldest first."""
        ...

    async def schedule_history(self, id: ScheduleId, since: Micros) -> list[Tally]:
        """The ended runs of a schedule that were due since then, counted by state and the quarter of an hour in which
        they were due."""
        ...

    async def count_schedules(self, unknown: Sequence[str]) -> dict[ScheduleState, int]:
        """How many schedules there are, each in one state of these: broken (a task that is `unknown` breaks too),
        orphaned, finished, off, on. Together they are all; of those that are on, how many are paused."""
        ...

    async def count_tasks(self) -> dict[str, int]:
        """How many schedules call each task."""
        ...

    async def scheduled_tasks(self) -> set[str]:
        """The tasks that schedules call, found by skipping from one to the next."""
        ...

    async def edit_schedule(self, draft: ScheduleDraft, id: ScheduleId, version: int, now: Micros) -> int | None:
        """What `put_schedules` does, if the schedule of this name still has this id and version; answers the version
        it has then, None if it was another."""
        ...

    async def change_schedule(self, id: ScheduleId, version: int, change: ScheduleChange, now: Micros) -> bool:
        """Write the switch if the version still is what was read. Takes back runs that were recorded ahead of
        their due time when it disables."""
        ...

    async def remove_schedule(
        self, id: ScheduleId, version: int | None = None, spared: Sequence[RunId] | None = None
    ) -> bool:
        """Delete it with its runs, attempts and output; with `version`, only if it still has that one; with `spared`,
        only if no other run of it is under way. What is under way on a living node then counts as given up."""
        ...

    async def hold_schedule(self, id: ScheduleId, version: int, hold: Hold, now: Micros) -> bool:
        """Put off an enabled schedule, if its version still is what was read and it is still due at `hold.since`. The
        next fire that is recorded ends it, and so does whatever changes its switch, its timing or its budget, orphans
        or breaks it; then the due times left out until now get their one skipped row in the same transaction. What is
        held already keeps its first `since`."""
        ...

    async def mark_orphans(self, origin: str, declared: Sequence[str], now: Micros) -> list[str]:
        """Mark schedules of this app's code that it no longer declares; answers their names."""
        ...

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        """What is due up to the horizon. Where it is only shown, a text that is not UTF-8 is shown as far as it can
        be; where it is to fire, that is an error."""
        ...

    async def count_due(self, edges: Sequence[Micros]) -> list[int]:
        """How many schedules have their next due time from each edge up to the next one: one number less than edges."""
        ...

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> list[ScheduleId]:
        """In one transaction, for each plan whose `next_at` and version still are what was read: insert its runs
        and move the schedule on. Answers the schedules that were moved; the others lost a race."""
        ...

    async def later_schedules(self, now: Micros, after: ScheduleId, limit: int) -> list[DueSchedule]:
        """Schedules that are due after now, by their ids, from the one behind `after` on; without their active runs."""
        ...

    async def replan_schedules(self, plans: Sequence[Replan], now: Micros) -> list[ScheduleId]:
        """In one transaction, for each plan whose `next_at` and version still are what was read: set when it is due,
        take back what was missed or skipped in the future, and let what is queued for the future start now. Answers
        the schedules that were moved."""
        ...

    async def latest_write(self) -> Micros | None:
        """The latest instant at which a run ended or a schedule changed, by the clock of who wrote it."""
        ...


class RunStore(Protocol):
    """The ledger: in, claimed, finished, read."""

    async def insert_runs(self, runs: Sequence[NewRun]) -> list[RunId]:
        """Insert them in one transaction. Where a key is active already, the answer holds that run's id."""
        ...

    async def queue_runs(self, runs: Sequence[NewRun], now: Micros) -> list[RunId]:
        """What `insert_runs` does, for runs that wait their turn: the first of each session that may gets it."""
        ...

    async def trigger_run(self, run: NewRun, allowed: int | None) -> RunId | None:
        """Insert a run of a schedule unless it has more than `allowed` active ones (None: no limit). A due time that
        counts from a finish waits for its end."""
        ...

    async def start_run(self, run: NewRun, node: NodeId, now: Micros) -> ClaimedRun:
        """Insert a run that this node executes itself, claimed already: no lane and no session is asked. A key that
        is active already is an error."""
        ...

    async def repeat_run(self, id: RunId, now: Micros) -> RunId | None:
        """A new run, by hand and ready now, of the same work with the same policy; None if there is no such run."""
        ...

    async def claim_runs(self, claim: Claim) -> Claimed: ...

    async def finish_runs(self, finishes: Sequence[Finish], claim: Claim | None = None) -> Finished:
        """Write each finish whose token holds, with what follows from it (attempts, breaker, turn of the session,
        next due time after a finish, conversation, budget), and claim more work in the same transaction."""
        ...

    async def forget_given_up(self, ended: Sequence[tuple[RunId, int]]) -> None:
        """The code of these attempts, by run and token, has ended, that was given up before."""
        ...

    async def list_given_up(self) -> list[GivenUp]:
        """Code that was given up and goes on on a node that is not lost, the oldest first."""
        ...

    async def report_runs(self, reports: Sequence[Report]) -> None: ...

    async def cancel_runs(self, ids: Sequence[RunId], ending: Ending, now: Micros) -> Cancelled: ...

    async def stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[ClaimedRun]:
        """Declare nodes lost that have not been heard of since the given `seen_at`, and answer what was running on
        lost or vanished nodes."""
        ...

    async def unclaimable_runs(self, ready_before: Micros) -> list[ClaimedRun]:
        """Queued runs that have been ready since before then and whose task no living node knows."""
        ...

    async def explain_queued(self, ids: Sequence[RunId], cause: Cause, reason: str) -> None:
        """Say on queued runs why they are not started."""
        ...

    async def get_run(self, id: RunId) -> Run | None: ...

    async def list_runs(self, wanted: RunFilter) -> list[Run]: ...

    async def runs_between(
        self, start: Micros, end: Micros, schedule_ids: Sequence[ScheduleId] | None, limit: int
    ) -> tuple[list[Run], bool]:
        """Runs that touch the span, oldest first: what is active, then what ended last; and whether there are more."""
        ...

    async def count_runs(self, now: Micros, late_before: Micros) -> RunCounts:
        """How many runs are under way, ready and waiting, and ready since before `late_before`."""
        ...

    async def late_runs(self, late_before: Micros, limit: int) -> list[Run]:
        """Queued runs that could have started before then, the longest waiting first."""
        ...

    async def tally_ended(self, since: Micros, until: Micros, bucket: Micros) -> list[Tally]:
        """The runs that ended in this span, by bucket and state; a bucket begins at a multiple of its length."""
        ...

    async def answered_due(self, id: ScheduleId, start: Micros, end: Micros) -> set[Micros]:
        """The due times in this span that have a succeeded or active run of this schedule, whatever triggered it."""
        ...

    async def look(self, mark: Mark, limit: int) -> Changes:
        """What happened behind a mark, in one read."""
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


class ProjectStore(Protocol):
    """Projects, and what work must know and be granted before it starts."""

    async def put_project(self, name: str, folder: str, env: Mapping[str, str], now: Micros) -> bool:
        """Add a project, or change the one of this name; says whether it is new."""
        ...

    async def remove_project(self, name: str) -> bool:
        """Delete a project that no schedule belongs to, with its conversations; False if there is none to delete."""
        ...

    async def list_projects(self, name: str | None = None) -> list[Project]:
        """All of them by name, or the one of this name."""
        ...

    async def find_ground(self, project: str | None, conversation: str | None) -> Ground | None:
        """Where work of this project runs, and the id of the conversation of this key; None if there is no such
        project."""
        ...

    async def reserve(self, wanted: Reservation) -> Grant:
        """Ask the budget of a schedule for one run, in one transaction: what is granted is reserved until the run's
        finish is written. A run whose token no longer holds is refused."""
        ...

    async def read_spending(self, schedule_id: ScheduleId, now: Micros) -> Spending:
        """What the runs of a schedule have used of the budget of this day, which is one of its zone."""
        ...


class LaneStore(Protocol):
    """Lanes: their limits, rates and switches."""

    async def ensure_lanes(
        self, limits: Mapping[str, int], fixed: Sequence[str], rates: Mapping[str, Rate] | None = None
    ) -> None:
        """Create missing lanes with these limits; set the limit of those named in `fixed`, and these rates."""
        ...

    async def set_lane(self, name: str, limit: int | None, rate: Rate | None, *, clear_rate: bool = False) -> bool:
        """Create a lane, or change its limit and rate; None leaves what is there. False if there is none to change."""
        ...

    async def pause_lane(self, name: str, paused: bool, note: str | None) -> bool:
        """Nothing of a paused lane is claimed; what runs goes on. False if there is no such lane."""
        ...

    async def clear_lane(self, name: str, now: Micros, until: RunId | None, limit: int) -> Cleared:
        """One step: end up to `limit` queued runs of the lane as cancelled, none newer than `until` (None: than the
        newest there is)."""
        ...

    async def list_lanes(self) -> list[Lane]: ...


class NodeStore(Protocol):
    """Who is alive."""

    async def renew(self, beat: NodeBeat) -> Renewed:
        """Write the beat; the answer says whether the lease held, and what is asked of the node.

        It does not hold for a name that another process has: each keeps to its own process id and start.
        """
        ...

    async def leave(self, id: NodeId) -> None: ...

    async def ask_drain(self, id: NodeId, wanted: bool) -> bool:
        """Ask a node to take no more work, or to take work again; its next beat answers. False if it is not there."""
        ...

    async def list_nodes(self, now: Micros) -> list[Node]:
        """Engines, the oldest first. A process without slots has a lease, and is none."""
        ...

    async def signs_of_life(self) -> list[tuple[NodeId, Micros]]:
        """When each process that has a lease and is not lost was heard last, an engine or not."""
        ...

    async def read_statistics(self) -> dict[NodeId, dict[str, Any]]:
        """What each node that is not lost has counted since its start, as of its last beat."""
        ...


class Watch(Protocol):
    """Tells that somebody, maybe another process, changed the database."""

    async def changed(self) -> None:
        """Return when the database has changed since the last call."""
        ...

    async def glance(self, node: NodeId) -> Glance:
        """What the engine of this node has to know now."""
        ...

    async def close(self) -> None: ...


class Store(Protocol):
    """A database, opened and migrated."""

    @property
    def url(self) -> str: ...

    @property
    def schedules(self) -> ScheduleStore: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def projects(self) -> ProjectStore: ...

    @property
    def lanes(self) -> LaneStore: ...

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def nodes(self) -> NodeStore: ...

    @property
    def access(self) -> AccessStore: ...

    @property
    def upkeep(self) -> UpkeepStore: ...

    @property
    def quarantine(self) -> QuarantineStore: ...

    @property
    def fault(self) -> str | None:
        """Why it takes and gives nothing any more until it is opened anew; None when all is well."""
        ...

    async def open(self) -> None:
        """Connect, and migrate the schema under a lock."""
        ...

    async def watch(self) -> Watch: ...

    async def close(self) -> None: ...
