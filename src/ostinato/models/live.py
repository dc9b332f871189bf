"""What happens, as it is told to whoever watches: looks at the ledger, and the events that two looks make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ostinato.clock import Micros
from ostinato.models.access import AuditEntry
from ostinato.models.event import Event
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Run

__all__ = ["ChangedSchedule", "Changes", "LiveEvent", "LiveKind", "Mark"]


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


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """One thing that happened, as its row says now."""

    kind: LiveKind
    at: datetime
    run: Run | None = None
    schedule: str | None = None
    session: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far somebody has looked; what is asked of the next look."""

    run: int
    """New are runs with a greater id."""
    event: int
    audit: int
    changed_at: Micros
    """Schedules that were changed at or after this instant are of interest."""
    changed_id: int = 0
    """Of those that were changed at that very instant, only those with a greater id."""
    runs: Sequence[RunId] = ()
    """Look at these runs too: they were active when last seen, or are missing in the row of ids."""
    finished_at: Micros | None = None
    """Also at older runs that ended at or after this instant: for who does not know all that was active."""
    told: Sequence[RunId] = ()
    """But not at these ends."""
    active: int = 0
    """List also so many of the runs that are active."""


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
class Changes:
    """One look at the ledger, all of one state; its runs are without `work` and `result`. Lists are cut at the limit;
    then there is more behind the mark."""

    new: Sequence[Run]
    """Runs behind the mark, oldest first."""
    seen: Sequence[Run]
    """All runs that were asked for, as they are now; one that is not here has no row any more."""
    ended: Sequence[Run]
    """The latest that ended since `finished_at`, but those that are new, were asked for, or were told."""
    running: Sequence[Run]
    """Everything under way, at most as many as the limit."""
    schedules: Sequence[ChangedSchedule]
    """Behind the mark, in the order of their change."""
    events: Sequence[Event]
    audit: Sequence[AuditEntry]
    """Entries of removed schedules behind the mark."""
    last_run: int
    """The greatest id of a run."""
    active: Sequence[Run] = ()
    """What is queued or under way, the newest first, at most as many as were asked for."""
