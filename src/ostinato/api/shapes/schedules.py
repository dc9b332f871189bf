"""Schedules as REST shows and takes them, and the answers about one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from ostinato.api.shapes.base import MOST_ITEMS, Moment, PagedQuery, ProjectFilter, RequestBody, Text, Zone
from ostinato.api.shapes.policy import NewPolicy
from ostinato.api.shapes.work import NewWork
from ostinato.service.schedules.drafts import check_name
from ostinato.timing import parse_timing

__all__ = [
    "Backfill",
    "Bulk",
    "Disable",
    "NewKey",
    "NewSchedule",
    "Revert",
    "ScheduleChanges",
    "ScheduleQuery",
    "Trigger",
]

_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


_MOST_RECENT = 50_000
"""So many runs of schedules are in one answer at most, as in a page of the greatest size."""


def _bounded(recent: int, info: ValidationInfo) -> int:
    if info.data.get("all") and recent * MOST_ITEMS > _MOST_RECENT:
        most = {"most": _MOST_RECENT // MOST_ITEMS}
        raise PydanticCustomError("too_many", "recent may be {most} at most with all; go on with cursor", most)
    return recent


class ScheduleQuery(PagedQuery):
    """Which schedules to list."""

    project: ProjectFilter = None
    state: Annotated[
        Literal["on", "off", "broken", "running", "paused", "finished", "orphaned", "failing"] | None,
        Field(description="failing: of its runs that succeeded or failed, the last one failed."),
    ] = None
    q: Annotated[Text | None, Field(description="Part of its name, task, note or project.", max_length=200)] = None
    owner: Annotated[
        Literal["user", "code", "crontab"] | None,
        Field(description="Who owns it: people, the code that declares it, or the crontab that it was imported from."),
    ] = None
    sort: Annotated[
        Literal["next", "-next", "name", "-name", "last", "-last", "failed", "-failed", "created", "-created"],
        Field(description="A leading minus sorts descending; schedules without a value come last."),
    ] = "next"
    recent: Annotated[
        int,
        AfterValidator(_bounded),
        Field(ge=0, le=100, description="Return this many of the last runs of each; with all, 5 at most."),
    ] = 0


def _timing(text: str) -> str:
    # Whether it can be read; when it is due counts from when it is added.
    parse_timing(text, tz="UTC", now=_ANY_DAY)
    return text


TimingText = Annotated[Text, Field(max_length=10_000), AfterValidator(_timing)]
"""A timing that can be read: what is wrong with it is told together with what else is wrong with the request."""


class NewSchedule(RequestBody):
    """A schedule to add. An existing schedule of this name is updated."""

    name: Annotated[Text, Field(min_length=1, max_length=200), AfterValidator(check_name)]
    timing: Annotated[TimingText, Field(description="Its text form, such as every 5m or daily 03:00.")]
    zone: Annotated[Zone | None, Field(description="An IANA name; null means the zone of the settings.")] = None
    work: NewWork
    policy: NewPolicy | None = None
    project: Text | None = None
    note: Annotated[Text | None, Field(max_length=10_000)] = None
    enabled: Annotated[bool, Field(description="For a new schedule; an existing one stays as it is.")] = True
    replace: Annotated[bool, Field(description="Also if another owner or person made the one of this name.")] = False


class ScheduleChanges(RequestBody):
    """Changes to a schedule; fields that are not given stay."""

    timing: Annotated[TimingText, Field(default_factory=str)]
    zone: Annotated[Zone, Field(default_factory=str)]
    work: NewWork | None = None
    policy: Annotated[NewPolicy | None, Field(description="Only the given fields change.")] = None
    project: Annotated[Text | None, Field(description="null takes it out of its project.")] = None
    note: Annotated[Text | None, Field(description="null clears it.", max_length=10_000)] = None
    enabled: Annotated[
        bool, Field(default_factory=bool, description="Applied after the other changes, like enable and disable.")
    ]


class Disable(RequestBody):
    """Why the schedule is switched off, and what becomes of its retries."""

    note: Annotated[Text | None, Field(max_length=10_000)] = None
    keep_retries: Annotated[
        bool, Field(description="Let runs that wait for another attempt go on; otherwise they are cancelled.")
    ] = False


class Revert(RequestBody):
    """Which fields the schedule gets back from its code."""

    fields: Annotated[
        list[Text] | None,
        Field(description="timing (with its zone), work, project, enabled, or a policy; null for all that changed."),
    ] = None


class Trigger(RequestBody):
    """Run the schedule now."""

    force: Annotated[bool, Field(description="Even if a run is under way and its overlap policy forbids it.")] = False


class NewKey(RequestBody):
    """A key of a schedule."""

    new: Annotated[bool, Field(description="Another one in the place of the one that it has.")] = False


class Backfill(RequestBody):
    """Run the due times of a span that has passed."""

    from_: Annotated[Moment, Field(alias="from")]
    until: Annotated[Moment, Field(description="Not in the future.")]
    all: Annotated[bool, Field(description="Also due times that have a succeeded or active run.")] = False
    dry_run: Annotated[bool, Field(description="Only list the due times.")] = False


class Bulk(RequestBody):
    """One verb for many schedules."""

    action: Literal["enable", "disable", "trigger", "remove"]
    names: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    note: Annotated[Text | None, Field(description="For disable.", max_length=10_000)] = None
    force: Annotated[bool, Field(description="For trigger and remove.")] = False
