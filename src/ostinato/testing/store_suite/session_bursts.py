"""Debounce: a burst of messages becomes one run that carries all payloads in order."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.run import RunFilter
from ostinato.models.session import Delivery, Mode, Sent, debounced
from ostinato.models.states import RunState
from ostinato.stores.base import Claimed, Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, all_runs, claim, claim_one, finish, retry
from ostinato.testing.store_suite.mailbox import (
    call,
    carry_on,
    ending,
    message,
    payloads,
    row,
    run_all,
    send,
)

QUIET = SECOND
AHEAD = SECOND // 10


async def look(store: Store, now: int, ahead: int = AHEAD) -> Claimed:
    """Claim as a dispatcher does, a moment ahead."""
    return await store.runs.claim_runs(claim(now=now, horizon=now + ahead, tasks=("report", "other")))


async def closes_at(store: Store, sent: Sent) -> Any:
    return (await row(store, sent.id)).ready_at


async def test_a_burst_is_one_run_with_all_payloads_in_order(store: Store) -> None:
    burst = await send(store, "a", debounce=QUIET)
    for number, payload in enumerate(("b", "c", "d")):
        assert await send(store, payload, debounce=QUIET, at=NOW + number) == Sent(Delivery.DEBOUNCED, burst.id)
    run = await claim_one(store, now=NOW + MINUTE)
    assert (run.id, payloads(run)) == (burst.id, ["a", "b", "c", "d"])
    assert await carry_on(store, run) == []


async def test_a_message_that_joined_has_a_row_that_names_its_run(store: Store) -> None:
    burst = await send(store, 1, debounce=QUIET)
    await send(store, 2, debounce=QUIET, at=NOW + 5, key="s/m2")
    (own,) = [run for run in await store.runs.list_runs(RunFilter()) if run.id != burst.id]
    assert (own.state, ending(own)) == (RunState.SKIPPED, debounced(burst.id or own.id))
    assert (own.result, own.session, own.key) == ({"run": burst.id}, "s", "s/m2")
    assert (own.due_at, own.finished_at) == (from_micros(NOW + 5), from_micros(NOW + 5))
    assert payloads(own) == [2]


async def test_the_timer_starts_anew_with_each_message(store: Store) -> None:
    burst = await send(store, 1, debounce=QUIET, ceiling=HOUR)
    assert await closes_at(store, burst) == from_micros(NOW + QUIET)
    await send(store, 2, debounce=QUIET, ceiling=HOUR, at=NOW + QUIET - 1)
    assert await closes_at(store, burst) == from_micros(NOW + 2 * QUIET - 1)


async def test_a_burst_is_drawn_out_to_its_ceiling_and_no_further(store: Store) -> None:
    burst = await send(store, 1, debounce=QUIET, ceiling=3 * QUIET)
    for number in range(1, 6):
        joined = await send(store, 1 + number, debounce=QUIET, ceiling=3 * QUIET, at=NOW + number * QUIET // 2)
        assert joined.delivery is Delivery.DEBOUNCED
    assert await closes_at(store, burst) == from_micros(NOW + 3 * QUIET)
    assert (await send(store, 7, debounce=QUIET, ceiling=3 * QUIET, at=NOW + 3 * QUIET)).delivery is Delivery.QUEUED
    assert await run_all(store, now=NOW + MINUTE) == [[1, 2, 3, 4, 5, 6], [7]]


@pytest.mark.parametrize(
    "between",
    [{"task": "other"}, {"mode": Mode.FOLLOWUP}, {"debounce": 0}],
    ids=["another task", "another mode", "no debounce"],
)
async def test_what_comes_between_starts_a_new_run_and_order_is_kept(store: Store, between: dict[str, Any]) -> None:
    first = await send(store, 1, debounce=QUIET)
    other = await send(store, 2, **{"debounce": QUIET, **between})
    third = await send(store, 3, debounce=QUIET)
    assert [one.delivery for one in (first, other, third)] == [Delivery.QUEUED] * 3
    assert await run_all(store, now=NOW + MINUTE) == [[1], [2], [3]]


async def test_a_message_joins_what_is_newest_and_not_an_older_burst(store: Store) -> None:
    await send(store, 1, debounce=QUIET)
    await send(store, 2)
    third = await send(store, 3, debounce=QUIET)
    assert await send(store, 4, debounce=QUIET) == Sent(Delivery.DEBOUNCED, third.id)
    assert await run_all(store, now=NOW + MINUTE) == [[1], [2], [3, 4]]


async def test_a_burst_that_waits_its_turn_is_joined_until_its_timer_is_over(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    burst = await send(store, 2, debounce=QUIET)
    assert await send(store, 3, debounce=QUIET, at=NOW + QUIET - 1) == Sent(Delivery.DEBOUNCED, burst.id)
    await carry_on(store, run)
    assert await run_all(store, now=NOW + MINUTE) == [[2, 3]]


async def test_a_run_that_has_begun_is_not_joined_even_when_it_is_tried_again(store: Store) -> None:
    await send(store, 1, debounce=QUIET)
    run = await claim_one(store, now=NOW + QUIET)
    await store.runs.finish_runs([retry(run, ready_at=NOW + HOUR)])
    assert (await send(store, 2, debounce=QUIET, at=NOW + QUIET)).delivery is Delivery.QUEUED
    assert payloads(await row(store, run.id)) == [1]


async def test_a_call_that_is_to_start_later_does_not_keep_messages_from_joining(store: Store) -> None:
    await store.sessions.send([call(0, later=HOUR)], NOW)
    burst = await send(store, 1, debounce=QUIET)
    assert await send(store, 2, debounce=QUIET) == Sent(Delivery.DEBOUNCED, burst.id)
    await store.sessions.send([call(3, later=HOUR)], NOW)
    assert await send(store, 4, debounce=QUIET) == Sent(Delivery.DEBOUNCED, burst.id)


async def test_payloads_of_any_kind_survive_the_joining(store: Store) -> None:
    everything: list[Any] = [
        "]}}",
        '"',
        "\\",
        ",",
        "{}",
        "ünï ☃ 🎶",
        "a\nb",
        None,
        True,
        1.5,
        [[]],
        {"payloads": [1]},
        "'",
        "%s ?1",
    ]
    burst = await send(store, "]}}", debounce=QUIET)
    for payload in everything[1:]:
        await send(store, payload, debounce=QUIET)
    assert payloads(await row(store, burst.id)) == everything


async def test_a_long_burst_is_still_one_run(store: Store) -> None:
    await store.sessions.send([message(number, debounce=QUIET) for number in range(300)], NOW)
    assert await run_all(store, now=NOW + QUIET) == [list(range(300))]
    assert len(await all_runs(store, states=(RunState.SKIPPED,))) == 299


async def test_an_open_burst_is_active(store: Store) -> None:
    await send(store, 1, debounce=QUIET)
    assert await store.runs.count_active(NOW) == 1


# --- when it is claimed


async def test_a_burst_that_is_tried_again_may_be_claimed_ahead(store: Store) -> None:
    await send(store, 1, debounce=QUIET)
    run = await claim_one(store, now=NOW + QUIET)
    await store.runs.finish_runs([retry(run, ready_at=NOW + MINUTE)])
    assert len((await look(store, NOW + MINUTE - AHEAD)).runs) == 1


@pytest.mark.parametrize("early", [QUIET, AHEAD + 1, AHEAD, 1])
async def test_a_claim_tells_to_come_back_exactly_when_the_burst_closes(store: Store, early: int) -> None:
    """Who asks comes back that much ahead, and then the burst is over: neither a moment too early nor too late."""
    await send(store, 1, debounce=QUIET)
    assert (await look(store, NOW + QUIET - early)).next_ready_at == NOW + QUIET + AHEAD


async def test_the_burst_that_closes_first_is_the_one_to_come_back_for(store: Store) -> None:
    await send(store, 1, session="a", debounce=2 * QUIET)
    await send(store, 2, session="b", debounce=QUIET)
    assert (await look(store, NOW + QUIET - 1)).next_ready_at == NOW + QUIET + AHEAD


async def test_what_is_ready_before_the_burst_closes_is_told_first(store: Store) -> None:
    await send(store, 1, session="a", debounce=QUIET)
    await send(store, 2, session="b", at=NOW + QUIET // 2)
    assert (await look(store, NOW)).next_ready_at == NOW + QUIET // 2


async def test_a_burst_that_waits_its_turn_is_nothing_to_come_back_for(store: Store) -> None:
    await send(store, 1)
    await send(store, 2, debounce=QUIET)
    assert (await look(store, NOW)).next_ready_at is None


async def test_a_burst_in_a_paused_lane_is_nothing_to_come_back_for(store: Store) -> None:
    await send(store, 1, debounce=QUIET)
    await store.lanes.pause_lane("main", True, None)
    assert (await look(store, NOW)).next_ready_at is None


async def test_an_open_burst_does_not_hold_up_what_comes_after_it_in_the_lane(store: Store) -> None:
    await send(store, 1, session="a", debounce=QUIET, at=NOW - QUIET + AHEAD)
    await send(store, 2, session="b", at=NOW + AHEAD)
    claimed = await look(store, NOW)
    assert [payloads(run) for run in claimed.runs] == [[2]]


async def test_an_end_that_gives_a_burst_its_turn_tells_when_it_closes(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await send(store, 2, debounce=QUIET)
    at = NOW + QUIET - 1
    done = await store.runs.finish_runs([finish(run)], claim(now=at, horizon=at + AHEAD))
    assert (list(done.claimed.runs), done.claimed.next_ready_at) == ([], NOW + QUIET + AHEAD)
