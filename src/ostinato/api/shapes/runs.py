"""Runs as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ostinato.api.shapes.base import Cursor, Moment, QueryParameters, RequestBody, Text
from ostinato.api.shapes.policy import NewPolicy
from ostinato.api.shapes.work import NewWork
from ostinato.durations import parse_duration
from ostinato.models.states import Cause
from ostinato.service.runs import check_run_key

__all__ = ["Cancel", "NewRun", "RunQuery", "RunsOfQuery", "State", "Trigger"]

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "skipped", "missed", "expired", "superseded"]
Trigger = Literal["schedule", "manual", "catch_up", "api", "message", "check_in"]


class RunsOfQuery(QueryParameters):
    """Which runs of a schedule or a session to list, the newest first."""

    state: Annotated[list[State], Field(default_factory=list, description="May be repeated.")]
    cause: Annotated[list[Cause], Field(default_factory=list, description="May be repeated.")]
    trigger: Trigger | None = None
    from_: Annotated[Moment | None, Field(alias="from", description="Due at this time or after it.")] = None
    until: Annotated[Moment | None, Field(description="Due at this time or before it.")] = None
    cursor: Cursor = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class RunQuery(RunsOfQuery):
    """Which runs to list, the newest first."""

    schedule: Annotated[Text | None, Field(description="The name of its schedule.")] = None
    task: Text | None = None
    session: Text | None = None
    project: Text | None = None
    lane: Text | None = None


def _delay(text: str) -> str:
    parse_duration(text, field="delay")
    return text


class NewRun(RequestBody):
    """Work to run soon, on any node."""

    work: NewWork
    project: Text | None = None
    key: Annotated[
        Annotated[Text, AfterValidator(check_run_key)] | None,
        Field(description="While a run with this key is active, that run is returned."),
    ] = None
    delay: Annotated[
        Annotated[Text, AfterValidator(_delay)] | None, Field(description="Start after this delay, such as 5m.")
    ] = None
    at: Annotated[Moment | None, Field(description="Start at this time.")] = None
    policy: NewPolicy | None = None


class Cancel(RequestBody):
    """Why a run is cancelled."""

    reason: Annotated[Text | None, Field(min_length=1, max_length=1000)] = None
