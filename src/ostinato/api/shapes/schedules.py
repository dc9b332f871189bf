"""Schedules as REST shows and takes them, and the answers about one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ostinato.api.problems import Problem
from ostinato.api.shapes.base import Answer, Asked, Cursor, Moment, Sought, Text, Time, Zone, Zoned
from ostinato.api.shapes.policy import NewPolicy, Policy
from ostinato.api.shapes.runs import RecentRun, Run
from ostinato.api.shapes.work import NewWork, Work
from ostinato.service.drafts import check_name
from ostinato.timing import parse_timing

__all__ = [
    "Backfill",
    "BackfillAnswer",
    "Bulk",
    "BulkAnswer",
    "Disable",
    "History",
    "NewSchedule",
    "NextTimes",
    "Schedule",
    "ScheduleChanges",
    "SchedulePage",
    "ScheduleQuery",
    "Trigger",
    "Why",
]

_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


class Schedule(Answer):
    """A durable, named row: timing, work and policy."""

    id: int
    name: str
    timing: Annotated[str, Field(description="Its text form.")]
    zone: Annotated[str, Field(description="The IANA name of the zone of its wall clock.")]
    sentence: Annotated[str, Field(description="The timing in English.")]
    work: Work
    policy: Policy
    project: str | None
    owner: str
    state: Literal["on", "off", "paused", "broken", "orphaned", "finished"]
    enabled: bool
    broken: Annotated[str | None, Field(description="Why it does not run, or null.")]
    orphaned: Annotated[bool, Field(description="Its code no longer declares it.")]
    note: str | None
    off_note: Annotated[str | None, Field(description="Why it was switched off.")]
    next_run_at: Time | None
    next_run_reason: Annotated[str | None, Field(description="Why it is not due, or for what it is held.")]
    held_since: Time | None
    remaining: int | None
    failures: int
    last_run: Run | None
    version: Annotated[int, Field(description="Goes up with each change; ETag and If-Match have it behind the id.")]
    created_at: Time
    updated_at: Time
    running: Annotated[int, Field(description="How many of its runs are queued or running.")]
    recent: Annotated[
        list[RecentRun], Field(default_factory=list, description="Its last runs, oldest first; only if asked for.")
    ]


class SchedulePage(Answer):
    """A part of the list of schedules."""

    items: list[Schedule]
    next: str | None
    total: Annotated[int, Field(description="How many the whole list has.")]


class ScheduleQuery(Sought):
    """Which schedules to list."""

    project: Text | None = None
    state: Literal["on", "off", "broken", "running", "paused", "finished", "orphaned"] | None = None
    q: Annotated[Text | None, Field(description="Part of its name, task, note or project.", max_length=200)] = None
    owner: Annotated[
        Literal["user", "code"] | None, Field(description="Who keeps it: people, or the code that declares it.")
    ] = None
    sort: Annotated[
        Literal["next", "-next", "name", "-name", "last", "-last", "created", "-created"],
        Field(description="A minus in front is descending; what has no such value comes last."),
    ] = "next"
    cursor: Cursor = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    recent: Annotated[int, Field(ge=0, le=100, description="Answer the last so many runs of each.")] = 0


def _timing(text: str) -> str:
    # Whether it can be read; when it is due counts from when it is added.
    parse_timing(text, tz="UTC", now=_ANY_DAY)
    return text


TimingText = Annotated[Text, Field(max_length=10_000), AfterValidator(_timing)]
"""A timing that can be read: what is wrong with it is told together with what else is wrong with the request."""


class NewSchedule(Asked):
    """A schedule to add. The one of this name is made to be so."""

    name: Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(check_name)]
    timing: Annotated[TimingText, Field(description="Its text form, such as every 5m or daily 03:00.")]
    zone: Annotated[Zone | None, Field(description="An IANA name; null is that of the settings.")] = None
    work: NewWork
    policy: NewPolicy | None = None
    project: Text | None = None
    note: Annotated[Text | None, Field(max_length=10_000)] = None
    enabled: Annotated[bool, Field(description="Of a new one; an existing one keeps its switch.")] = True


class ScheduleChanges(Asked):
    """What changes; what is not given stays."""

    timing: Annotated[TimingText, Field(default_factory=str)]
    zone: Annotated[Zone, Field(default_factory=str)]
    work: NewWork | None = None
    policy: Annotated[NewPolicy | None, Field(description="Only the given fields change.")] = None
    project: Annotated[Text | None, Field(description="null takes it out of its project.")] = None
    note: Annotated[Text | None, Field(description="null clears it.", max_length=10_000)] = None
    enabled: Annotated[
        bool, Field(default_factory=bool, description="Switched after the rest was changed, as enable and disable do.")
    ]


class Disable(Asked):
    """Why it is switched off."""

    note: Annotated[Text | None, Field(max_length=10_000)] = None


class Trigger(Asked):
    """Run it now."""

    force: Annotated[bool, Field(description="Even if a run is under way and its overlap policy says no.")] = False


class Backfill(Asked):
    """Run the due times of a span that has passed."""

    from_: Annotated[Moment, Field(alias="from")]
    until: Annotated[Moment, Field(description="Not in the future.")]
    all: Annotated[bool, Field(description="Also due times that have a succeeded or active run.")] = False
    dry_run: Annotated[bool, Field(description="Only say which due times these are.")] = False


class BackfillAnswer(Zoned):
    """The due times and their runs, oldest first."""

    due: list[Time]
    runs: Annotated[list[int], Field(description="Their numbers; empty for a dry run.")]
    left_out: Annotated[int, Field(description="How many due times have a succeeded or active run already.")]


class Bulk(Asked):
    """One verb for many schedules."""

    action: Literal["enable", "disable", "trigger", "remove"]
    names: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    note: Annotated[Text | None, Field(description="For disable.", max_length=10_000)] = None
    force: Annotated[bool, Field(description="For trigger and remove.")] = False


class Removed(Answer):
    """A schedule that was removed although something of it ran."""

    still_running: Annotated[list[int], Field(description="The runs whose work goes on; they have no row any more.")]


class BulkFailure(Answer):
    """Why it was not done with this one."""

    name: str
    problem: Problem


class BulkAnswer(Answer):
    """With which it was done, and with which not."""

    done: list[str]
    failed: list[BulkFailure]


class NextTimes(Answer):
    """The next due times; `reason` says why there are none, or for what it is held."""

    zone: str
    next: list[Time]
    reason: str | None


class Why(Zoned):
    """What became of a due time."""

    schedule: str
    at: Time | None
    answer: str
    due_at: Time | None
    run: Run | None
    facts: list[str]


class HistoryDay(Answer):
    """A day and how its runs ended."""

    date: Annotated[str, Field(json_schema_extra={"format": "date"})]
    states: Annotated[dict[str, int], Field(description="How many runs, by state.")]
    seconds: Annotated[float, Field(description="How long they ran, in all.")]


class History(Answer):
    """The days on which something was due, oldest first, in the zone of the schedule."""

    zone: str
    days: list[HistoryDay]
