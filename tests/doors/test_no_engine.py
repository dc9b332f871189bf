"""A process that executes one thing and takes no other work: an engine to nobody, and rescued all the same."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from ostinato.execution.registry import Registry
from tests.doors.command_line import HASTY, CommandLine, eventually
from tests.doors.web import Web, web_on

NO_ENGINE = "no engine is running"


@pytest.fixture
def web() -> Iterator[Web]:
    registry = Registry()
    registry.add_task("known", lambda: None, {})
    with web_on(registry) as web:
        yield web


def test_no_door_takes_it_for_an_engine(web: Web) -> None:
    admin = web.script("admin")
    task = {"kind": "function", "task": "known"}
    for name in ("known", "unknown"):
        admin.post("/api/schedules", {"name": name, "timing": "every 5m", "work": {**task, "task": name}})
    queued = admin.post("/api/runs", {"work": task}).json()["id"]
    engine = web.container.make_engine()
    web.run(engine.prepare(takes_work=False))
    try:
        assert admin.get("/api/nodes").json()["items"] == []
        assert admin.get(f"/api/runs/{queued}").json()["reason"] == NO_ENGINE
        assert "no engine is running on this database" in admin.get("/api/schedules/known/why").json()["facts"]
        engines = admin.get("/api/overview").json()["engine"]
        assert (engines["alive"], engines["nodes"], engines["lost"]) == (False, 0, 0)
        assert [one["broken"] for one in admin.get("/api/schedules").json()["items"]] == [None, None]
        assert [one["nodes"] for one in admin.get("/api/tasks").json()["items"]] == [[], []]
        assert 'scheduler_nodes{state="alive"} 0' in admin.get("/metrics").text
        assert admin.post(f"/api/nodes/{engine.id}/drain").status_code == 404
    finally:
        web.run(engine.stop(grace=0))


def test_while_something_is_executed_by_hand_queued_runs_say_that_no_engine_is_there(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "greet", "every 5m", "--task", "hello")
    cli.ok("schedule", "trigger", "greet")
    with cli.start("exec", "--shell", "echo begun; sleep 60", "--app", "jobs:app") as running:
        eventually(lambda: "begun" in running.out, "the command runs")
        assert cli.ok("node", "ls", "--json").json == []
        assert "no engine is running" in cli.ok("node", "drain", "all").err
        assert cli.ok("run", "show", "1", "--json").json["reason"] == NO_ENGINE
        running.signal(signal.SIGINT)
        assert running.wait() == 130


def test_what_was_executed_by_hand_is_rescued_when_its_process_is_killed(cli: CommandLine) -> None:
    (cli.folder / "hasty.py").write_text("from ostinato import Ostinato\n\napp = Ostinato()\n" + HASTY)
    with cli.start("exec", "--shell", "echo begun; sleep 60", "--app", "hasty:app") as running:
        eventually(lambda: "begun" in running.out, "the command runs")
        running.signal(signal.SIGKILL)
        running.wait()
    with cli.start("worker", "--app", "hasty:app", name="worker") as worker:
        eventually(lambda: cli.ok("run", "show", "1", "--json").json["state"] == "failed", "the run is rescued")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert "was lost while it ran this" in cli.ok("run", "show", "1", "--json").json["reason"]
    assert cli.ok("node", "ls", "--json").json == [], "what was lost was no node either"
