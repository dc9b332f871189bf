"""Budgets: what is reserved when a run starts and settled when its attempt ends, whoever asks at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato.clock import Micros
from ostinato.models.budget import MICRO, UNKNOWN, Budget, Grant, Reservation, Spending
from ostinato.models.ids import ScheduleId
from ostinato.models.run import ClaimedRun, Finish
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, claim, claim_one, finish, put, retry, scheduled_run

DAY: Micros = 24 * HOUR
DOLLAR = MICRO
A_DOLLAR_EACH = Budget(per_run_usd=1, per_day_usd=5)


async def start(store: Store, id: ScheduleId, count: int = 1) -> list[ClaimedRun]:
    """Runs of a schedule, claimed."""
    for number in range(count):
        await store.runs.trigger_run(scheduled_run(id, NOW + number, trigger=Trigger.MANUAL), None)
    runs = list((await store.runs.claim_runs(claim(now=NOW + HOUR, room=count))).runs)
    assert len(runs) == count
    return runs


async def started(store: Store, **fields: Any) -> ClaimedRun:
    (run,) = await start(store, await put(store, **fields))
    return run


def wanted(run: ClaimedRun, budget: Budget = A_DOLLAR_EACH, now: Micros = NOW) -> Reservation:
    assert run.schedule_id is not None
    return Reservation(run.id, run.token, run.schedule_id, budget, now)


async def reserve(store: Store, run: ClaimedRun, budget: Budget = A_DOLLAR_EACH, now: Micros = NOW) -> Grant:
    return await store.projects.reserve(wanted(run, budget, now))


async def spent(store: Store, run: ClaimedRun, now: Micros = NOW) -> Spending:
    assert run.schedule_id is not None
    return await store.projects.read_spending(run.schedule_id, now)


async def end(store: Store, *finishes: Finish) -> None:
    assert list((await store.runs.finish_runs(finishes)).lost) == []


async def again(store: Store) -> ClaimedRun:
    return await claim_one(store, now=NOW + HOUR)


async def test_a_run_reserves_what_it_may_cost_and_settles_what_it_did(store: Store) -> None:
    run = await started(store)
    assert await spent(store, run) == Spending()
    assert await reserve(store, run) == Grant(DOLLAR)
    assert await spent(store, run) == Spending(runs=1, reserved=DOLLAR)
    await end(store, finish(run, cost=250_000))
    assert await spent(store, run) == Spending(runs=1, spent=250_000)


async def test_what_nobody_could_tell_counts_as_all_that_was_reserved(store: Store) -> None:
    run = await started(store)
    await reserve(store, run)
    await end(store, finish(run, RunState.FAILED, cost=UNKNOWN, abandoned=True))
    assert await spent(store, run) == Spending(runs=1, spent=DOLLAR)


async def test_a_run_may_cost_more_than_it_reserved_and_then_it_is_counted(store: Store) -> None:
    run = await started(store)
    await reserve(store, run)
    await end(store, finish(run, cost=7 * DOLLAR))
    assert await spent(store, run) == Spending(runs=1, spent=7 * DOLLAR)


async def test_without_a_bound_on_a_run_the_first_reserves_the_rest_of_the_day(store: Store) -> None:
    one, two = await start(store, await put(store), 2)
    budget = Budget(per_day_usd=5)
    assert await reserve(store, one, budget) == Grant(5 * DOLLAR)
    refused = await reserve(store, two, budget)
    assert (refused.amount, refused.is_final) == (None, False)
    assert refused.refusal == "$0.00 of $5.00 spent today, $5.00 more reserved by active runs"
    await end(store, finish(one, cost=2 * DOLLAR))
    assert await reserve(store, two, budget) == Grant(3 * DOLLAR)


async def test_a_budget_of_runs_alone_counts_them_and_what_they_cost(store: Store) -> None:
    runs = await start(store, await put(store), 3)
    budget = Budget(per_day_runs=2)
    for run in runs[:2]:
        assert await reserve(store, run, budget) == Grant(None)
    assert await spent(store, runs[0]) == Spending(runs=2)
    assert await reserve(store, runs[2], budget) == Grant(refusal="2 of 2 runs used today", is_final=True)
    await end(store, finish(runs[0], cost=DOLLAR), finish(runs[1], cost=UNKNOWN))
    assert await spent(store, runs[0]) == Spending(runs=2, spent=DOLLAR)


async def test_a_refused_run_is_not_counted(store: Store) -> None:
    runs = await start(store, await put(store), 6)
    for run in runs[:5]:
        assert await reserve(store, run) == Grant(DOLLAR)
    for _ in range(2):
        refused = await reserve(store, runs[5])
        assert (refused.amount, refused.is_final) == (None, False)
    await end(store, *(finish(run, cost=DOLLAR) for run in runs[:5]))
    assert await reserve(store, runs[5]) == Grant(refusal="$5.00 of $5.00 spent today", is_final=True)
    await end(store, finish(runs[5], RunState.SKIPPED, cost=0))
    assert await spent(store, runs[0]) == Spending(runs=5, spent=5 * DOLLAR)


async def test_attempts_of_one_run_are_one_run_and_each_costs(store: Store) -> None:
    run = await started(store)
    budget = Budget(per_run_usd=1, per_day_usd=5, per_day_runs=1)
    for number in range(3):
        assert await reserve(store, run, budget) == Grant(DOLLAR), number
        await end(store, retry(run, ready_at=NOW, cost=DOLLAR // 2))
        assert await spent(store, run) == Spending(runs=1, spent=(number + 1) * DOLLAR // 2)
        run = await again(store)
    (other,) = await start(store, ScheduleId(run.schedule_id or 0))
    assert await reserve(store, other, budget) == Grant(refusal="1 of 1 run used today", is_final=True)


async def test_a_finish_that_says_no_cost_keeps_what_is_reserved(store: Store) -> None:
    run = await started(store)
    await reserve(store, run)
    await end(store, finish(run))
    assert await spent(store, run) == Spending(runs=1, reserved=DOLLAR)


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_a_token_that_is_lost_reserves_and_settles_nothing(store: Store, kind: str) -> None:
    run = await started(store)
    await reserve(store, run)
    await end(store, retry(run, ready_at=NOW, cost=UNKNOWN, abandoned=True, error="rescued"))
    current = await again(store)
    assert await reserve(store, run) == Grant(refusal="its claim no longer holds")
    assert await reserve(store, current) == Grant(DOLLAR)
    before = Spending(runs=1, spent=DOLLAR, reserved=DOLLAR)
    assert await spent(store, run) == before
    late = finish(run, cost=3 * DOLLAR) if kind == "end" else retry(run, cost=3 * DOLLAR)
    assert list((await store.runs.finish_runs([late])).lost) == [run.id]
    assert await spent(store, run) == before
    await end(store, finish(current, cost=0))
    assert await spent(store, run) == Spending(runs=1, spent=DOLLAR)


async def test_an_end_that_is_written_twice_costs_once(store: Store) -> None:
    run = await started(store)
    await reserve(store, run)
    for _ in range(2):
        await end(store, finish(run, cost=DOLLAR // 2))
    assert await spent(store, run) == Spending(runs=1, spent=DOLLAR // 2)


async def test_who_asks_twice_has_reserved_once(store: Store) -> None:
    run = await started(store)
    for budget in (A_DOLLAR_EACH, A_DOLLAR_EACH, Budget(per_day_usd=5), Budget(per_run_usd=2)):
        assert (await reserve(store, run, budget)).refusal is None
    assert await spent(store, run) == Spending(runs=1, reserved=2 * DOLLAR)
    refused = await reserve(store, run, Budget(per_run_usd=0.5, per_day_usd=0.5, per_day_runs=1), NOW + DAY)
    assert refused == Grant(DOLLAR // 2)
    assert await spent(store, run) == Spending(runs=1)
    assert await spent(store, run, NOW + DAY) == Spending(runs=1, reserved=DOLLAR // 2)


async def test_who_asks_twice_and_is_refused_has_nothing_reserved(store: Store) -> None:
    one, two = await start(store, await put(store), 2)
    assert await reserve(store, one) == Grant(DOLLAR)
    assert await reserve(store, two) == Grant(DOLLAR)
    refused = await reserve(store, one, Budget(per_run_usd=1, per_day_usd=1.5))
    assert (refused.amount, refused.is_final) == (None, False)
    assert await spent(store, one) == Spending(runs=2, reserved=DOLLAR)
    await end(store, finish(one, cost=UNKNOWN), finish(two, cost=0))
    assert await spent(store, one) == Spending(runs=2)


async def test_a_new_day_begins_with_the_whole_budget(store: Store) -> None:
    runs = await start(store, await put(store), 3)
    budget = Budget(per_run_usd=1, per_day_usd=1, per_day_runs=1)
    assert await reserve(store, runs[0], budget) == Grant(DOLLAR)
    assert (await reserve(store, runs[1], budget)).refusal is not None
    assert await reserve(store, runs[1], budget, NOW + DAY) == Grant(DOLLAR)
    assert (await reserve(store, runs[2], budget, NOW + DAY)).refusal is not None


async def test_what_ends_after_midnight_belongs_to_the_day_on_which_it_was_reserved(store: Store) -> None:
    run = await started(store)
    await reserve(store, run, now=NOW)
    await end(store, finish(run, finished_at=NOW + DAY, cost=DOLLAR))
    assert await spent(store, run, NOW) == Spending(runs=1, spent=DOLLAR)
    assert await spent(store, run, NOW + DAY) == Spending()


async def test_an_attempt_on_the_next_day_counts_on_that_day_too(store: Store) -> None:
    run = await started(store)
    await reserve(store, run, now=NOW)
    await end(store, retry(run, ready_at=NOW, cost=DOLLAR))
    run = await again(store)
    assert await reserve(store, run, now=NOW + DAY) == Grant(DOLLAR)
    await end(store, finish(run, cost=2 * DOLLAR))
    assert await spent(store, run, NOW) == Spending(runs=1, spent=DOLLAR)
    assert await spent(store, run, NOW + DAY) == Spending(runs=1, spent=2 * DOLLAR)


async def test_runs_of_several_schedules_and_days_are_settled_in_one_batch(store: Store) -> None:
    ids = [await put(store, name) for name in ("a", "b")]
    runs = [run for id in ids for run in await start(store, id, 3)]
    for number, run in enumerate(runs):
        await reserve(store, run, now=NOW + DAY * (number % 2))
    await end(
        store,
        *(finish(run, cost=10**number) for number, run in enumerate(runs[:5])),
        retry(runs[5], cost=UNKNOWN),
    )
    assert [await spent(store, run, NOW + DAY * number) for run in (runs[0], runs[3]) for number in (0, 1)] == [
        Spending(runs=2, spent=101),
        Spending(runs=1, spent=10),
        Spending(runs=1, spent=10_000),
        Spending(runs=2, spent=1_000 + DOLLAR),
    ]


async def test_two_nodes_that_ask_for_the_last_dollars_get_no_more_than_there_are(first: Store, second: Store) -> None:
    id = await put(first)
    stores = (first, second)
    for day in range(5):
        # Nobody has spent anything on this day: there is no row yet that could be locked.
        runs = await start(first, id, 12)
        now = NOW + day * DAY
        answers = await asyncio.gather(*(reserve(stores[number % 2], run, now=now) for number, run in enumerate(runs)))
        granted = [run for run, answer in zip(runs, answers, strict=True) if answer.refusal is None]
        assert len(granted) == 5
        assert await spent(second, runs[0], now) == Spending(runs=5, reserved=5 * DOLLAR)
        await asyncio.gather(
            *(stores[number % 2].runs.finish_runs([finish(run, cost=DOLLAR // 4)]) for number, run in enumerate(runs))
        )
        assert await spent(first, runs[0], now) == Spending(runs=5, spent=5 * DOLLAR // 4)


async def test_the_bound_holds_while_two_nodes_reserve_and_settle(first: Store, second: Store) -> None:
    ids = [await put(first, name) for name in ("a", "b", "c")]
    runs = [run for id in ids for run in await start(first, id, 10)]
    budget = Budget(per_run_usd=1, per_day_usd=3)
    used = dict.fromkeys(ids, 0)

    async def work(number: int, run: ClaimedRun) -> None:
        store = (first, second)[number % 2]
        while (answer := await reserve(store, run, budget)).refusal is not None:
            if answer.is_final:
                await end(store, finish(run, RunState.SKIPPED, cost=0))
                return
        assert answer.amount == DOLLAR
        day = await spent(store, run)
        assert day.spent + day.reserved <= 3 * DOLLAR
        cost = (DOLLAR // 2, DOLLAR, UNKNOWN)[number % 3]
        await end(store, finish(run, cost=cost))
        assert run.schedule_id is not None
        used[run.schedule_id] += DOLLAR if cost == UNKNOWN else cost

    await asyncio.gather(*(work(number, run) for number, run in enumerate(runs)))
    for id in ids:
        day = await second.projects.read_spending(id, NOW)
        assert (day.spent, day.reserved) == (used[id], 0)
        assert 2 * DOLLAR < day.spent <= 3 * DOLLAR


async def test_an_attempt_that_is_put_back_costs_nothing_and_is_counted_once(store: Store) -> None:
    run = await started(store)
    for _ in range(3):
        assert await reserve(store, run) == Grant(DOLLAR)
        await end(store, retry(run, ready_at=NOW + MINUTE, counted=False, attempt_state=None, cost=0))
        assert await spent(store, run) == Spending(runs=1)
        run = await again(store)
