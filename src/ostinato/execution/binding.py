"""Where a function wants its RunContext, and how a call gets it there. Shared by the executors and the plain call."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ostinato.execution.context import RunContext

__all__ = ["ContextParameter", "bind_context", "find_context_parameter"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ContextParameter:
    """The parameter annotated RunContext, which callers leave out and the runner fills."""

    name: str
    position: int | None
    """Its place among the positional parameters; None if it can only be given by name."""


def find_context_parameter(function: Callable[..., Any]) -> ContextParameter | None:
    """The parameter of a function that is annotated RunContext, if it has one."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        # Annotations that only a type checker can resolve: look at their text.
        hints = getattr(function, "__annotations__", {})
    for name, hint in hints.items():
        if name != "return" and (hint is RunContext or hint in ("RunContext", "ostinato.RunContext")):
            parameters = inspect.signature(function).parameters
            places = [each for each, parameter in parameters.items() if parameter.kind in _POSITIONAL]
            return ContextParameter(name, places.index(name) if name in places else None)
    return None


def bind_context(
    parameter: ContextParameter | None, args: Sequence[Any], kwargs: Mapping[str, Any], context: RunContext
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments with the context in its place."""
    if parameter is None:
        return args, kwargs
    if parameter.position is None or parameter.position > len(args):
        return args, {**kwargs, parameter.name: context}
    return [*args[: parameter.position], context, *args[parameter.position :]], kwargs
