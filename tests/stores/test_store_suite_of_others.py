"""The store suite as somebody else runs it: in a folder of his own, against a store of his own, which may be wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import dataclasses
import pytest
from ostinato.models.states import Cause
from ostinato.stores.sqlite.store import SqliteStore

class Part:
    def __init__(self, part):
        self.part = part
    def __getattr__(self, name):
        return getattr(self.part, name)

class Runs(Part):
    {method}

class OwnStore(Part):
    @property
    def runs(self):
        return Runs(self.part.runs)

@pytest.fixture
def new_store(tmp_path):
    return lambda: OwnStore(SqliteStore(str(tmp_path / "jobs.db")))

@pytest.fixture
def new_shared_store(new_store):
    return new_store
"""
GIVES_ANOTHER_CAUSE = """
    async def cancel_runs(self, ids, ending, now):
        return await self.part.cancel_runs(ids, dataclasses.replace(ending, cause=Cause.REMOVED), now)
"""
HIDES_A_LOSS = """
    async def finish_runs(self, finishes, claim=None, now=None):
        done = await self.part.finish_runs(finishes, claim, now)
        return dataclasses.replace(done, lost=())
"""
RULES = (
    "test_the_words_of_an_interrupt_do_not_make_one",
    "test_a_stale_token_is_lost_and_writes_nothing",
    "test_no_run_is_claimed_by_two_nodes",
)


@pytest.mark.parametrize(
    ("method", "broken"),
    [("pass", None), (GIVES_ANOTHER_CAUSE, RULES[0]), (HIDES_A_LOSS, RULES[1])],
    ids=["right", "gives another cause", "hides a loss"],
)
def test_a_store_that_breaks_a_rule_fails_that_rule_and_a_right_one_none(
    tmp_path: Path, method: str, broken: str | None
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.replace("{method}", method.strip()))
    (tmp_path / "test_own_store.py").write_text("from ostinato.testing.store_suite import *\n")
    arguments = ["-q", "-p", "no:cacheprovider", "-rA", f"--rootdir={tmp_path}", "-k", " or ".join(RULES)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    outcomes = {
        rule: any(line.startswith(f"PASSED test_own_store.py::{rule}") for line in done.stdout.splitlines())
        for rule in RULES
    }
    assert outcomes == {rule: rule != broken for rule in RULES}, done.stdout + done.stderr
    assert done.returncode == (1 if broken else 0)
    assert broken is None or "assert " in done.stdout, "a failure shows its values"
