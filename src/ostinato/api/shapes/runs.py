"""Runs as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ostinato.api.shapes.base import Moment, PagedQuery, ProjectFilter, RequestBody, Text
from ostinato.api.shapes.policy import NewPolicy
from ostinato.api.shapes.work import NewWork
from ostinato.durations import parse_duration
from ostinato.models.states import Cause
from ostinato.service.runs import check_run_key, check_scope

__all__ = ["Cancel", "NewRun", "RunQuery", "RunsOfQuery", "State", "Trigger"]

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "skipped", "missed", "expired", "superseded"]
Trigger = Literal["schedule", "manual", "catch_up", "api", "message", "check_in", "after"]


class RunsOfQuery(PagedQuery):
    """Which runs of a schedule or a session to list, the newest first."""

    state: Annotated[list[State], Field(default_factory=list, description="May be repeated.")]
    cause: Annotated[list[Cause], Field(default_factory=list, description="May be repeated.")]
    trigger: Trigger | None = None
    from_: Annotated[Moment | None, Field(alias="from", description="Due at this time or after it.")] = None
    until: Annotated[Moment | None, Field(description="Due at this time or before it.")] = None


class RunQuery(RunsOfQuery):
    """Which runs to list, the newest first."""

    schedule: Annotated[Text | None, Field(description="The name of its schedule.")] = None
    task: Text | None = None
    session: Text | None = None
    project: ProjectFilter = None
    lane: Text | None = None
    q: Annotated[
        Text | None,
        Field(
            description="Part of the name of its schedule, its task or its session. A page may end before it is full "
            "when many runs were looked through; `next` goes on from there.",
            max_length=200,
        ),
    ] = None


def _delay(text: str) -> str:
    parse_duration(text, field="delay")
    return text


class NewRun(RequestBody):
    """Work to run soon, on any node."""

    work: NewWork
    project: Text | None = None
    key: Annotated[
        Annotated[Text, AfterValidator(check_run_key)] | None,
        Field(
            description="While a run of the same task (of the same kind, if its work is no task) is active under this "
            "key, that run is returned, with 200 instead of 201."
        ),
    ] = None
    scope: Annotated[
        Annotated[Text, AfterValidator(check_scope)] | None,
        Field(description="Where the key is unique, instead of in its task: other tasks may share it."),
    ] = None
    delay: Annotated[
        Annotated[Text, AfterValidator(_delay)] | None, Field(description="Start after this delay, such as 5m.")
    ] = None
    at: Annotated[Moment | None, Field(description="Start at this time.")] = None
    policy: NewPolicy | None = None


class Cancel(RequestBody):
    """Why a run is cancelled."""

    reason: Annotated[Text | None, Field(min_length=1, max_length=1000)] = None
