"""Django's own test runner, inside the example: on SQLite, and on PostgreSQL with the ledger beside Django's tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.databases import SHARED
from tests.django.projects import copy_files

INSIDE = Path(__file__).parent / "inside"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("database", SHARED)
def test_the_test_runner_of_django_runs_the_tests_inside_the_project(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    project = copy_files(tmp_path)
    for file in INSIDE.glob("*_tests.py"):
        shutil.copy(file, tmp_path / "shop" / f"tests_of_{file.name}")
    project.add("shop/tests_without_admin.py", "urlpatterns: list[object] = []\n")
    if database == "postgres":
        project.use_postgres(request.getfixturevalue("postgres_url"))
    done = project.manage("test", "--noinput")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no engine" not in done.stderr
    assert not (tmp_path / "ostinato.db").exists()
