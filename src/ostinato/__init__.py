"""Ostinato: a durable task scheduler. Every due time gets exactly one row that says what became of it, and why.

The public names, and nothing else. They are imported when first used, so that `ostinato --help` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.config import Settings
    from ostinato.errors import (
        Abort,
        Draining,
        InvalidInput,
        KeyBusy,
        LaneCleared,
        MessageStale,
        NoResult,
        NotExecuted,
        NotFound,
        OstinatoError,
        QueueDropped,
        QueueFull,
        RunCancelled,
        RunFailed,
        Snooze,
        SoftTimeout,
        TimingError,
        WaitTimeout,
    )
    from ostinato.execution.context import RunContext, current_run
    from ostinato.models.access import Identity
    from ostinato.models.app_event import AppEvent, AppEventKind, AppEventName
    from ostinato.models.budget import Budget
    from ostinato.models.calendar import Calendar
    from ostinato.models.event import Event
    from ostinato.models.lane import Lane
    from ostinato.models.node import Node
    from ostinato.models.policy import CatchUp, Covers, Gate, Keep, OnLostLease, Overlap, PolicyOptions, Retry
    from ostinato.models.project import Project
    from ostinato.models.run import Run
    from ostinato.models.schedule import Schedule
    from ostinato.models.session import Session
    from ostinato.models.states import Cause, RunState, Trigger
    from ostinato.models.task import TaskInfo, TaskSchedule
    from ostinato.models.upstream import Upstream
    from ostinato.models.work_kinds import Shown, Work, WorkField, WorkKind
    from ostinato.models.work_values import Agent, CheckIn, Function, Http, Shell
    from ostinato.service.metrics import METRICS_CONTENT_TYPE
    from ostinato.service.schedules.drafts import ScheduleSpec
    from ostinato.tasks import RunHandle, Task, TaskCall
    from ostinato.timing import (
        After,
        At,
        CalendarDays,
        Cron,
        DailyAt,
        Every,
        Except,
        Holidays,
        Monthly,
        Or,
        Quarterly,
        Timing,
        Weekly,
        parse_timing,
    )

__all__ = [
    "METRICS_CONTENT_TYPE",
    "Abort",
    "After",
    "Agent",
    "AppEvent",
    "AppEventKind",
    "AppEventName",
    "At",
    "Budget",
    "Calendar",
    "CalendarDays",
    "CatchUp",
    "Cause",
    "CheckIn",
    "Covers",
    "Cron",
    "DailyAt",
    "Draining",
    "Event",
    "Every",
    "Except",
    "Function",
    "Gate",
    "Holidays",
    "Http",
    "Identity",
    "InvalidInput",
    "Keep",
    "KeyBusy",
    "Lane",
    "LaneCleared",
    "MessageStale",
    "Monthly",
    "NoResult",
    "Node",
    "NotExecuted",
    "NotFound",
    "OnLostLease",
    "Or",
    "Ostinato",
    "OstinatoError",
    "Overlap",
    "PolicyOptions",
    "Project",
    "Quarterly",
    "QueueDropped",
    "QueueFull",
    "Retry",
    "Run",
    "RunCancelled",
    "RunContext",
    "RunFailed",
    "RunHandle",
    "RunState",
    "Schedule",
    "ScheduleSpec",
    "Session",
    "Settings",
    "Shell",
    "Shown",
    "Snooze",
    "SoftTimeout",
    "Task",
    "TaskCall",
    "TaskInfo",
    "TaskSchedule",
    "Timing",
    "TimingError",
    "Trigger",
    "Upstream",
    "WaitTimeout",
    "Weekly",
    "Work",
    "WorkField",
    "WorkKind",
    "current_run",
    "parse_timing",
]

_HOMES = {
    "ostinato.app": ("Ostinato",),
    "ostinato.config": ("Settings",),
    "ostinato.errors": (
        "Abort",
        "Draining",
        "InvalidInput",
        "LaneCleared",
        "MessageStale",
        "NoResult",
        "NotExecuted",
        "NotFound",
        "OstinatoError",
        "QueueDropped",
        "KeyBusy",
        "QueueFull",
        "RunCancelled",
        "RunFailed",
        "Snooze",
        "SoftTimeout",
        "TimingError",
        "WaitTimeout",
    ),
    "ostinato.execution.context": ("RunContext", "current_run"),
    "ostinato.models.access": ("Identity",),
    "ostinato.models.app_event": ("AppEvent", "AppEventKind", "AppEventName"),
    "ostinato.models.budget": ("Budget",),
    "ostinato.models.calendar": ("Calendar",),
    "ostinato.models.event": ("Event",),
    "ostinato.models.lane": ("Lane",),
    "ostinato.models.node": ("Node",),
    "ostinato.models.policy": ("CatchUp", "Covers", "Gate", "Keep", "OnLostLease", "Overlap", "PolicyOptions", "Retry"),
    "ostinato.models.project": ("Project",),
    "ostinato.models.run": ("Run",),
    "ostinato.models.schedule": ("Schedule",),
    "ostinato.models.session": ("Session",),
    "ostinato.models.states": ("Cause", "RunState", "Trigger"),
    "ostinato.models.task": ("TaskInfo", "TaskSchedule"),
    "ostinato.models.work_kinds": ("Shown", "Work", "WorkField", "WorkKind"),
    "ostinato.models.work_values": ("Agent", "CheckIn", "Function", "Http", "Shell"),
    "ostinato.service.metrics": ("METRICS_CONTENT_TYPE",),
    "ostinato.service.schedules.drafts": ("ScheduleSpec",),
    "ostinato.tasks": ("RunHandle", "Task", "TaskCall"),
    "ostinato.models.upstream": ("Upstream",),
    "ostinato.timing": (
        "After",
        "At",
        "CalendarDays",
        "Cron",
        "DailyAt",
        "Every",
        "Except",
        "Holidays",
        "Monthly",
        "Or",
        "Quarterly",
        "Timing",
        "Weekly",
        "parse_timing",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if name == "__version__":
        return _version()
    if module is None:
        raise AttributeError(f"module 'ostinato' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def _version() -> str:
    """As it is installed: asked for only if somebody wants to know, because to look it up takes a while."""
    return import_module("importlib.metadata").version("ostinato")  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted(__all__)
