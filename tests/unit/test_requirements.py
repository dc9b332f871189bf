"""The lock of the development environment agrees with pyproject.toml, and holds every package to its hash.

`requirements-uv.txt` does the same for uv, which installs them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements-dev.txt").read_text()
INSTALLER_LOCK = (ROOT / "requirements-uv.txt").read_text()
LOCKED = [(canonicalize_name(name), version) for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.!+]+)", LOCK)]
"""A package may be there twice: for different versions of Python."""
EXTRAS = PROJECT["optional-dependencies"]
WANTED = [Requirement(text) for text in (*PROJECT["dependencies"], *EXTRAS["postgres"], *EXTRAS["dev"])]


@pytest.mark.parametrize("wanted", [one for one in WANTED if one.name != "ostinato"], ids=str)
def test_every_dependency_is_locked_at_a_version_that_the_project_allows(wanted: Requirement) -> None:
    versions = [version for name, version in LOCKED if name == canonicalize_name(wanted.name)]
    assert versions, "run 'make lock'"
    assert all(wanted.specifier.contains(version) for version in versions), "run 'make lock'"


def test_every_locked_package_has_its_hashes() -> None:
    entries = re.split(r"(?m)^(?=[\w.-]+==)", LOCK)[1:]
    assert len(entries) == len(LOCKED) > 30
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_what_installs_them_is_one_package_with_its_hashes() -> None:
    [entry] = re.split(r"(?m)^(?=[\w.-]+==)", INSTALLER_LOCK)[1:]
    assert entry.startswith("uv==")
    assert "--hash=sha256:" in entry


@pytest.mark.parametrize("lock", [LOCK, INSTALLER_LOCK], ids=["dev", "uv"])
def test_no_registry_is_named_in_the_lock(lock: str) -> None:
    assert not re.search(r"https?://|index-url", lock)


@pytest.mark.parametrize("name", ["cyclopts", "psycopg", "uvicorn", "websockets"])
def test_libraries_whose_inner_parts_are_used_have_an_upper_bound(name: str) -> None:
    [wanted] = [one for one in WANTED if one.name == name]
    assert any(part.operator == "<" for part in wanted.specifier)
