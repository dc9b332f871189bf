"""What this process can execute: tasks and checks by name. Filled by the app's decorators, read by the runner."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ostinato.errors import InvalidInput, NotFound
from ostinato.execution.context import RunContext
from ostinato.models.policy import Policy

__all__ = ["Check", "Isolation", "Registry", "TaskDefinition"]

Isolation = Literal["none", "process"]
Check = Callable[[], bool | str | Awaitable[bool | str | None] | None]
"""True or None passes; False or a text (the reason) fails; raising fails."""


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A function under a name, and how its runs are treated unless somebody says otherwise."""

    name: str
    function: Callable[..., Any]
    policy: Policy
    isolation: Isolation
    is_async: bool
    context_parameter: str | None
    """The parameter annotated RunContext, which the runner fills."""


@dataclass(slots=True)
class Registry:
    """Tasks and checks of one app."""

    tasks: dict[str, TaskDefinition] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)

    def add_task(
        self, name: str, function: Callable[..., Any], policy: Policy, isolation: Isolation = "none"
    ) -> TaskDefinition:
        """Register a function; the same function again is no error, another under a taken name is."""
        known = self.tasks.get(name)
        if known is not None and _place(known.function) != _place(function):
            raise InvalidInput(
                f"task {name!r} is {_place(known.function)} already, it cannot be {_place(function)} too",
                field="name",
                hint="give one of them another name: @app.task('other')",
            )
        if isolation not in ("none", "process"):
            raise InvalidInput(f"isolation cannot be {isolation!r}", field="isolation", hint="use 'none' or 'process'")
        definition = TaskDefinition(
            name, function, policy, isolation, inspect.iscoroutinefunction(function), _context_parameter(function)
        )
        self.tasks[name] = definition
        return definition

    def add_check(self, name: str, function: Check) -> None:
        """Register a check."""
        self.checks[name] = function

    def task(self, name: str) -> TaskDefinition:
        """The task of this name; NotFound says which there are."""
        try:
            return self.tasks[name]
        except KeyError:
            known = ", ".join(sorted(self.tasks)) or "none"
            raise NotFound(f"task {name!r} is not registered here; known tasks: {known}") from None


def _place(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"


def _context_parameter(function: Callable[..., Any]) -> str | None:
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        # Annotations that only a type checker can resolve: look at their text.
        hints = getattr(function, "__annotations__", {})
    for name, hint in hints.items():
        if name != "return" and (hint is RunContext or hint in ("RunContext", "ostinato.RunContext")):
            return name
    return None
