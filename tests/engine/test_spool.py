"""The spool: what a stopping node could not write, because the database was away, is written by the next start."""

from __future__ import annotations

import logging
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, RunContext, RunState
from ostinato.announcer import Announcer
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.engine.spool import Spool, _read, spool_prefix
from ostinato.errors import StoreUnavailable
from ostinato.models.ids import NodeId, RunId
from ostinato.models.output import OutputPart
from ostinato.models.project import Conversation
from ostinato.models.run import Finish
from ostinato.models.states import Cause
from ostinato.testing import FakeClock
from ostinato.tuning import Tuning
from tests.engine.conftest import PATIENCE, Gate, MakeApp, engine_of, eventually, on_shared


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def tuning() -> Tuning:
    return Tuning(write_again_seconds=0.01)


class Outage:
    """Takes the database away from the finishes of one engine, and gives it back."""

    def __init__(self, engine: Engine) -> None:
        self.tries = 0
        self.is_over = False
        self._finish = engine.recorder._runs.finish_runs
        self._engine = engine
        self._engine.recorder._runs.finish_runs = self._try  # type: ignore[method-assign, assignment]
        self._leave = engine.store.nodes.leave
        engine.store.nodes.leave = self._away  # type: ignore[method-assign]

    async def _try(self, *arguments: Any) -> Any:
        if not self.is_over:
            self.tries += 1
            raise StoreUnavailable("the server is away")
        return await self._finish(*arguments)

    async def _away(self, id: Any) -> None:
        if not self.is_over:
            raise StoreUnavailable("the server is away")
        await self._leave(id)


def files_of(db: str) -> list[Path]:
    prefix = spool_prefix(replace(Settings(), db=db))
    assert prefix is not None
    return sorted(prefix.parent.glob(f"{prefix.name}*")) if prefix.parent.is_dir() else []


def ended_during_an_outage(app: Ostinato, gate: Gate, grace: float = 0) -> int:
    """A run that succeeds, once, on a node that is stopped while the database is away."""

    @app.task("job", retry=0)
    def job(run: RunContext) -> str:
        gate.wait()
        run.log("printed last")
        run.count("copied", 3)
        return "done"

    app.start()
    run = job.enqueue()
    gate.entered()
    outage = Outage(engine_of(app))
    gate.open()
    eventually(lambda: outage.tries)
    app.stop(grace=grace)
    return run.id


@on_shared
def test_finishes_are_spooled_and_the_next_start_writes_them(
    shared_db: str, make_app: MakeApp, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    id = ended_during_an_outage(make_app(shared_db), gate)
    (path,) = files_of(shared_db)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"spooled 1 finish to {path}; the next start here reads it: " in caplog.text

    other = make_app(shared_db)
    assert other.runs.get(id).state is RunState.RUNNING
    other.start()
    ended = other.runs.get(id)
    assert (ended.state, ended.result, ended.totals) == (RunState.SUCCEEDED, "done", {"copied": 3})
    assert "printed last" in other.runs.output(id)
    assert files_of(shared_db) == []
    assert "wrote 1 finish that" in caplog.text


@on_shared
def test_a_database_that_comes_back_within_the_grace_gets_its_finishes(
    shared_db: str, make_app: MakeApp, gate: Gate
) -> None:
    app, reader = make_app(shared_db), make_app(shared_db)
    job = app.task("job", retry=0)(lambda: gate.passed("done"))
    app.start()
    run = job.enqueue()
    gate.entered()
    outage = Outage(engine_of(app))
    stopping = threading.Thread(target=app.stop, args=(PATIENCE,))
    stopping.start()
    gate.open()
    eventually(lambda: outage.tries > 20)  # more often than it would be tried in a moment
    outage.is_over = True
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert reader.runs.get(run.id).result == "done"
    assert files_of(shared_db) == []
    assert reader.nodes.list() == []


@on_shared
def test_a_force_spools_at_once(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(shared_db)
    job = app.task("job", retry=0)(lambda: gate.passed("done"))
    app.start()
    run = job.enqueue()
    gate.entered()
    outage = Outage(engine_of(app))
    stopping = threading.Thread(target=app.stop, args=(3_600,))
    stopping.start()
    gate.open()
    eventually(lambda: outage.tries > 3)
    app.force()
    stopping.join(PATIENCE)
    assert not stopping.is_alive(), "it waits for the end of the grace"
    assert len(files_of(shared_db)) == 1
    other = make_app(shared_db).start()
    assert other.runs.get(run.id).result == "done"


@on_shared
def test_a_finish_whose_run_was_rescued_meanwhile_is_dropped_and_told(
    shared_db: str, make_app: MakeApp, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    id = ended_during_an_outage(make_app(shared_db), gate)
    (path,) = files_of(shared_db)
    aside = path.rename(path.with_name("aside"))
    other = make_app(shared_db)

    async def rescue(engine: Engine) -> None:
        (stale,) = await engine.store.nodes.signs_of_life()
        runs = (await engine.store.runs.stale_runs([stale], engine.clock.now())).runs
        assert [run.id for run in runs] == [id]
        await engine.store.runs.finish_runs([_failed(engine, run) for run in runs])

    from ostinato.engine.rescuer import _crashed

    def _failed(engine: Engine, run: Any) -> Any:
        return _crashed(run, engine.clock.now())

    async def alone(container: Any) -> None:
        await rescue(container.make_engine())

    other._host.run(alone)
    assert other.runs.get(id).state is RunState.FAILED
    aside.rename(path)
    other.start()
    after = other.runs.get(id)
    assert (after.state, after.result) == (RunState.FAILED, None)
    assert "dropped 1 spooled finish, already written or rescued: run " in caplog.text
    assert files_of(shared_db) == []


@on_shared
@pytest.mark.parametrize("content", [b"", b'{"node": "x", "finish', b'{"node": "x", "finishes": [{"id": 1}]}'])
def test_an_unreadable_file_is_put_aside_and_never_holds_up_a_start(
    shared_db: str, make_app: MakeApp, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = spool_prefix(replace(Settings(), db=shared_db))
    assert prefix is not None
    prefix.parent.mkdir(parents=True, exist_ok=True)
    path = prefix.with_name(f"{prefix.name}x.json")
    path.write_bytes(content)
    path.chmod(0o600)
    app = make_app(shared_db)
    job = app.task("job")(lambda: "done")
    app.start()
    assert job.enqueue().wait(timeout=60).result == "done"
    assert [found.name for found in files_of(shared_db)] == [f"{path.name}.unreadable"]
    assert "are set aside" in caplog.text


@on_shared
@pytest.mark.parametrize("trick", ["link", "group"])
def test_what_another_user_could_have_written_is_not_believed(
    shared_db: str, make_app: MakeApp, gate: Gate, tmp_path: Path, trick: str
) -> None:
    id = ended_during_an_outage(make_app(shared_db), gate)
    (path,) = files_of(shared_db)
    if trick == "link":
        os.rename(path, tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.chmod(0o620)
    other = make_app(shared_db).start()
    assert other.runs.get(id).state is RunState.RUNNING


@on_shared
def test_a_file_of_another_user_is_left_to_that_user(
    shared_db: str, make_app: MakeApp, gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    id = ended_during_an_outage(make_app(shared_db), gate)
    before = files_of(shared_db)
    with monkeypatch.context() as patch:
        patch.setattr("ostinato.engine.spool.owners", lambda: {54_321})
        other = make_app(shared_db)
        assert other.with_engine(_write_spool) == 0
        other.stop(grace=0)
    assert files_of(shared_db) == before
    assert "belong to another user" in caplog.text
    own = make_app(shared_db).start()
    assert (own.runs.get(id).state, files_of(shared_db)) == (RunState.SUCCEEDED, [])


@on_shared
def test_another_database_at_the_same_address_takes_nothing(
    shared_db: str, make_app: MakeApp, gate: Gate, tmp_path: Path
) -> None:
    """The same run, the same token; but no node of that name runs it there."""
    ended_during_an_outage(make_app(shared_db), gate)
    (path,) = files_of(shared_db)
    elsewhere = f"sqlite:///{tmp_path / 'other.db'}"
    prefix = spool_prefix(replace(Settings(), db=elsewhere))
    assert prefix is not None
    path.rename(prefix.with_name(f"{prefix.name}x.json"))
    app = make_app(elsewhere)
    second = Gate()
    job = app.task("job", retry=0)(second.wait)
    app.start()
    run = job.enqueue()
    second.entered()
    written = app.with_engine(_write_spool)
    assert (written, app.runs.get(run.id).state) == (0, RunState.RUNNING)
    second.open()


async def _write_spool(engine: Engine) -> int:
    return await engine.spool.write()


def test_where_it_is(tmp_path: Path, state_home: Path) -> None:
    def place(db: str) -> Path | None:
        return spool_prefix(replace(Settings(), db=db))

    assert place(f"sqlite:///{tmp_path}/jobs.db") == tmp_path / "jobs.db.spool-"
    (tmp_path / "link.db").symlink_to(tmp_path / "jobs.db")
    assert place(f"sqlite:///{tmp_path}/link.db") == tmp_path / "jobs.db.spool-"
    assert place("sqlite://:memory:") is None
    first, second = place("postgresql://me:secret@host/a"), place("postgresql://me:changed@host/a")
    assert first == second
    assert first is not None
    assert first.parent == state_home / "ostinato"
    assert place("postgresql://me@host/b") != first


def test_a_spooled_finish_is_read_back_as_it_was(tmp_path: Path) -> None:
    spool = Spool(None, tmp_path / "jobs.db.spool-", Announcer(), FakeClock())  # type: ignore[arg-type]  # nothing is written
    finish = Finish(
        RunId(7),
        2,
        RunState.FAILED,
        started_at=5,
        finished_at=9,
        cause=Cause.TIMED_OUT,
        reason="it took too long",
        output=[OutputPart("last words\n")],
        conversation=Conversation("group:shop", "abc", "shop"),
    )
    path = spool.keep(NodeId("n"), [finish])
    assert path is not None
    node, (read,) = _read(path)
    assert (node, read) == ("n", finish)
    assert (type(read.state), type(read.cause)) == (RunState, Cause)
