"""Processes with real kills: whatever dies, every due time has exactly one row and no execution too many."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from ostinato import Ostinato, Retry, Run, RunState
from tests.faults.mail import wait_until, wait_until_ended
from tests.faults.nodes import Nodes, nodes

SCHEDULES = 50
SECONDS = 20
KILLS = 8
RETRIES = 2
SECOND = timedelta(seconds=1)
NAMES = [f"s{number}" for number in range(SCHEDULES)]


def add_schedules(app: Ostinato) -> None:
    for number in range(SCHEDULES):
        careful = number % 2 == 0
        app.schedules.add(
            f"s{number}",
            "every 1s",
            "work" if number % 4 < 2 else "work_sync",
            retry=0 if careful else Retry(RETRIES, base="100ms"),
            break_after=1_000_000,
        )


def kill_at_random(cluster: Nodes, app: Ostinato, seed: int) -> None:
    """Kill and restart nodes for SECONDS, and at least KILLS times, each while it runs something."""
    chance = random.Random(seed)
    kills = 0
    end = time.monotonic() + SECONDS
    while kills < KILLS or time.monotonic() < end:
        time.sleep(chance.uniform(0.2, 1.5))
        cluster.kill_one_at_work(app, chance, NAMES)
        kills += 1
        cluster.start()


def rows_of(app: Ostinato, schedule: str) -> list[Run]:
    runs = app.runs.list(schedule=schedule, limit=10_000)
    return sorted(runs, key=lambda run: run.due_at)


def due_times(run: Run) -> list[datetime]:
    """Every due time that a row stands for."""
    last = run.last_due_at or run.due_at
    times = [run.due_at + SECOND * step for step in range((last - run.due_at) // SECOND + 1)]
    assert len(times) == run.count, f"run {run.id} counts {run.count} but spans {len(times)} due times"
    return times


def covered(app: Ostinato, schedule: str) -> list[datetime]:
    """The due times that a schedule has rows for."""
    return [due for run in rows_of(app, schedule) for due in due_times(run)]


@pytest.mark.timeout(180)
def test_killing_nodes_again_and_again_leaves_one_row_for_each_due_time(
    app: Ostinato, url: str, tmp_path: Path
) -> None:
    add_schedules(app)
    log = tmp_path / "executions"
    with nodes(url, log, FAULTS_LEASE="2s", OSTINATO_GRACE="10s") as cluster:
        for _ in range(3):
            cluster.start()
        kill_at_random(cluster, app, seed=20261115)
        wait_until(lambda: all(len(covered(app, name)) >= SECONDS - 2 for name in NAMES), "due times were recorded")
        for number in range(SCHEDULES):
            app.schedules.disable(f"s{number}")
        wait_until_ended(app)
        for process in list(cluster.running):
            assert cluster.stop(process) == 0

    executions = Counter[tuple[str, str]]()
    for line in log.read_text().splitlines():
        schedule, due, _, _ = line.split()
        executions[schedule, due] += 1
    rescued = 0
    for number in range(SCHEDULES):
        name = f"s{number}"
        rows = rows_of(app, name)
        steps = [(later - earlier) / SECOND for earlier, later in pairwise(covered(app, name))]
        assert set(steps) == {1.0}, f"{name} lost or doubled a due time"
        allowed = 1 if number % 2 == 0 else 1 + RETRIES
        for run in rows:
            assert run.ended, f"run {run.id} of {name} was left {run.state}"
            crashes = [attempt for attempt in run.attempts if "was lost" in (attempt.error or "")]
            rescued += len(crashes)
            if number % 2 == 0 and crashes:
                assert run.state is RunState.FAILED, "a crash of a run without retries is its end"
            count = executions[name, f"{run.due_at.timestamp():.6f}"]
            assert count <= allowed, f"{name} due {run.due_at} was executed {count} times"
            if run.state is RunState.SUCCEEDED:
                assert count >= 1
    assert rescued > 0, "no run was under way at any kill: the test proved nothing"


@pytest.mark.timeout(120)
def test_a_run_of_a_killed_node_is_rescued_within_thirty_seconds(app: Ostinato, url: str, tmp_path: Path) -> None:
    hang = app.task("hang", retry=0)(lambda: None)
    with nodes(url, tmp_path / "executions") as cluster:
        victim = cluster.start()
        run = hang.enqueue()
        wait_for_state(app, run.id, RunState.RUNNING)
        cluster.start()
        cluster.kill(victim)
        killed = time.monotonic()
        ended = app.runs.wait(run.id, timeout="40s")
        assert time.monotonic() - killed < 30
    assert ended.state is RunState.FAILED
    assert ended.reason is not None
    assert "was lost" in ended.reason


@pytest.mark.timeout(120)
def test_a_drain_that_cuts_work_off_ends_it_or_counts_an_attempt(app: Ostinato, url: str, tmp_path: Path) -> None:
    hang = app.task("hang", retry=0)(lambda: None)
    log = tmp_path / "executions"
    with nodes(url, log, OSTINATO_GRACE="200ms") as cluster:
        process = cluster.start()
        once, again = hang.using(key="once").enqueue(), hang.using(key="again", retry=Retry(1, base="1ms")).enqueue()
        back = app.task("hang_requeued", retry=0)(lambda: None).using(key="back").enqueue()
        wait_until(lambda: begun(log) == {"once": 1, "again": 1, "back": 1}, "all have begun")
        assert cluster.stop(process) == 0
        rows = [run.get() for run in (once, again, back)]
        assert [row.state for row in rows] == [RunState.FAILED, RunState.QUEUED, RunState.QUEUED]
        assert rows[0].reason == "its node was stopped while it ran"
        assert [row.attempt for row in rows] == [1, 1, 0]
        assert [len(row.attempts) for row in rows] == [1, 1, 1], "every start has its attempt"
        process = cluster.start()
        # Not that they are claimed: what has not begun when its node stops goes back uncounted.
        wait_until(lambda: begun(log) == {"once": 1, "again": 2, "back": 2}, "both have begun again")
        assert cluster.stop(process) == 0
    assert [again.get().state, back.get().state] == [RunState.FAILED, RunState.QUEUED]
    assert begun(log) == {"once": 1, "again": 2, "back": 2}


def begun(log: Path) -> Counter[str]:
    """How often each run, by its key, has begun."""
    return Counter(line.split()[0] for line in log.read_text().splitlines())


def wait_for_state(app: Ostinato, id: int, state: RunState) -> None:
    wait_until(lambda: app.runs.get(id).state is state, f"run {id} is {state}")
