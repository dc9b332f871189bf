"""A schedule: timing + work + policy under a name.

`ScheduleDraft` goes in, `DueSchedule` comes to the planner, `Schedule` is what people read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.models.declared import SOMEBODY, Declared, FieldChange, Overrides
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import SWITCHED_OFF, Notice
from ostinato.models.notification import NoticeKind
from ostinato.models.policy import Policy, load_policy, notify_of
from ostinato.models.run import Ending, NewRun, Run
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.upstream import UpstreamEnd
from ostinato.models.work import Unreadable, Work
from ostinato.timing import Timing, parse_timing

__all__ = [
    "REMOVED",
    "DueSchedule",
    "FirePlan",
    "Pause",
    "RecentRun",
    "Revision",
    "Schedule",
    "ScheduleChange",
    "ScheduleDraft",
    "ScheduleFilter",
    "ScheduleRow",
    "ScheduleSort",
    "ScheduleState",
]


REMOVED = "its schedule was removed"
"""The reason of a run that was under way in a session when its schedule was removed."""


class Revision(NamedTuple):
    """Which schedule, and which version of it: one that is removed and added again has another id, and version 1."""

    id: ScheduleId
    version: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as people and scripts see it."""

    id: ScheduleId
    name: str
    timing: str
    """Its text form. The dates of a calendar are not in it, only its name."""
    zone: str
    """The IANA name of the zone of its wall clock."""
    sentence: str
    """The timing in English."""
    work: Work | Unreadable
    policy: Policy
    project: str | None
    owner: str
    made_by: str | None
    """Who added it; null if nobody wrote it down."""
    enabled: bool
    broken: str | None
    """Why it does not run, or null."""
    orphaned: bool
    """Its code no longer declares it."""
    note: str | None
    off_note: str | None
    """Why it was switched off: the note of the user who did it."""
    next_run_at: datetime | None
    next_run_reason: str | None
    """Why it is not due, or why it is paused until then; of one that is broken, when it is tried again."""
    paused_since: datetime | None
    """The first due time that it skips while it is paused."""
    remaining: int | None
    failures: int
    last_run: Run | None
    version: int
    """Goes up with each change; ETag and If-Match have it after the id."""
    created_at: datetime
    updated_at: datetime
    anchor_at: datetime
    """Where the grid of an `every` begins: the moment of enabling, unless the timing says its own."""
    off_by: str | None = None
    """Who switched it off; null for its breaker, and where its code says so."""
    off_at: datetime | None = None
    """When somebody switched it off."""
    paused_cause: Cause | None = None
    """Why it is paused, as one word."""
    active: bool = False
    """Whether something of it is queued or running."""
    probe_at: datetime | None = None
    """When a run of it is tried, although it is broken; null if its policy does not ask for that."""
    fresh_until: datetime | None = None
    """When it must have succeeded again; null if its policy does not ask for that, or if it is late already."""
    origin: str | None = None
    """The name of the app whose code declares it, or did."""
    declared: Declared | None = None
    overrides: Overrides = field(default_factory=dict)
    changes: tuple[FieldChange, ...] = ()
    """Which fields people changed of what its code declares, and which the code changed since it was first declared."""
    follows: bool = False
    """Whether it runs after other schedules, and so has no due times of its own."""
    waits_until: datetime | None = None
    """Of one that runs after all of several: until when it waits for the rest of them; null while none has ended."""

    resolved_timing: str | None = None
    """The text form with the dates of its calendars; None if it has none."""

    @property
    def stored_timing(self) -> str:
        """The text form that says when it is due, wherever it is read."""
        return self.timing if self.resolved_timing is None else self.resolved_timing

    @property
    def late(self) -> bool:
        """Whether it has not succeeded for longer than its `fresh` allows, and people were told."""
        return self.policy.fresh is not None and self.fresh_until is None

    @property
    def state(self) -> ScheduleState:
        """One of on, off, paused, broken, orphaned and finished."""
        if self.broken is not None:
            return ScheduleState.BROKEN
        if self.orphaned:
            return ScheduleState.ORPHANED
        if self.next_run_at is not None:
            return ScheduleState.PAUSED if self.paused_since is not None else ScheduleState.ON
        if not self.enabled and self.remaining != 0:
            return ScheduleState.OFF
        if self.follows and self.remaining != 0:
            return ScheduleState.ON
        return ScheduleState.ON if self.active else ScheduleState.FINISHED

    @property
    def is_declared(self) -> bool:
        """Whether the code of an app declares it."""
        return self.owner == "code" and self.origin is not None and not self.orphaned

    @property
    def paused(self) -> bool:
        """Whether it is on but paused until its next due time: its budget is used up."""
        return self.paused_since is not None and self.next_run_at is not None

    @property
    def anchored_timing(self) -> Timing:
        """Its timing as the engine counts: a grid begins at its anchor. TimingError if it cannot be read."""
        return parse_timing(self.stored_timing, tz=self.zone, name=self.name, stored=True).anchored(self.anchor_at)

    @property
    def revision(self) -> Revision:
        """Which schedule it is, and which version of it."""
        return Revision(self.id, self.version)


@dataclass(slots=True)
class ScheduleDraft:
    """A schedule to insert, or to update by name where something differs. Not frozen, as NewRun."""

    name: str
    timing: str
    zone: str
    work: str
    kind: str
    task: str | None
    policy: str
    project: str | None
    owner: str
    origin: str | None
    """The name of the app whose code declares it, for owner `code`."""
    enabled: bool
    note: str | None
    anchor_at: Micros
    next_at: Micros | None
    """The first due time if it is new, or if its timing changed."""
    after_finish: Micros | None
    remaining: int | None
    follows: bool = False
    """Whether it runs after other schedules, and is never due by the clock."""
    off_note: str | None = None
    """Why one is off although its code asks for it to be on."""
    fresh_at: Micros | None = None
    """When it must have succeeded, if it is new or is to be fresh from now on."""
    declared: str | None = None
    """What the code says of each field, as the store keeps it."""
    overrides: str | None = None
    """Which of these people changed, as the store keeps it."""
    made_by: str | None = None
    """Who adds it, if it is new or replaces what is there."""
    replaces: bool | None = None
    """Whether it takes the place of what somebody else made, which is theirs no longer, or is refused there; None for
    what changes a schedule without a question of whose it is. Not stored."""
    by: str = SOMEBODY
    """Who changes it; not stored, unless the code declares what is changed."""
    names_zone: bool = True
    """Whether its code names the zone, or has that of its app or its machine; not stored either."""
    may_switch_on: bool = True
    """Whether it may switch on what the breaker switched off or what ran as often as it should: its checks have passed.
    Not stored."""


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """The switch of a schedule: what enable and disable write together. Either clears what broke it."""

    enabled: bool
    off_note: str | None
    anchor_at: Micros
    next_at: Micros | None
    remaining: int | None
    overrides: str | None = None
    """What people have changed of what the code declares, with this."""
    ends_retries: bool = False
    """Whether its runs that wait for another attempt end with this."""
    off_by: str | None = None
    """Who switches it off."""
    off_at: Micros | None = None
    """When they do."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A schedule that stays on but does not run for a while: its budget is used up, or it is being removed.

    Its due times from `since` on become one skipped row when the pause ends: at `next_at`, or before.
    """

    since: Micros
    next_at: Micros
    cause: Cause
    reason: str


class ScheduleState(StrEnum):
    """What people filter schedules by."""

    ON = "on"
    """It will run again, or runs: not off, not broken, not orphaned, not finished."""
    OFF = "off"
    """Disabled, not by its breaker, and its code still declares it if it did."""
    BROKEN = "broken"
    RUNNING = "running"
    """Something of it is queued or running."""
    PAUSED = "paused"
    """On, but paused until its next due time. Lists and counts of what is on have it too."""
    FINISHED = "finished"
    """Without a further due time, for its timing has none or it ran as often as it should; nothing of it is active."""
    ORPHANED = "orphaned"
    FAILING = "failing"
    """Of its runs that succeeded or failed, the last one failed: whatever else it is."""


class ScheduleSort(StrEnum):
    """In which order schedules are listed; what has no such value comes last, and ties go by name."""

    NEXT = "next"
    NAME = "name"
    LAST = "last"
    """By its latest run."""
    FAILED = "failed"
    """By its latest run that failed, whatever came after it."""
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """Which schedules to list, and in which order; the soonest first if nothing else is said."""

    names: tuple[str, ...] = ()
    ids: tuple[ScheduleId, ...] = ()
    search: str | None = None
    """Part of its name, its task, its note or its project, whatever the case."""
    owner: str | None = None
    """Or its kind, which stands before a colon: `crontab` finds `crontab:HOST:/path`."""
    project: str | None = None
    """Or NO_PROJECT, for those that are in none."""
    enabled: bool | None = None
    state: ScheduleState | None = None
    unknown: tuple[str, ...] = ()
    """Tasks that no running node knows: a schedule of one that is on counts as broken, which is not stored."""
    sort: ScheduleSort = ScheduleSort.NEXT
    descending: bool = False
    after: tuple[int | str | None, str] | None = None
    """The sort value and the name of the last one of the page before."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule in a list, what the next page begins after, and how many of its runs are active, and queued."""

    schedule: Schedule
    key: tuple[int | str | None, str]
    active: int
    queued: int


class RecentRun(msgspec.Struct, gc=False, omit_defaults=True):
    """One of the last runs of a schedule."""

    # Enough for a bar. A page has thousands: this is made and written faster than a dataclass.
    id: RunId
    state: RunState
    at: datetime
    """When it ended, or was due."""
    seconds: float | None
    """How long it ran."""
    cause: Cause | None = None
    """Why it did not simply succeed; left out of what did."""


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """What the planner needs to know of a schedule that is due, and of its active runs."""

    id: ScheduleId
    name: str
    timing: str
    zone: str
    work: str
    kind: str
    task: str | None
    policy: str
    anchor_at: Micros
    next_at: Micros
    remaining: int | None
    version: int
    project: str | None
    paused_since: Micros | None
    paused_reason: str | None
    paused_cause: Cause | None
    follows: bool
    """Whether it runs after other schedules."""
    active: tuple[RunId, ...]
    """Runs of it that run or could run now, oldest first."""
    waiting: tuple[RunId, ...]
    """Runs of it that wait for their turn, oldest first."""
    given_up: tuple[RunId, ...] = ()
    """Runs of its name that were given up and whose code goes on, oldest first."""
    broken: str | None = None
    """Why the breaker has switched it off; what is due then is a probe."""
    ends: tuple[UpstreamEnd, ...] = ()
    """Ends of other schedules' runs that it has not answered yet, oldest first."""

    @property
    def anchored_timing(self) -> Timing:
        """Its timing as the engine counts: a grid begins at its anchor. TimingError if it cannot be read."""
        return parse_timing(self.timing, tz=self.zone, name=self.name, stored=True).anchored(
            from_micros(self.anchor_at)
        )

    def left_out(
        self,
        state: RunState,
        cause: Cause,
        reason: str,
        first: Micros,
        last: Micros,
        count: int,
        trigger: Trigger = Trigger.SCHEDULE,
    ) -> NewRun:
        """One row for due times from `first` to `last` that nothing is executed for."""
        return NewRun(
            kind=self.kind,
            task=self.task,
            work=self.work,
            policy=self.policy,
            trigger=trigger,
            due_at=first,
            ready_at=first,
            lane=load_policy(self.policy).lane,
            state=state,
            cause=cause,
            reason=reason,
            schedule_id=self.id,
            last_due_at=last,
            count=count,
            project=self.project,
        )

    def notice(self, kind: NoticeKind, cause: str, reason: str | None, at: Micros, run: NewRun | None = None) -> Notice:
        """What is told of it, or of due times of it that nothing is executed for."""
        return Notice(
            kind,
            self.name,
            at,
            cause=cause,
            reason=reason,
            schedule=self.name,
            schedule_id=self.id,
            project=self.project,
            count=1 if run is None else run.count,
            due_at=None if run is None else run.due_at,
            notify=notify_of(self.policy),
        )

    def notices(self, runs: Sequence[NewRun], broken: str | None, at: Micros) -> tuple[Notice, ...]:
        """What is told of rows of it that are recorded at their end, and of why it was switched off."""
        missed = [run for run in runs if run.state is RunState.MISSED and run.cause is not None]
        told = [self.notice(NoticeKind.MISSED, str(run.cause), run.reason, at, run) for run in missed]
        if broken is not None:
            told.append(self.notice(NoticeKind.BROKEN, SWITCHED_OFF, broken, at))
        return tuple(told)


@dataclass(frozen=True, slots=True)
class FirePlan:
    """What a tick does to one schedule: written whole, and only if `next_at` still is what was read."""

    schedule_id: ScheduleId
    read_next_at: Micros
    version: int
    runs: tuple[NewRun, ...] = ()
    next_at: Micros | None = None
    remaining: int | None = None
    enabled: bool = True
    broken: str | None = None
    idle: bool = False
    """It was planned as if nothing of the schedule were active: not written if that no longer holds."""
    cancel: tuple[RunId, ...] = ()
    """Active runs that the newer one replaces."""
    ending: Ending | None = None
    """Why those end."""
    notices: tuple[Notice, ...] = ()
    """What people are told of it."""
    probes: bool = False
    """It is broken already, and a run of it is tried: nothing new is told."""
    follows: bool = False
    """It answers ends of other schedules' runs."""
    held: tuple[RunId, ...] = ()
    """Runs of other schedules whose ends wait for those of others."""
