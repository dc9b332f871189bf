"""A file that is deleted or replaced while it is open is noticed, also behind a link; what is unknown is no loss."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ostinato.errors import StoreError
from ostinato.models.lane import DEFAULT_LANES
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import new_run


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(str(path))
    await store.open()
    await store.lanes.ensure_lanes(DEFAULT_LANES, [])
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize("lost", ["real.db", "real.db-wal", "link.db"])
async def test_what_is_deleted_behind_a_link_is_noticed(tmp_path: Path, lost: str) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    async with opened(tmp_path / "link.db") as store:
        await store.runs.insert_runs([new_run()])
        assert store.fault is None
        (tmp_path / lost).unlink()
        with pytest.raises(StoreError, match="was deleted while it was open here"):
            await store.runs.insert_runs([new_run()])
        assert store.fault is not None


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
async def test_a_file_that_cannot_be_looked_at_for_a_while_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    async with opened(tmp_path / "jobs.db") as store:

        def refuse(path: Any) -> os.stat_result:
            raise OSError(number, os.strerror(number), path)

        with monkeypatch.context() as away:
            away.setattr("ostinato.stores.sqlite.identity.os.stat", refuse)
            assert store.fault is None
        assert len(await store.runs.insert_runs([new_run()])) == 1


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "ostinato.stores.identity"]


async def test_a_loss_is_found_for_all_who_have_the_file_open_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where more of it goes afterwards."""
    path = tmp_path / "jobs.db"
    async with opened(path) as engine, opened(path) as feed:
        (tmp_path / "jobs.db-wal").unlink()
        assert "jobs.db-wal was deleted" in (engine.fault or "")
        os.replace(path, tmp_path / "away.db")
        assert engine.fault == feed.fault
    assert len(told(caplog)) == 1


async def test_a_file_that_is_opened_again_is_not_lost_and_its_own_loss_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also while somebody has the lost one open, and where the new one has its number: here it is the same file."""
    path, files = tmp_path / "jobs.db", ("jobs.db", "jobs.db-wal", "jobs.db-shm")
    away = tmp_path / "away"
    away.mkdir()
    async with opened(path) as first:
        for name in files:
            os.replace(tmp_path / name, away / name)
        assert "was deleted" in str(first.fault)
        for name in files:
            os.replace(away / name, tmp_path / name)
        async with opened(path) as second:
            assert [bool(store.fault) for store in (first, second)] == [True, False]
            for name in files:
                (tmp_path / name).unlink()
            assert "was deleted" in str(second.fault)
    assert len(told(caplog)) == 2
