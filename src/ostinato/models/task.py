"""Tasks as people see them: who knows one, which schedules call it, whether it runs now, and when next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = ["RunningTask", "TaskDescription", "TaskInfo", "TaskKind", "TaskSchedule"]

TaskKind = Literal["sync", "async", "process"]
"""How a task is executed: on a thread, on the event loop, or in a process of its own."""


@dataclass(frozen=True, slots=True)
class TaskSchedule:
    """A schedule that calls a task."""

    name: str
    timing: str
    zone: str
    enabled: bool
    broken: str | None = None
    """Why it was switched off by itself."""
    next_run_at: datetime | None = None
    """None if it will not run: it is off, broken or finished."""
    stored: bool = True
    """False for one that the code declares and no engine has created yet."""


@dataclass(frozen=True, slots=True)
class TaskDescription:
    """What the code says of a task."""

    kind: TaskKind
    description: str | None = None
    """The first line of the function's docstring."""
    declared: TaskSchedule | None = None
    """The schedule that is declared with it."""


@dataclass(frozen=True, slots=True)
class RunningTask:
    """The runs of a task that are under way, on all nodes."""

    count: int
    since: datetime | None
    """When the oldest of them started."""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task that a running node or this process knows, or that a schedule calls."""

    name: str
    kind: TaskKind | None
    """How it is executed; null if only other processes know it."""
    description: str | None
    """The first line of its docstring; null if only other processes know it."""
    app: bool
    """Whether the process that answers has it registered."""
    nodes: Sequence[str]
    """The running nodes that know it."""
    schedules: Sequence[TaskSchedule]
    """The schedules that call it, the soonest first; of very many, the first 100 that were added."""
    schedule_count: int
    """How many schedules call it."""
    running: int
    """How many of its runs are under way, on all nodes."""
    running_since: datetime | None
    """When the oldest of these started."""
    next_run_at: datetime | None
    """When the next of its schedules is due."""
