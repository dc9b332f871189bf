"""The names that users import, and the tree of errors."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import ostinato
from ostinato import errors

PROMISED = [
    "Ostinato",
    "At",
    "Every",
    "Cron",
    "DailyAt",
    "Weekly",
    "Monthly",
    "Retry",
    "RunContext",
    "current_run",
    "Abort",
    "Snooze",
    "parse_timing",
]


@pytest.mark.parametrize("name", ostinato.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(ostinato, name) is not None


@pytest.mark.parametrize("name", PROMISED)
def test_what_the_documentation_promises_is_public(name: str) -> None:
    assert name in ostinato.__all__


def test_the_list_is_sorted_and_is_what_dir_shows() -> None:
    assert ostinato.__all__ == sorted(ostinato.__all__, key=lambda name: (not name.isupper(), name))
    assert dir(ostinato) == sorted(ostinato.__all__)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert ostinato.__version__ == importlib.metadata.version("ostinato")


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Celery'"):
        _ = ostinato.Celery


@pytest.mark.parametrize("module", ["ostinato.errors", "ostinato.timing", "ostinato.testing", "ostinato.clock"])
def test_what_a_module_says_it_has_it_has(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in found.__all__ if not hasattr(found, name)] == []


def own_errors() -> list[type[BaseException]]:
    return [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, BaseException)]


def test_every_error_is_an_ostinato_error_and_in_the_list() -> None:
    kinds = own_errors()
    assert all(issubclass(kind, errors.OstinatoError) for kind in kinds)
    assert sorted(kind.__name__ for kind in kinds) == errors.__all__


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        bare = line.lstrip("│├└─ ")
        name = bare.split(" ")[0]
        if name not in errors.__all__:
            continue
        depth = (len(line) - len(bare)) // 4
        path[depth:] = [name]
        drawn[name] = path[depth - 1] if depth else ""
    real = {
        kind.__name__: next(b.__name__ for b in kind.__bases__ if b.__name__ in errors.__all__ or b is Exception)
        for kind in own_errors()
    }
    real["OstinatoError"] = ""
    assert drawn == real


def test_the_pytest_plugin_loads_nothing_of_ostinato_before_a_fixture_is_asked_for() -> None:
    code = (
        "import sys, ostinato.testing.plugin; "
        "print(sorted(m for m in sys.modules if m.startswith(('ostinato', 'apsw', 'msgspec', 'asyncio'))))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(eval(shown))
    assert {name for name in loaded if name.startswith("ostinato")} == {
        "ostinato",
        "ostinato.testing",
        "ostinato.testing.plugin",
    }
    assert "apsw" not in loaded
