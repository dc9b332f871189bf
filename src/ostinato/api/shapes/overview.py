"""The overview, the timeline and the preview of a timing as REST shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ostinato.api.shapes.base import Answer, Asked, Moment, Sought, Text, Time, Zone
from ostinato.api.shapes.runs import Run, State, Trigger
from ostinato.api.shapes.schedules import Schedule

__all__ = ["Overview", "Preview", "PreviewQuery", "Timeline", "TimelineQuery", "TimingToPreview"]


class EngineState(Answer):
    """Whether anybody runs what is due."""

    alive: bool
    nodes: Annotated[int, Field(description="How many are alive or draining.")]
    lost: int
    here: Annotated[bool, Field(description="One of them is in this process.")]


class Counts(Answer):
    """How many there are."""

    schedules: int
    on: Annotated[int, Field(description="What will run again or runs, paused or not.")]
    off: int
    broken: int
    finished: int
    orphaned: int
    due: Annotated[int, Field(description="Schedules that are due within the hour or overdue.")]
    running: int
    queued: int
    late: int
    quarantined: Annotated[int, Field(description="Rows that were set aside because nobody could work with them.")]


class DueTime(Answer):
    """A schedule and when it is due."""

    schedule: str
    at: Time
    zone: Annotated[str, Field(description="Of the schedule.")]


class Hour(Answer):
    """How many due times an hour has."""

    at: Time
    count: int


class Bucket(Answer):
    """How the runs that ended in this time ended."""

    at: Time
    states: Annotated[dict[str, int], Field(description="How many runs, by state.")]


class QuarantinedRow(Answer):
    """A row that was ended, switched off, mended or removed because nobody could work with it."""

    table: str
    row: Annotated[str, Field(description="Its primary key.")]
    reason: str
    at: Time


class Overview(Answer):
    """All at a glance."""

    now: Time
    zone: str
    engine: EngineState
    counts: Counts
    running: list[Run]
    late: list[Run]
    broken: list[Schedule]
    due: Annotated[list[DueTime], Field(description="Within the hour or overdue, the soonest 50.")]
    next24: Annotated[list[Hour], Field(description="The next 24 hours; the first is the one that it is.")]
    estimated: Annotated[bool, Field(description="There are too many schedules to count all: next24 is at least so.")]
    failed: list[Run]
    activity: Annotated[list[Bucket], Field(description="The last 24 hours; buckets without an end are left out.")]
    bucket_seconds: int
    quarantine: Annotated[list[QuarantinedRow], Field(description="The last 20 of them.")]


class TimelineRun(Answer):
    """A run as a bar."""

    id: int
    schedule: str | None
    task: str | None
    state: State
    trigger: Trigger
    due_at: Time
    last_due_at: Time | None
    count: int
    started_at: Time | None
    finished_at: Time | None
    lane: str
    node: str | None


class Timeline(Answer):
    """Runs that touch the span, and the due times in it that are yet to come."""

    from_: Annotated[Time, Field(alias="from")]
    to: Time
    now: Time
    zone: str
    runs: list[TimelineRun]
    due: list[DueTime]
    truncated: Annotated[
        bool, Field(description="There are more than the limit: here is what is active or ended last, the soonest due.")
    ]


class TimelineQuery(Sought):
    """Which span, at most 31 days."""

    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    schedule: Text | None = None
    project: Text | None = None
    limit: Annotated[int, Field(ge=1, le=2000)] = 500


class Preview(Answer):
    """What a timing means."""

    text: Annotated[str, Field(description="Its canonical form.")]
    zone: str
    sentence: str
    next: list[Time]
    remarks: Annotated[list[str], Field(description="What the clock changes do to it, months left out.")]


class PreviewQuery(Sought):
    """A timing to explain."""

    text: Annotated[Text, Field(max_length=10_000)]
    zone: Annotated[Zone | None, Field(description="An IANA name; that of the settings if there is none.")] = None
    n: Annotated[int, Field(ge=1, le=100, description="How many times.")] = 5
    after: Annotated[Moment | None, Field(description="The times after this one instead of after now.")] = None


class TimingToPreview(Asked):
    """A timing to explain."""

    text: Annotated[Text, Field(max_length=10_000)]
    zone: Zone | None = None
    n: Annotated[int, Field(ge=1, le=100)] = 5
    after: Moment | None = None
