"""Retention by age and by count, and the status of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.models.chain import as_steps
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.run import ClaimedRun, RunFilter
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import Store
from ostinato.stores.upkeep import PruneCursor
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    beat,
    claim,
    finish,
    new_run,
    plan,
    put,
    retry,
    said,
)

DAY = 24 * HOUR


async def sweep(store: Store, now: int, limit: int = 100) -> tuple[int, int, int]:
    """A whole sweep: how many runs and nodes went, and in how many steps."""
    cursor: PruneCursor | None = PruneCursor()
    runs = nodes = steps = 0
    while cursor is not None:
        pruned = await store.upkeep.prune(now, cursor, limit)
        runs, nodes, steps, cursor = runs + pruned.runs, nodes + pruned.nodes, steps + 1, pruned.cursor
        assert steps < 100
    return runs, nodes, steps


async def read_by_waiting(store: Store, **given: Any) -> tuple[RunId, RunId, Sequence[ClaimedRun]]:
    """A chain whose last step waits for two: one such run, that step, and both as they were claimed."""
    runs = [new_run(key="read", **given), new_run(), new_run()]
    first, _, last = await store.runs.insert_chain(as_steps(runs, [(), (), (0, 1)], NOW), NOW)
    claimed = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(claimed[0], result="5", finished_at=NOW)])
    return first, last, claimed


async def ended(
    store: Store, *finished_at: int, policy: str = "{}", schedule_id: ScheduleId | None = None
) -> list[int]:
    """Runs that ended at these moments, each with an earlier attempt and output."""
    inserted = await store.runs.insert_runs(
        [new_run(policy=policy, schedule_id=schedule_id, trigger=Trigger.MANUAL) for _ in finished_at]
    )
    for _ in range(2):
        claimed = {run.id: run for run in (await store.runs.claim_runs(claim(room=100))).runs}
        if any(run.attempt == 1 for run in claimed.values()):
            await store.runs.finish_runs([retry(claimed[id], ready_at=NOW, output=said("one ")) for id in inserted])
        else:
            await store.runs.finish_runs(
                [
                    finish(claimed[id], finished_at=moment, output=said("two"))
                    for id, moment in zip(inserted, finished_at, strict=True)
                ]
            )
    return [int(id) for id in inserted]


async def left(store: Store) -> list[int]:
    return sorted(int(run.id) for run in await store.runs.list_runs(RunFilter(limit=1000)))


async def test_active_runs_stay_however_old(store: Store) -> None:
    await store.runs.insert_runs([new_run(due_at=NOW - 900 * DAY), new_run(lane="cron")])
    await store.runs.claim_runs(claim(room=1))
    assert (await sweep(store, NOW + 900 * DAY))[0] == 0
    assert len(await left(store)) == 2


async def test_a_schedule_keeps_its_newest_runs_up_to_its_count(store: Store) -> None:
    few = await put(store, "few", policy='{"keep":{"count":2}}')
    many = await put(store, "many")
    of_few = await ended(store, *([NOW] * 5), schedule_id=few)
    of_many = await ended(store, *([NOW] * 5), schedule_id=many)
    runs, _, _ = await sweep(store, NOW + MINUTE)
    assert runs == 3
    assert await left(store) == sorted([*of_few[3:], *of_many])


async def test_an_active_run_stays_even_past_the_count(store: Store) -> None:
    id = await put(store, policy='{"keep":{"count":1}}')
    (queued,) = await store.runs.insert_runs([new_run(schedule_id=id, ready_at=NOW + DAY)])
    newer = await ended(store, NOW, NOW, schedule_id=id)
    await sweep(store, NOW + MINUTE)
    assert await left(store) == [queued, newer[1]]


async def test_runs_whose_policy_cannot_be_read_are_kept(store: Store) -> None:
    kept = await ended(store, NOW, policy='{"from":"the future"}')
    await sweep(store, NOW + 900 * DAY)
    assert await left(store) == kept


async def test_a_sweep_goes_on_where_it_stopped(store: Store) -> None:
    for number in range(7):
        await put(store, f"s{number}")
    await ended(store, *([NOW] * 10))
    runs, _, steps = await sweep(store, NOW + 31 * DAY, limit=3)
    assert runs == 10
    assert steps == 4 + 3 + 1


async def test_lost_nodes_are_forgotten_after_a_day(store: Store) -> None:
    await store.nodes.renew(beat("lost"))
    await store.nodes.renew(beat("alive", lease_until=NOW + 900 * DAY))
    await store.runs.stale_runs([(NodeId("lost"), NOW)], NOW + HOUR)
    assert (await sweep(store, NOW + DAY))[1] == 0
    assert (await sweep(store, NOW + DAY + 2 * HOUR))[1] == 1
    assert [node.id for node in await store.nodes.list_nodes(NOW)] == ["alive"]


async def test_the_status_counts_what_there_is(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id)], NOW)
    await store.runs.insert_runs([new_run(), new_run(state=RunState.SKIPPED)])
    await store.runs.claim_runs(claim())
    status = await store.upkeep.status()
    assert status.version == status.latest >= 1
    assert status.schedules == 1
    assert status.runs == {"queued": 1, "running": 1, "skipped": 1}
    assert status.size_bytes > 0
    assert status.url == store.url


async def test_what_a_waiting_step_is_to_read_stays_until_that_has_ended(store: Store) -> None:
    first, last, (_, other) = await read_by_waiting(store, policy='{"keep":{"age":"1m"}}')
    assert (await sweep(store, NOW + DAY))[0] == 0
    await store.runs.finish_runs([finish(other, finished_at=NOW + DAY)])
    (step,) = (await store.runs.claim_runs(claim(now=NOW + DAY))).runs
    assert (await sweep(store, NOW + DAY))[0] == 0
    assert [one.result for one in await store.runs.upstreams_of(last)] == [5, None]
    await store.runs.finish_runs([finish(step, finished_at=NOW + DAY)])
    assert (await sweep(store, NOW + DAY))[0] == 1
    assert first not in await left(store)


async def test_what_a_waiting_step_is_to_read_stays_whatever_the_count_of_its_schedule(store: Store) -> None:
    id = await put(store, policy='{"keep":{"count":1}}')
    first, _, (_, other) = await read_by_waiting(store, schedule_id=id)
    await ended(store, NOW, NOW, schedule_id=id)
    assert (await sweep(store, NOW))[0] == 1
    assert first in await left(store)
    await store.runs.finish_runs([finish(other, RunState.FAILED, finished_at=NOW)])
    assert (await sweep(store, NOW))[0] == 1
    assert first not in await left(store)
