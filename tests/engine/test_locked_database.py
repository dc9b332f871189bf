"""A database that somebody keeps locked for longer than anybody waits: nothing is lost, doubled or half written, health
says why nothing is claimed, and all goes on by itself when the lock is gone. Waits are short here; they end alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from ostinato import Ostinato, RunState
from ostinato.errors import OutcomeUnknown, StoreUnavailable
from ostinato.stores.postgres import connection
from ostinato.testing import FakeClock
from tests.conftest import tuned
from tests.engine.conftest import Gate, MakeApp, eventually
from tests.stores.test_sqlite_locked import locked

pytestmark = tuned(service_restart_seconds=0.01, sqlite_lock_seconds=0.3, postgres_beat_seconds=0.3)


@pytest.fixture
def app(db: str, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> Ostinato:
    monkeypatch.setattr(connection, "_LEAST_TRANSACTION_SECONDS", 0.3)
    return make_app(db, lease=timedelta(seconds=0.6))


@contextmanager
def locked_for_writers(url: str) -> Iterator[None]:
    if url.startswith("sqlite"):
        with locked(Path(url.removeprefix("sqlite:///")), "BEGIN IMMEDIATE"):
            yield
        return
    with psycopg.connect(url, options="-c search_path=ostinato") as other:
        other.execute("LOCK TABLE runs, schedules, nodes IN EXCLUSIVE MODE")
        yield


@pytest.mark.parametrize("db", ["sqlite", "postgres"], indirect=True)
def test_while_the_database_is_locked_nothing_is_lost_and_afterwards_it_goes_on(
    app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    executed: list[str] = []

    @app.task("job", retry=0, on_lost_lease="continue")
    def job(name: str = "often") -> str:
        executed.append(name)
        if name == "long":
            gate.wait()
        return "done"

    app.schedules.add("often", "every 1m", job, catch_up="all")
    app.start()
    long, ready = job.enqueue("long"), job.using(delay="30s").enqueue("ready")
    gate.entered()
    with locked_for_writers(app.settings.db):
        fake_clock.advance("5m")
        gate.open()
        with pytest.raises(StoreUnavailable, match="lock") as refused:
            job.enqueue("refused")
        assert not isinstance(refused.value, OutcomeUnknown)
        eventually(lambda: app.health()["services"]["recorder"]["restarts"] >= 2)
        health = app.health()
        assert (health["ok"], health["unwritten"]) == (False, 1)
        assert "lock" in health["paused"]
        assert [run.state for run in app.runs.list()] == [RunState.QUEUED, RunState.RUNNING], "it can be read"
    assert [run.wait(timeout=60).result for run in (long, ready)] == ["done"] * 2
    eventually(lambda: len(app.runs.list(schedule="often")) == 5)
    due = app.runs.list(schedule="often")
    assert {app.runs.wait(run.id, timeout=60).state for run in due} == {RunState.SUCCEEDED}
    assert len({run.due_at for run in due}) == 5
    assert sorted(executed) == ["long", *["often"] * 5, "ready"], "each once"
    eventually(lambda: app.health()["ok"])
