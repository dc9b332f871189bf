"""Schedules with failures that are written past the store, and what a removal leaves in the tables."""

from __future__ import annotations

from ostinato.clock import from_micros
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    change,
    claim_one,
    finish,
    plan,
    printed,
    put,
    said,
)
from ostinato.testing.store_suite.schedules import get
from tests.stores.places import raw


async def test_a_change_of_timing_clears_broken_and_enables_what_the_breaker_disabled(store: Store) -> None:
    await put(store)
    await raw(store, "UPDATE schedules SET failures = 3, enabled = false, broken = 'three failed', next_at = NULL")
    await put(store, policy='{"priority":1}')
    assert (await get(store)).broken == "three failed"
    await put(store, policy='{"priority":1}', timing="every 1h", next_at=NOW + HOUR)
    schedule = await get(store)
    assert schedule.broken is None
    assert schedule.enabled
    assert schedule.failures == 0
    assert schedule.next_run_at == from_micros(NOW + HOUR)


async def test_the_switch_forgets_failures(store: Store) -> None:
    id = await put(store)
    await raw(store, f"UPDATE schedules SET failures = 2 WHERE id = {id}")
    await store.schedules.change_schedule(id, 1, change(), NOW)
    assert (await get(store)).failures == 0


async def test_removing_a_schedule_takes_its_runs_attempts_and_output_with_it(store: Store) -> None:
    id, other = await put(store), await put(store, "other")
    await store.schedules.record_fires([plan(id), plan(other)], NOW)
    claimed = [await claim_one(store, now=NOW + HOUR, room=1) for _ in range(2)]
    await store.runs.finish_runs(
        [
            finish(run, RunState.QUEUED, ready_at=NOW, attempt_state="failed", output=said(f"of {run.schedule}"))
            for run in claimed
        ]
    )
    assert await store.schedules.remove_schedule(id, NOW)
    assert [schedule.name for schedule in await store.schedules.list_schedules(ScheduleFilter())] == ["other"]
    for table in ("runs", "attempts", "output"):
        assert await raw(store, f"SELECT count(*) FROM {table}") == [(1,)], table
    assert await printed(store, claimed[1].id) == "of other"
    assert not await store.schedules.remove_schedule(id, NOW)
