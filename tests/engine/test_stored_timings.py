"""A schedule whose timing an earlier version took and this one refuses: it runs on as it did."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ostinato.errors import TimingError
from ostinato.testing import FakeClock, simulate
from tests.engine.conftest import MakeApp


@pytest.mark.parametrize(
    ("stored", "now", "runs"),
    [
        ("5/60 * * * *", "5 * * * *", 24),
        ("*/90 * * * *", "*/60 * * * *", 24),
        ("0 9/24 * * *", "0 9 * * *", 1),
        # 2026-01-01 is a Thursday: 4 is one for cron, and a Wednesday for Quartz.
        ("0 9 ? * 4-4", "0 9 * * 4-4", 1),
    ],
)
def test_a_schedule_with_a_timing_that_is_refused_by_now_stays_on_and_can_be_edited(
    tmp_path: Path, make_app: MakeApp, fake_clock: FakeClock, stored: str, now: str, runs: int
) -> None:
    path = tmp_path / "jobs.db"
    fake_clock.move_to("2026-01-01T00:01:00Z")
    app = make_app(f"sqlite:///{path}")
    app.task("job")(lambda: None)
    app.schedules.add("old", now, "job")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE schedules SET timing = ?", (stored,))
    simulate(app, lasting="1d")
    found = app.schedules.get("old")
    assert (found.enabled, found.broken, found.timing) == (True, None, stored)
    assert len(app.runs.list(schedule="old", limit=100)) == runs
    assert app.schedules.next("old", 1) == [found.next_run_at]

    assert app.schedules.edit("old", note="kept").timing == now
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE schedules SET timing = ?", (stored,))
    app.schedules.disable("old")
    assert app.schedules.enable("old").broken is None
    assert app.schedules.edit("old", timing=stored, priority=3).timing == now
    with pytest.raises(TimingError):
        app.schedules.add("new", stored, "job")
