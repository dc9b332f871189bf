"""What a session has used: sums over the attempts of its runs, and the budget of its messages."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import Micros
from ostinato.models.budget import MICRO, UNKNOWN, Budget, Grant, Reservation, SessionBudget, Spending
from ostinato.models.run import ClaimedRun, SessionUsage
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import HOUR, NOW, claim_one, finish, retry
from ostinato.testing.store_suite.mailbox import send, session

A_DOLLAR_EACH = Budget(per_run_usd=1, per_day_usd=2)
CHAT = SessionBudget("s", "UTC")


async def sent(store: Store, **fields: Any) -> ClaimedRun:
    """The run of a message, claimed."""
    await send(store, 1, **fields)
    return await claim_one(store, now=NOW + HOUR)


async def reserve(store: Store, run: ClaimedRun, owner: SessionBudget = CHAT, now: Micros = NOW) -> Grant:
    return await store.projects.reserve(Reservation(run.id, run.token, owner, A_DOLLAR_EACH, now))


async def test_a_session_sums_up_what_every_attempt_used(store: Store) -> None:
    run = await sent(store)
    failed = {"cost_usd": 0.25, "tokens_in": 100, "tokens_out": 20, "turns": 1}
    assert not (await store.runs.finish_runs([retry(run, ready_at=NOW, usage=SessionUsage("s", failed))])).lost
    again = await claim_one(store, now=NOW + HOUR)
    used = {"cost_usd": 0.5, "tokens_in": 10, "context_used": 150_000, "context_window": 200_000}
    assert not (await store.runs.finish_runs([finish(again, usage=SessionUsage("s", used))])).lost
    shown = await session(store)
    assert (shown.cost_usd, shown.tokens_in, shown.tokens_out, shown.turns) == (0.75, 110, 20, 1)
    assert (shown.context_used, shown.context_window) == (150_000, 200_000)


async def test_how_full_its_context_is_stays_until_it_is_told_anew(store: Store) -> None:
    run = await sent(store)
    told = {"context_used": 10, "context_window": 100}
    await store.runs.finish_runs([finish(run, usage=SessionUsage("s", told))])
    run = await sent(store)
    await store.runs.finish_runs([finish(run, usage=SessionUsage("s", {"cost_usd": 1}))])
    shown = await session(store)
    assert (shown.context_used, shown.context_window, shown.cost_usd) == (10, 100, 1)


async def test_what_comes_too_late_adds_nothing(store: Store) -> None:
    run = await sent(store)
    await store.runs.finish_runs([finish(run, usage=SessionUsage("s", {"cost_usd": 1}))])
    late = finish(run, usage=SessionUsage("s", {"cost_usd": 1}), finished_at=NOW + HOUR)
    assert list((await store.runs.finish_runs([late])).lost) == [run.id]
    assert (await session(store)).cost_usd == 1


async def test_messages_of_a_session_share_its_budget_of_the_day(store: Store) -> None:
    for expected in (Spending(runs=1, spent=MICRO // 4), Spending(runs=2, spent=MICRO // 4 + MICRO)):
        run = await sent(store)
        assert await reserve(store, run) == Grant(MICRO)
        cost = MICRO // 4 if expected.runs == 1 else UNKNOWN
        await store.runs.finish_runs([finish(run, cost=cost)])
        assert await store.projects.read_spending(CHAT, NOW) == expected
    refused = await reserve(store, await sent(store))
    assert (refused.refusal, refused.is_final) == ("$1.25 of $2.00 spent today, and a run may cost $1.00", True)


async def test_another_session_has_a_budget_of_its_own(store: Store) -> None:
    await reserve(store, await sent(store))
    other = await sent(store, session="t")
    assert await reserve(store, other, SessionBudget("t", "UTC")) == Grant(MICRO)
    assert await store.projects.read_spending(SessionBudget("t", "UTC"), NOW) == Spending(runs=1, reserved=MICRO)


async def test_a_day_of_a_session_is_one_of_its_zone(store: Store) -> None:
    run = await sent(store)
    await reserve(store, run, SessionBudget("s", "Pacific/Auckland"))
    assert (await store.projects.read_spending(SessionBudget("s", "Pacific/Auckland"), NOW)).runs == 1
    assert (await store.projects.read_spending(SessionBudget("s", "Pacific/Honolulu"), NOW)).runs == 0


@pytest.mark.parametrize("owner", [SessionBudget("t", "UTC"), 1], ids=["another session", "a schedule"])
async def test_a_run_reserves_nothing_of_what_is_not_its_own(store: Store, owner: Any) -> None:
    run = await sent(store)
    assert await reserve(store, run, owner) == Grant(refusal="its claim no longer holds")
