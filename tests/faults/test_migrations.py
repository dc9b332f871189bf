"""A process that is killed during a migration: the database is as it was before, and the next one migrates it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from ostinato.stores.sqlite.database import MIGRATIONS
from ostinato.testing.store_suite.builders import claim
from tests.databases import SHARED
from tests.doors.command_line import PROGRAM
from tests.stores.places import PostgresPlace, SqlitePlace, StorePlace, opened, raw
from tests.stores.test_migrations import OLD_RUN, OLD_SCHEDULE, bring_to

OLD = 2
LAST = len(MIGRATIONS) - OLD
"""How many migrations are pending."""


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePlace:
    if request.param == "sqlite":
        return SqlitePlace(str(tmp_path / "jobs.db"))
    return PostgresPlace(request.getfixturevalue("postgres_url"), "ostinato")


def url(place: StorePlace) -> str:
    return f"sqlite:///{place.path}" if isinstance(place, SqlitePlace) else str(getattr(place, "url", ""))


def migrate(place: StorePlace, failpoints: str = "") -> int:
    """The exit code of `ostinato db migrate`."""
    return subprocess.run(
        [*PROGRAM, "db", "migrate", "--db", url(place)],
        check=False,
        capture_output=True,
        env={**os.environ, "OSTINATO_FAILPOINTS": failpoints},
        timeout=60,
    ).returncode


@pytest.mark.parametrize("applied", [LAST // 2, LAST])
def test_a_kill_during_a_migration_leaves_the_old_database_and_the_next_start_migrates_it(
    place: StorePlace, applied: int
) -> None:
    bring_to(place, OLD)
    yes = "1" if place.kind == "sqlite" else "true"
    place.execute(OLD_SCHEDULE.replace("{yes}", yes) + OLD_RUN % ("queued", 2, "NULL", 0, 0, "NULL"))
    assert migrate(place, f"migration.applied@{applied}=kill") == -signal.SIGKILL
    # None of its steps was committed.
    place.execute("INSERT INTO migrations VALUES (3, 'is not there', 0); DELETE FROM migrations WHERE version = 3;")
    assert migrate(place) == 0
    asyncio.run(goes_on(place))


async def goes_on(place: StorePlace) -> None:
    async with opened(place.store()) as store:
        assert await raw(store, "SELECT count(*) FROM migrations") == [(len(MIGRATIONS),)]
        assert await store.upkeep.check() == []
        await store.lanes.ensure_lanes({"main": 1}, [])
        assert [run.schedule for run in (await store.runs.claim_runs(claim())).runs] == ["report"]
