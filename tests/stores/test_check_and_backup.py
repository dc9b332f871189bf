"""`db check` finds what breaks the ledger, and `db backup` writes a whole copy of one state, private, or nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from pathlib import Path

import apsw
import pytest

from ostinato.errors import Conflict, StoreError
from ostinato.models.states import Trigger
from ostinato.stores.base import Store
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import NOW, beat, claim_one, finish, new_run, plan, put
from tests.databases import LIGHT
from tests.stores.places import StorePlace, opened, raw


def nobody(done: int, total: int) -> None:
    """Who is told of progress, and does not care."""


async def test_a_ledger_that_was_used_has_nothing_wrong(store: Store) -> None:
    id = await put(store)
    await store.nodes.renew(beat())
    await store.schedules.record_fires([plan(id)], NOW)
    await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL)] * 3)
    await store.runs.finish_runs([finish(await claim_one(store, room=1))])
    await claim_one(store, room=1)
    assert await store.upkeep.check() == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE runs SET node = NULL", "running without a node or a token: 1"),
        ("UPDATE runs SET token = 0", "running without a node or a token: 1"),
        ("UPDATE runs SET node = 'gone'", "running on a node that does not exist: 1"),
        ("UPDATE runs SET lane = 'nowhere'", "of a lane that does not exist: 1"),
        ("DELETE FROM migrations WHERE version = (SELECT max(version) FROM migrations)", "run 'ostinato db migrate'"),
    ],
)
async def test_what_breaks_the_ledger_is_named(store: Store, statement: str, found: str) -> None:
    await store.nodes.renew(beat())
    await store.runs.insert_runs([new_run()])
    await claim_one(store)
    assert await store.upkeep.check() == []
    await raw(store, statement)
    assert any(found in problem for problem in await store.upkeep.check())


async def test_of_many_rows_a_few_are_named(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 9)
    await raw(store, "UPDATE runs SET lane = 'nowhere'")
    assert await store.upkeep.check() == ["runs of a lane that does not exist: 1, 2, 3, 4, 5 and more"]


async def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(str(path))
    await store.open()
    await store.runs.insert_runs([new_run(work="x" * 3000) for _ in range(500)])
    await store.close()
    data = bytearray(path.read_bytes())
    middle = len(data) // 4096 // 2  # far from the schema, which is read when the file is opened
    for page in range(middle, middle + 30):
        data[page * 4096 : page * 4096 + 40] = b"\xff" * 40
    path.write_bytes(data)
    async with opened(SqliteStore(str(path))) as store:
        assert any("damaged" in problem for problem in await store.upkeep.check())


async def test_a_row_without_its_parent_is_found(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    with_parents_off = apsw.Connection(str(tmp_path / "jobs.db"))
    with_parents_off.execute("INSERT INTO output (run_id, part, text) VALUES (77, 1, ' lost')")
    with_parents_off.close()
    try:
        assert any("output refers to a row of runs" in problem for problem in await store.upkeep.check())
    finally:
        await store.close()


@pytest.fixture
def file_store(tmp_path: Path, runner: asyncio.Runner) -> SqliteStore:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    runner.run(store.open())
    runner.run(store.lanes.ensure_lanes({"main": 30}, []))
    return store


async def test_a_backup_is_whole_private_and_of_one_state_while_others_write(
    file_store: SqliteStore, tmp_path: Path
) -> None:
    target = str(tmp_path / "copy.db")
    await file_store.runs.insert_runs([new_run(work="x" * 3000) for _ in range(3000)])
    loop, heard = asyncio.get_running_loop(), []
    written = threading.Event()

    def told(done: int, total: int) -> None:
        heard.append((done, total))
        if len(heard) == 1:  # between two steps of the copy somebody writes a lot
            asyncio.run_coroutine_threadsafe(write(), loop)
            assert written.wait(60)

    async def write() -> None:
        await file_store.runs.insert_runs([new_run(work="y" * 3000) for _ in range(500)])
        written.set()

    size = await file_store.upkeep.back_up(target, told, overwrite=False)
    assert len(heard) > 1
    assert heard[-1][0] == heard[-1][1]
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
    assert os.stat(target).st_size == size
    assert [name for name in os.listdir(tmp_path) if "partial" in name] == []
    await file_store.close()
    async with opened(SqliteStore(target)) as copy:
        assert await raw(copy, "SELECT count(*) FROM runs") == [(3000,)]
        assert await copy.upkeep.check() == []


async def test_a_backup_overwrites_only_when_it_is_told_to(file_store: SqliteStore, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(Conflict, match=r"already exists.*--force"):
        await file_store.upkeep.back_up(str(target), nobody, overwrite=False)
    assert target.read_text() == "precious"
    (tmp_path / "copy.db-wal").touch()
    with pytest.raises(Conflict, match="in use"):
        await file_store.upkeep.back_up(str(target), nobody, overwrite=True)
    (tmp_path / "copy.db-wal").unlink()
    await file_store.upkeep.back_up(str(target), nobody, overwrite=True)
    assert target.read_bytes().startswith(b"SQLite format 3")
    await file_store.close()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
async def test_a_backup_needs_no_hard_links(
    file_store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    target = tmp_path / "copy.db"

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("ostinato.stores.sqlite.backup.os.link", refuse)
    assert await file_store.upkeep.back_up(str(target), nobody, overwrite=False) == os.stat(target).st_size
    assert not any("partial" in name for name in os.listdir(tmp_path))

    def told(done: int, total: int) -> None:
        (tmp_path / "another.db").touch()

    with pytest.raises(Conflict, match="just made by another process"):
        await file_store.upkeep.back_up(str(tmp_path / "another.db"), told, overwrite=False)
    assert os.stat(tmp_path / "another.db").st_size == 0


@pytest.mark.parametrize("name", ["jobs.db", "jobs.db-wal", "link.db"])
async def test_a_backup_never_overwrites_its_own_database(file_store: SqliteStore, tmp_path: Path, name: str) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "jobs.db")
    with pytest.raises(Conflict, match="is the database itself"):
        await file_store.upkeep.back_up(str(tmp_path / name), nobody, overwrite=True)
    assert file_store.fault is None
    await file_store.close()


async def test_a_backup_that_cannot_be_written_leaves_nothing(file_store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        await file_store.upkeep.back_up(str(tmp_path / "missing" / "copy.db"), nobody, overwrite=False)

    def fail(done: int, total: int) -> None:
        raise RuntimeError("the caller has had enough")

    with pytest.raises(RuntimeError, match="enough"):
        await file_store.upkeep.back_up(str(tmp_path / "copy.db"), fail, overwrite=False)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("copy")]
    await file_store.close()


@pytest.mark.parametrize("place", LIGHT, indirect=True)
async def test_what_is_no_file_says_how_to_copy_it(store: Store, place: StorePlace, tmp_path: Path) -> None:
    says = "pg_dump --schema=ostinato" if place.kind == "postgres" else "in memory cannot be copied"
    with pytest.raises(StoreError, match=says):
        await store.upkeep.back_up(str(tmp_path / "copy"), nobody, overwrite=False)
