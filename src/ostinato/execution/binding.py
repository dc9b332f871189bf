"""Where a function wants its RunContext, and how a call gets it there. Shared by the executors and the plain call."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ostinato.execution.context import RunContext
from ostinato.execution.hints import UnresolvedHint, type_hints

__all__ = ["ContextParameter", "bind_context", "find_context_parameter"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMES = ("RunContext", "ostinato.RunContext")
_WRITTEN = {form.format(name) for name in _NAMES for form in ("{}", "{}|None", "None|{}", "Optional[{}]")}


@dataclass(frozen=True, slots=True)
class ContextParameter:
    """The parameter annotated RunContext, which callers leave out and the runner fills."""

    name: str
    position: int | None
    """Its place among the positional parameters; None if it can only be given by name."""
    has_default: bool = False
    """A plain call then leaves it as it is."""


def find_context_parameter(function: Callable[..., Any]) -> ContextParameter | None:
    """The parameter of a function that is annotated RunContext, or `RunContext | None`, if it has one."""
    for name, hint in type_hints(function).items():
        if name == "return" or not _is_context(hint):
            continue
        parameters = inspect.signature(function).parameters
        if name not in parameters:  # a functools.partial has filled it
            continue
        places = [each for each, parameter in parameters.items() if parameter.kind in _POSITIONAL]
        position = places.index(name) if name in places else None
        return ContextParameter(name, position, parameters[name].default is not inspect.Parameter.empty)
    return None


def _is_context(hint: Any) -> bool:
    if isinstance(hint, UnresolvedHint):  # imported for type checkers alone: look at the text
        return hint.text.replace(" ", "").removeprefix("typing.") in _WRITTEN
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return set(typing.get_args(hint)) == {RunContext, type(None)}
    return hint is RunContext


def bind_context(
    parameter: ContextParameter | None, args: Sequence[Any], kwargs: Mapping[str, Any], context: RunContext
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments with the context in its place."""
    if parameter is None:
        return args, kwargs
    if parameter.position is None or parameter.position > len(args):
        return args, {**kwargs, parameter.name: context}
    return [*args[: parameter.position], context, *args[parameter.position :]], kwargs
