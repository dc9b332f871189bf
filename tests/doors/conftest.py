"""A folder with an app in it, and the command line called as the console script calls it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.command_line import JOBS, CommandLine


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[CommandLine]:
    """The command line in an empty folder of 80 columns, with `jobs.py` to load by --app."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    modules = set(sys.modules)
    yield CommandLine(tmp_path, capsys)
    for name in set(sys.modules) - modules:
        if not name.startswith("ostinato") and str(tmp_path) in (getattr(sys.modules[name], "__file__", "") or ""):
            del sys.modules[name]
