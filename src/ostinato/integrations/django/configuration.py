"""The settings of Django as settings of Ostinato: `OSTINATO`, `SCHEDULER_ENABLED`, `TIME_ZONE`, `DATABASES`.

What `OSTINATO` leaves out comes from OSTINATO_* or ostinato.toml as everywhere, and then from Django. While tests run,
the ledger is in memory: like Django's own databases, it must not be the real one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.base.creation import TEST_DATABASE_PREFIX

from ostinato.config import Settings, check_names, load_settings, read_flag
from ostinato.errors import InvalidInput

__all__ = [
    "RELEVANT",
    "app_name",
    "configured_ledger",
    "database_url",
    "is_testing",
    "read_settings",
    "remember_databases",
]

RELEVANT = frozenset({"OSTINATO", "SCHEDULER_ENABLED", "TIME_ZONE", "ALLOWED_HOSTS", "BASE_DIR"})
"""The settings of Django that this reads."""
_SWITCH = "SCHEDULER_ENABLED"
_IN_MEMORY = "sqlite://:memory:"
_DEFAULT_NAME = "default"
_IN_MEMORY_OF_TESTS = "file:memorydb_"
"""How Django calls a SQLite in memory that tests share."""
_HOST_NAME = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*|\[[0-9A-Fa-f:.]+\]")
_names: dict[str, str] = {}
"""The real databases, by alias."""
_NOT_OF_LIBPQ = frozenset(
    {"assume_role", "client_encoding", "context", "cursor_factory", "isolation_level", "pool", "prepare_threshold"}
    | {"server_side_binding"}
)
"""Options that Django, or psycopg, takes for itself."""


def read_settings(*, is_overridden: bool = False) -> Settings:
    """The settings in force. In tests the database of `OSTINATO` counts only where a test has overridden it."""
    in_tests = is_testing()
    found = _loaded(in_tests=in_tests)
    if in_tests and not (is_overridden and "db" in _given()):
        found = replace(found, db=_IN_MEMORY)
    return found


def configured_ledger() -> str:
    """The database of the ledger when no tests run."""
    return _loaded(in_tests=False).db


def _loaded(*, in_tests: bool) -> Settings:
    given = _given()
    given.pop("name", None)
    if isinstance(given.get("db"), Path):
        given["db"] = str(given["db"])
    base = getattr(settings, "BASE_DIR", None)
    try:
        check_names(given, "OSTINATO in the settings of Django")
    except InvalidInput as error:  # which names the place itself
        raise ImproperlyConfigured(str(error)) from error
    try:
        defaults = dict(_defaults(base, in_tests=in_tests))
        found = load_settings(None if base is None else Path(base), defaults=defaults, **given)
        off = tuple(_switches_off())
    except InvalidInput as error:
        raise ImproperlyConfigured(f"OSTINATO: {error}") from error
    return replace(found, enabled=False, disabled_by=(*found.disabled_by, *off)) if off else found


def app_name() -> str:
    """What the app is called, whose schedules its code declares."""
    return str(_given().get("name", _DEFAULT_NAME))


def is_testing() -> bool:
    """Whether Django's test environment is set up (by its test runner, or by pytest-django), or a database has been
    replaced by a test database, as `testserver` does it."""
    utils = sys.modules.get("django.test.utils")
    if utils is not None and hasattr(utils._TestState, "saved_data"):
        return True
    return any(_is_replaced(alias, name) for alias, name in _names.items())


def remember_databases() -> None:
    """Before anything can replace them by test databases."""
    for alias in connections:
        _names.setdefault(alias, str(connections.settings[alias]["NAME"]))


def _is_replaced(alias: str, real: str) -> bool:
    given = connections.settings[alias]
    name = str(given["NAME"])
    # Another name alone says nothing: a project may choose its database while it runs.
    return name != real and (
        name.startswith((TEST_DATABASE_PREFIX, _IN_MEMORY_OF_TESTS)) or name == str(given["TEST"]["NAME"])
    )


def database_url(alias: str = "default") -> str:
    """The URL of a PostgreSQL of DATABASES, as it is now: in tests it is the test database."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(f"DATABASES[{alias!r}] is {connection.vendor}, which the ledger cannot be in")
    given = connection.settings_dict
    places = {"host": given.get("HOST"), "port": given.get("PORT")}
    options = {name: value for name, value in given.get("OPTIONS", {}).items() if name not in _NOT_OF_LIBPQ}
    # As parameters, which take the folder of a socket and an address of IPv6 alike.
    query = urlencode({name: value for name, value in {**places, **options}.items() if value}, quote_via=quote)
    user, password, name = (quote(str(given.get(part) or ""), safe="") for part in ("USER", "PASSWORD", "NAME"))
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    return f"postgresql://{login}/{name}" + (f"?{query}" if query else "")


def _given() -> dict[str, Any]:
    given = getattr(settings, "OSTINATO", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(f'OSTINATO cannot be {given!r}: give a dict, such as {{"db": "postgresql://…"}}')
    return dict(given)


def _defaults(base: Any, *, in_tests: bool) -> Iterator[tuple[str, Any]]:
    if settings.TIME_ZONE:
        yield "tz", settings.TIME_ZONE
    if not in_tests:
        if "default" in connections and connections["default"].vendor == "postgresql":
            yield "db", database_url()
        elif base is not None:
            yield "db", f"sqlite:///{Path(base) / 'ostinato.db'}"
    # A pattern is Django's alone, as is what can be no name: hosts are names.
    if names := [host for host in settings.ALLOWED_HOSTS if _HOST_NAME.fullmatch(host)]:
        yield "hosts", names


def _switches_off() -> Iterator[str]:
    switches = {
        "in the settings of Django": getattr(settings, _SWITCH, None),
        "in the environment": os.environ.get(_SWITCH),
    }
    for place, value in switches.items():
        if value not in (None, "") and not read_flag(_SWITCH, value):
            yield f"{_SWITCH} is {value} {place}"
