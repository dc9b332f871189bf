"""Budgets, as the table of spending shows them: what is settled, what goes with its schedule, and what is pruned."""

from __future__ import annotations

import asyncio

from ostinato.models.budget import UNKNOWN, Grant, Reservation, Spending
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import Store
from ostinato.stores.retention import sweep
from ostinato.stores.upkeep import PruneCursor
from ostinato.testing.store_suite.budgets import (
    A_DOLLAR_EACH,
    DAY,
    DOLLAR,
    again,
    end,
    reserve,
    spent,
    start,
    started,
    wanted,
)
from ostinato.testing.store_suite.builders import HOUR, NOW, finish, put, retry, scheduled_run
from tests.stores.places import raw


async def test_an_attempt_that_never_reserved_settles_nothing(store: Store) -> None:
    run = await started(store)
    await end(store, retry(run, ready_at=NOW, cost=UNKNOWN))
    await end(store, finish(await again(store), cost=DOLLAR))
    assert await spent(store, run) == Spending()
    assert await raw(store, "SELECT count(*) FROM spending") == [(0,)]


async def test_a_run_that_has_ended_or_is_gone_is_refused(store: Store) -> None:
    run = await started(store)
    await end(store, finish(run))
    gone = Reservation(run.id + 1, 1, run.schedule_id or 0, A_DOLLAR_EACH, NOW)
    for one in (wanted(run), gone):
        assert await store.projects.reserve(one) == Grant(refusal="its claim no longer holds")
    assert await raw(store, "SELECT count(*) FROM spending") == [(0,)]


async def test_a_day_is_one_of_the_schedules_zone(store: Store) -> None:
    # NOW is 2027-01-15 08:00 UTC: still the 14th in Honolulu until 10:00 UTC.
    utc, away = await put(store), await put(store, "away", zone="Pacific/Honolulu")
    for id in (utc, away):
        for run in await start(store, id, 2):
            assert await reserve(store, run) == Grant(DOLLAR)
    assert await raw(store, "SELECT day, runs FROM spending ORDER BY schedule_id") == [
        ("2027-01-15", 2),
        ("2027-01-14", 2),
    ]
    assert await store.projects.read_spending(utc, NOW + 2 * HOUR) == Spending(runs=2, reserved=2 * DOLLAR)
    assert await store.projects.read_spending(away, NOW + 2 * HOUR - 1) == Spending(runs=2, reserved=2 * DOLLAR)
    assert await store.projects.read_spending(away, NOW + 2 * HOUR) == Spending()


async def test_a_schedule_is_removed_with_what_it_has_spent_and_its_run_still_ends(store: Store) -> None:
    id, other = await put(store), await put(store, "other")
    (run,) = await start(store, id)
    (kept,) = await start(store, other)
    await reserve(store, run)
    await reserve(store, kept)
    assert await store.schedules.remove_schedule(id, NOW)
    assert await raw(store, "SELECT schedule_id FROM spending") == [(other,)]
    assert await reserve(store, run) == Grant(refusal="its claim no longer holds")
    assert list((await store.runs.finish_runs([finish(run, cost=DOLLAR), finish(kept, cost=0)])).lost) == [run.id]
    assert await store.projects.read_spending(id, NOW) == Spending()
    assert await store.projects.read_spending(other, NOW) == Spending(runs=1)


async def test_a_run_that_outlives_its_schedule_in_a_session_settles_in_peace(store: Store) -> None:
    id = await put(store)
    await store.runs.trigger_run(scheduled_run(id, NOW, session="s", mode="queue", trigger=Trigger.MANUAL), None)
    run = await again(store)
    assert await reserve(store, run) == Grant(DOLLAR)
    assert await store.schedules.remove_schedule(id, NOW)
    assert await reserve(store, run) == Grant(refusal="its claim no longer holds")
    await end(store, finish(run, RunState.CANCELLED, cost=DOLLAR))
    assert await raw(store, "SELECT count(*) FROM spending") == [(0,)]
    assert await raw(store, "SELECT reserved FROM runs") == [(None,)]


async def test_days_that_are_long_past_are_pruned(store: Store) -> None:
    async def rest() -> None:
        return None

    runs = await start(store, await put(store), 3)
    for days, run in enumerate(runs):
        await reserve(store, run, now=NOW + days * DAY)
    first = NOW - 8 * HOUR  # midnight
    await sweep(store.upkeep, first + 31 * DAY - 1, rest)
    assert await raw(store, "SELECT day FROM spending ORDER BY day") == [
        ("2027-01-15",),
        ("2027-01-16",),
        ("2027-01-17",),
    ]
    await sweep(store.upkeep, first + 31 * DAY, rest)
    assert await raw(store, "SELECT day FROM spending ORDER BY day") == [("2027-01-16",), ("2027-01-17",)]
    await end(store, finish(runs[0], cost=DOLLAR), finish(runs[1], cost=DOLLAR))
    assert await raw(store, "SELECT spent FROM spending ORDER BY day") == [(DOLLAR,), (0,)]


async def test_more_old_days_than_one_step_removes_are_all_removed(store: Store) -> None:
    id = await put(store)
    for number in range(10, 25):
        await raw(store, f"INSERT INTO spending (schedule_id, day) VALUES ({id}, '2026-01-{number}')")
    cursor: PruneCursor | None = PruneCursor(runs_done=True, schedules_done=True)
    steps = 0
    while cursor is not None:
        cursor = (await store.upkeep.prune(NOW, cursor, 4)).cursor
        steps += 1
    assert await raw(store, "SELECT count(*) FROM spending") == [(0,)]
    assert steps == 4


async def test_two_nodes_that_reserve_and_remove_at_once_do_not_fail(first: Store, second: Store) -> None:
    for number in range(10):
        id = await put(first, f"s{number}")
        (run,) = await start(first, id)
        answer, removed = await asyncio.gather(reserve(first, run), second.schedules.remove_schedule(id, NOW))
        assert removed
        assert answer in (Grant(DOLLAR), Grant(refusal="its claim no longer holds"))
        assert await raw(second, "SELECT count(*) FROM spending") == [(0,)]
