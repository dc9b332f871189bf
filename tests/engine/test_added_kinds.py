"""Kinds of work that packages add: executed, failed, stopped and recorded as our own are; and broken packages."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ostinato import Function, InvalidInput, Ostinato, RunState, Shell
from ostinato.api.shapes.work import _request, make_work
from ostinato.cli.work_view import work_cell
from ostinato.engine.node import Engine
from ostinato.models.installed_kinds import added_kinds, broken_kinds, installed_kinds
from ostinato.service.answers import run_answer
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
        assert [task.name for task in able.tasks.list()] == []
        assert able.runs.get(run.id).state is RunState.SUCCEEDED
        assert able.schedules.get("hello").broken is None


def _described(name: str, field: str = "", kind: str = "") -> str:
    """A kind of this name with more said of its second field, or of itself."""
    return (
        ECHO.replace('"echo"', name)
        .replace('"What else it does."', f'"What else it does.", {field}')
        .replace('"7m")', f'"7m", {kind})')
        .replace("ClassVar, Literal", "Any, ClassVar, Literal")
        .replace("\n\n\n@dataclass", "\nfrom ostinato.models.work_kinds import ProcessWork\n\n\n@dataclass", 1)
    )


_PROPERTY = """
    @property
    def {}(self):
        return None


async"""

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
    "shell": (ECHO.replace('"echo"', '"shell"'), "Ostinato has a kind called 'shell'"),
    "types": (
        ECHO.replace("times: Annotated[int,", "times: Annotated[complex,").replace('"echo"', '"types"'),
        "field 'times' is complex",
    ),
    "lambda": (ECHO.replace('"echo"', '"lambda"'), "cannot be called 'lambda'"),
    "unreadable": (
        ECHO.replace('"echo"', '"unreadable"').replace('"7m"', '"7m", flag="dim"'),
        "cannot be called 'unreadable'",
    ),
    "flag": (_described('"flag"', kind='flag="My Flag"'), "the flag 'My Flag' cannot be typed"),
    "keyword": (_described('"keyword"', 'flag="class"'), "the flag 'class' cannot be typed"),
    "item": (_described('"item"', 'item_flag="Bad!"'), "the flag 'Bad!' cannot be typed"),
    "twice": (_described('"twice"', 'flag="loud_echo", item_flag="loud_echo"'), "--loud-echo is that of two fields"),
    "main": (_described('"main"', kind='main=("nope",)'), "main names 'nope', which is no field"),
    "instead": (_described('"instead"', 'instead_of="nope"'), "instead_of of its field 'how' is 'nope'"),
    "label": (_described('"label"', "label=5"), "label of its field 'how' is 5"),
    "never": (_described('"never"', kind='timeout="0s"').replace('"7m", ', ""), "timeout cannot be zero"),
    "doc": (_described('"doc"').replace("    text:", "    __doc__ = 5\n    text:"), "AttributeError: 'int'"),
    "default": (
        _described('"default"').replace("bool, WorkField", "Any, WorkField").replace("] = False", "] = object()"),
        "Encoding objects of type object",
    ),
    "of": (_described('"of"').replace("    times:", "    of:"), "cannot be called 'of'"),
    "number": (_described('"number"', kind="").replace('"How many times."', '"Pin.", secret=True'), "'times' is int"),
    "several": (_described('"several"').replace('"Who hears it."', '"Pin.", secret=True'), "'to' is list[str]"),
    "needs": (_described('"needs"').replace("\n\nasync", _PROPERTY.format("needs"), 1), "says needs itself"),
    "conversation": (
        _described('"conversation"').replace("\n\nasync", _PROPERTY.format("conversation"), 1),
        "says conversation itself",
    ),
    "process": (_described('"process"').replace("Echo(Work)", "Echo(ProcessWork)"), "is a ProcessWork"),
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
            assert says in broken_kinds()[name], broken_kinds()[name]
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
        assert "whose package cannot be loaded: ostinato_echo:kind: ModuleNotFoundError: No module named" in reason


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
        assert "another package adds 'echo'; uninstall one of the two" in caplog.text


def test_a_package_is_asked_for_no_more_than_its_own_metadata(tmp_path: Path) -> None:
    """What is wrong with other packages stops nobody, and of one that is on two places the first counts."""
    folder = leave(tmp_path / "packages", "ostinato_echo", ECHO)
    leave(folder, "other", "")
    named = folder / "other-1.0.dist-info" / "entry_points.txt"
    named.write_text("[console_scripts]\nno equals sign", encoding="utf-8")
    leave(folder, "ostinato_garbled", "", "no equals sign")
    leave(tmp_path / "later", "Ostinato.Echo", ECHO, "later = ostinato_echo:kind")
    archive = tmp_path / "archive.zip"
    with ZipFile(archive, "w") as file:
        file.writestr("ostinato_zip.py", ECHO.replace('"echo"', '"zip"'))
        file.writestr("ostinato_zip-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ostinato_zip\n")
        file.writestr("ostinato_zip-1.0.dist-info/entry_points.txt", "[ostinato.executors]\nzip = ostinato_zip:kind\n")
    with installed(tmp_path / "later"), installed(archive), installed(folder):
        assert list(added_kinds()) == ["echo", "zip"]
        ((place, why),) = broken_kinds().items()
        assert place.endswith("ostinato_garbled-1.0.dist-info")
        assert why.startswith("its entry points cannot be read: TypeError")


def test_threads_that_look_at_once_tell_of_a_broken_package_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = leave(tmp_path / "packages", "ostinato_bad", "raise RuntimeError('no')")
    leave(folder, "ostinato_echo", ECHO)
    with installed(folder), ThreadPoolExecutor(4) as pool:
        barrier = threading.Barrier(4)

        def look() -> list[str]:
            barrier.wait(60)
            return list(added_kinds())

        found = [pool.submit(look) for _ in range(4)]
        assert [one.result(60) for one in found] == [["echo"]] * 4
    assert caplog.text.count("RuntimeError: no") == 1


def test_a_package_that_asks_for_the_kinds_while_it_is_loaded_gets_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = f"from ostinato.models.installed_kinds import installed_kinds\nknown = list(installed_kinds())\n{ECHO}"
    with installed(leave(tmp_path / "packages", "ostinato_echo", source)):
        assert list(added_kinds()) == ["echo"]
        assert sys.modules["ostinato_echo"].known == ["function", "shell", "agent", "http", "check_in"]
    assert caplog.text == ""


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
    calls: list[Callable[[], object]] = [
        lambda: app.task("kind:echo")(lambda: None),
        lambda: app.enqueue(Function("kind:echo")),
        lambda: app.enqueue(Function("kind:echo", ["hi"])),
        lambda: app.schedules.add("hello", "every 1h", Function("kind:echo")),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="a task cannot be called 'kind:echo'; kind: is reserved"):
            call()


def test_another_version_of_the_package_fails_runs_and_not_the_schedule(
    tmp_path: Path, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    db = f"sqlite:///{tmp_path / 'jobs.db'}"
    newer = leave(tmp_path / "newer", "ostinato_echo", ECHO.replace('"hang"]', '"hang", "sing"]'))
    older = leave(tmp_path / "older", "ostinato_echo", ECHO)
    with installed(newer, "ostinato_echo") as module:
        package: Any = module
        make_app(db).schedules.add("hello", "every 1h", package.Echo("hi", how="sing"), break_after=1)
    with installed(older):
        app = make_app(db)
        fake_clock.advance("1h")
        drain(app)
        schedule = app.schedules.get("hello")
        assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 0)
        assert "its echo work is not readable: Invalid enum value 'sing'" in getattr(schedule.work, "reason", "")
        (failed,) = app.runs.list(schedule="hello")
        assert (failed.state, failed.cause) == (RunState.FAILED, "not_loadable")
        assert "Invalid enum value 'sing'" in (failed.reason or "")
        app.stop()
    with installed(newer):
        fake_clock.advance("1h")
        app = make_app(db)
        drain(app)
        assert [run.state for run in app.runs.list(schedule="hello")] == [RunState.SUCCEEDED, RunState.FAILED]


def test_a_class_that_raises_whatever_hides_no_row(app: Ostinato, tmp_path: Path, fake_clock: FakeClock) -> None:
    check = "\n    def __post_init__(self):\n        assert self.times < LIMIT\n\n\nLIMIT = 9\n\n\nasync def execute"
    source = ECHO.replace("\n\nasync def execute", check)
    with installed(leave(tmp_path / "packages", "ostinato_echo", source), "ostinato_echo") as module:
        package: Any = module
        app.schedules.add("hello", "every 1h", package.Echo("hi", times=5))
        queued = app.enqueue(package.Echo("hi", times=5))
        package.LIMIT = 3
        (schedule,), (run,) = app.schedules.list(), app.runs.list()
        says = "its echo work cannot be read: AssertionError"
        assert (getattr(schedule.work, "reason", ""), getattr(run.work, "reason", "")) == (says, says)
        assert (schedule.enabled, schedule.broken) == (True, None)
        fake_clock.advance("1h")
        drain(app)
        assert (queued.get().state, queued.get().cause) == (RunState.FAILED, "not_loadable")
        assert [run.cause for run in app.runs.list(schedule="hello")] == ["not_loadable"]
        assert app.schedules.get("hello").broken is None
        asked = _request(added_kinds()["echo"]).model_validate({"kind": "echo", "text": "hi", "times": 5})
        with pytest.raises(InvalidInput, match="this echo work cannot be: AssertionError") as refused:
            make_work(asked)
        assert refused.value.field == "work"
        app.schedules.remove("hello")


def test_its_runs_are_counted_under_their_schedule(app: Ostinato, echo: Any, fake_clock: FakeClock) -> None:
    app.schedules.add("hello", "every 1h", echo.Echo("hi"), catch_up="none")
    app.enqueue(echo.Echo("hi"))
    fake_clock.advance("3h")  # two are missed
    app.start()
    drain(app)  # the ledger has it a moment before it is counted
    counted = app.with_engine(_counted)
    assert counted == {"hello": {"missed": 1, "succeeded": 1}, "echo": {"succeeded": 1}}


async def _counted(engine: Engine) -> dict[str, Any]:
    counted: dict[str, Any] = engine.statistics.shape()["runs"]
    return counted


def test_without_packages_there_are_the_five() -> None:
    forgotten()
    assert list(installed_kinds()) == ["function", "shell", "agent", "http", "check_in"]
    assert not broken_kinds()
