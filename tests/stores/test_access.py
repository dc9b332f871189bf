"""Who may, as the tables show it: when a use is noted, what a sweep leaves, and that no engine is woken."""

from __future__ import annotations

import logging
from typing import Any

import psycopg
import pytest

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.errors import StoreUnavailable
from ostinato.stores.base import Store
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.stores.upkeep import PruneCursor
from ostinato.testing.store_suite.access import ADA, DAY, exchange, find, login, token
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, put
from tests.stores.places import PostgresPlace, opened, raw


@pytest.mark.parametrize("what", ["token", "login"])
async def test_a_use_is_noted_at_most_once_a_minute(store: Store, what: str) -> None:
    await store.access.put_token(token(), NOW)
    await store.access.put_login(login(), NOW)

    async def used_at(now: Micros) -> Any:
        if what == "token":
            return await store.access.find_token("hash of script", now)
        return await find(store, "cookie", now)

    noted = [(await used_at(NOW + offset)).used_at for offset in (0, SECOND, MINUTE - 1, MINUTE, MINUTE + SECOND)]
    assert noted == [from_micros(at) for at in (NOW, NOW, NOW, NOW + MINUTE, NOW + MINUTE)]
    table = {"token": "tokens", "login": "logins"}[what]
    assert await raw(store, f"SELECT used_at FROM {table}") == [(NOW + MINUTE,)]


async def test_who_comes_in_is_let_in_when_nothing_can_be_written(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await store.access.put_token(token(), NOW)
    await store.access.put_login(login(), NOW)
    await find(store, "cookie", NOW)
    tries: list[str] = []

    async def full(table: str, *_: object) -> None:
        tries.append(table)
        raise StoreUnavailable("the disk is full")

    uses = store.access._uses  # type: ignore[attr-defined]
    monkeypatch.setattr(uses, "_write", full)
    with caplog.at_level(logging.WARNING, "ostinato.stores"):
        for later in (HOUR, HOUR + 1, HOUR + MINUTE):
            script = await store.access.find_token("hash of script", NOW + later)
            browser = await find(store, "cookie", NOW + later)
            assert script is not None
            assert browser is not None
            assert (script.used_at, browser.used_at) == (None, from_micros(NOW))
    assert tries == ["tokens", "tokens"], "each minute one try is enough to see whether there is room again"
    assert caplog.text.count("the disk is full") == 2
    monkeypatch.undo()
    browser = await find(store, "cookie", NOW + 2 * HOUR)
    assert browser is not None
    assert browser.used_at == from_micros(NOW + 2 * HOUR)


async def sweep(store: Store, now: Micros, limit: int = 100) -> int:
    """A whole sweep; answers its steps."""
    cursor: PruneCursor | None = PruneCursor()
    steps = 0
    while cursor is not None:
        cursor = (await store.upkeep.prune(now, cursor, limit)).cursor
        steps += 1
        assert steps < 50
    return steps


async def rows_of(store: Store, table: str) -> int:
    return int((await raw(store, f"SELECT count(*) FROM {table}"))[0][0])


@pytest.mark.parametrize(
    ("table", "kept"),
    [
        ("login_codes", DAY),
        ("logins", DAY),
        ("tokens", 31 * DAY),
        ("requests", DAY),
        ("audit", 400 * DAY),
    ],
)
async def test_what_is_past_its_time_goes_with_a_sweep(store: Store, table: str, kept: Micros) -> None:
    await store.access.put_code(login("code"), NOW)
    await store.access.put_login(login(), NOW)
    await store.access.put_token(token(expires_at=NOW + DAY), NOW)
    await store.access.put_token(token("for ever"), NOW)
    await store.access.begin_request("ada", "k", "print", NOW)
    await store.access.note_audit(ADA, "run.retry", "1", "{}", NOW)
    there = await rows_of(store, table)
    await sweep(store, NOW + kept - 1)
    assert await rows_of(store, table) == there
    await sweep(store, NOW + kept + 1)
    assert await rows_of(store, table) == there - 1


async def test_a_sweep_of_much_goes_in_steps(store: Store) -> None:
    for number in range(7):
        await store.access.note_audit(ADA, "run.retry", str(number), "{}", NOW)
    assert await sweep(store, NOW + 401 * DAY, limit=3) == 2 + 3
    assert await rows_of(store, "audit") == 0


async def use_the_doors(store: Store) -> None:
    """Write to every table of access once."""
    made = await store.access.put_token(token(), NOW)
    assert made is not None
    await store.access.find_token("hash of script", NOW)
    await store.access.put_code(login("code"), NOW)
    await exchange(store, "code", NOW)
    await store.access.put_login(login(), NOW)
    await find(store, "cookie", NOW)
    await store.access.remove_login("cookie")
    await store.access.note_audit(ADA, "run.retry", "1", "{}", NOW)
    await store.access.begin_request("ada", "k", "print", NOW)
    await store.access.end_request("ada", "k", NOW, None)
    await store.access.remove_token(made.id)


async def test_what_people_do_at_the_doors_wakes_no_engine_of_this_process() -> None:
    async with opened(SqliteStore(":memory:")) as store:
        told: list[None] = []
        store._database.listen(lambda: told.append(None))
        await use_the_doors(store)
        assert told == []
        await put(store)
        assert told == [None]


async def test_what_people_do_at_the_doors_notifies_nobody(postgres_place: PostgresPlace) -> None:
    async with opened(postgres_place.store()) as store:
        listening = await psycopg.AsyncConnection.connect(postgres_place.url, autocommit=True)
        async with listening:
            channel = f"{postgres_place.schema}.changed"
            await listening.execute(f'LISTEN "{channel}"'.encode())
            await use_the_doors(store)
            # They come in the order of their commits: this is the first if nothing came before.
            await raw(store, f"SELECT pg_notify('{channel}', 'the first')")
            heard = [notify.payload async for notify in listening.notifies(timeout=60, stop_after=1)]
            assert heard == ["the first"]
