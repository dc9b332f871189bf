"""App events: what `app.on(…)` tells a callback. The engine and the services make them, `listeners.py` hands them on.

They are told once and kept nowhere; the ledger keeps everything. What happened in sessions is `models/event.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from ostinato.models.ids import IncidentId, NodeId, RunId
from ostinato.models.states import Cause, RunState

__all__ = ["AppEvent", "AppEventKind", "AppEventName"]


class AppEventKind(StrEnum):
    """What happened."""

    RUN_STARTED = "run.started"
    """This node started an attempt of a run."""
    RUN_SUCCEEDED = "run.succeeded"
    RUN_FAILED = "run.failed"
    """A run ended as failed: there is no other attempt."""
    RUN_RETRYING = "run.retrying"
    """An attempt failed or was cut off, and there is another one."""
    RUN_CANCELLED = "run.cancelled"
    """A run ended as cancelled or superseded."""
    RUN_SKIPPED = "run.skipped"
    """A run or a due time ended as skipped or expired: nothing was executed for it."""
    DUE_MISSED = "due.missed"
    """Due times passed while nobody was there, and catch-up said no: one event for each row."""
    SCHEDULE_BROKEN = "schedule.broken"
    """A schedule was switched off: its breaker tripped, or its timing cannot be computed."""
    SCHEDULE_RECOVERED = "schedule.recovered"
    """A scheduled run succeeded after others of its schedule had failed, or a broken schedule was enabled."""
    SCHEDULE_LATE = "schedule.late"
    """A schedule has not succeeded for longer than its `fresh` allows, or a check-in did not come."""
    INCIDENT_OPENED = "incident.opened"
    """Something began to fail, for a cause that it did not fail for before."""
    INCIDENT_CLOSED = "incident.closed"
    """It recovered."""
    NODE_LOST = "node.lost"
    """This node declared another one lost."""
    LANE_PAUSED = "lane.paused"


AppEventName = Literal[
    "run.started",
    "run.succeeded",
    "run.failed",
    "run.retrying",
    "run.cancelled",
    "run.skipped",
    "due.missed",
    "schedule.broken",
    "schedule.recovered",
    "schedule.late",
    "incident.opened",
    "incident.closed",
    "node.lost",
    "lane.paused",
]
"""The same as text, so that a wrong name is an error of the type checker."""


@dataclass(frozen=True, slots=True)
class AppEvent:
    """Something that happened in this process. What does not concern its kind is None."""

    kind: AppEventKind
    at: datetime
    run: RunId | None = None
    """The number of the run. A due time that was never queued has none here: its row is found by its schedule."""
    schedule: str | None = None
    task: str | None = None
    state: RunState | None = None
    cause: Cause | None = None
    reason: str | None = None
    """The same in words; of a broken schedule why, of a paused lane its note."""
    error: str | None = None
    attempt: int | None = None
    retry_at: datetime | None = None
    """When the next attempt is ready."""
    due_at: datetime | None = None
    """Of a run, or of due times that were skipped or missed."""
    count: int = 1
    """How many due times it stands for."""
    node: NodeId | None = None
    """The node that was lost."""
    lane: str | None = None
    """The lane that was paused."""
    incident: IncidentId | None = None
    """The number of the incident; `count` says how many failures it stands for."""
    subject: str | None = None
    """What the incident is about: a schedule, a task, or a kind of work."""
