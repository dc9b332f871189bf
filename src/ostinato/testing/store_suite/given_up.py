"""Code that was given up and goes on: marked with the end of its run, it keeps others of its schedule waiting."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import from_micros
from ostinato.models.ids import NodeId, ScheduleId
from ostinato.models.run import ClaimedRun
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NODE,
    NOW,
    beat,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    put,
    retry,
    scheduled_run,
)

DUE = NOW + 5 * MINUTE
LATER = NOW + HOUR
ALLOW = '{"overlap":"allow"}'


async def started(store: Store, id: ScheduleId, **fields: Any) -> ClaimedRun:
    """A run of a schedule under way on a living node."""
    await store.nodes.renew(beat())
    await store.runs.insert_runs([scheduled_run(id, DUE, **fields)])
    return await claim_one(store, now=DUE)


async def given_up(store: Store, id: ScheduleId, **fields: Any) -> ClaimedRun:
    run = await started(store, id, **fields)
    await store.runs.finish_runs([finish(run, RunState.CANCELLED, given_up=True, finished_at=DUE + 9)])
    return run


async def claimable(store: Store) -> list[int]:
    return list(ids((await store.runs.claim_runs(claim(now=LATER))).runs))


async def test_it_is_listed_from_the_end_of_its_run_until_it_has_ended(store: Store) -> None:
    run = await given_up(store, await put(store))
    (found,) = await store.runs.list_given_up()
    assert (found.run, found.token, found.schedule, found.name) == (run.id, run.token, "report", "report")
    assert (found.node, found.at) == (NODE, from_micros(DUE + 9))
    await store.runs.forget_given_up([(run.id, run.token + 1)])
    assert len(await store.runs.list_given_up()) == 1
    await store.runs.forget_given_up([(run.id, run.token)])
    assert await store.runs.list_given_up() == []


async def test_a_finish_whose_token_no_longer_holds_marks_nothing(store: Store) -> None:
    run = await started(store, await put(store))
    run.token += 1
    await store.runs.finish_runs([finish(run, RunState.CANCELLED, given_up=True)])
    assert await store.runs.list_given_up() == []


async def test_a_finish_that_is_written_twice_marks_once(store: Store) -> None:
    run = await started(store, await put(store))
    end = finish(run, RunState.CANCELLED, given_up=True)
    await store.runs.finish_runs([end])
    await store.runs.finish_runs([end])
    assert len(await store.runs.list_given_up()) == 1


async def test_what_is_queued_of_its_schedule_is_not_claimed_before_it_has_ended(store: Store) -> None:
    id, other = await put(store), await put(store, "other")
    run = await given_up(store, id)
    (blocked, free, alone) = await store.runs.insert_runs(
        [scheduled_run(id, DUE + 1), scheduled_run(other, DUE + 1), new_run()]
    )
    assert sorted(await claimable(store)) == [free, alone]
    await store.runs.forget_given_up([(run.id, run.token)])
    assert await claimable(store) == [blocked]


async def test_another_try_of_the_same_run_waits_too(store: Store) -> None:
    run = await started(store, await put(store))
    await store.runs.finish_runs([retry(run, given_up=True, ready_at=DUE)])
    assert await claimable(store) == []
    await store.runs.forget_given_up([(run.id, run.token)])
    assert await claimable(store) == [run.id]


async def test_a_run_that_may_overlap_is_claimed_beside_it(store: Store) -> None:
    id = await put(store)
    await given_up(store, id)
    (beside,) = await store.runs.insert_runs([scheduled_run(id, DUE + 1, policy=ALLOW)])
    assert await claimable(store) == [beside]


async def test_a_policy_that_cannot_be_read_keeps_nobody_from_claiming(store: Store) -> None:
    id, other = await put(store), await put(store, "other")
    await given_up(store, id)
    _, free = await store.runs.insert_runs([scheduled_run(id, DUE + 1, policy="{{"), scheduled_run(other, DUE + 1)])
    assert await claimable(store) == [free]


async def test_it_occupies_the_name_of_a_new_schedule_too(store: Store) -> None:
    old = await put(store)
    run = await given_up(store, old)
    await store.schedules.remove_schedule(old, NOW)
    new = await put(store)
    (blocked,) = await store.runs.insert_runs([scheduled_run(new, DUE + 1)])
    assert await claimable(store) == []
    (due,) = (await store.schedules.due_schedules(LATER, 10)).schedules
    assert due.given_up == (run.id,)
    await store.runs.forget_given_up([(run.id, run.token)])
    assert await claimable(store) == [blocked]


async def test_it_counts_as_active_for_a_trigger_by_hand(store: Store) -> None:
    id = await put(store)
    run = await given_up(store, id)
    assert await store.runs.trigger_run(scheduled_run(id, DUE + 1), 0) is None
    assert await store.runs.trigger_run(scheduled_run(id, DUE + 1), 1) is not None
    assert await store.runs.trigger_run(scheduled_run(id, DUE + 2), 1) is None
    await store.runs.forget_given_up([(run.id, run.token)])
    assert await store.runs.trigger_run(scheduled_run(id, DUE + 2), 1) is not None


@pytest.mark.parametrize("how", ["lost", "left"])
async def test_it_is_over_when_its_node_is_gone(store: Store, how: str) -> None:
    id = await put(store)
    await given_up(store, id)
    (queued,) = await store.runs.insert_runs([scheduled_run(id, DUE + 1)])
    if how == "lost":
        await store.runs.stale_runs([(NodeId(NODE), NOW)], LATER)
    else:
        await store.nodes.leave(NodeId(NODE))
    assert await store.runs.list_given_up() == []
    (due,) = (await store.schedules.due_schedules(LATER, 10)).schedules
    assert due.given_up == ()
    assert ids((await store.runs.claim_runs(claim(now=LATER, node="other"))).runs) == [queued]


async def test_a_node_that_is_not_there_marks_nothing_and_its_run_ends(store: Store) -> None:
    run = await started(store, await put(store))
    await store.nodes.leave(NodeId(NODE))
    assert list((await store.runs.finish_runs([finish(run, RunState.CANCELLED, given_up=True)])).lost) == []
    assert await store.runs.list_given_up() == []


async def test_a_run_without_a_schedule_is_listed_by_its_task(store: Store) -> None:
    await store.nodes.renew(beat())
    await store.runs.insert_runs([new_run()])
    run = await claim_one(store)
    await store.runs.finish_runs([finish(run, RunState.CANCELLED, given_up=True)])
    (found,) = await store.runs.list_given_up()
    assert (found.schedule, found.name) == (None, "report")
    await store.runs.insert_runs([new_run()])
    assert len(await claimable(store)) == 1
