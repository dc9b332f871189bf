"""`ostinato node drain` and `resume`, on a real node."""

from __future__ import annotations

import signal

from tests.doors.command_line import CommandLine, eventually


def _states(cli: CommandLine) -> list[str]:
    return [node["state"] for node in cli.ok("node", "ls", "--json").json]


def test_a_node_is_drained_and_resumed_and_its_process_stays(cli: CommandLine) -> None:
    with cli.start("worker", "--app", "jobs:app") as worker:
        eventually(lambda: _states(cli) == ["alive"], "the node is there")
        (node,) = cli.ok("node", "ls", "--json").json
        assert f"node '{node['id']}' is draining, 0 running" in cli.ok("node", "drain", node["id"]).err
        eventually(lambda: _states(cli) == ["draining"], "it drains")
        assert [told["id"] for told in cli.ok("node", "resume", "all", "--json").json] == [node["id"]]
        eventually(lambda: _states(cli) == ["alive"], "it takes work again")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_a_node_that_is_not_there_is_named(cli: CommandLine) -> None:
    answer = cli("node", "drain", "nobody")
    assert answer.code != 0
    assert "there is no node 'nobody'" in answer.err
    assert "no engine is running" in cli.ok("node", "drain", "all").err
