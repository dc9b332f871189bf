"""Ostinato: a durable task scheduler. Every due time gets exactly one row that says what became of it, and why.

The public names, and nothing else. They are imported when first used, so that `ostinato --help` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.errors import (
        Abort,
        Draining,
        LaneCleared,
        MessageStale,
        NotExecuted,
        OstinatoError,
        QueueDropped,
        QueueFull,
        Snooze,
        TimingError,
    )
    from ostinato.execution.context import RunContext, current_run
    from ostinato.models.budget import Budget
    from ostinato.models.event import Event
    from ostinato.models.lane import Lane
    from ostinato.models.policy import CatchUp, Gate, Keep, Overlap, Retry
    from ostinato.models.project import Project
    from ostinato.models.run import Run
    from ostinato.models.schedule import Schedule
    from ostinato.models.session import Session
    from ostinato.models.states import Cause, RunState, Trigger
    from ostinato.models.work import Agent, Function, Http, Shell
    from ostinato.service.drafts import ScheduleSpec
    from ostinato.timing import At, Cron, DailyAt, Every, Monthly, Timing, Weekly, parse_timing

__all__ = [
    "Abort",
    "Agent",
    "At",
    "Budget",
    "CatchUp",
    "Cause",
    "Cron",
    "DailyAt",
    "Draining",
    "Event",
    "Every",
    "Function",
    "Gate",
    "Http",
    "Keep",
    "Lane",
    "LaneCleared",
    "MessageStale",
    "Monthly",
    "NotExecuted",
    "Ostinato",
    "OstinatoError",
    "Overlap",
    "Project",
    "QueueDropped",
    "QueueFull",
    "Retry",
    "Run",
    "RunContext",
    "RunState",
    "Schedule",
    "ScheduleSpec",
    "Session",
    "Shell",
    "Snooze",
    "Timing",
    "TimingError",
    "Trigger",
    "Weekly",
    "current_run",
    "parse_timing",
]

_HOMES = {
    "ostinato.app": ("Ostinato",),
    "ostinato.errors": (
        "Abort",
        "Draining",
        "LaneCleared",
        "MessageStale",
        "NotExecuted",
        "OstinatoError",
        "QueueDropped",
        "QueueFull",
        "Snooze",
        "TimingError",
    ),
    "ostinato.execution.context": ("RunContext", "current_run"),
    "ostinato.models.budget": ("Budget",),
    "ostinato.models.event": ("Event",),
    "ostinato.models.lane": ("Lane",),
    "ostinato.models.policy": ("CatchUp", "Gate", "Keep", "Overlap", "Retry"),
    "ostinato.models.project": ("Project",),
    "ostinato.models.run": ("Run",),
    "ostinato.models.schedule": ("Schedule",),
    "ostinato.models.session": ("Session",),
    "ostinato.models.states": ("Cause", "RunState", "Trigger"),
    "ostinato.models.work": ("Agent", "Function", "Http", "Shell"),
    "ostinato.service.drafts": ("ScheduleSpec",),
    "ostinato.timing": ("At", "Cron", "DailyAt", "Every", "Monthly", "Timing", "Weekly", "parse_timing"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'ostinato' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
