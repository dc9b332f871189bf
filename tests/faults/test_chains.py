"""Chains while nodes are killed: a step runs after all its upstreams have succeeded, or never, and none is lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ostinato import ChainHandle, Ostinato, Retry, Run, RunContext, group
from tests.faults.mail import wait_until, wait_until_ended
from tests.faults.nodes import nodes

CHAINS = 6
KILLS = 5
MOST_KILLS = 20
"""If until then no kill has hit what it should, none ever does."""


def check_step(step: Run, before: list[Run]) -> None:
    """What became of a step follows from what became of its upstreams."""
    ended = [run.finished_at for run in before if run.finished_at is not None]
    assert len(ended) == len(before)
    if all(run.state == "succeeded" for run in before):
        assert step.state in ("succeeded", "failed")
        assert step.started_at is not None
        assert step.started_at >= max(ended)
    else:
        assert (step.state, step.cause, step.attempt) == ("skipped", "upstream", 0)
        assert step.finished_at is not None
        assert step.finished_at <= max(ended)


def executions_in(log: Path) -> int:
    return len(log.read_text().splitlines())


def has_executed(log: Path, steps: int) -> bool:
    return executions_in(log) >= steps


def has_hit(handles: Sequence[ChainHandle[Any]]) -> bool:
    """Whether a kill hit a step, and one left something out."""
    runs = [run for handle in handles for run in handle.get()]
    hit = any(run.cause == "node_lost" or run.attempt > 1 for run in runs)
    return hit and any(run.state == "skipped" for run in runs)


@pytest.mark.timeout(300)
def test_killing_nodes_again_and_again_loses_and_doubles_no_step(app: Ostinato, url: str, tmp_path: Path) -> None:
    @app.task("work")
    def work(run: RunContext) -> None: ...

    chance, again = random.Random(20261119), Retry(5, base="100ms", longest="100ms")
    log = tmp_path / "executions"
    upstreams = {1: (0,), 2: (0,), 3: (0,), 4: (1, 2, 3), 5: (4,)}
    with nodes(url, log, FAULTS_LEASE="2s", OSTINATO_GRACE="10s") as cluster:
        for _ in range(2):
            cluster.start()
        handles: list[ChainHandle[Any]] = []
        for kill in range(1, MOST_KILLS + 1):
            for number in range(CHAINS):
                step = work.using(retry=0 if number % 3 == 0 or kill > KILLS else again)
                handles.append(step.then(group([step] * 3)).then(step).then(step).enqueue())
            # Of at least six for each chain: what is left gives a kill time to find a node at work.
            wanted = executions_in(log) + chance.randint(1, 4 * CHAINS)
            wait_until(partial(has_executed, log, wanted), "steps are executed")
            cluster.kill_one_at_work(app, chance, [None])
            cluster.start()
            if kill >= KILLS:
                wait_until_ended(app)
                if has_hit(handles):
                    break
        for process in list(cluster.running):
            assert cluster.stop(process) == 0
    runs = [handle.get() for handle in handles]
    for steps in runs:
        for place, before in upstreams.items():
            check_step(steps[place], [steps[one] for one in before])
    executions = Counter(line.split()[0] + " " + line.split()[2] for line in log.read_text().splitlines())
    assert max(executions.values()) == 1, "an attempt was executed twice"
    begun = {run.key: run for steps in runs for run in steps if run.attempt > 0}
    assert {line.split()[0] for line in executions} <= set(begun)
    assert has_hit(handles), "no kill hit any step, or nothing was ever left out"
