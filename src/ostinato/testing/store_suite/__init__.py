"""The rules that every store keeps, as tests for pytest: whoever writes a store of his own runs them against it.

A test file takes them with `from ostinato.testing.store_suite import *`. It, or a conftest.py, gives two fixtures, each
a function that answers a new store, not yet opened, on the database of this test, which is empty at first: `new_store`,
and `new_shared_store` for the tests in which two nodes have the same database. `builders` and `mailbox` make what the
tests put in, `fixtures` opens the stores, and each other module is one part of the rules.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

_FIXTURES = ("runner", "store", "first", "second")
_PARTS = [f"{__name__}.{part.name}" for part in iter_modules(__path__)]
# Before the first of them is imported: a failed assert is to show its values.
pytest.register_assert_rewrite(*_PARTS)


def __getattr__(name: str) -> Any:
    # Lazily, because who takes the builders alone needs no rule.
    if name == "__all__":
        return list(_rules())
    if name in _FIXTURES or name.startswith("test_"):
        return _rules()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _rules() -> dict[str, Any]:
    """The fixtures and the tests of all parts by their names; each name occurs once."""
    fixtures = import_module(f"{__name__}.fixtures")
    rules = {name: getattr(fixtures, name) for name in _FIXTURES}
    for part in _PARTS:
        for name, test in vars(import_module(part)).items():
            if name.startswith("test_"):
                if name in rules:
                    raise ImportError(f"{part} has a test that another part has too: rename {name}")
                rules[name] = fixtures.on_its_loop(test)
    return rules
