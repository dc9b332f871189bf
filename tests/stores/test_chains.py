"""Chains, below what a store can do by itself: ends that nobody noted, and the cost where there is no chain."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from ostinato.errors import StoreError
from ostinato.models.chain import as_steps
from ostinato.models.ids import RunIds
from ostinato.models.states import Cause
from ostinato.stores.base import Store
from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.builders import NOW, claim, claim_one, finish, ids, new_run
from ostinato.testing.store_suite.chains import ENDED
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


NO_NOTES = """
CREATE FUNCTION ostinato.no_notes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE disk_full; END';
CREATE TRIGGER no_notes BEFORE UPDATE ON ostinato.run_upstreams EXECUTE FUNCTION ostinato.no_notes();
"""


async def test_what_was_claimed_with_an_end_that_cannot_be_noted_is_claimed_again(
    postgres_store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    _, second, _ = await chain(postgres_store)
    run = await claim_one(postgres_store)
    (other,) = await postgres_store.runs.insert_runs([new_run()])
    admin.execute(NO_NOTES)
    with pytest.raises(StoreError):
        await postgres_store.runs.finish_runs([finish(run)], claim(now=ENDED))
    admin.execute("DROP TRIGGER no_notes ON ostinato.run_upstreams")
    finished = await postgres_store.runs.finish_runs([finish(run)], claim(now=ENDED))
    assert other in ids(finished.claimed.runs)
    taken = [*finished.claimed.runs, *(await postgres_store.runs.claim_runs(claim(now=ENDED))).runs]
    assert sorted(ids(taken)) == [second, other]
