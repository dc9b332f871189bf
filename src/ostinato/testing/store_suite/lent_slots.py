"""Slots that waiting runs lend: to one run at a time, in one lane, while that is full and they wait."""

from __future__ import annotations

from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import OuterRun
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import NODE, claim, claim_one, finish, new_run


async def full_lane(store: Store) -> tuple[OuterRun, list[RunId]]:
    """A lane of one slot: the run that has it, and what is queued there."""
    await store.lanes.set_lane("narrow", 1, None)
    first, *queued = await store.runs.insert_runs([new_run(lane="narrow") for _ in range(4)])
    outer = await claim_one(store)
    assert outer.id == first
    return OuterRun(outer.id, NodeId(NODE)), queued


async def claimed(store: Store) -> list[RunId]:
    return [run.id for run in (await store.runs.claim_runs(claim())).runs]


async def test_a_lent_slot_starts_the_run_that_has_it_and_no_other(store: Store) -> None:
    outer, queued = await full_lane(store)
    assert await claimed(store) == []
    assert await store.runs.lend_slot(outer, queued[1]) == "narrow"
    assert await store.runs.lend_slot(outer, queued[2]) is None, "it has one slot"
    assert await claimed(store) == [queued[1]]
    (lane,) = [lane for lane in await store.lanes.list_lanes() if lane.name == "narrow"]
    assert (lane.used, lane.limit) == (1, 1)
    assert await claimed(store) == []


async def test_when_it_has_ended_the_slot_is_lent_to_the_next(store: Store) -> None:
    outer, queued = await full_lane(store)
    await store.runs.lend_slot(outer, queued[0])
    (inner,) = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(inner)])
    assert await claimed(store) == [], "the other goes on in its slot"
    assert await store.runs.lend_slot(outer, queued[1]) == "narrow"
    assert await claimed(store) == [queued[1]]


async def test_nothing_is_lent_in_a_lane_with_room_to_another_lane_or_by_a_run_of_another_database(
    store: Store,
) -> None:
    outer, queued = await full_lane(store)
    (elsewhere,) = await store.runs.insert_runs([new_run(lane="team")])
    assert await store.runs.lend_slot(outer, elsewhere) is None
    assert await store.runs.lend_slot(OuterRun(outer.id, NodeId("far")), queued[0]) is None
    await store.lanes.set_lane("narrow", 2, None)
    assert await store.runs.lend_slot(outer, queued[0]) is None


async def test_who_waits_no_longer_takes_it_back(store: Store) -> None:
    outer, queued = await full_lane(store)
    await store.runs.lend_slot(outer, queued[0])
    await store.runs.take_back_slot(outer, queued[0])
    assert await claimed(store) == []


async def test_the_slot_of_a_run_that_has_ended_is_nobodys(store: Store) -> None:
    await store.lanes.set_lane("narrow", 1, None)
    _, *queued = await store.runs.insert_runs([new_run(lane="narrow") for _ in range(4)])
    outer = await claim_one(store)
    await store.runs.lend_slot(OuterRun(outer.id, NodeId(NODE)), queued[1])
    await store.runs.finish_runs([finish(outer)])
    assert await claimed(store) == [queued[0]]
    assert await claimed(store) == []


async def test_a_paused_lane_starts_nothing_by_a_lent_slot(store: Store) -> None:
    outer, queued = await full_lane(store)
    await store.runs.lend_slot(outer, queued[0])
    await store.lanes.pause_lane("narrow", True, None)
    assert await claimed(store) == []
