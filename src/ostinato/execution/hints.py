"""The annotations of a function, each by itself: one that cannot be resolved does not hide the others.

`binding.py` looks for a RunContext among them when a task is declared, `arguments.py` converts by them.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["UnresolvedHint", "type_hints"]


@dataclass(frozen=True, slots=True)
class UnresolvedHint:
    """An annotation that has no value here: it names what only a type checker knows, or what is defined later."""

    text: str
    why: str


def type_hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """What the parameters of a function are annotated with, and its result as `return`."""
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, (types.FunctionType, types.MethodType)) and not hasattr(function, "__wrapped__"):
        function = getattr(type(function), "__call__", function)  # noqa: B004  # what an object does when it is called
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # whatever one of them raises: each alone
        return {name: _alone(function, name, hint) for name, hint in _written(function).items()}


def _written(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return getattr(function, "__annotations__", {})
    except Exception:  # Python 3.14 makes them when they are asked for
        return {}


def _alone(function: Callable[..., Any], name: str, hint: Any) -> Any:
    only = types.SimpleNamespace(__annotations__={name: hint})
    try:
        known = getattr(inspect.unwrap(function), "__globals__", {})
        return typing.get_type_hints(only, known, include_extras=True)[name]
    except Exception as error:
        return UnresolvedHint(hint if isinstance(hint, str) else repr(hint), str(error))
