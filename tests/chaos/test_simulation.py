"""A simulated cluster under faults: the same seed is the same history, and nothing in it breaks the promise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ostinato.testing import chaos
from ostinato.testing.chaos.evidence import Evidence


@pytest.mark.parametrize("seed", range(4))
def test_a_cluster_under_faults_keeps_the_promise(seed: int) -> None:
    report = chaos.simulate([seed], hours=0.06, nodes=1 + seed % 3)
    report.check()
    assert report.due_times > 300
    assert report.requests > 30
    assert report.faults.total() >= 3


def test_hours_in_which_little_happens_keep_the_promise() -> None:
    report = chaos.simulate([3], hours=6, pace=chaos.SPARSE)
    report.check()
    assert report.seconds > 6 * 3_600
    assert report.due_times > 40


def history(seed: int) -> Evidence:
    return chaos.Simulation(seed, hours=0.01, nodes=3).run()


def test_the_same_seed_is_the_same_history_and_another_one_is_not() -> None:
    first, again, other = history(1), history(1), history(2)
    assert (first.executions, first.rows, first.processes) == (again.executions, again.rows, again.processes)
    assert first.rows != other.rows


def test_the_same_seed_is_the_same_history_in_another_process() -> None:
    program = "import hashlib; from tests.chaos.test_simulation import history; one = history(1); "
    program += "print(hashlib.sha256(repr((one.executions, one.rows)).encode()).hexdigest())"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_a_simulation_leaves_the_random_numbers_of_its_process_alone() -> None:
    import random

    random.seed(7)
    expected = random.random()
    random.seed(7)
    history(1)
    assert random.random() == expected
