"""What each run costs in SQLite: statements stay prepared, and an end finds its row by the id."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from ostinato.stores.sqlite.batches import ROWS
from ostinato.stores.sqlite.finishes import _END, _NO_END
from ostinato.stores.sqlite.query import fetch
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import NOW, claim, claim_one, finish, new_run, put, scheduled_run

COUNT = 100


@pytest.fixture
def in_file(tmp_path: Path, runner: asyncio.Runner) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    runner.run(store.open())
    runner.run(store.lanes.ensure_lanes({"wide": COUNT}, []))
    yield store
    runner.run(store.close())


async def prepared(store: SqliteStore) -> int:
    """How many statements the writer has prepared so far."""

    def count(connection: apsw.Connection) -> int:
        return int(connection.cache_stats()["misses"])

    return await store._database.submit(count)


@pytest.mark.parametrize("kind", ["enqueued", "scheduled"])
async def test_what_a_hundred_rows_need_stays_prepared(in_file: SqliteStore, kind: str) -> None:
    """apsw puts a statement back into the next place of its cache, for each row, and drops whoever is there."""
    id = await put(in_file)
    counts: list[int] = []
    for turn in range(4):
        due = range(NOW + turn * COUNT, NOW + (turn + 1) * COUNT)
        if kind == "enqueued":
            await in_file.runs.insert_runs([new_run(lane="wide", due_at=at) for at in due])
        else:
            await in_file.runs.insert_runs([scheduled_run(id, at, lane="wide") for at in due])
        claimed = await in_file.runs.claim_runs(claim(now=NOW + 9 * COUNT, room=COUNT))
        assert len(claimed.runs) == COUNT
        ends = [finish(run, finished_at=NOW + 10 * COUNT, breaks=False) for run in claimed.runs]
        assert list((await in_file.runs.finish_runs(ends)).lost) == []
        counts.append(await prepared(in_file))
    assert counts[1:] == [counts[1]] * 3


async def test_an_end_finds_its_row_by_the_id_whatever_statistics_say(in_file: SqliteStore) -> None:
    """Somebody may ANALYZE the file while little runs: then the index on what runs looks best, and is not."""
    await in_file.runs.insert_runs([new_run(lane="wide")] * COUNT)
    await claim_one(in_file, room=1)

    def plan(connection: apsw.Connection) -> list[str]:
        fetch(connection, "ANALYZE")
        return [row[3] for row in fetch(connection, f"EXPLAIN QUERY PLAN {_END}", _NO_END * ROWS)]

    steps = await in_file._database.submit(plan)
    assert "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)" in steps, steps
