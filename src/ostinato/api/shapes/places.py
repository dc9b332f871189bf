"""Lanes, sessions, nodes, projects and tasks as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ostinato.api.shapes.base import GREATEST, QueryParameters, RequestBody, Text
from ostinato.api.shapes.policy import BudgetValue, RetryValue
from ostinato.api.shapes.work import NewAgent
from ostinato.models.session import DropName, ModeName
from ostinato.timing.calendar_days import MOST_DATES

__all__ = ["CalendarDates", "EventQuery", "LaneChanges", "NewMessage", "NewProject", "PauseLane", "SessionQuery"]


class LaneChanges(RequestBody):
    """Changes to a lane. A lane that does not exist is made, with its limit."""

    limit: int | None = None
    rate: Annotated[Text | None, Field(description='For example 10/m; "none" removes it.')] = None


class CalendarDates(RequestBody):
    """What a calendar is from now on."""

    dates: Annotated[
        list[Text],
        Field(description="Each 2026-12-24, or 12-24 for every year; [] for none.", max_length=MOST_DATES),
    ]
    note: Annotated[
        Text | None,
        Field(description='Without it, an existing calendar keeps its own; "" clears it.', max_length=10_000),
    ] = None
    version: Annotated[
        int | None,
        Field(description="Only if it still has this one; 0: only if there is no such calendar.", ge=0, le=GREATEST),
    ] = None


class PauseLane(RequestBody):
    """Why the lane is paused."""

    note: Annotated[Text | None, Field(max_length=10_000)] = None


class SessionQuery(QueryParameters):
    """Which sessions to list, the latest message first."""

    q: Annotated[Text | None, Field(description="Part of its key.", max_length=200)] = None
    busy: Annotated[bool, Field(description="Only those with something queued or running.")] = False
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class NewMessage(RequestBody):
    """A message for a session: to a task, or to an agent. How it waits is by default what the settings say of its key,
    or what its task says."""

    payload: Annotated[Any, Field(description="What a task gets in its list payloads, or an agent as its prompt.")]
    task: Annotated[Text | None, Field(min_length=1, max_length=200)] = None
    agent: NewAgent | None = None
    project: Annotated[Text | None, Field(description="Where an agent works.")] = None
    mode: ModeName | None = None
    lane: Text | None = None
    priority: int = 0
    max_concurrent: int | None = None
    cap: int | None = None
    drop: DropName | None = None
    debounce: Text | None = None
    debounce_max: Text | None = None
    message_id: Annotated[Text | None, Field(description="A message sent twice with it is queued once.")] = None
    retry: RetryValue | None = None
    timeout: Text | None = None
    silent: Text | None = None
    max_age: Text | None = None
    budget: Annotated[
        BudgetValue | None, Field(description="What its run may cost, and the messages of this session on one day.")
    ] = None


class EventQuery(QueryParameters):
    """Which events to list, oldest first."""

    newest: Annotated[bool, Field(description="The last `limit` events, not the first; still oldest first.")] = False
    after: Annotated[int, Field(ge=0, le=GREATEST, description="Only events with a greater id.")] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class NewProject(RequestBody):
    """A project to add. An existing project of this name is updated."""

    name: Annotated[Text, Field(min_length=1, max_length=200)]
    folder: Annotated[Text, Field(min_length=1, max_length=4096)]
    env: Annotated[
        dict[Text, Text] | None, Field(description="Without it, an existing project keeps its variables.")
    ] = None
