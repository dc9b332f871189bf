"""A file that somebody else has locked: who reads goes on, who writes waits for a bounded time and learns why."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ostinato.errors import StoreUnavailable
from ostinato.models.access import NewToken, Role
from ostinato.models.lane import DEFAULT_LANES
from ostinato.models.run import RunFilter
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.stores.sqlite.waiting import LockWait
from ostinato.testing.store_suite.builders import NOW, new_run
from ostinato.tuning import Tuning

HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute(sys.argv[2])
database.execute("SELECT count(*) FROM sqlite_master").fetchall()
print("locked", flush=True)
sys.stdin.readline()
"""


@contextmanager
def locked(path: Path, statement: str = "BEGIN EXCLUSIVE") -> Iterator[None]:
    """Another process holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), statement], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield
    finally:
        process.communicate("end\n", timeout=30)


@pytest.fixture
def path(tmp_path: Path, runner: asyncio.Runner) -> Path:
    """A database that was used before."""
    store = SqliteStore(str(tmp_path / "jobs.db"))
    runner.run(store.open())
    runner.run(store.lanes.ensure_lanes(DEFAULT_LANES, []))
    runner.run(store.close())
    return tmp_path / "jobs.db"


SHORT = Tuning(sqlite_lock_seconds=1.0, sqlite_lock_warning_seconds=0.2, sqlite_migration_seconds=1.5)


async def test_opening_and_reading_take_no_lock(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with locked(path):
        store = SqliteStore(str(path))
        await store.open()
        await store.lanes.ensure_lanes(DEFAULT_LANES, ["main"])
        assert await store.runs.list_runs(RunFilter()) == []
        assert await store.nodes.list_nodes(NOW) == []
        assert await store.upkeep.check() == []
        watch = await store.watch()
        await watch.close()
        await store.close()
    assert caplog.records == []


async def test_a_lock_that_somebody_keeps_is_told_with_how_to_find_him(path: Path) -> None:
    async def writes() -> tuple[str, str, str | None]:
        (found,) = [remark for remark in await store.upkeep.remarks() if remark.check == "writes"]
        return found.status, found.text, found.fix

    store = SqliteStore(str(path), SHORT)
    await store.open()
    with locked(path, "BEGIN IMMEDIATE"):
        status, text, fix = await writes()
    assert status == "warn"
    assert text.startswith(f"another process held the lock of {path} for all of the 0.2 s")
    assert fix is not None
    assert f"'fuser {path}' or 'lsof {path}'" in fix
    assert (await writes())[0] == "ok"
    await store.close()


async def test_a_file_that_is_written_all_the_time_is_not_locked(path: Path) -> None:
    """Its lock may be taken each time that one looks, but by one short commit after the other."""
    store = SqliteStore(str(path), SHORT)
    await store.open()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        waits = LockWait.__call__

        def committing(self: LockWait, tries: int) -> bool:
            if tries == 0:
                writer.execute("UPDATE lanes SET max_running = max_running + 1")
                writer.execute("COMMIT")
                writer.execute("BEGIN IMMEDIATE")
            return waits(self, tries)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LockWait, "__call__", committing)
            found = await store.upkeep.remarks()
        writer.execute("ROLLBACK")
    assert [remark.status for remark in found if remark.check == "writes"] == ["ok"]
    await store.close()


async def test_a_migration_that_waited_says_for_how_long(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    with locked(path):
        store = SqliteStore(str(path), SHORT)
        with pytest.raises(StoreUnavailable, match=r"held the lock of .* for 1\.5 s"):
            await store.open()
        await store.close()


async def test_a_request_is_let_in_though_its_use_cannot_be_noted(path: Path) -> None:
    store = SqliteStore(str(path), Tuning(sqlite_lock_seconds=600.0))
    await store.open()
    await store.access.put_token(NewToken("script", Role.VIEWER, "me", "hash", None), NOW)
    with locked(path):
        token = await store.access.find_token("hash", NOW)
        assert token is not None
        assert token.used_at is None
    await store.close()


async def test_every_call_that_writes_ends_in_its_own_time(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore(str(path), SHORT)
    await store.open()

    async def enqueue() -> float:
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable, match=rf"another process held the lock of {path} for 1 s.*'fuser {path}'"):
            await store.runs.insert_runs([new_run()])
        return time.monotonic() - begun

    with locked(path), caplog.at_level(logging.WARNING):
        calls = []
        for _ in range(30):  # they come one after the other, so that several groups wait behind each other
            calls.append(asyncio.ensure_future(enqueue()))
            await asyncio.sleep(0.02)
        waited = await asyncio.gather(*calls)
    # Thirty calls that are retried one by one would take thirty times as long.
    assert max(waited) < 15
    assert min(waited) >= 1.0
    assert f"waiting for the lock of {path}: another process holds it" in caplog.text
    (id,) = await store.runs.insert_runs([new_run()])
    assert [run.id for run in await store.runs.list_runs(RunFilter())] == [id]
    await store.close()


async def test_what_was_given_up_is_not_written_later(path: Path) -> None:
    store = SqliteStore(str(path), SHORT)
    await store.open()
    with locked(path):
        answers = await asyncio.gather(*(store.runs.insert_runs([new_run()]) for _ in range(5)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 5
    assert await store.runs.list_runs(RunFilter()) == []
    await store.close()


async def test_who_came_late_is_served_when_the_lock_is_free(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(str(path))
    await store.open()
    began = threading.Event()
    sleep = time.sleep

    def told(seconds: float) -> None:
        began.set()
        sleep(seconds)

    monkeypatch.setattr("ostinato.stores.sqlite.waiting.time.sleep", told)
    with locked(path):
        call = asyncio.ensure_future(store.runs.insert_runs([new_run()]))
        assert await asyncio.to_thread(began.wait, 30)
    assert len(await call) == 1
    await store.close()


async def test_a_file_that_somebody_has_for_himself_cannot_be_read_and_says_so(path: Path) -> None:
    with locked(path, "PRAGMA locking_mode = EXCLUSIVE"):
        store = SqliteStore(str(path), SHORT)
        with pytest.raises(StoreUnavailable, match="another process held the lock"):
            await store.open()
        await store.close()
