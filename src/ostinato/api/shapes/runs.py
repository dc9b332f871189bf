"""Runs as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ostinato.api.shapes.base import Answer, Asked, Cursor, Moment, Sought, Text, Time
from ostinato.api.shapes.policy import NewPolicy
from ostinato.api.shapes.work import NewWork, Work
from ostinato.durations import parse_duration
from ostinato.models.states import Cause
from ostinato.service.runs import check_run_key

__all__ = ["Cancel", "Lines", "NewRun", "RecentRun", "Run", "RunPage", "RunQuery", "RunsOfQuery", "State", "Trigger"]

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "skipped", "missed", "expired", "superseded"]
Trigger = Literal["schedule", "manual", "catch_up", "api", "message"]


class Attempt(Answer):
    """One execution of a run."""

    started_at: Time
    finished_at: Time | None
    state: str
    error: str | None
    node: str | None


class Progress(Answer):
    """How far the work says it is."""

    done: float
    total: float | None
    text: str


class Run(Answer):
    """One row of the ledger: one due time, or one request, and what became of it."""

    id: int
    schedule: str | None
    schedule_id: int | None
    task: str | None
    state: State
    cause: Annotated[
        Cause | None, Field(description="Why it did not simply succeed, as one word; reason says it to people.")
    ]
    reason: str | None
    cancelling: Annotated[str | None, Field(description="Why it was asked to stop, while it has not yet stopped.")]
    trigger: Trigger
    due_at: Time
    last_due_at: Time | None
    count: int
    ready_at: Time
    started_at: Time | None
    finished_at: Time | None
    attempt: int
    attempts: Annotated[list[Attempt], Field(description="Every one; in a list the last one alone.")]
    totals: dict[str, float]
    progress: Progress | None
    result: Any
    error: str | None
    lane: str
    priority: int
    session: str | None
    project: str | None
    key: str
    node: str | None
    work: Work
    zone: Annotated[str, Field(description="Of its schedule, or of the settings.")]
    cut: Annotated[
        list[Literal["work", "result", "error"]],
        Field(default_factory=list, description="What is too long for a list, and only a part of it here."),
    ]


class RunPage(Answer):
    """A part of a list of runs; `next` is the cursor of the following one."""

    items: list[Run]
    next: str | None


class RecentRun(Answer):
    """One of the last runs of a schedule."""

    id: int
    state: State
    seconds: Annotated[float | None, Field(description="How long it ran.")]
    at: Annotated[Time, Field(description="When it ended, or was due.")]


class Line(Answer):
    """A line of output; a remark on what was cut has no number."""

    number: int | None
    at: Time | None
    line: str


class Lines(Answer):
    """Lines behind the one that was asked for; when it has `ended` and there are no `more`, these were the last."""

    lines: list[Line]
    more: bool
    ended: bool


class RunsOfQuery(Sought):
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


class NewRun(Asked):
    """Work to run soon, on any node."""

    work: NewWork
    project: Text | None = None
    key: Annotated[
        Annotated[Text, AfterValidator(check_run_key)] | None,
        Field(description="The same key, while it is active: the same run."),
    ] = None
    delay: Annotated[
        Annotated[Text, AfterValidator(_delay)] | None, Field(description="Start so much later, such as 5m.")
    ] = None
    at: Annotated[Moment | None, Field(description="Start at this time.")] = None
    policy: NewPolicy | None = None


class Cancel(Asked):
    """Why a run is cancelled."""

    reason: Annotated[Text | None, Field(min_length=1, max_length=1000)] = None
