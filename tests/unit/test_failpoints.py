"""Failpoints: off unless the environment names them, and a wrong name of what shall happen is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
from ostinato import failpoints
for _ in range(3):
    failpoints.reach("here")
    print("by", flush=True)
"""


def run(failpoints: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ} if failpoints is None else {**os.environ, "OSTINATO_FAILPOINTS": failpoints}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_nothing_happens_unless_the_environment_says_so() -> None:
    assert run(None).stdout == "by\n" * 3
    assert run("elsewhere=kill, here@4=kill").stdout == "by\n" * 3


def test_a_process_is_killed_or_fails_the_time_that_is_named() -> None:
    killed = run("elsewhere=stop,here@3=kill")
    assert (killed.stdout, killed.returncode) == ("by\n" * 2, -signal.SIGKILL)
    raised = run("here=raise")
    assert raised.stdout == ""
    assert "FailpointReached: here" in raised.stderr


def test_a_process_is_killed_by_chance_wherever_it_comes_by() -> None:
    assert run("h*=kill%1").returncode == -signal.SIGKILL
    assert run("*=kill%0.000000001").stdout == "by\n" * 3
    assert run("else*=kill%1").stdout == "by\n" * 3


@pytest.mark.parametrize("wrong", ["here=explode", "here@2=kill%0.5", "here=kill%2", "here=kill%"])
def test_what_cannot_be_read_is_refused_with_a_right_form(wrong: str) -> None:
    refused = run(wrong)
    assert refused.returncode == 1
    assert f"{wrong!r} is not NAME=stop" in refused.stderr
