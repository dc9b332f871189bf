"""Group commit of SQLite, and what wakes nobody on either database."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import apsw
import pytest

from ostinato.errors import StoreUnavailable
from ostinato.stores.base import Store
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import beat, claim, finish, new_run
from ostinato.testing.store_suite.group_commit import seen
from tests.databases import LIGHT


async def test_a_read_that_nobody_waits_for_any_more_is_not_done(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    opened = threading.Event()
    done: list[str] = []
    busy = [store._database.query(lambda _: opened.wait(60)) for _ in range(2)]
    given_up = store._database.query(lambda _: done.append("given up"))
    wanted = store._database.query(lambda _: done.append("wanted"))
    given_up.cancel()
    opened.set()
    await asyncio.gather(*busy, wanted)
    await store.close()
    assert done == ["wanted"]


async def test_a_file_that_cannot_be_read_ends_the_wait_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    watch = await store.watch()
    try:

        def broken(*_: object) -> int:
            raise apsw.IOError("the disk is gone")

        monkeypatch.setattr("ostinato.stores.sqlite.watch.fetch_value", broken)
        with pytest.raises(StoreUnavailable, match="the disk is gone"):
            await seen(watch)
    finally:
        await watch.close()
        await store.close()


# An SQLite file says only that somebody wrote, so there a claim may wake its own engine once more than needed.
@pytest.mark.parametrize("place", LIGHT, indirect=True)
async def test_heartbeats_claims_and_ends_alone_wake_nobody(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 2)
    watch = await store.watch()
    try:
        run, _ = (await store.runs.claim_runs(claim())).runs
        await store.nodes.renew(beat())
        await store.runs.finish_runs([finish(run)])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch.changed(), 0.3)
    finally:
        await watch.close()
