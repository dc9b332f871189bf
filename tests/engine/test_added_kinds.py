"""Kinds of work that packages add: executed, failed, stopped and recorded as our own are; and broken packages."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato, RunState, Shell
from ostinato.cli.work_view import work_cell
from ostinato.engine.node import Engine
from ostinato.models.installed_kinds import added_kinds, broken_kinds, installed_kinds
from ostinato.service.answers import run_answer
from ostinato.service.tasks import TaskService, TaskUse
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import MakeApp, eventually, on_shared
from tests.packages import ECHO, forgotten, installed, leave


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[Any]:
    """The module of an installed package."""
    with installed(leave(tmp_path / "packages", "ostinato_echo", ECHO), "ostinato_echo") as module:
        yield module


def test_it_is_scheduled_executed_and_recorded(app: Ostinato, echo: Any, fake_clock: FakeClock) -> None:
    schedule = app.schedules.add("hello", "every 1h", echo.Echo("hi", times=2, to=["ann"]))
    assert schedule.work == echo.Echo("hi", times=2, to=["ann"])
    assert schedule.policy.timeout is not None
    assert schedule.policy.timeout.total_seconds() == 420
    fake_clock.advance("1h")
    drain(app)
    (run,) = app.runs.list(schedule="hello")
    assert (run.state, run.cause, run.task) == (RunState.SUCCEEDED, None, "kind:echo")
    assert (run.result, run.totals) == ({"said": "hi", "to": ["ann"], "attempt": 1}, {"said": 2})
    assert app.runs.output(run.id) == "hi\nhi\n"
    assert app.schedules.get("hello").broken is None


def test_what_it_raises_is_retried_and_an_abort_is_not(app: Ostinato, echo: Any, fake_clock: FakeClock) -> None:
    failing = app.enqueue(echo.Echo("no", how="raise"), retry=1)
    aborted = app.enqueue(echo.Echo("never", how="abort"), retry=5)
    drain(app)
    assert (aborted.get().state, aborted.get().attempt) == (RunState.FAILED, 1)
    assert failing.get().state is RunState.QUEUED
    fake_clock.advance("1m")
    drain(app)
    run = failing.get()
    assert (run.state, run.cause, run.reason, run.attempt) == (
        RunState.FAILED,
        "raised",
        "ValueError: no (attempt 2)",
        2,
    )
    assert "ostinato_echo.py" in (run.error or "")


def test_it_is_cancelled_and_times_out(app: Ostinato, echo: Any, fake_clock: FakeClock) -> None:
    app.start()
    cancelled, late = (app.enqueue(echo.Echo("hm", how="wait"), timeout=limit, retry=0) for limit in (None, "5m"))
    eventually(lambda: {cancelled.get().state, late.get().state} == {RunState.RUNNING})
    app.runs.cancel(cancelled.id)
    eventually(lambda: cancelled.get().state is RunState.CANCELLED)
    fake_clock.advance("5m")
    eventually(lambda: late.get().state is RunState.FAILED)
    assert late.get().cause == "timed_out"


def test_a_plain_function_is_called_on_a_thread_and_told_to_stop(
    app: Ostinato, tmp_path: Path, fake_clock: FakeClock
) -> None:
    source = ECHO.replace("async def execute", "def execute").replace(
        "        await asyncio.sleep(3600)\n", "        while not run.cancelled:\n            time.sleep(0.01)\n"
    )
    with installed(leave(tmp_path / "packages", "ostinato_echo", source), "ostinato_echo") as module:
        package: Any = module
        app.start()
        said, waiting = app.enqueue(package.Echo("hi")), app.enqueue(package.Echo("hm", how="wait"))
        eventually(lambda: said.get().state is RunState.SUCCEEDED and waiting.get().state is RunState.RUNNING)
        app.runs.cancel(waiting.id)
        eventually(lambda: waiting.get().state is RunState.CANCELLED)


def test_secrets_are_resolved_for_it_and_hidden_in_what_it_says(
    app: Ostinato, echo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHO_TOKEN", "tr0ub4dor")
    work = echo.Echo("hi", token="env:ECHO_TOKEN", headers={"A": "Bearer env:ECHO_TOKEN", "B": "literal-secret"})
    run = app.execute(work)
    assert run.state is RunState.SUCCEEDED
    assert app.runs.output(run.id) == "hi *** Bearer *** ***\n"
    assert run.work == work, "the references are stored, not what they stand for"
    missing = app.execute(echo.Echo("hi", token="env:NO_SUCH_TOKEN"))
    assert (missing.state, missing.cause) == (RunState.FAILED, "not_started")
    assert "token is env:NO_SUCH_TOKEN, but the engine's environment has no" in (missing.reason or "")


def test_what_does_not_read_back_is_refused(app: Ostinato, echo: Any) -> None:
    for wrong in (echo.Echo(5), echo.Echo("hi", how="sing"), echo.Echo("hi", token=object())):
        with pytest.raises(InvalidInput):
            app.enqueue(wrong)
    assert app.runs.list() == []


def test_a_value_whose_package_is_not_installed_is_refused(app: Ostinato, echo: Any, tmp_path: Path) -> None:
    (tmp_path / "packages" / "ostinato_echo-1.0.dist-info" / "entry_points.txt").unlink()
    forgotten()
    with pytest.raises(InvalidInput, match="echo work is not known here: no installed package adds it"):
        app.enqueue(echo.Echo("hi"))


def tasks_of(app: Ostinato) -> Sequence[TaskUse]:
    async def found(engine: Engine) -> Sequence[TaskUse]:
        return await TaskService(engine.store, engine.clock).list()

    return app.with_engine(found)


@on_shared
def test_only_a_node_that_has_the_package_takes_its_runs(
    shared_db: str, make_app: MakeApp, tmp_path: Path, fake_clock: FakeClock
) -> None:
    app = make_app(shared_db)
    folder = leave(tmp_path / "packages", "ostinato_echo", ECHO)
    with installed(folder, "ostinato_echo") as module:
        package: Any = module
        app.schedules.add("hello", "every 5s", package.Echo("hi"))
    bare = make_app(shared_db)
    bare.task("job")(lambda: None)
    bare.start()
    schedule = bare.schedules.get("hello")
    assert (schedule.work.kind, schedule.enabled) == ("unreadable", True)
    assert "no running node can execute echo work" in (schedule.broken or "")
    assert "unknown kind 'echo'" in getattr(schedule.work, "reason", "")
    fake_clock.advance("5s")  # less than its lease
    eventually(lambda: len(bare.runs.list(schedule="hello")) == 1)
    job = bare.enqueue("job")
    eventually(lambda: job.get().state is RunState.SUCCEEDED)
    (run,) = bare.runs.list(schedule="hello")
    assert (run.state, run.task) == (RunState.QUEUED, "kind:echo"), "it is recorded, and left for others"
    assert "no running node can execute echo work" in bare.why("hello").answer
    assert "no running node can execute echo work" in " ".join(bare.why("hello").facts)
    bare.stop(grace=0)
    with installed(folder):
        able = make_app(shared_db)
        drain(able)
        assert [task.name for task in tasks_of(able)] == []
        assert able.runs.get(run.id).state is RunState.SUCCEEDED
        assert able.schedules.get("hello").broken is None


BROKEN = {
    "import": ("raise RuntimeError('no database driver')", "RuntimeError: no database driver"),
    "leaves": ("raise SystemExit(3)", "SystemExit: 3"),
    "missing": ("", "has no attribute 'kind'"),
    "type": ("kind = 5", "it is a int; name a WorkKind"),
    "name": (ECHO, "its kind is 'echo'; give the entry point the same name"),
    "retry": (ECHO.replace('"echo"', '"retry"'), "the flag --retry is taken"),
    "mutable": (ECHO.replace("frozen=True, ", "").replace('"echo"', '"mutable"'), "frozen dataclass"),
    "reserved": (ECHO.replace("    text:", "    line:").replace('"echo"', '"reserved"'), "called 'line'"),
    "hidden": (ECHO.replace("    text:", "    _text:").replace('"echo"', '"hidden"'), "cannot be called '_text'"),
    "shell": (ECHO.replace('"echo"', '"shell"'), "another kind is called 'shell' already"),
    "types": (
        ECHO.replace("times: Annotated[int,", "times: Annotated[complex,").replace('"echo"', '"types"'),
        "field 'times' is complex",
    ),
    "unions": (
        ECHO.replace("to: Annotated[list[str],", "to: Annotated[list[str] | list[int],").replace('"echo"', '"unions"'),
        "more than one array-like",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_package_is_told_and_stops_nobody(
    name: str, tmp_path: Path, make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    source, says = BROKEN[name]
    folder = leave(tmp_path / "packages", "ostinato_broken", source, f"{name} = ostinato_broken:kind")
    leave(folder, "ostinato_echo", ECHO)
    with installed(folder, "ostinato_echo") as module, caplog.at_level(logging.ERROR):
        package: Any = module
        app = make_app("sqlite://:memory:")
        assert app.execute(package.Echo("hi")).state is RunState.SUCCEEDED
        assert app.execute(Shell("true")).state is RunState.SUCCEEDED
        assert set(added_kinds()) == {"echo"}
        if name != "shell":
            assert says in broken_kinds()[name]
        told = [record.getMessage() for record in caplog.records if repr(name) in record.getMessage()]
        assert len(told) == 1
        assert says in told[0]


def test_work_of_a_broken_package_says_why_it_cannot_be_read(tmp_path: Path, make_app: MakeApp) -> None:
    folder = leave(tmp_path / "packages", "ostinato_echo", ECHO)
    app = make_app(f"sqlite:///{tmp_path / 'jobs.db'}")
    with installed(folder, "ostinato_echo") as module:
        package: Any = module
        app.schedules.add("hello", "every 1h", package.Echo("hi"))
    (folder / "ostinato_echo.py").write_text("import no_such_library", encoding="utf-8")
    with installed(folder):
        reason = getattr(app.schedules.get("hello").work, "reason", "")
        assert "whose package does not work: ostinato_echo:kind: ModuleNotFoundError: No module named" in reason


def test_a_function_that_cannot_be_imported_is_not_announced(
    tmp_path: Path, make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    source = ECHO.replace("WorkKind(Echo, execute,", 'WorkKind(Echo, "no_such_module:execute",')
    with installed(leave(tmp_path / "packages", "ostinato_echo", source), "ostinato_echo") as module:
        package: Any = module
        app = make_app("sqlite://:memory:")
        app.start()
        waiting = app.enqueue(package.Echo("hi"))
        refused = app.execute(package.Echo("hi"))
        assert (refused.state, refused.cause) == (RunState.FAILED, "not_loadable")
        assert waiting.get().state is RunState.QUEUED
        assert all("kind:echo" not in node.tasks for node in app.nodes.list())
        assert "echo work cannot be executed here: ModuleNotFoundError" in caplog.text


def test_two_packages_of_one_kind_are_told_and_the_first_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = leave(tmp_path / "packages", "ostinato_echo", ECHO)
    leave(folder, "ostinato_second", ECHO, "echo = ostinato_second:kind")
    with installed(folder):
        assert list(added_kinds()) == ["echo"]
        assert "another kind is called 'echo' already; uninstall one of the two packages" in caplog.text


def test_a_line_that_raises_hides_nothing_else(tmp_path: Path, make_app: MakeApp) -> None:
    line = "    @property\n    def line(self):\n        return 1 / 0\n\n\nasync def execute"
    source = ECHO.replace("\nasync def execute", line)
    with installed(leave(tmp_path / "packages", "ostinato_echo", source), "ostinato_echo") as module:
        package: Any = module
        app = make_app("sqlite://:memory:")
        run = app.execute(package.Echo("hi"))
        assert run.state is RunState.SUCCEEDED
        told: Any = run_answer(run).work
        assert (told.text, told.line) == ("hi", "echo work, whose line cannot be shown: ZeroDivisionError")
        assert work_cell(run.work) == told.line


def test_a_task_cannot_be_called_as_a_kind_is(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="kind: is reserved"):
        app.task("kind:echo")(lambda: None)


def test_without_packages_there_are_the_four(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten()
    assert list(installed_kinds()) == ["function", "shell", "agent", "http"]
    assert not broken_kinds()
