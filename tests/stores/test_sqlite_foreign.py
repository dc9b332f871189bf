"""Other code of the process that uses apsw can freeze it: the log says so, once."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from ostinato.stores.sqlite import locks
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import NOW, beat

TOLD = "open by apsw"


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_foreign_reported", threading.Event())


@pytest.mark.skipif(not locks.are_safe(), reason="SQLite is not hooked here")
async def test_a_beat_tells_once_of_a_file_that_other_code_has_open_by_apsw(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    in_memory = apsw.Connection(":memory:")
    await store.nodes.renew(beat())
    await store.nodes.list_nodes(NOW)  # a reader of ours connects
    await store.nodes.renew(beat())
    assert TOLD not in caplog.text
    other = apsw.Connection(str(tmp_path / "other.db"))
    try:
        for _ in range(2):
            await store.nodes.renew(beat())
        assert caplog.text.count(TOLD) == 1
        assert "other.db" in caplog.text
    finally:
        other.close()
        in_memory.close()
        await store.close()
