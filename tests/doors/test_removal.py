"""Removing a schedule while it runs: its work is stopped first, or somebody says that it goes on."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ostinato import Ostinato
from ostinato.clock import Micros
from ostinato.config import Settings
from ostinato.errors import AlreadyActive, Conflict, NotFound
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import Pause
from ostinato.stores.base import Claim
from ostinato.testing.store_suite.builders import new_run
from ostinato.tuning import Tuning
from ostinato.wiring import Container
from tests.conftest import tuned
from tests.databases import SHARED, url_of
from tests.doors.command_line import HASTY, CommandLine, eventually


@pytest.fixture
def app(request: pytest.FixtureRequest, tmp_path: Path, tuning: Tuning) -> Iterator[Ostinato]:
    app = Ostinato(settings=Settings(db=url_of(request, tmp_path), tz="UTC", tuning=tuning))
    yield app
    app.stop(grace=0)


on_both = pytest.mark.parametrize("app", SHARED, indirect=True)


class Body:
    """The work of a schedule, and how many of it are inside."""

    def __init__(self, app: Ostinato, *, stubborn: bool = False) -> None:
        self.inside = 0
        self.most = 0
        self.may_end = threading.Event()
        self._stubborn = stubborn
        self.task = app.task("body", retry=0)(self._work)

    async def _work(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            while not self.may_end.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    if not self._stubborn:
                        raise
        finally:
            self.inside -= 1


@on_both
def test_what_runs_has_ended_when_its_schedule_is_removed(app: Ostinato) -> None:
    body = Body(app)
    app.start()
    for _ in range(2):
        app.schedules.add("nightly", "every 1h", body.task)
        app.schedules.trigger("nightly")
        eventually(lambda: body.inside == 1, "it runs")
        assert list(app.schedules.remove("nightly")) == []
        assert body.inside == 0
    assert body.most == 1
    with pytest.raises(NotFound):
        app.schedules.get("nightly")


@on_both
@tuned(removal_stop_seconds=0.2, function_stop_seconds=3_600)  # its node does not give it up meanwhile
def test_what_does_not_end_keeps_its_schedule_and_is_named(app: Ostinato) -> None:
    body = Body(app, stubborn=True)
    app.start()
    app.schedules.add("nightly", "every 1h", body.task)
    run = app.schedules.trigger("nightly")
    eventually(lambda: body.inside == 1, "it runs")
    with pytest.raises(Conflict, match=f"run {run.id} of it was told to stop"):
        app.schedules.remove("nightly")
    assert app.runs.get(run.id).state == "running"
    assert list(app.schedules.remove("nightly", force=True)) == [run.id]
    assert body.inside == 1
    assert_name_is_occupied(app, body)


def assert_name_is_occupied(app: Ostinato, body: Body) -> None:
    """A new schedule of the name starts nothing before the old one's work has ended."""
    app.schedules.add("nightly", "every 1h", body.task)
    with pytest.raises(AlreadyActive, match="still runs on node"):
        app.schedules.trigger("nightly")
    body.may_end.set()
    eventually(lambda: app.health()["given_up"] == 0 and triggered(app), "its name is free")
    eventually(lambda: app.runs.list(schedule="nightly", state="succeeded"), "the new one ran")
    assert body.most == 1


def triggered(app: Ostinato) -> bool:
    try:
        app.schedules.trigger("nightly")
    except AlreadyActive:
        return False
    return True


@on_both
@tuned(removal_stop_seconds=1.0, function_stop_seconds=0.02)
def test_what_was_given_up_keeps_its_schedule_and_is_named(app: Ostinato) -> None:
    body = Body(app, stubborn=True)
    app.start()
    app.schedules.add("nightly", "every 1h", body.task)
    run = app.schedules.trigger("nightly")
    eventually(lambda: body.inside == 1, "it runs")
    app.runs.cancel(run.id)
    eventually(lambda: app.runs.get(run.id).ended, "it is given up")
    node = app.health()["node"]
    with pytest.raises(
        Conflict, match=f"run {run.id} was given up and its code still runs on node {node}; restart that"
    ):
        app.schedules.remove("nightly")
    assert app.runs.get(run.id).state == "cancelled"
    assert list(app.schedules.remove("nightly", force=True)) == [run.id]
    assert body.inside == 1
    assert_name_is_occupied(app, body)


@on_both
def test_a_forced_removal_tells_the_work_to_stop(app: Ostinato) -> None:
    body = Body(app)
    app.start()
    app.schedules.add("nightly", "every 1h", body.task)
    app.schedules.trigger("nightly")
    eventually(lambda: body.inside == 1, "it runs")
    assert list(app.schedules.remove("nightly", force=True)) == []
    assert body.inside == 0


@on_both
def test_a_run_of_a_lost_node_holds_up_no_removal(app: Ostinato) -> None:
    """Nobody is there to stop it, and nothing of it runs."""
    body = Body(app)
    app.schedules.add("nightly", "every 1h", body.task)
    app.schedules.trigger("nightly")

    async def claim(container: object) -> int:
        from ostinato.clock import SECOND
        from ostinato.models.ids import NodeId
        from ostinato.stores.base import Claim

        store, now = container.store, container.clock.now()  # type: ignore[attr-defined]
        claimed = await store.runs.claim_runs(Claim(NodeId("gone"), now, now + SECOND, 1, ("body",), '["body"]'))
        return len(claimed.runs)

    assert app._host.run(claim) == 1
    assert list(app.schedules.remove("nightly")) == []


@on_both
@tuned(removal_stop_seconds=0.2)
def test_a_run_of_a_process_that_is_no_engine_is_waited_for_too(app: Ostinato) -> None:
    """As `ostinato exec` is one: it has a lease and no slots."""
    body = Body(app)
    app.schedules.add("nightly", "every 1h", body.task)
    run = app.schedules.trigger("nightly")

    async def claim(container: Container) -> int:
        engine = container.make_engine()
        await engine.prepare(takes_work=False)
        now = container.clock.now()
        return len((await container.store.runs.claim_runs(Claim(engine.id, now, now, 1, ("body",), '["body"]'))).runs)

    assert app._host.run(claim) == 1
    with pytest.raises(Conflict, match=f"run {run.id} of it was told to stop"):
        app.schedules.remove("nightly")


@on_both
@tuned(removal_stop_seconds=2.0)
def test_nothing_starts_while_it_is_waited_for_however_much_is_queued(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an engine moves the schedule on just when it is to be paused."""
    body = Body(app)
    app.schedules.add("nightly", "every 1s", body.task)
    run = app.schedules.trigger("nightly")
    held: list[bool] = []

    async def prepare(container: Container) -> None:
        engine, now = container.make_engine(), container.clock.now()
        await engine.prepare(takes_work=False)
        claimed = await container.store.runs.claim_runs(Claim(engine.id, now, now, 1, ("body",), '["body"]'))
        assert [one.id for one in claimed.runs] == [run.id]
        schedule = await container.store.schedules.get_schedule("nightly")
        assert schedule is not None
        await container.store.runs.insert_runs([new_run(schedule_id=schedule.id, ready_at=now) for _ in range(1_005)])
        pause_schedule = container.store.schedules.pause_schedule

        async def moved_once(id: ScheduleId, version: int, hold: Pause, now: Micros) -> bool:
            held.append(await pause_schedule(id, version if held else version + 1, hold, now))
            return held[-1]

        monkeypatch.setattr(container.store.schedules, "pause_schedule", moved_once)

    app._host.run(prepare)
    begun = datetime.now(UTC)
    with pytest.raises(Conflict, match=f"run {run.id} of it was told to stop"):
        app.schedules.remove("nightly")
    assert held == [False, True]
    due = app.schedules.get("nightly").next_run_at
    assert due is not None
    assert due >= begun + timedelta(seconds=2)
    assert app.runs.list(schedule="nightly", state="queued") == []


@on_both
def test_a_task_may_remove_its_own_schedule(app: Ostinato) -> None:
    done = threading.Event()

    @app.task("last", retry=0)
    def last() -> None:
        app.schedules.remove("nightly")
        done.set()

    app.start()
    app.schedules.add("nightly", "every 1h", last)
    app.schedules.trigger("nightly")
    assert done.wait(60)


STUBBORN = """
import asyncio
import os
from dataclasses import replace
from pathlib import Path

from ostinato import Ostinato
from ostinato.tuning import Tuning

app = Ostinato("sqlite:///jobs.db")
app.settings = replace(app.settings, tuning=Tuning(function_stop_seconds=0.1, removal_stop_seconds=2.0))


@app.task("body", retry=0)
async def body():
    with Path("bodies").open("a") as file:
        file.write("in\\n")
    while not Path("open").exists():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass
    with Path("bodies").open("a") as file:
        file.write("out\\n")
"""


@pytest.mark.timeout(180)
def test_the_command_line_names_what_goes_on_in_a_worker_and_a_restart_ends_it(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN + HASTY)
    bodies = tmp_path / "bodies"
    reader = Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}")
    database = ("--db", f"sqlite:///{tmp_path / 'jobs.db'}")
    with cli.start("worker", "--app", "stubborn:app", *database, name="worker") as worker:
        eventually(reader.nodes.list, "the worker is there")
        (node,) = (node.id for node in reader.nodes.list())
        reader.schedules.add("nightly", "every 1h", "body")
        run = reader.schedules.trigger("nightly").id
        eventually(bodies.exists, "it runs")

        # Its node hears of it and gives it up in its own time: the removal then finds what goes on.
        cli.ok("run", "cancel", str(run), *database)
        eventually(lambda: reader.runs.get(run).ended, "it is given up", 60)
        goes_on = f"run {run} was given up and its code still runs on node {node}"
        refused = cli("schedule", "rm", "nightly", "--yes", "--app", "stubborn:app", *database)
        assert refused.code == 1
        assert goes_on in " ".join(refused.err.split())
        assert goes_on in " ".join(cli("doctor", *database).out.split())
        shown = cli.ok("run", "show", str(run), *database).out
        assert f"given up: its code still runs on node {node}" in " ".join(shown.split())

        removed = cli.ok("schedule", "rm", "nightly", "--yes", "--force", "--app", "stubborn:app", *database)
        assert f"the work of run {run} was told to stop and is still running" in " ".join(removed.err.split())
        reader.schedules.add("nightly", "every 1h", "body", overlap="queue_all")
        waiting = reader.schedules.trigger("nightly").id
        assert goes_on in " ".join(cli.ok("why", "nightly", *database).out.split())
        assert (reader.runs.get(waiting).state, bodies.read_text()) == ("queued", "in\n")
        worker.signal(signal.SIGKILL)
        worker.wait()

    (tmp_path / "open").touch()
    with cli.start("worker", "--app", "stubborn:app", *database, name="next"):
        # The old node must be known for lost first.
        eventually(lambda: reader.runs.get(waiting).state == "succeeded", "a restart frees the name", 110)
    assert bodies.read_text() == "in\nin\nout\n"
    reader.stop()
