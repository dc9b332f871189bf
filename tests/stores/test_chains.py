"""Chains, below what a store can do by itself: ends that nobody noted, and the cost where there is no chain."""

from __future__ import annotations

import pytest

from ostinato.models.chain import as_steps
from ostinato.models.ids import RunIds
from ostinato.models.states import Cause
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import NOW, claim_one, new_run
from tests.stores.places import raw


async def chain(store: Store) -> RunIds:
    steps = as_steps([new_run(), new_run(), new_run()], [(), (0,), (1,)], NOW)
    return await store.runs.insert_chain(steps, NOW)


@pytest.mark.parametrize(("state", "then"), [("succeeded", "queued"), ("failed", "skipped")])
async def test_an_end_that_another_program_wrote_decides_all_the_same(store: Store, state: str, then: str) -> None:
    first, second, third = await chain(store)
    await claim_one(store)
    await raw(store, f"UPDATE runs SET state = '{state}', cause = 'raised', finished_at = {NOW} WHERE id = {first}")
    assert await store.runs.settle_parked(NOW) == 1
    run = await store.runs.get_run(second)
    assert run is not None
    assert (str(run.state), run.waiting) == (then, False)
    assert await store.runs.settle_parked(NOW) == 0
    last = await store.runs.get_run(third)
    assert last is not None
    assert str(last.state) == then
    assert last.waiting == (then == "queued")


async def test_a_run_that_was_removed_leaves_nobody_waiting_for_ever(store: Store) -> None:
    first, second, third = await chain(store)
    await raw(store, f"DELETE FROM runs WHERE id = {first}")
    assert await store.runs.settle_parked(NOW) == 1
    for id, why in (
        (second, f"run {first} of 'report' was removed, and this runs on success"),
        (third, f"run {second} of 'report' was skipped, and this runs on success"),
    ):
        run = await store.runs.get_run(id)
        assert run is not None
        assert (run.state, run.cause, run.reason) == ("skipped", Cause.UPSTREAM, why)
    (gone,) = (await store.runs.related_runs(second)).upstreams
    assert (gone.id, gone.state) == (first, "cancelled")


async def test_a_run_that_is_removed_takes_what_it_waited_for_with_it(store: Store) -> None:
    _, second, _ = await chain(store)
    await raw(store, f"DELETE FROM runs WHERE id = {second}")
    assert await raw(store, f"SELECT count(*) FROM run_upstreams WHERE run_id = {second}") == [(0,)]
