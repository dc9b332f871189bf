"""What the runner asks of an executor."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ostinato.clock import Micros
from ostinato.config import Settings
from ostinato.execution.context import RunContext
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.execution.registry import TaskDefinition
from ostinato.execution.threads import WorkerThreads
from ostinato.models.work_kinds import Work

__all__ = ["LOOP_ENDED", "STOPPED", "Call", "Executor", "ExecutorHost", "ProcessEnvironment", "has_begun"]

STOPPED = Outcome(OutcomeKind.CANCELLED, reason="cancelled")
"""The outcome of a call that ended because it was told to; the runner knows why it was."""
LOOP_ENDED = Outcome(OutcomeKind.CUT_OFF, reason="the event loop of its node was ended while it ran")
"""Nobody has told it to stop: a server that is forced to quit has every task of its loop cancelled."""


@dataclass(slots=True)
class ProcessEnvironment:
    """What work outside of this process finds around it: made by preparation.py just before it starts.

    References to secrets are resolved in here, so it is never stored nor logged.
    """

    folder: Path
    """Where it runs; it exists."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """All of it, the OSTINATO_ variables included, but for OSTINATO_REPORT, which the executor makes."""
    references: Mapping[str, str] = field(default_factory=dict)
    """The values of its secret fields, of a request its headers."""
    conversation: str | None = None
    """The id of the conversation to resume."""
    allowance: float | None = None
    """How many dollars the run may cost."""


@dataclass(slots=True)
class Call:
    """One execution of a work, from its start to its outcome."""

    work: Work
    context: RunContext
    done: Callable[[Outcome], None]
    """Called once, on the loop, when the execution has ended."""
    definition: TaskDefinition | None = None
    """The task of a function, or the function of a package that executes its kind of work."""
    process_environment: ProcessEnvironment | None = None
    """Of any other work."""
    handle: Any = None
    """The executor's own hold on it: a task, a process."""


@dataclass(frozen=True, slots=True)
class ExecutorHost:
    """What a node has for its executors."""

    settings: Settings
    threads: WorkerThreads
    now: Callable[[], Micros]


def has_begun(task: asyncio.Task[Any]) -> bool:
    """Whether a task has had a turn. Cancelled before that it never has one: nothing of its coroutine is executed."""
    coroutine: Any = task.get_coro()
    return inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED


class Executor(Protocol):
    """Starts calls and stops them."""

    @property
    def stop_seconds(self) -> float:
        """How long a call that was told to stop may take before its run is recorded without it."""
        ...

    @property
    def kill_seconds(self) -> float:
        """How long one that was killed may take to be gone; 0 where nothing can be killed."""
        ...

    def start(self, call: Call) -> None:
        """Begin; returns at once."""
        ...

    def stop(self, call: Call) -> None:
        """Ask it to end soon."""
        ...

    def kill(self, call: Call) -> None:
        """End it now, as far as it can be ended: somebody else may start it anew in the next moment."""
        ...
