"""Runs out of outboxes: one for each id, however often and from wherever it comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ostinato.models.ids import RunId
from ostinato.models.outbox import Arrival
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.stores.retention import OUTBOX_IDS_KEPT, sweep
from ostinato.testing.store_suite.builders import NOW, all_runs, new_run


def arrival(id: str, *, sent_at: int = NOW, session: str | None = None, key: str | None = None) -> Arrival:
    return Arrival(id, replace(new_run(), session=session, key=key), sent_at)


async def rest() -> None:
    await asyncio.sleep(0)


async def test_each_row_of_an_outbox_becomes_one_run_that_is_found_by_its_id(store: Store) -> None:
    await store.outbox.take([arrival("b"), arrival("a")], NOW)
    await store.outbox.take([], NOW)
    found = [await store.outbox.find_run(id) for id in ("b", "a")]
    assert found == [run.id for run in await all_runs(store)]
    assert await store.outbox.find_run("c") is None


async def test_a_row_that_comes_again_makes_no_second_run(store: Store) -> None:
    await store.outbox.take([arrival("a")], NOW)
    await store.outbox.take([arrival("a"), arrival("b"), arrival("b")], NOW + 1)
    assert len(await all_runs(store)) == 2


async def test_two_nodes_that_take_the_same_rows_insert_each_once(first: Store, second: Store) -> None:
    rows = [arrival(f"row {number}") for number in range(20)]
    turned = [*rows[::-1], arrival("another")]
    await asyncio.gather(*(store.outbox.take(some, NOW) for store in (first, second) for some in (rows, turned)))
    assert len(await all_runs(first)) == 21
    assert await first.outbox.find_run("row 7") is not None


async def test_a_key_that_is_active_is_the_run_of_the_row(store: Store) -> None:
    (known,) = await store.runs.insert_runs([replace(new_run(), key="one")])
    await store.outbox.take([arrival("a", key="one")], NOW)
    assert await store.outbox.find_run("a") == known
    assert len(await all_runs(store)) == 1


async def test_a_row_of_a_session_is_a_message_to_it(store: Store) -> None:
    await store.sessions.stop("stopped", everything=True, now=NOW)
    rows = [
        arrival("a", session="chat"),
        arrival("b", session="chat"),
        arrival("c", session="stopped", sent_at=NOW - 1),
    ]
    await store.outbox.take(rows, NOW + 5)
    first, second, stale = sorted(await all_runs(store), key=lambda run: run.id)
    assert [first.state, second.state, stale.state] == [RunState.QUEUED, RunState.QUEUED, RunState.SKIPPED]
    assert stale.cause is Cause.STALE
    chat = await store.sessions.get_session("chat")
    assert chat is not None
    assert chat.queued == 2


async def test_an_id_is_forgotten_once_its_row_has_long_been_gone(store: Store) -> None:
    await store.outbox.take([arrival("gone"), arrival("still there")], NOW)
    await store.outbox.take([arrival("still there")], NOW + OUTBOX_IDS_KEPT)
    found: RunId | None = await store.outbox.find_run("still there")
    await sweep(store.upkeep, NOW + OUTBOX_IDS_KEPT + 1, rest)
    assert await store.outbox.find_run("gone") is None
    assert await store.outbox.find_run("still there") == found
