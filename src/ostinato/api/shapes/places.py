"""Lanes, sessions, nodes, projects and tasks as REST shows and takes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ostinato.api.shapes.base import GREATEST, Answer, Asked, Sought, Text, Time, Zoned
from ostinato.api.shapes.policy import RetryValue

__all__ = [
    "Cleared",
    "Event",
    "EventList",
    "EventQuery",
    "Lane",
    "LaneAnswer",
    "LaneChanges",
    "LaneList",
    "NewMessage",
    "NewProject",
    "Node",
    "NodeAnswer",
    "NodeList",
    "PauseLane",
    "Project",
    "ProjectAnswer",
    "ProjectList",
    "Session",
    "SessionAnswer",
    "SessionList",
    "SessionQuery",
    "Stopped",
    "Task",
    "TaskList",
]


class Lane(Answer):
    """A named pool, and how full it is."""

    name: str
    limit: int
    rate: Annotated[str | None, Field(description="Starts for a time, such as 10/m.")]
    used: int
    queued: int
    oldest_at: Time | None
    paused: bool
    note: str | None


class LaneAnswer(Lane, Zoned):
    """One lane."""


class LaneList(Zoned):
    """Every lane."""

    items: list[Lane]


class LaneChanges(Asked):
    """What changes of a lane. One that does not exist is made, with its limit."""

    limit: int | None = None
    rate: Annotated[Text | None, Field(description='Such as 10/m; "none" takes it away.')] = None


class PauseLane(Asked):
    """Why it is paused."""

    note: Annotated[Text | None, Field(max_length=10_000)] = None


class Cleared(Answer):
    """How many queued runs were ended."""

    cleared: int


class Session(Answer):
    """A durable mailbox."""

    key: str
    running: int
    queued: int
    oldest_at: Time | None
    max_concurrent: int
    throttled: bool
    stopped_at: Time | None
    sent_at: Time


class SessionAnswer(Session, Zoned):
    """One session."""


class SessionList(Zoned):
    """Sessions."""

    items: list[Session]


class SessionQuery(Sought):
    """Which sessions to list, the latest message first."""

    q: Annotated[Text | None, Field(description="Part of its key.", max_length=200)] = None
    busy: Annotated[bool, Field(description="Only those with something queued or running.")] = False
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class NewMessage(Asked):
    """A message for a session."""

    task: Annotated[Text, Field(min_length=1, max_length=200)]
    payload: Any
    mode: Literal["queue", "followup", "interrupt"] = "queue"
    lane: Text | None = None
    priority: int = 0
    max_concurrent: int | None = None
    cap: int = 10
    drop: Literal["old", "new"] = "old"
    debounce: Text = "800ms"
    debounce_max: Text | None = None
    message_id: Annotated[Text | None, Field(description="Sent twice with the same one, it is queued once.")] = None
    retry: RetryValue | None = None
    timeout: Text | None = None
    max_age: Text | None = None


class Stopped(Answer):
    """What a stop did: runs under way that were told to stop, and queued ones that will never start."""

    cancelled: int
    dropped: int


class Event(Answer):
    """Something that happened in a session."""

    id: int
    at: Time
    kind: Literal["enqueued", "debounced", "dropped", "started", "finished", "stopped"]
    session: str
    run: int | None
    data: dict[str, Any]


class EventList(Zoned):
    """Events."""

    items: list[Event]


class EventQuery(Sought):
    """Which events to list, oldest first."""

    newest: Annotated[bool, Field(description="The last `limit` ones, not the first; still oldest first.")] = False
    after: Annotated[int, Field(ge=0, le=GREATEST, description="Only events with a greater id.")] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class Node(Answer):
    """A process whose engine is started."""

    id: str
    host: str
    pid: int
    state: Literal["alive", "draining", "lost"]
    draining: Annotated[bool, Field(description="It takes no new work, or was asked to.")]
    slots: int
    running: int
    tasks: list[str]
    started_at: Time
    seen_at: Time
    services: dict[str, Any]


class NodeAnswer(Node, Zoned):
    """One node."""


class NodeList(Zoned):
    """Every node."""

    items: list[Node]


class Project(Answer):
    """A name and a folder; groups schedules and is where shell and agent work runs."""

    name: str
    folder: str
    env: dict[str, str]
    schedules: int
    created_at: Time


class ProjectAnswer(Project, Zoned):
    """One project."""


class ProjectList(Zoned):
    """All projects."""

    items: list[Project]


class NewProject(Asked):
    """A project to add. The one of this name is made to be so."""

    name: Annotated[Text, Field(min_length=1, max_length=200)]
    folder: Annotated[Text, Field(min_length=1, max_length=4096)]
    env: Annotated[dict[Text, Text] | None, Field(description="Without it, an existing one keeps its own.")] = None


class Task(Answer):
    """A task that a running node knows, or that a schedule calls."""

    name: str
    nodes: Annotated[list[str], Field(description="The running nodes that know it.")]
    schedules: Annotated[int, Field(description="How many schedules call it.")]


class TaskList(Answer):
    """Every task."""

    items: list[Task]
