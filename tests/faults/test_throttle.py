"""A sender that knows nothing of a full session, and worker processes that do: one at a time, over all of them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState
from tests.faults.nodes import nodes

COUNT = 20


@pytest.mark.timeout(120)
def test_workers_let_one_at_a_time_start_of_what_others_send(app: Ostinato, url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def send(number: int) -> None:
        app.sessions.send("group:1", number, task="reply", debounce=0, max_concurrent=3, cap=COUNT)

    for number in range(COUNT // 2):
        send(number)
    with nodes(url, log, program="throttled.py") as cluster:
        workers = [cluster.start() for _ in range(2)]
        for number in range(COUNT // 2, COUNT):
            send(number)
        app.wait_idle(timeout="60s")
        assert [cluster.stop(worker) for worker in workers] == [0, 0]
    executions = sorted((json.loads(line) for line in log.read_text().splitlines()), key=lambda one: one[1])
    assert sorted(payloads[0] for payloads, _, _ in executions) == list(range(COUNT))
    for (_, _, ended), (_, began, _) in itertools.pairwise(executions):
        assert ended <= began, "two were under way at once"
    assert {(run.state, run.attempt) for run in app.runs.list()} == {(RunState.SUCCEEDED, 1)}
