"""On which databases a test runs that is for all of them: a file of SQLite and PostgreSQL, each once.

`make quick` sets OSTINATO_TEST_QUICK: then it is SQLite in memory alone, and what needs PostgreSQL is left out.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

__all__ = ["EACH", "LIGHT", "QUICK", "SHARED", "needs_postgres", "sqlite_file", "url_of"]

QUICK = "OSTINATO_TEST_QUICK" in os.environ
EACH = ["memory"] if QUICK else ["sqlite", "postgres"]
SHARED = ["sqlite", "postgres"]
"""What several processes can open: memory is not it."""
LIGHT = ["memory", "postgres"]
"""For what has little to do with the database."""


def url_of(request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of an empty database of the kind that the fixture is parametrised with."""
    match request.param:
        case "memory":
            return "sqlite://:memory:"
        case "sqlite":
            return f"sqlite:///{sqlite_file(request, folder)}"
        case _:
            url: str = request.getfixturevalue("postgres_url")
            return url


def sqlite_file(request: pytest.FixtureRequest, folder: Path) -> Path:
    """A migrated file without a row: to copy one is a hundred times faster than to make it."""
    return Path(shutil.copy(request.getfixturevalue("migrated_file"), folder / "jobs.db"))


def needs_postgres(item: pytest.Item) -> bool:
    """Whether a test has PostgreSQL among its fixtures or its parameters."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "postgres_server" in getattr(item, "fixturenames", ()) or "postgres" in parameters
