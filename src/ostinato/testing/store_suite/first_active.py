"""The runs that others wait for: of each schedule, session, lane and node the one that is active longest."""

from __future__ import annotations

from ostinato.clock import SECOND
from ostinato.models.ids import NodeId
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import FirstActive, FirstActiveOf, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NODE,
    NOW,
    beat,
    claim,
    claim_one,
    draft,
    finish,
    new_run,
    put,
    put_many,
    retry,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import send

DUE = NOW + 5 * MINUTE
LATER = NOW + HOUR


async def test_of_a_schedule_it_is_the_oldest_that_is_queued_and_the_oldest_that_runs(store: Store) -> None:
    first, second = await put_many(store, [draft(name="a"), draft(name="b")])
    ids = await store.runs.insert_runs([scheduled_run(first, DUE + n * MINUTE) for n in range(4)])
    await store.runs.claim_runs(claim(now=LATER, room=2))
    found = await store.runs.first_active(FirstActiveOf(LATER, schedules=[first, second]))
    assert {id: run.id for id, run in found.running.items()} == {first: ids[0]}
    assert {id: run.id for id, run in found.queued.items()} == {first: ids[2]}
    assert (found.queued[first].schedule, found.queued[first].state) == ("a", RunState.QUEUED)


async def test_what_is_recorded_ahead_of_its_due_time_waits_for_nothing_yet(store: Store) -> None:
    id = await put(store)
    await store.runs.insert_runs([scheduled_run(id, DUE)])
    assert (await store.runs.first_active(FirstActiveOf(DUE - 1, schedules=[id]))).queued == {}
    assert list((await store.runs.first_active(FirstActiveOf(DUE, schedules=[id]))).queued) == [id]


async def test_what_has_ended_is_before_nobody(store: Store) -> None:
    id = await put(store)
    await store.runs.insert_runs([scheduled_run(id, DUE)])
    run = await claim_one(store, now=LATER)
    await store.runs.finish_runs([finish(run)])
    of = FirstActiveOf(LATER, schedules=[id], sessions=["dm"], lanes=["cron", "main"], nodes=[NODE])
    assert await store.runs.first_active(of) == FirstActive()


async def test_of_a_session_it_is_the_one_that_has_the_turn_queued_or_running(store: Store) -> None:
    first, _, other = [await send(store, session=key) for key in ("dm", "dm", "dm2")]
    of = FirstActiveOf(LATER, sessions=["dm", "dm2", "nobody"])
    before = await store.runs.first_active(of)
    assert {key: run.id for key, run in before.sessions.items()} == {"dm": first.id, "dm2": other.id}
    await store.runs.claim_runs(claim(now=LATER))
    after = await store.runs.first_active(of)
    assert after.sessions["dm"].state is RunState.RUNNING


async def test_of_a_lane_and_a_node_it_is_the_one_that_is_under_way_longest(store: Store) -> None:
    await store.nodes.renew(beat())
    await store.lanes.set_lane("narrow", 9, None)
    older, newer = await store.runs.insert_runs([new_run(lane="narrow"), new_run(lane="narrow")])
    tried = await claim_one(store, now=NOW, room=1)
    again = retry(tried, ready_at=NOW + MINUTE, cause=Cause.RAISED)
    await store.runs.finish_runs([again])
    await store.runs.claim_runs(claim(now=NOW + SECOND))
    await store.runs.claim_runs(claim(now=NOW + 2 * MINUTE))
    found = await store.runs.first_active(FirstActiveOf(LATER, lanes=["narrow", "main"], nodes=[NODE, NodeId("no")]))
    assert (tried.id, {lane: run.id for lane, run in found.lanes.items()}) == (older, {"narrow": newer})
    assert {node: run.id for node, run in found.nodes.items()} == {NODE: newer}


async def test_nothing_is_asked_for_nobody(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    assert await store.runs.first_active(FirstActiveOf(LATER)) == FirstActive()
