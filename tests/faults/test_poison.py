"""A task that kills its worker: attempts are counted over all nodes that it ends, then it fails; people are told."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

from ostinato import Ostinato, Retry, RunState
from ostinato.engine.node import Engine
from ostinato.models.notification import RULE_KINDS, RuleDraft
from tests.engine.http_server import serving
from tests.engine.notify_fixtures import hook
from tests.faults.mail import wait_until
from tests.faults.nodes import nodes


async def tell_what_goes_wrong(engine: Engine) -> None:
    await engine.store.notifications.put_rule(RuleDraft("phone", RULE_KINDS), engine.clock.now())


def test_a_task_that_kills_its_worker_fails_after_its_attempts_and_people_are_told(
    app: Ostinato, url: str, tmp_path: Path
) -> None:
    log = tmp_path / "executions"
    retries = Retry(1, base="1ms")
    with serving() as server, nodes(url, log, FAULTS_LEASE="2s", OSTINATO_NOTIFY_ALLOW="127.0.0.1") as cluster:
        hook(app, server)
        app.with_engine(tell_what_goes_wrong)
        poison = app.task("poison")(lambda: None).using(key="poison", retry=retries).enqueue()
        for _ in range(2):
            assert cluster.start().wait(60) == -signal.SIGKILL
        survivor = cluster.start()
        run = poison.wait(60)
        assert (run.state, run.cause, run.attempt) == (RunState.FAILED, "node_lost", 2)
        assert "was lost while it ran this" in (run.reason or "")
        assert app.task("work")(lambda: None).using(key="good").enqueue().wait(60).state is RunState.SUCCEEDED
        wait_until(lambda: any("poison" in str(one.body) for one in server.received), "nobody was told")
        assert survivor.poll() is None
    assert Counter(line.split()[0] for line in log.read_text().splitlines())["poison"] == 2
