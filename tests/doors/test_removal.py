"""Removing a schedule while it runs: its work is stopped first, or somebody says that it goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ostinato import Ostinato
from ostinato.config import Settings
from ostinato.errors import Conflict, NotFound
from ostinato.execution import runner
from ostinato.service import removal
from ostinato.stores.base import Claim
from ostinato.wiring import House
from tests.doors.command_line import eventually


@pytest.fixture
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ostinato]:
    db = f"sqlite:///{tmp_path / 'jobs.db'}" if request.param == "file" else request.getfixturevalue("postgres_url")
    app = Ostinato(settings=replace(Settings(), db=db, tz="UTC"))
    yield app
    app.stop(grace=0)


on_both = pytest.mark.parametrize("app", ["file", "postgres"], indirect=True)


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
def test_what_does_not_end_keeps_its_schedule_and_is_named(app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "STOP_SECONDS", 0.2)
    monkeypatch.setattr(runner, "STOP_SECONDS", 3_600)  # its node does not give it up meanwhile
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
    body.may_end.set()


@on_both
def test_a_run_of_a_lost_node_holds_up_no_removal(app: Ostinato) -> None:
    """Nobody is there to stop it, and nothing of it runs."""
    body = Body(app)
    app.schedules.add("nightly", "every 1h", body.task)
    app.schedules.trigger("nightly")

    async def claim(house: object) -> int:
        from ostinato.clock import SECOND
        from ostinato.models.ids import NodeId
        from ostinato.stores.base import Claim

        store, now = house.store, house.clock.now()  # type: ignore[attr-defined]
        claimed = await store.runs.claim_runs(Claim(NodeId("gone"), now, now + SECOND, 1, ("body",), '["body"]'))
        return len(claimed.runs)

    assert app._home.run(claim) == 1
    assert list(app.schedules.remove("nightly")) == []


@on_both
def test_a_run_of_a_process_that_is_no_engine_is_waited_for_too(app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `ostinato exec` is one: it has a lease and no slots."""
    monkeypatch.setattr(removal, "STOP_SECONDS", 0.2)
    body = Body(app)
    app.schedules.add("nightly", "every 1h", body.task)
    run = app.schedules.trigger("nightly")

    async def claim(house: House) -> int:
        engine = house.make_engine()
        await engine.prepare(takes_work=False)
        now = house.clock.now()
        return len((await house.store.runs.claim_runs(Claim(engine.id, now, now, 1, ("body",), '["body"]'))).runs)

    assert app._home.run(claim) == 1
    with pytest.raises(Conflict, match=f"run {run.id} of it was told to stop"):
        app.schedules.remove("nightly")


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
