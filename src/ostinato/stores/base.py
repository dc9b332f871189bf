"""What the other layers ask of a database: small protocols whose methods are whole transactions.

`stores.sqlite` and `stores.postgres` answer them, both by way of `stores.sql`; `testing.store_suite` has the rules that
they keep, and any other store too. The engine and the services know only this page, and what it takes from access.py,
calendars.py, check_ins.py, notifications.py, quarantine.py, runs.py, schedules.py, sessions.py, transactions.py and
upkeep.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ostinato.clock import Micros
from ostinato.models.budget import BudgetOwner, Grant, Reservation, Spending
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.lane import Lane, Rate
from ostinato.models.node import Node, NodeBeat
from ostinato.models.project import Project, ProjectContext
from ostinato.models.run import Ending
from ostinato.stores.access import AccessStore
from ostinato.stores.calendars import CalendarStore
from ostinato.stores.check_ins import CheckedIn, CheckInStore, LateCheckIns
from ostinato.stores.notifications import NotificationStore, Parcel, Settled
from ostinato.stores.quarantine import QuarantineStore
from ostinato.stores.runs import (
    NONE_ENDED,
    NOTHING_TOLD,
    Bound,
    Cancelled,
    Claim,
    Claimed,
    CountedRuns,
    Finished,
    FirstActive,
    FirstActiveOf,
    RunCounts,
    RunStore,
    RunStretch,
    Stale,
    StateCount,
    Told,
    Unstarted,
)
from ostinato.stores.schedules import RECORDED_AHEAD, Due, Fired, Late, Removed, ScheduleStore
from ostinato.stores.sessions import SessionStore
from ostinato.stores.transactions import CallerConnection, OutboxStore, SharedLedger
from ostinato.stores.upkeep import UpkeepStore

__all__ = [
    "NONE_ENDED",
    "NOTHING_TOLD",
    "RECORDED_AHEAD",
    "Bound",
    "CalendarStore",
    "CallerConnection",
    "Cancelled",
    "CheckInStore",
    "CheckedIn",
    "Claim",
    "Claimed",
    "Cleared",
    "CountedRuns",
    "Due",
    "Finished",
    "Fired",
    "FirstActive",
    "FirstActiveOf",
    "LaneStore",
    "Late",
    "LateCheckIns",
    "NodeStore",
    "NotificationStore",
    "OutboxStore",
    "OwnedRun",
    "Parcel",
    "ProjectStore",
    "Removed",
    "Renewed",
    "RunCounts",
    "RunStore",
    "RunStretch",
    "ScheduleStore",
    "Settled",
    "SharedLedger",
    "Stale",
    "StateCount",
    "Store",
    "Told",
    "Unstarted",
    "WakeHints",
    "Watch",
]


@dataclass(frozen=True, slots=True)
class Cleared:
    """What one step of clearing a lane ended, and up to which run the next one goes; None when it is through."""

    runs: int = 0
    until: RunId | None = None


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
    bound: Sequence[RunId] = ()
    """What is queued for it alone."""


@dataclass(frozen=True, slots=True)
class WakeHints:
    """One cheap look after a change of the database: who of the engine has something to do."""

    next_at: Micros | None
    ready_at: Micros | None
    cancel: Sequence[tuple[RunId, Ending]]
    drain: bool | None = None
    """Whether somebody asks this node to take no more work; None if the node is not there."""


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

    async def find_context(self, project: str | None, conversation: str | None) -> ProjectContext | None:
        """Where work of this project runs, and the id of the conversation of this key; None if there is no such
        project."""
        ...

    async def reserve(self, wanted: Reservation) -> Grant:
        """Ask the budget of a schedule or a session for one run, in one transaction: what is granted is reserved until
        the run's finish is written. A run whose token no longer holds is refused."""
        ...

    async def read_spending(self, owner: BudgetOwner, now: Micros) -> Spending:
        """What the runs of a schedule, or the messages of a session, have used of the budget of this day, which is one
        of its zone."""
        ...


class LaneStore(Protocol):
    """Lanes: their limits, rates and switches."""

    async def ensure_lanes(
        self,
        limits: Mapping[str, int],
        fixed: Sequence[str],
        rates: Mapping[str, Rate] | None = None,
        node: tuple[NodeId, Micros] | None = None,
    ) -> None:
        """Create missing lanes with these limits; set the limit of those named in `fixed`, and these rates.

        A node that starts, at this instant, gives the others back the limit that they had before a setting that no
        living node has any more.
        """
        ...

    async def set_lane(self, name: str, limit: int | None, rate: Rate | None, *, clear_rate: bool = False) -> bool:
        """Create a lane, or change its limit and rate; None leaves what is there. False if there is none to change."""
        ...

    async def pause_lane(
        self, name: str, paused: bool, note: str | None, by: str | None = None, at: Micros | None = None
    ) -> bool:
        """Nothing of a paused lane is claimed; what runs goes on. `by` says who paused it, and `at` when. False if
        there is no such lane."""
        ...

    async def clear_lane(
        self, name: str, now: Micros, until: RunId | None, limit: int, by: str | None = None
    ) -> Cleared:
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

    async def wake_hints(self, node: NodeId) -> WakeHints:
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
    def calendars(self) -> CalendarStore: ...

    @property
    def lanes(self) -> LaneStore: ...

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def nodes(self) -> NodeStore: ...

    @property
    def access(self) -> AccessStore: ...

    @property
    def notifications(self) -> NotificationStore: ...

    @property
    def check_ins(self) -> CheckInStore: ...

    @property
    def upkeep(self) -> UpkeepStore: ...

    @property
    def quarantine(self) -> QuarantineStore: ...

    @property
    def outbox(self) -> OutboxStore: ...

    @property
    def fault(self) -> str | None:
        """Why it takes and gives nothing any more until it is opened anew; None when all is well."""
        ...

    async def exists(self) -> bool:
        """Before it is opened, which would make it: whether it is there."""
        ...

    async def open(self) -> None:
        """Connect, and migrate the schema under a lock."""
        ...

    async def shared_ledger(self) -> SharedLedger | None:
        """The ledger as connections of others to the same database reach it; None if there can be none."""
        ...

    async def watch(self) -> Watch: ...

    async def close(self) -> None: ...
