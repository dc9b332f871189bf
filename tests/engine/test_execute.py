"""Work without a schedule: enqueued for any node, or executed here and now; and the projects that it belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato import Agent, Function, Ostinato, RunContext, RunState, Shell, Snooze, Trigger
from ostinato.errors import InvalidInput, NotFound
from ostinato.models.output import OutputLine
from ostinato.testing import drain
from tests.engine.conftest import MakeApp, on_shared


@pytest.fixture
def db() -> str:
    """None of it has anything to do with the database."""
    return "sqlite://:memory:"


def test_work_is_executed_here_and_recorded_as_every_run(app: Ostinato) -> None:
    @app.task("job", retry=5)
    def job(run: RunContext, name: str) -> str:
        run.log(f"hello {name}")
        run.count("greeted")
        return name

    seen: list[OutputLine] = []
    run = app.execute(Function("job", ["ann"]), printed=seen.append)
    assert (run.state, run.result, run.totals, run.trigger) == (
        RunState.SUCCEEDED,
        "ann",
        {"greeted": 1},
        Trigger.MANUAL,
    )
    assert [(line.number, line.text) for line in seen] == [(1, "hello ann")]
    assert seen[0].at is not None
    assert app.runs.get(run.id) == run


def test_what_is_executed_here_is_tried_once(app: Ostinato) -> None:
    @app.task("job", retry=5)
    def job() -> None:
        raise ValueError("no good")

    run = app.execute("job")
    assert (run.state, run.reason, run.attempt) == (RunState.FAILED, "ValueError: no good", 1)


def test_what_goes_back_to_the_queue_is_left_to_others(app: Ostinato) -> None:
    @app.task("job")
    def job() -> None:
        raise Snooze("5m", "not yet")

    run = app.execute("job")
    assert (run.state, run.reason) == (RunState.QUEUED, "not yet")


def test_an_engine_that_is_made_for_one_run_takes_no_other(app: Ostinato) -> None:
    @app.task("job")
    def job() -> None: ...

    other = job.enqueue()
    assert app.execute("job").state is RunState.SUCCEEDED
    assert other.get().state is RunState.QUEUED
    assert all(node.state != "alive" for node in app.nodes.list())


def test_a_started_engine_executes_beside_its_other_work(app: Ostinato) -> None:
    @app.task("job")
    def job() -> int:
        return 3

    app.start()
    assert app.execute("job").result == 3
    assert job.enqueue().wait(timeout="60s").result == 3


@on_shared
def test_work_is_enqueued_for_a_node_that_knows_no_tasks(shared_db: str, make_app: MakeApp, tmp_path: Path) -> None:
    sender, node = make_app(shared_db), make_app(shared_db, name="node")
    sender.projects.add("blog", tmp_path)
    handle = sender.enqueue(Shell("pwd; echo $OSTINATO_PROJECT"), project="blog", key="once")
    assert sender.enqueue(Shell("pwd"), project="blog", key="once").id == handle.id
    assert drain(node) == 1
    run = handle.get()
    assert (run.state, run.reason, run.project) == (RunState.SUCCEEDED, None, "blog")
    assert sender.runs.output(run.id) == f"{tmp_path}\nblog\n"
    assert [found.id for found in sender.runs.list(project="blog")] == [run.id]


def test_a_project_must_exist_before_something_belongs_to_it(app: Ostinato) -> None:
    for wrong in (
        lambda: app.enqueue(Shell("true"), project="nope"),
        lambda: app.execute(Shell("true"), project="nope"),
        lambda: app.schedules.add("s", "every 1h", Shell("true"), project="nope"),
        lambda: app.schedules.list(project="nope"),
        lambda: app.projects.remove("nope"),
    ):
        with pytest.raises(
            NotFound, match="there is no project 'nope'; add it with 'ostinato project add nope FOLDER'"
        ):
            wrong()


def test_a_project_has_a_folder_that_exists(app: Ostinato, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist; make it first"):
        app.projects.add("blog", tmp_path / "nope")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is not a folder"):
        app.projects.add("blog", tmp_path / "file")
    assert app.projects.list() == []


@pytest.mark.parametrize("name", ["", " blog", "none", "a\nb", "x" * 201])
def test_a_project_is_called_something(app: Ostinato, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        app.projects.add(name, tmp_path)
    assert raised.value.field == "project"


def test_a_run_of_a_project_that_is_gone_says_so(app: Ostinato, tmp_path: Path) -> None:
    app.projects.add("blog", tmp_path)
    run = app.enqueue(Shell("true"), project="blog")
    app.projects.remove("blog")
    drain(app)
    assert (run.get().state, run.get().reason) == (
        RunState.FAILED,
        "this run cannot be executed: there is no project 'blog' any more: add it again with 'ostinato project add "
        "blog FOLDER', or give the schedule another one",
    )


def test_editing_changes_only_what_is_given_and_another_kind_has_its_own_timeout(app: Ostinato) -> None:
    schedule = app.schedules.add("s", "every 1h", Shell("true"), retry=1)
    assert schedule.policy.timeout is not None
    assert schedule.policy.timeout.total_seconds() == 300
    edited = app.schedules.edit("s", work=Shell("false"))
    assert (edited.policy, edited.work) == (schedule.policy, Shell("false"))
    edited = app.schedules.edit("s", work="job")
    assert (edited.policy.timeout, edited.policy.retry.max) == (None, 1)
    edited = app.schedules.edit("s", work=Shell("true"), timeout="9s")
    assert edited.policy.timeout is not None
    assert edited.policy.timeout.total_seconds() == 9
    assert app.schedules.add("n", "every 1h", Shell("true"), timeout=None).policy.timeout is None


def test_a_run_without_a_schedule_has_no_budget_of_a_day(app: Ostinato) -> None:
    for wrong in (
        lambda: app.enqueue(Shell("true"), budget={"per_day_usd": 1}),
        lambda: app.execute(Shell("true"), budget={"per_day_runs": 1}),
    ):
        with pytest.raises(InvalidInput, match="has no daily budget; give per_run_usd, or add a schedule"):
            wrong()


def test_a_conversation_has_a_session_of_its_own(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="waits its turn in the session of its conversation"):
        app.schedules.add("chat", "every 1h", Agent("Hi", context="group"), session="mine")


def test_executing_leaves_the_lanes_as_they_are(tmp_path: Path, make_app: MakeApp) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'jobs.db'}", lanes={"main": 5})
    app.lanes.set("main", 50)

    @app.task("job")
    def job() -> None: ...

    app.execute("job")
    assert app.lanes.get("main").limit == 50
