"""What happens, as it is told to whoever watches: looks at the ledger, and the events that two looks make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.models.access import AuditEntry
from ostinato.models.event import Event
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import Incident
from ostinato.models.run import Progress
from ostinato.models.states import ENDS, Cause, RunState, Trigger

__all__ = ["ChangedIncident", "ChangedSchedule", "Changes", "LiveEvent", "LiveKind", "Position", "PublishedRun"]


class LiveKind(StrEnum):
    """What is told."""

    RUN_QUEUED = "run_queued"
    RUN_STARTED = "run_started"
    RUN_PROGRESS = "run_progress"
    RUN_FINISHED = "run_finished"
    SCHEDULE_CHANGED = "schedule_changed"
    SCHEDULE_BROKEN = "schedule_broken"
    SCHEDULE_REMOVED = "schedule_removed"
    SESSION_EVENT = "session_event"
    INCIDENT_OPENED = "incident_opened"
    INCIDENT_CHANGED = "incident_changed"
    INCIDENT_CLOSED = "incident_closed"


class PublishedRun(msgspec.Struct, frozen=True, gc=False):
    """A run as events tell it: a Run without what may be large (`work`, `result`, `attempts`). These are its JSON, in
    this order: thousands are made and written at once, faster than dataclasses."""

    id: RunId
    schedule: str | None
    task: str | None
    state: RunState
    cause: Cause | None
    reason: str | None
    cancelling: str | None
    trigger: Trigger
    due_at: datetime
    last_due_at: datetime | None
    count: int
    ready_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    totals: Mapping[str, float]
    progress: Progress | None
    error: str | None
    lane: str
    priority: int
    session: str | None
    project: str | None
    key: str
    node: str | None
    schedule_id: ScheduleId | None
    zone: str | None
    """Of its schedule; whoever tells a run without one fills it in."""
    trace_id: str | None = None
    started_by: str | None = None
    cancelled_by: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in ENDS


class LiveEvent(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened, as its row says now. These are its JSON too."""

    kind: LiveKind
    at: datetime
    run: PublishedRun | None = None
    schedule: str | None = None
    session: str | None = None
    data: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Position:
    """How far somebody has looked; what is asked of the next look."""

    run: int
    """New are runs with a greater id."""
    event: int
    audit: int
    changed_at: Micros
    """Schedules and incidents that were changed at or after this instant are of interest."""
    finished_at: Micros
    """And older runs that ended at or after this one."""
    runs: Sequence[RunId] = ()
    """Look at these runs too: they were active when last seen."""
    told: Sequence[RunId] = ()
    """But not at these ends."""


@dataclass(frozen=True, slots=True)
class ChangedSchedule:
    """What is told of a schedule that was changed."""

    id: ScheduleId
    name: str
    version: int
    enabled: bool
    broken: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ChangedIncident:
    """An incident that was opened, counted on, acknowledged, told or closed."""

    incident: Incident
    changed_at: datetime
    turned_at: datetime
    """When it was last opened or closed. Both are when that was written: what ended long ago may be written now."""


@dataclass(frozen=True, slots=True)
class Changes:
    """One look at the ledger, all of one state. Lists are cut at the limit; then there is more behind the mark."""

    new: Sequence[PublishedRun]
    """Runs behind the mark, oldest first."""
    seen: Sequence[PublishedRun]
    """All runs that were asked for, as they are now; one that is not here has no row any more."""
    ended: Sequence[PublishedRun]
    """The latest that ended since `finished_at`, but those that are new, were asked for, or were told."""
    running: Sequence[PublishedRun]
    """Everything under way, at most as many as the limit."""
    schedules: Sequence[ChangedSchedule]
    """In the order of their change."""
    events: Sequence[Event]
    audit: Sequence[AuditEntry]
    """Entries of removed schedules behind the mark."""
    last_run: int
    """The greatest id of a run."""
    incidents: Sequence[ChangedIncident] = ()
    """In the order of their change."""
