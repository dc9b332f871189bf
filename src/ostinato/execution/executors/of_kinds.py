"""From the description of a kind of work to who executes it, when a node starts.

Our own kinds name the class of an executor. A package names a function: its runs are calls of that, on the loop or on a
thread, as those of a task are. What cannot be imported is not announced by this node, and so goes to others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from ostinato.errors import InvalidInput
from ostinato.execution.executors.base import Executor, ExecutorHost
from ostinato.execution.registry import TaskDefinition
from ostinato.logs import get_logger, one_line
from ostinato.models.installed_kinds import added_kinds
from ostinato.models.work_kinds import KIND_PREFIX, WorkKind
from ostinato.models.work_values import OUR_KINDS

__all__ = ["load_functions", "make_executors"]

log = get_logger("ostinato.execution")


def make_executors(host: ExecutorHost) -> dict[str, Executor]:
    """Of our own kinds but functions, which the runner calls itself."""
    return {kind.name: _imported(kind.execute).made(host) for kind in OUR_KINDS if kind.execute}


@cache
def load_functions() -> dict[str, TaskDefinition]:
    """Of the kinds of packages, by the name of the kind. Once for each process: nobody may change it."""
    return {definition.name.removeprefix(KIND_PREFIX): definition for definition in _definitions()}


def _definitions() -> Iterator[TaskDefinition]:
    for kind in added_kinds().values():
        try:
            function = _function(kind)
        except (Exception, SystemExit) as error:  # a package that is broken is told, and the node starts
            log.error("%s work cannot be executed here: %s", kind.name, one_line(error))
            continue
        is_async = inspect.iscoroutinefunction(function)
        yield TaskDefinition(KIND_PREFIX + kind.name, function, {}, "none", is_async, None)


def _function(kind: WorkKind) -> Callable[..., Any]:
    function = _imported(kind.execute)
    if not callable(function):
        raise InvalidInput(f"{kind.execute!r} cannot be called", hint="name a function of the work and its run")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise InvalidInput(f"{kind.execute!r} does not take the work and its run: {error}") from None
    return function  # type: ignore[no-any-return]  # it can be called


def _imported(place: Callable[..., Any] | str) -> Any:
    """What `module:name` names."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
