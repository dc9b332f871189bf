"""What the runner asks of an executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ostinato.execution.context import RunContext
from ostinato.execution.outcome import Outcome
from ostinato.execution.registry import TaskDefinition

__all__ = ["Call", "Executor"]


@dataclass(slots=True)
class Call:
    """One execution of a function, from its start to its outcome."""

    definition: TaskDefinition
    args: list[Any]
    kwargs: dict[str, Any]
    context: RunContext
    done: Callable[[Outcome], None]
    """Called once, on the loop, when the execution has ended."""
    handle: Any = None
    """The executor's own hold on it: a task, a process."""


class Executor(Protocol):
    """Starts calls and stops them."""

    @property
    def stop_seconds(self) -> float:
        """How long a call that was told to stop may take before its run is recorded without it."""
        ...

    def start(self, call: Call) -> None:
        """Begin; returns at once."""
        ...

    def stop(self, call: Call) -> None:
        """Ask it to end soon."""
        ...
