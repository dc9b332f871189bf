"""The bench looks into the engine by name: a step that was renamed must not break it unseen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.cases import CASES
from bench.profile import profile

README = Path(__file__).parents[2] / "bench/README.md"


def test_the_readme_has_a_row_for_every_case() -> None:
    rows = re.findall(r"(?m)^\| (`[^|]+`) \|", README.read_text(encoding="utf-8"))
    assert sorted(re.findall(r"`([^`]+)`", " ".join(rows))) == sorted(CASES)


def test_the_profile_of_a_run_names_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profile(tmp_path, ["sqlite"], n=1_000, rounds=1) == 0
    told = capsys.readouterr().out
    for step in (
        "claim, lanes and room",
        "claim, pick rows",
        "complete: from outcome to record",
        "finish_runs with the next claim",
    ):
        assert step in told
