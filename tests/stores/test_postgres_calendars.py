"""Which rows a change of a calendar waits for in PostgreSQL, and who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from ostinato.clock import SECOND
from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.builders import NOW, draft, plan
from ostinato.testing.store_suite.calendars import DAY, DUE, TODAY, get, next_at, office, timing, using
from tests.stores.places import blocked_by, raw


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


EDITED = draft(timing=timing(base="daily 10:00"), next_at=DUE)


@pytest.mark.parametrize(
    "change",
    [
        lambda store, id: store.schedules.edit_schedule(EDITED, id, 1, NOW),
        lambda store, id: store.schedules.put_schedules([EDITED], NOW),
        lambda store, id: store.schedules.insert_schedule(EDITED, NOW),
    ],
    ids=["edited", "put", "inserted"],
)
async def test_a_schedule_is_locked_after_its_calendars_however_it_is_stored(
    store: PostgresStore,
    admin: psycopg.Connection[Any],
    change: Callable[[PostgresStore, int], Coroutine[Any, Any, Any]],
) -> None:
    """As who changes a calendar locks them: the other way round would meet it in a deadlock."""
    await office(store)
    id = await using(store)
    with admin.transaction():
        admin.execute("SELECT 1 FROM ostinato.calendars FOR UPDATE")
        changing = asyncio.ensure_future(change(store, id))
        await asyncio.wait_for(blocked_by(admin), 10)
        admin.execute("SELECT 1 FROM ostinato.schedules FOR UPDATE NOWAIT")
    await asyncio.wait_for(changing, 10)


async def test_what_a_node_is_just_claiming_ahead_is_not_counted_back(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    await office(store)
    id = await using(store, remaining=3)
    ahead = DUE - SECOND
    await store.schedules.record_fires([plan(id, read_next_at=DUE, next_at=DUE + DAY, remaining=2)], ahead)
    with admin.transaction():
        admin.execute("UPDATE ostinato.runs SET state = 'running', node = 'n', token = 1, attempt = 1, started_at = 1")
        changing = asyncio.ensure_future(office(store, TODAY, now=ahead))
        await asyncio.wait_for(blocked_by(admin), 10)
    assert await asyncio.wait_for(changing, 10) == ["report"]
    assert await raw(store, "SELECT state FROM runs") == [("running",)]
    assert ((await get(store)).remaining, await next_at(store)) == (2, DUE + DAY)
