"""Incidents: open from the first failure of a subject and a cause until it recovers, so that people hear of it once.

A notice is what the engine hands to the store with whatever it records; `stores/sql/telling.py` makes incidents and
deliveries of it, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import IncidentId, RunId, ScheduleId
from ostinato.models.notification import NoticeKind
from ostinato.models.states import RunState

__all__ = [
    "CHANGES_EVERY",
    "EACH_RUN",
    "FAILINGS",
    "LATE",
    "NO_INTERESTS",
    "REOPENS_WITHIN",
    "SWITCHED_OFF",
    "Incident",
    "IncidentChange",
    "IncidentFilter",
    "IncidentState",
    "Interests",
    "Notice",
    "RepeatedRun",
]

REOPENS_WITHIN: Micros = 3_600 * SECOND
"""What fails again so soon after it recovered is the same incident."""

CHANGES_EVERY: Micros = SECOND
"""How often failures that are only counted write when an incident changed. The live stream looks back further."""

FAILINGS = frozenset({NoticeKind.FAILED, NoticeKind.BROKEN, NoticeKind.MISSED, NoticeKind.LATE})
"""The kinds of notices that open an incident."""

EACH_RUN = frozenset({NoticeKind.SUCCEEDED, NoticeKind.RUN})
"""Whoever wants these is told of runs that did as they should."""

SWITCHED_OFF = "broken"
"""The cause of the incident of a schedule that was switched off."""
LATE = "late"
"""The cause of the incident of a schedule that has not succeeded in time."""


@dataclass(slots=True)
class Notice:
    """One thing that may be told. Not frozen, as NewRun: it is made by the thousand."""

    kind: NoticeKind
    subject: str
    """The schedule; of a run without one its task, or its kind of work and which work it is (`shell 3fa2c1`)."""
    at: Micros
    cause: str | None = None
    """One incident for each; of a failing it is always there."""
    reason: str | None = None
    run: RunId | None = None
    schedule: str | None = None
    schedule_id: ScheduleId | None = None
    project: str | None = None
    count: int = 1
    """How many due times or errors it stands for."""
    due_at: Micros | None = None
    notify: Sequence[str] = ()
    """What the policy says of who is told."""
    since: Micros | None = None
    """When the first of several happened that it stands for, and its run."""
    first_run: RunId | None = None
    closes: bool = False
    """Whether it ends the open incidents of its subject."""


class IncidentState(StrEnum):
    """What people filter incidents by."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Incident:
    """One cause of trouble with one subject."""

    id: IncidentId
    subject: str
    cause: str
    kind: NoticeKind
    """What opened it."""
    state: IncidentState
    opened_at: datetime
    last_at: datetime
    closed_at: datetime | None
    count: int
    """How many failures it stands for."""
    reopened: int
    """How often it came back soon after it had recovered."""
    reason: str | None
    """Of the last failure."""
    first_run: RunId | None
    last_run: RunId | None
    schedule: str | None
    project: str | None
    closed_reason: str | None = None
    acked_at: datetime | None = None
    acked_by: str | None = None
    """Somebody has seen to it: nothing more is told of it until it recovers."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RepeatedRun:
    """A run that somebody started again by hand, and what became of it."""

    of: RunId
    """The run that it repeats."""
    run: RunId
    state: RunState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class IncidentChange:
    """An incident was opened or closed by what was recorded."""

    id: IncidentId
    opened: bool
    subject: str
    cause: str
    kind: NoticeKind
    reason: str | None
    count: int
    at: Micros
    schedule: str | None = None
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Which incidents to list: those that are open first, then the newest."""

    state: IncidentState | None = None
    subject: str | None = None
    project: str | None = None
    """Or NO_PROJECT, for those that are in none."""
    before_id: IncidentId | None = None
    """Behind this one in that order."""
    before_open: bool = True
    """Whether that one is open."""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Interests:
    """What an engine has to know to tell successes apart that matter to nobody, and when there is something to send."""

    kinds: frozenset[NoticeKind] = frozenset()
    """What rules want."""
    each_run_of: frozenset[str | None] = frozenset()
    """The projects of which somebody wants to hear of every success or every run; None: of all."""
    open: frozenset[str] = frozenset()
    """Subjects that have an open incident: a success closes it."""
    next_at: Micros | None = None
    """When the first delivery, or the first summary, is due."""

    def after(self, changes: Iterable[IncidentChange]) -> Interests:
        """The same, once incidents have opened and closed."""
        subjects = set(self.open)
        for change in changes:
            # Of several of a subject one may still be open: then the next look says so.
            (subjects.add if change.opened else subjects.discard)(change.subject)
        return replace(self, open=frozenset(subjects))


NO_INTERESTS = Interests()
