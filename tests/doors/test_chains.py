"""Chains in code, through every door: awaited and not, rehearsed, shown with what comes before and after, explained."""

from __future__ import annotations

import asyncio
import json

import pytest

from ostinato import NotExecuted, Ostinato, RunCancelled, RunContext, RunFailed, WaitTimeout, group
from ostinato.models.chain import as_steps
from ostinato.testing import adrain, drain, rehearse
from ostinato.testing.store_suite.builders import new_run
from tests.doors.command_line import CommandLine
from tests.doors.web import Web

JOBS = """
from ostinato import Ostinato, RunContext

app = Ostinato()


@app.task("load", retry=0)
def load(part: str) -> str:
    return part


@app.task("report", retry=0)
async def report(run: RunContext, mark: str = "!") -> str:
    return str(run.upstream.result) + mark


load.then(report).then(report.call(mark="?")).enqueue("a")
"""


class Jobs:
    def __init__(self, app: Ostinato) -> None:
        @app.task("load", retry=0)
        def load(part: str) -> str:
            if part == "bad":
                raise ValueError("no rows")
            return part

        @app.task("report", retry=0)
        async def report(run: RunContext, mark: str = "!") -> str:
            return "".join(str(one.result) for one in run.upstreams) + mark

        self.load, self.report = load, report


@pytest.fixture
def jobs(app: Ostinato) -> Jobs:
    return Jobs(app)


def test_the_result_is_that_of_the_last_step(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.report).enqueue("a")
    side = jobs.load.then(group([jobs.report, jobs.report.call(mark="?").then(jobs.report)])).enqueue("b")
    alone = group([jobs.load.call("c"), group([jobs.load.call("d")])]).enqueue()
    drain(app)
    assert handle.result(timeout=5) == "a!"
    assert side.result(timeout=5) == ["b!", "b?!"]
    assert alone.result(timeout=5) == ["c", ["d"]]
    assert [step.result(5) for step in handle.steps] == ["a", "a!"]
    assert [str(run.state) for run in side.wait(timeout=5)] == ["succeeded"] * 4


def test_without_a_result_the_step_is_named_that_has_none(app: Ostinato, jobs: Jobs) -> None:
    handle = group([jobs.load.call("a"), jobs.load.call("bad")]).then(jobs.report).then(jobs.report).enqueue()
    drain(app)
    with pytest.raises(RunFailed, match=r"run 2 of 'load' failed: ValueError: no rows"):
        handle.result(timeout=5)
    cancelled = jobs.load.then(jobs.report).enqueue("a")
    cancelled.cancel()
    with pytest.raises(RunCancelled, match="run 6 of 'report' was cancelled"):
        cancelled.result(timeout=5)
    with pytest.raises(NotExecuted, match="run 3 of 'report' was skipped: run 2 of 'load' failed"):
        handle.steps[2].result(timeout=5)


def test_who_waits_too_long_is_told_what_it_waits_for(jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.report).enqueue("a")
    with pytest.raises(WaitTimeout, match="run 1 is still queued after 10ms: no engine is running"):
        handle.result(timeout="10ms")
    with pytest.raises(WaitTimeout, match="run 2 is still queued after 10ms: no engine is running"):
        handle.steps[1].result(timeout="10ms")


def test_coroutines_await_the_same(app: Ostinato, jobs: Jobs) -> None:
    async def use() -> None:
        handle = await jobs.load.then(jobs.report).aio.enqueue("a")
        assert repr(handle) == "<chain of runs 1, 2>"
        assert [str(run.state) for run in await handle.get()] == ["queued", "queued"]
        several = await group([jobs.load.call("b"), jobs.load.call("bad")]).aio.enqueue()
        gone = await jobs.load.then(jobs.report).aio.enqueue("c")
        assert {str(run.state) for run in await gone.cancel()} == {"cancelled"}
        await adrain(app)
        assert await handle.result(timeout=5) == "a!"
        assert len(await several.wait(timeout=5)) == 2
        with pytest.raises(RunFailed, match="of 'load' failed"):
            await several.result(timeout=5)

    asyncio.run(use())


def test_an_eager_rehearsal_has_run_all_of_it_when_enqueue_returns(app: Ostinato) -> None:
    with rehearse(app, eager=True):
        jobs = Jobs(app)
        handle = group([jobs.load.call("a"), jobs.load.call("b")]).then(jobs.report).enqueue()
        assert handle.get()[-1].ended
        assert handle.result() == "ab!"
        failed = jobs.load.then(jobs.report).then(jobs.report).enqueue("bad")
        assert [run.reason for run in failed.get()[1:]] == [
            "run 4 of 'load' failed, and this runs on success",
            "run 5 of 'report' was skipped, and this runs on success",
        ]
        with pytest.raises(RunFailed) as caught:
            failed.result()
        assert isinstance(caught.value.__cause__, ValueError)
        awaited = asyncio.run(self_awaited(jobs))
        assert awaited == ["c!", "skipped"]


async def self_awaited(jobs: Jobs) -> list[str]:
    done = await jobs.load.then(jobs.report).aio.enqueue("c")
    left = await jobs.load.then(jobs.report).aio.enqueue("bad")
    return [await done.result(), str((await left.get())[1].state)]


def test_what_comes_before_and_after_a_run_is_known(app: Ostinato, jobs: Jobs) -> None:
    handle = group([jobs.load.call("a"), jobs.load.call("bad")]).then(jobs.report).enqueue()
    found = app.runs.relations(handle.ids[2])
    assert [(one.id, one.task, str(one.state)) for one in found.upstreams] == [
        (1, "load", "queued"),
        (2, "load", "queued"),
    ]
    drain(app)
    assert [str(one.state) for one in app.runs.relations(3).upstreams] == ["succeeded", "failed"]
    assert [(one.id, str(one.state)) for one in app.runs.relations(1).dependents] == [(3, "skipped")]
    assert app.runs.relations(app.runs.retry(3).id).upstreams == app.runs.relations(3).upstreams


def test_the_command_line_shows_and_explains_it(cli: CommandLine) -> None:
    (cli.folder / "chained.py").write_text(JOBS, encoding="utf-8")
    cli.ok("task", "ls", "--app", "chained:app")
    shown = cli.ok("run", "show", "2").out
    assert "runs after" in shown
    assert "run 1 of load: queued" in shown
    assert "run 3 of report: queued" in shown
    assert "no engine is running" in shown
    blocked = json.loads(cli.ok("run", "show", "3", "--json").out)["blocked_by"]
    assert [link["name"] for link in blocked["chain"]] == ["2", "1"]
    listed = json.loads(cli.ok("run", "ls", "--state", "queued", "--json").out)
    assert [run["id"] for run in listed] == [3, 2, 1]
    cli.ok("run", "cancel", "1")
    left_out = cli.ok("run", "show", "2", "--json").json
    assert left_out["reason"] == "run 1 of 'load' was cancelled, and this runs on success"


def test_the_api_has_its_relations_and_says_what_it_waits_for(web: Web) -> None:
    now = web.clock.now()
    runs = [new_run(due_at=now, ready_at=now)] * 2
    web.run(web.container.store.runs.insert_chain(as_steps(runs, [(), (0,)], now), now))
    admin = web.script("admin")
    found = admin.get("/api/runs/2/relations").json()
    assert [(one["id"], one["task"], one["state"]) for one in found["upstreams"]] == [(1, "report", "queued")]
    assert found["dependents"] == []
    assert admin.get("/api/runs/9/relations").status_code == 404
    shown = admin.get("/api/runs/2").json()
    assert shown["trigger"] == "after"
    assert shown["blocked_by"]["chain"] == [{"kind": "run", "name": "1"}]
