"""Texts that are not UTF-8: SQLite takes them, so a row that has one is shown, found and set aside like any bad row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.errors import StoreError
from ostinato.models.ids import RunId
from ostinato.models.lane import DEFAULT_LANES
from ostinato.models.quarantine import BadRow
from ostinato.models.run import RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState
from ostinato.stores.rules import UNDECODABLE, UNREADABLE
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import NOW, claim, draft, new_run, put, put_many
from tests.stores.places import PostgresPlace, StorePlace, opened, raw

NOT_TEXT = "CAST(x'7bff7d' AS TEXT)"


@pytest.fixture
def store(tmp_path: Path, runner: asyncio.Runner) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "jobs.db"))
    runner.run(store.open())
    runner.run(store.lanes.ensure_lanes(DEFAULT_LANES, []))
    yield store
    runner.run(store.close())


async def set_aside(store: SqliteStore) -> list[BadRow]:
    bad = await store.quarantine.find_bad(100)
    await store.quarantine.set_aside(bad, NOW)
    return bad


async def test_a_run_is_failed_and_listed_and_the_others_are_claimed(store: SqliteStore) -> None:
    bad, fine = await store.runs.insert_runs([new_run(), new_run()])
    await raw(store, f"UPDATE runs SET work = {NOT_TEXT} WHERE id = {bad}")
    with pytest.raises(UnicodeDecodeError):
        await store.runs.claim_runs(claim())
    for brief in (False, True):
        assert {run.id for run in await store.runs.list_runs(RunFilter(brief=brief))} == {bad, fine}
    assert await set_aside(store) == [BadRow("runs", str(bad), UNDECODABLE)]
    assert [run.id for run in (await store.runs.claim_runs(claim())).runs] == [fine]
    shown = await store.runs.get_run(RunId(bad))
    assert shown is not None
    assert (shown.state, shown.reason) == (RunState.FAILED, UNREADABLE + UNDECODABLE)
    (kept,) = await store.quarantine.list_quarantined(10)
    assert json.loads(kept.content)["work"] == "{\ufffd}"
    assert await store.quarantine.find_bad(10) == []


async def test_a_schedule_is_listed_and_fires_nothing_but_what_it_says(store: SqliteStore) -> None:
    await put(store, "bad", next_at=NOW)
    await put(store, "fine", next_at=NOW)
    await raw(store, f"UPDATE schedules SET note = {NOT_TEXT} WHERE name = 'bad'")
    assert {schedule.name for schedule in await store.schedules.list_schedules(ScheduleFilter())} == {"bad", "fine"}
    await raw(store, "UPDATE schedules SET work = CAST(x'7b2261223a22ff227d' AS TEXT) WHERE name = 'bad'")
    with pytest.raises(UnicodeDecodeError):
        await store.schedules.due_schedules(NOW, 10)
    assert [row.table for row in await set_aside(store)] == ["schedules"]
    assert [due.name for due in (await store.schedules.due_schedules(NOW, 10)).schedules] == ["fine"]
    shown = await store.schedules.get_schedule("bad")
    assert shown is not None
    assert shown.broken == UNREADABLE + UNDECODABLE


@pytest.mark.parametrize("column", ["work", "policy", "note"])
async def test_what_is_damaged_of_a_schedule_is_mended_when_it_is_put_again(store: SqliteStore, column: str) -> None:
    await put_many(store, [draft("bad", note="mine"), draft("good")])
    await raw(store, f"UPDATE schedules SET {column} = {NOT_TEXT} WHERE name = 'bad'")
    await store.schedules.put_schedules([draft("bad", note="mine"), draft("good", note="new")], NOW)
    assert [row.reason for row in await store.quarantine.find_bad(10)] == []
    shown = {one.name: one for one in await store.schedules.list_schedules(ScheduleFilter())}
    assert (shown["bad"].note, shown["bad"].broken, shown["good"].note) == ("mine", None, "new")


async def test_the_ends_of_two_texts_are_not_taken_for_one_letter(store: SqliteStore) -> None:
    """x'c3a9' is a letter; half of it at the end of one column and half at the beginning of the next is none."""
    await put(store, "bad")
    texts = [str(name) for (name,) in await raw(store, "SELECT name FROM pragma_table_info('schedules') "
                                                "WHERE type = 'TEXT'")]  # fmt: skip
    before = texts[texts.index("note") - 1]
    await raw(store, f"UPDATE schedules SET {before} = CAST(x'c3' AS TEXT), note = CAST(x'a9' AS TEXT)")
    assert [row.table for row in await store.quarantine.find_bad(10)] == ["schedules"]


@pytest.mark.parametrize("table", ["lanes", "sessions", "nodes", "projects", "tokens", "login_codes"])
async def test_a_row_whose_name_is_not_text_is_found_by_it(store: SqliteStore, table: str) -> None:
    rows = {
        "lanes": f"(name, max_running) VALUES ({NOT_TEXT}, 5)",
        "sessions": f"(key, max_concurrent, sent_at) VALUES ({NOT_TEXT}, 1, 1)",
        "nodes": "(id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, services) "
        f"VALUES ({NOT_TEXT}, 'h', 1, 1, 0, 0, '[]', 1, 1, 1, '{{}}')",
        "projects": f"(name, folder, env, created_at) VALUES ({NOT_TEXT}, '/', '{{}}', 1)",
        "tokens": f"(name, role, owner, hash, created_at) VALUES ({NOT_TEXT}, 'viewer', 'user', 'h', 1)",
        "login_codes": f"(hash, who, role, created_at, expires_at) VALUES ({NOT_TEXT}, 'user', 'viewer', 1, 1)",
    }
    await raw(store, f"INSERT INTO {table} {rows[table]}")
    assert await set_aside(store) == [BadRow(table, "{\ufffd}", UNDECODABLE)]
    assert await store.quarantine.find_bad(10) == []
    assert await store.quarantine.count_quarantined() == 1


async def test_a_row_that_cannot_be_set_aside_keeps_no_other_from_it(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    stuck, bad = await store.runs.insert_runs([new_run(), new_run()])
    await raw(store, f"UPDATE runs SET work = {NOT_TEXT}")
    await raw(store, f"CREATE TRIGGER stuck BEFORE UPDATE ON runs WHEN old.id = {stuck} "
                     "BEGIN SELECT RAISE(ABORT, 'stuck'); END")  # fmt: skip
    found = await store.quarantine.find_bad(10)
    assert [row.row for row in await store.quarantine.set_aside(found, NOW)] == [str(bad)]
    assert f"runs '{stuck}' cannot be quarantined" in caplog.text


async def test_postgres_refuses_such_a_text(shared_place: StorePlace) -> None:
    if not isinstance(shared_place, PostgresPlace):
        pytest.skip("SQLite takes it")
    async with opened(shared_place.store()) as store:
        with pytest.raises(StoreError, match="invalid byte sequence"):
            await raw(store, r"SELECT convert_from('\x7bff7d', 'UTF8')")
