"""Django in a process of its own, for `isolation="process"`: while tests run it has their databases, and no real one.

`state_of_tests` is asked in the process that starts the other; `setup` is called there, before the task is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import django
from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ostinato.integrations.django.configuration import is_testing

__all__ = ["setup", "state_of_tests"]


def state_of_tests() -> dict[str, Any] | None:
    """What another process has to know of the tests that run here; None if there are none."""
    if not is_testing():
        return None
    return {
        "debug": settings.DEBUG,
        "names": {alias: None if _is_in_memory(alias) else str(_name(alias)) for alias in connections},
    }


def setup(state: Mapping[str, Any] | None = None) -> None:
    """django.setup(), in the environment of tests if there is one."""
    if state is not None:
        _enter_tests(state)
    django.setup()


def _enter_tests(state: Mapping[str, Any]) -> None:
    from django.test.utils import setup_test_environment

    unreachable = set()
    for alias, name in state["names"].items():
        if name is None:
            unreachable.add(alias)
        else:
            connections.settings[alias]["NAME"] = name
    setup_test_environment(debug=state["debug"])
    connect = BaseDatabaseWrapper.connect

    def connect_to_tests(self: BaseDatabaseWrapper) -> None:
        if self.alias in unreachable:
            raise RuntimeError(
                f"the test database {self.alias!r} is in the memory of another process: give it a file "
                "(DATABASES[…]['TEST']['NAME']), or run the task with rehearse(jobs, eager=True)"
            )
        connect(self)

    BaseDatabaseWrapper.connect = connect_to_tests


def _name(alias: str) -> Any:
    return connections.settings[alias]["NAME"]


def _is_in_memory(alias: str) -> bool:
    name = str(_name(alias))
    return connections[alias].vendor == "sqlite" and (name == ":memory:" or "mode=memory" in name)
