"""Schedules that run after others, while nodes are killed: every end has exactly one row, none is lost or doubled."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from ostinato import Ostinato, Trigger
from tests.faults.mail import wait_until, wait_until_ended
from tests.faults.nodes import nodes

UPSTREAMS = 10
KILLS = 6
SECONDS = 10
ENDS = 7
"""So many of each upstream at least, however slow the machine is."""


def ends(app: Ostinato, name: str) -> Counter[object]:
    """When the runs of a schedule ended that were begun."""
    runs = app.runs.list(schedule=name, limit=10_000)
    return Counter(run.finished_at for run in runs if run.attempt > 0 and run.ended)


def answers(app: Ostinato, name: str) -> Counter[object]:
    """The ends that a schedule has rows for."""
    runs = app.runs.list(schedule=name, trigger=Trigger.AFTER, limit=10_000)
    assert all(run.count == 1 for run in runs)
    return Counter(run.due_at for run in runs)


@pytest.mark.timeout(180)
def test_killing_nodes_again_and_again_leaves_one_row_for_each_end(app: Ostinato, url: str, tmp_path: Path) -> None:
    for number in range(UPSTREAMS):
        app.schedules.add(f"s{number}", "every 1s", "work", retry=0, break_after=1_000_000)
        app.schedules.add(
            f"after{number}", f"after s{number} on end", "work", retry=0, break_after=1_000_000, catch_up="all"
        )
        app.schedules.add(
            f"failed{number}", f"after s{number} on failure", "work", retry=0, break_after=1_000_000, catch_up="all"
        )
    chance = random.Random(20261118)
    with nodes(url, tmp_path / "executions", FAULTS_LEASE="2s", OSTINATO_GRACE="10s") as cluster:
        for _ in range(2):
            cluster.start()
        kills, until = 0, time.monotonic() + SECONDS
        while kills < KILLS or time.monotonic() < until:
            time.sleep(chance.uniform(0.2, 1.5))
            cluster.kill_one_at_work(app, chance, [f"s{number}" for number in range(UPSTREAMS)])
            kills += 1
            cluster.start()
        wait_until(
            lambda: all(ends(app, f"s{n}").total() >= ENDS for n in range(UPSTREAMS)), "every upstream ended often"
        )
        for number in range(UPSTREAMS):
            app.schedules.disable(f"s{number}")
        wait_until(
            lambda: all(ends(app, f"s{n}") == answers(app, f"after{n}") for n in range(UPSTREAMS)),
            "every end has its row",
        )
        wait_until_ended(app)
        for process in list(cluster.running):
            assert cluster.stop(process) == 0
    lost = 0
    for number in range(UPSTREAMS):
        ended = ends(app, f"s{number}")
        for name in (f"after{number}", f"failed{number}"):
            assert answers(app, name) == ended, f"{name} lost or doubled an end"
        lost += len(app.runs.list(schedule=f"s{number}", cause="node_lost", limit=1_000))
    assert lost > 0, "no run was under way at any kill: the test proved nothing"
