"""Starting and stopping through the Python API: at once, while draining, after a failure, and what a start tells."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ostinato import At, Ostinato
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.errors import StoreUnavailable
from ostinato.testing import FakeClock, drain


class Held:
    """A task of the test that runs until it may end."""

    def __init__(self, app: Ostinato) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.task = app.task("held")(self.work)

    def work(self) -> str:
        self.begun.set()
        assert self.may_end.wait(20)
        return "done"


@pytest.fixture
def app(tmp_path: Path) -> Ostinato:
    return Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}", tz="UTC")


def until_draining(app: Ostinato) -> None:
    for _ in range(1_000):
        if app.health().get("draining"):
            return
    raise AssertionError("it does not drain")


def test_two_stops_and_calls_during_a_drain_all_come_back(app: Ostinato) -> None:
    held = Held(app)
    app.start()
    handle = held.task.enqueue()
    assert held.begun.wait(10)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(app.stop)
        until_draining(app)
        second = pool.submit(app.stop)
        assert pool.submit(app.runs.get, handle.id).result(10).state == "running"
        held.may_end.set()
        first.result(20)
        second.result(20)
        assert pool.submit(app.runs.get, handle.id).result(10).result == "done"
    app.stop()


def test_a_task_may_enqueue_another_while_its_node_drains(app: Ostinato) -> None:
    held = Held(app)

    @app.task
    def follow() -> None: ...

    @app.task
    def lead() -> int:
        held.work()
        return follow.enqueue().id

    app.start()
    handle = lead.enqueue()
    assert held.begun.wait(10)
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(app.stop)
        until_draining(app)
        held.may_end.set()
        stopping.result(20)
    run = app.runs.get(handle.id)
    assert run.state == "succeeded"
    assert app.runs.get(run.result).task == "follow"
    app.stop()


def test_force_ends_a_drain(app: Ostinato) -> None:
    held = Held(app)
    app.start()
    handle = held.task.enqueue()
    assert held.begun.wait(10)
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(app.stop, "10m")
        until_draining(app)
        app.force()
        stopping.result(20)
    held.may_end.set()
    assert app.runs.get(handle.id).state == "queued"
    app.stop()
    app.force()


def test_many_threads_that_start_it_make_one_node(app: Ostinato) -> None:
    for number in range(60):
        app.task(f"task-{number}", schedule="every 1h")(lambda: None)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: app.start(), range(8)))
    assert len(app.nodes.list()) == 1
    app.stop()
    assert app.nodes.list() == []
    app.stop()


def test_a_start_that_failed_can_be_repeated(app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.task
    def work() -> int:
        return 1

    async def fail(engine: Engine) -> None:
        engine.monitor.start()
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "start", fail)
        with pytest.raises(StoreUnavailable, match="away"):
            app.start()
        assert app.health()["ok"] is False
    app.start()
    assert work.enqueue().wait(timeout=60).result == 1
    app.stop()


async def test_a_failed_start_of_an_async_with_leaves_nothing_open(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(engine: Engine) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "start", fail)
        with pytest.raises(StoreUnavailable, match="away"):
            async with app:
                raise AssertionError("it has not started")
    assert app._host.container is None
    async with app:
        assert (await app.aio.health())["node"] is not None


AT_EXIT = """
import sys, threading
from ostinato import Ostinato

app = Ostinato(f"sqlite:///{sys.argv[1]}", tz="UTC")
begun = threading.Event()

@app.task
def follow(): ...

@app.task
def work():
    begun.set()
    while not app.health()["draining"]:
        pass
    return follow.enqueue().id

app.start()
work.enqueue()
assert begun.wait(20)
"""


def test_a_process_that_ends_drains_first(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    ended = subprocess.run(
        [sys.executable, "-c", AT_EXIT, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    waiting = "waiting for run 1 of 'work' to end (Ctrl-C cuts off what is under way)\n"
    assert (ended.returncode, ended.stderr) == (0, waiting)
    app = Ostinato(f"sqlite:///{path}", tz="UTC")
    follower, run = app.runs.list()
    assert (run.state, run.result) == ("succeeded", follower.id)
    assert app.nodes.list() == []
    app.stop()


AFTER_MAIN = """
import concurrent.futures.thread, sys, threading, time
from ostinato import Ostinato, Shell

app = Ostinato(sys.argv[1], tz="UTC")

def live_on():
    # Set when the main thread has ended: Python's own pools are closed from then on.
    while not concurrent.futures.thread._shutdown:
        time.sleep(0.001)
    run = app.enqueue(Shell("echo still here")).wait(timeout=60)
    print(run.state, app.runs.output(run.id), [node.state for node in app.nodes.list()])
    app.stop()

app.start()
threading.Thread(target=live_on).start()
"""


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_an_engine_outlives_the_main_thread(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}" if kind == "file" else request.getfixturevalue("postgres_url")
    ended = subprocess.run(
        [sys.executable, "-c", AFTER_MAIN, url], capture_output=True, text=True, timeout=110, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "succeeded still here\n ['alive']\n", "")


# What a start tells.


def test_a_declared_time_that_has_passed_and_was_deleted_does_not_keep_an_app_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock("2026-01-01T00:00:00Z")

    def declare() -> Ostinato:
        app = Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}", tz="UTC", clock=clock)
        app.task("once", schedule=At("2026-01-01T00:01:00Z"), delete_after_run=True)(lambda: None)
        return app

    app = declare()
    drain(app)
    clock.advance("2m")
    assert drain(app) == 1
    assert app.schedules.list() == []
    app.stop()
    again = declare()
    with caplog.at_level(logging.INFO, "ostinato"):
        assert drain(again) == 0
    assert again.schedules.list() == []
    assert [text for text in caplog.messages if "'once' is not stored" in text]
    again.stop()


def test_schedules_that_the_code_no_longer_declares_are_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    old = Ostinato(url, tz="UTC")
    for name in ("first", "second", "third"):
        old.task(name, schedule="every 1h")(lambda: None)
    drain(old)
    old.stop()
    new = Ostinato(url, tz="UTC")
    new.task("first", schedule="every 1h")(lambda: None)
    with caplog.at_level(logging.WARNING, "ostinato"):
        drain(new)
        drain(new)
    told = "schedules second, third are no longer declared by app 'default': orphaned"
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [told]
    new.stop()


def test_the_repr_hides_the_password() -> None:
    app = Ostinato("postgresql://ada:s3cret@db.example:5432/jobs?sslmode=require&password=s3cret")
    assert repr(app) == "<Ostinato postgresql://ada:***@db.example:5432/jobs?sslmode=require&password=***>"
    assert repr(Ostinato("postgresql://ada@db.example/jobs")) == "<Ostinato postgresql://ada@db.example/jobs>"
    assert "s3c" not in repr(Ostinato("postgresql://ada:s3c@ret/1@db.example/jobs"))


def test_a_program_that_changes_its_folder_keeps_its_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    app = Ostinato("sqlite:///jobs.db")
    exact = Ostinato(settings=Settings(db="jobs.db"))
    app.schedules.add("nightly", "daily 03:00", "report")
    app.stop()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [schedule.name for schedule in app.schedules.list()] == ["nightly"]
    assert [schedule.name for schedule in exact.schedules.list()] == ["nightly"]
    app.stop()
    exact.stop()
    assert list((tmp_path / "elsewhere").iterdir()) == []
