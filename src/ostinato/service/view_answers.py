"""The larger views as plain JSON: overview, timeline, and a timing explained. Beside it: `answers.py`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ostinato.models.quarantine import Quarantined
from ostinato.models.states import RunState, Trigger
from ostinato.service.answers import Answer, Run, Schedule, run_answer, schedule_answer, tells
from ostinato.service.forecast import DueTime
from ostinato.service.overview import BUCKET
from ostinato.service.overview import Overview as OverviewModel
from ostinato.service.timeline import Timeline as TimelineModel
from ostinato.service.timings import Preview as PreviewModel

__all__ = ["NextTimes", "Overview", "Preview", "Timeline", "overview_answer", "timeline_answer"]


@tells(PreviewModel, "after")
class Preview(Answer):
    """What a timing means."""


class NextTimes(Answer):
    """The next due times; `reason` says why there are none, or for what it is held."""

    zone: str
    next: Sequence[datetime]
    reason: str | None


class EngineState(Answer):
    """Whether anybody runs what is due."""

    alive: bool
    nodes: int
    """How many are alive or draining."""
    lost: int
    here: bool
    """One of them is in this process."""


class Counts(Answer):
    """How many there are."""

    schedules: int
    on: int
    """What will run again or runs, paused or not."""
    off: int
    broken: int
    finished: int
    orphaned: int
    due: int
    """Schedules that are due within the hour or overdue."""
    running: int
    queued: int
    late: int
    quarantined: int
    """Rows that were set aside because nobody could work with them."""


class Hour(Answer):
    """How many due times an hour has."""

    at: datetime
    count: int


# What it said may be a secret, and is for whoever has the database.
@tells(Quarantined, "id", "content")
class QuarantinedRow(Answer):
    """A row that was ended, switched off, mended or removed because nobody could work with it."""


@tells(OverviewModel, "alive", "lost", "schedules", "runs", "hours", "quarantined")
class Overview(Answer):
    """All at a glance."""

    engine: EngineState
    counts: Counts
    running: list[Run]
    late: list[Run]
    broken: list[Schedule]
    next24: list[Hour]
    """The next 24 hours; the first is the one that it is."""
    estimated: bool
    """There are too many schedules to count all: next24 is at least so."""
    failed: list[Run]
    bucket_seconds: int
    quarantine: list[QuarantinedRow]
    """The last 20 of them."""


def overview_answer(overview: OverviewModel, *, is_here: bool) -> Overview:
    """All at a glance; `is_here` says that this process has an engine."""
    zone, runs = overview.zone, overview.runs
    return Overview.of(
        overview,
        engine=EngineState(overview.alive > 0, overview.alive, overview.lost, is_here),
        counts=Counts(
            **overview.schedules,
            running=runs.running,
            queued=runs.queued,
            late=runs.late,
            quarantined=overview.quarantined,
        ),
        running=[run_answer(run, zone) for run in overview.running],
        late=[run_answer(run, zone) for run in overview.late],
        broken=[schedule_answer(one.schedule, one.running) for one in overview.broken],
        next24=[Hour(at, count) for at, count in overview.hours.counts],
        estimated=overview.hours.estimated,
        failed=[run_answer(run, zone) for run in overview.failed],
        bucket_seconds=BUCKET // 1_000_000,
        quarantine=[QuarantinedRow.of(row) for row in overview.quarantine],
    )


class TimelineRun(Answer):
    """A run as a bar."""

    id: int
    schedule: str | None
    task: str | None
    state: RunState
    trigger: Trigger
    due_at: datetime
    last_due_at: datetime | None
    count: int
    started_at: datetime | None
    finished_at: datetime | None
    lane: str
    node: str | None


class Timeline(Answer):
    """Runs that touch the span, and the due times in it that are yet to come."""

    start: datetime = msgspec.field(name="from")
    end: datetime = msgspec.field(name="to")
    now: datetime
    zone: str
    runs: list[TimelineRun]
    due: Sequence[DueTime]
    truncated: bool
    """There are more than the limit: here is what is active or ended last, the soonest due."""


def timeline_answer(timeline: TimelineModel) -> Timeline:
    """A span and what is in it."""
    return Timeline.of(timeline, runs=[TimelineRun.of(run) for run in timeline.runs])
