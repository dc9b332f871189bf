"""Whether a module may hold a task, told by its source: names come from the ledger, and an import executes code.

`task_calls.py` asks before it imports a module that nobody has imported. Nothing is executed here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec

__all__ = ["may_hold_task"]


def may_hold_task(path: str) -> bool:
    """Whether the module of this path is imported already, or gives a decorated function or a value this name."""
    module, _, name = path.rpartition(".")
    if module in sys.modules:
        return True
    spec = _spec(module)
    read = getattr(spec and spec.loader, "get_source", None)
    try:
        source = read(module) if read is not None else None
        return source is not None and name in _given_names(ast.parse(source).body)
    except (ImportError, SyntaxError, ValueError, RecursionError):
        return False


def _spec(module: str) -> ModuleSpec | None:
    """Where a module is. `find_spec` of a whole path would import the packages that it is in."""
    top, *below = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    for name in below:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
    return spec


def _given_names(body: Iterable[ast.AST]) -> Iterator[str]:
    """The names of decorated functions, and of what is assigned, at the top of a module."""
    for one in body:
        match one:
            case ast.FunctionDef(decorator_list=[_, *_]) | ast.AsyncFunctionDef(decorator_list=[_, *_]):
                yield one.name
            case ast.Assign() | ast.AnnAssign():
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                yield from (each.id for each in targets if isinstance(each, ast.Name))
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                yield from _given_names(ast.iter_child_nodes(one))
