"""Lanes: limits that change live, switches, clearing in steps, and rates; all of it inside the claim, on all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.ids import RunId
from ostinato.models.lane import Lane, Rate, parse_rate
from ostinato.models.run import CLEARED, ClaimedRun
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Claimed, Cleared, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    put,
    retry,
)
from ostinato.testing.store_suite.mailbox import outcome, outcomes, payloads, row, run_all, send, send_all, session

AHEAD = SECOND // 10


async def lane(store: Store, name: str = "narrow") -> Lane:
    (found,) = [lane for lane in await store.lanes.list_lanes() if lane.name == name]
    return found


async def narrow(store: Store, limit: int = 100, rate: str | None = None, queued: int = 0) -> list[RunId]:
    """Make a lane and put runs into it."""
    await store.lanes.set_lane("narrow", limit, None if rate is None else parse_rate(rate))
    return await store.runs.insert_runs([new_run(lane="narrow") for _ in range(queued)])


async def look(store: Store, now: int = NOW, ahead: int = AHEAD, room: int = 100) -> Claimed:
    """Claim as a dispatcher does, a moment ahead."""
    return await store.runs.claim_runs(claim(now=now, horizon=now + ahead, room=room))


async def started(store: Store, now: int = NOW, **fields: Any) -> int:
    return len((await store.runs.claim_runs(claim(now=now, **{"room": 100, **fields}))).runs)


# --- limits


async def test_a_lane_is_made_and_changed_by_its_limit(store: Store) -> None:
    assert await store.lanes.set_lane("narrow", 2, None)
    assert await lane(store) == Lane("narrow", 2)
    assert await store.lanes.set_lane("narrow", 5, None)
    assert (await lane(store)).limit == 5


async def test_a_lane_that_is_not_there_is_not_made_by_its_rate(store: Store) -> None:
    assert not await store.lanes.set_lane("nowhere", None, Rate(1, SECOND))
    assert not await store.lanes.set_lane("nowhere", None, None, clear_rate=True)
    assert "nowhere" not in [lane.name for lane in await store.lanes.list_lanes()]


async def test_a_pause_says_who_made_it_and_when_until_it_ends(store: Store) -> None:
    await store.lanes.set_lane("narrow", 2, None)
    assert await store.lanes.pause_lane("narrow", True, "disk swap", "ada", NOW)
    paused = await lane(store)
    assert (paused.note, paused.paused_by, paused.paused_at) == ("disk swap", "ada", from_micros(NOW))
    assert await store.lanes.pause_lane("narrow", False, None)
    assert await lane(store) == Lane("narrow", 2)


async def test_what_is_not_named_stays(store: Store) -> None:
    await store.lanes.set_lane("narrow", 2, Rate(10, MINUTE))
    await store.lanes.set_lane("narrow", 3, None)
    assert await lane(store) == Lane("narrow", 3, rate="10/m")
    await store.lanes.set_lane("narrow", None, Rate(5, SECOND))
    assert await lane(store) == Lane("narrow", 3, rate="5/s")
    await store.lanes.set_lane("narrow", None, None, clear_rate=True)
    assert await lane(store) == Lane("narrow", 3)


async def test_rates_of_the_settings_are_set_with_the_lanes(store: Store) -> None:
    await store.lanes.ensure_lanes({"narrow": 2, "wide": 9}, [], {"narrow": Rate(3, 10 * SECOND)})
    assert (await lane(store)).rate == "3/10s"
    assert (await lane(store, "wide")).rate is None
    await store.lanes.ensure_lanes({"narrow": 2}, [], None)
    assert (await lane(store)).rate == "3/10s", "who says nothing changes nothing"


async def test_a_greater_limit_holds_for_the_next_claim(store: Store) -> None:
    await narrow(store, limit=1, queued=5)
    assert await started(store) == 1
    await store.lanes.set_lane("narrow", 4, None)
    assert await started(store) == 3


async def test_a_smaller_limit_lets_what_runs_go_on_and_starts_nothing_until_there_is_room(store: Store) -> None:
    await narrow(store, limit=3, queued=5)
    runs = (await look(store)).runs
    await store.lanes.set_lane("narrow", 1, None)
    assert await outcomes(store, ids(runs)) == [RunState.RUNNING] * 3
    for run in runs[:2]:
        await store.runs.finish_runs([finish(run)])
        assert await started(store) == 0
    await store.runs.finish_runs([finish(runs[2])])
    assert await started(store) == 1


async def test_a_limit_of_nothing_starts_nothing(store: Store) -> None:
    await narrow(store, limit=0, queued=1)
    assert await started(store) == 0


async def test_a_limit_that_changes_while_two_nodes_claim_is_exact(first: Store, second: Store) -> None:
    await narrow(first, limit=3, queued=100)

    async def claim_on_both() -> list[ClaimedRun]:
        claims = [store.runs.claim_runs(claim(node=f"n{n}", room=2)) for n in range(4) for store in (first, second)]
        return [run for claimed in await asyncio.gather(*claims) for run in claimed.runs]

    before = 3
    for limit in (8, 2, 5, 1, 6):
        running, _ = await asyncio.gather(claim_on_both(), second.lanes.set_lane("narrow", limit, None))
        assert len(running) <= max(before, limit)
        as_many = max(limit, len(running))
        running += await claim_on_both()
        assert len(running) == as_many
        await first.runs.finish_runs([finish(run) for run in running])
        before = limit


# --- pause


async def test_a_paused_lane_starts_nothing_and_says_why(store: Store) -> None:
    await narrow(store, queued=3)
    run = await claim_one(store, room=1)
    assert await store.lanes.pause_lane("narrow", True, "the printer burns")
    assert await lane(store) == Lane(
        "narrow", 100, paused=True, note="the printer burns", used=1, queued=2, oldest_at=from_micros(NOW)
    )
    claimed = await look(store)
    assert (list(claimed.runs), claimed.crowded, claimed.next_ready_at) == ([], False, None)
    assert list((await store.runs.finish_runs([finish(run)])).lost) == [], "what runs goes on"


async def test_a_lane_that_is_resumed_starts_what_waited(store: Store) -> None:
    await narrow(store, queued=2)
    await store.lanes.pause_lane("narrow", True, "wait")
    assert await store.lanes.pause_lane("narrow", False, None)
    shown = await lane(store)
    assert (shown.paused, shown.note) == (False, None)
    assert await started(store) == 2


async def test_a_pause_leaves_other_lanes_alone(store: Store) -> None:
    await narrow(store, queued=1)
    await store.runs.insert_runs([new_run(lane="main")])
    await store.lanes.pause_lane("narrow", True, None)
    assert await started(store) == 1


async def test_a_lane_that_is_not_there_cannot_be_paused(store: Store) -> None:
    assert not await store.lanes.pause_lane("nowhere", True, None)


async def test_a_pause_of_one_node_holds_on_the_other(first: Store, second: Store) -> None:
    await narrow(first, queued=1)
    await first.lanes.pause_lane("narrow", True, None)
    assert await started(second) == 0
    await second.lanes.pause_lane("narrow", False, None)
    assert await started(first) == 1


# --- clear


async def test_a_cleared_lane_has_ended_what_was_queued_and_nothing_else(store: Store) -> None:
    inserted = await narrow(store, limit=1, queued=3)
    (later,) = await store.runs.insert_runs([new_run(lane="narrow", ready_at=NOW + HOUR)])
    (other,) = await store.runs.insert_runs([new_run(lane="main", ready_at=NOW + HOUR)])
    run = await claim_one(store)
    assert await store.lanes.clear_lane("narrow", NOW + 5, None, 100) == Cleared(3, None)
    for id in (*inserted[1:], later):
        assert await outcome(store, id) == (RunState.CANCELLED, CLEARED)
        assert (await row(store, id)).finished_at == from_micros(NOW + 5)
    assert await outcomes(store, [run.id, other]) == [RunState.RUNNING, RunState.QUEUED]
    assert CLEARED == (Cause.LANE_CLEARED, "lane cleared")


async def test_a_lane_is_cleared_in_steps(store: Store) -> None:
    inserted = await narrow(store, queued=7)
    step = await store.lanes.clear_lane("narrow", NOW, None, 3)
    assert step == Cleared(3, inserted[-1])
    newer = await store.runs.insert_runs([new_run(lane="narrow")])
    counts = [step.runs]
    while step.until is not None:
        step = await store.lanes.clear_lane("narrow", NOW, step.until, 3)
        counts.append(step.runs)
    assert sum(counts) == 7
    assert max(counts) <= 3
    assert await outcomes(store, newer) == [RunState.QUEUED], "what came after it began is spared"


async def test_clearing_ends_those_that_wait_for_their_turn_too(store: Store) -> None:
    await narrow(store)
    sent = await send_all(store, 1, 2, 3, lane="narrow")
    assert (await store.lanes.clear_lane("narrow", NOW, None, 100)).runs == 3
    for id in sent:
        assert await outcome(store, id) == (RunState.CANCELLED, CLEARED)
    assert (await session(store)).queued == 0


async def test_sessions_of_cleared_runs_go_on(store: Store) -> None:
    await narrow(store)
    await send(store, 1, lane="narrow")
    await send(store, 2, lane="main")
    await send(store, 3, lane="narrow")
    await send(store, 4, lane="main")
    step = await store.lanes.clear_lane("narrow", NOW, None, 1)
    while step.until is not None:
        step = await store.lanes.clear_lane("narrow", NOW, step.until, 1)
    assert await run_all(store) == [[2], [4]]


async def test_a_step_of_clearing_gives_no_turn_to_what_the_next_one_clears(store: Store) -> None:
    await narrow(store)
    await send_all(store, 1, 2, 3, lane="narrow")
    step = await store.lanes.clear_lane("narrow", NOW, None, 1)
    while step.until is not None:
        claimed = await look(store)
        assert [payloads(run) for run in claimed.runs] in ([], [[1]]), "only what had its turn before may still start"
        step = await store.lanes.clear_lane("narrow", NOW, step.until, 1)


async def test_clearing_ends_bursts_and_what_is_tried_again(store: Store) -> None:
    await narrow(store, queued=1)
    run = await claim_one(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW + HOUR)])
    burst = await send(store, 1, lane="narrow", debounce=HOUR)
    assert (await store.lanes.clear_lane("narrow", NOW, None, 100)).runs == 2
    assert await outcome(store, burst.id) == (RunState.CANCELLED, CLEARED)
    assert await outcome(store, run.id) == (RunState.CANCELLED, CLEARED)


async def test_clearing_sets_the_due_time_that_counts_from_an_end(store: Store) -> None:
    id = await put(store, after_finish=HOUR, next_at=None)
    await store.runs.insert_runs([new_run(schedule_id=id, lane="cron")])
    await store.lanes.clear_lane("cron", NOW + 5, None, 100)
    shown = await store.schedules.get_schedule("report")
    assert shown is not None
    assert shown.next_run_at == from_micros(NOW + 5 + HOUR)


@pytest.mark.parametrize("name", ["main", "nowhere"])
async def test_where_nothing_is_queued_there_is_nothing_to_clear(store: Store, name: str) -> None:
    assert await store.lanes.clear_lane(name, NOW, None, 10) == Cleared(0, None)


async def test_a_lane_cleared_from_two_nodes_at_once_ends_each_run_once(first: Store, second: Store) -> None:
    inserted = await narrow(first, queued=60)

    async def clear(store: Store) -> int:
        step = await store.lanes.clear_lane("narrow", NOW, None, 7)
        count = step.runs
        while step.until is not None:
            step = await store.lanes.clear_lane("narrow", NOW, step.until, 7)
            count += step.runs
        return count

    async with asyncio.timeout(20):
        await asyncio.gather(clear(first), clear(second))
    assert await outcomes(first, inserted) == [RunState.CANCELLED] * 60


# --- rates


async def test_a_rate_starts_a_burst_and_then_one_each_interval(store: Store) -> None:
    await narrow(store, rate="3/m", queued=10)
    assert await started(store) == 3
    for now, count in ((19, 0), (20, 1), (39, 0), (40, 1), (59, 0), (60, 1), (100, 2)):
        assert await started(store, NOW + now * SECOND) == count, now


async def test_a_rate_is_exact_to_the_instant(store: Store) -> None:
    await narrow(store, rate="1/s", queued=3)
    assert await started(store) == 1
    assert await started(store, NOW + SECOND - 1) == 0
    assert await started(store, NOW + SECOND) == 1


async def test_what_is_left_of_an_interval_is_not_lost(store: Store) -> None:
    await narrow(store, rate="2/2s", queued=9)
    assert await started(store) == 2
    assert await started(store, NOW + SECOND + SECOND // 2) == 1
    assert await started(store, NOW + 2 * SECOND) == 1


async def test_a_bucket_holds_no_more_than_its_count(store: Store) -> None:
    await narrow(store, rate="3/m", queued=10)
    assert await started(store) == 3
    assert await started(store, NOW + HOUR) == 3
    assert await started(store, NOW + HOUR) == 0


async def test_a_bucket_is_not_used_by_what_does_not_start(store: Store) -> None:
    await narrow(store, rate="3/m", queued=1)
    assert await started(store) == 1
    assert await started(store) == 0
    await store.runs.insert_runs([new_run(lane="narrow")] * 5)
    assert await started(store) == 2


async def test_a_claim_with_little_room_takes_no_more_tokens_than_runs(store: Store) -> None:
    await narrow(store, rate="3/m", queued=5)
    assert await started(store, room=1) == 1
    assert await started(store, room=1) == 1
    assert await started(store, room=9) == 1
    assert await started(store, room=9) == 0


async def test_a_limit_holds_next_to_a_rate(store: Store) -> None:
    await narrow(store, limit=2, rate="5/m", queued=9)
    claimed = await look(store)
    assert (len(claimed.runs), claimed.crowded) == (2, True)
    await store.runs.finish_runs([finish(run) for run in claimed.runs])
    assert await started(store) == 2


async def test_a_lane_whose_rate_is_used_up_is_not_crowded_and_tells_when_to_come_back(store: Store) -> None:
    await narrow(store, rate="2/m", queued=5)
    claimed = await look(store)
    assert len(claimed.runs) == 2
    assert (claimed.crowded, claimed.next_ready_at) == (False, NOW + 30 * SECOND + AHEAD)
    again = await look(store, NOW + 10 * SECOND)
    assert (list(again.runs), again.crowded) == ([], False)
    assert again.next_ready_at == NOW + 30 * SECOND + AHEAD
    exactly = await look(store, NOW + 30 * SECOND)
    assert (len(exactly.runs), exactly.next_ready_at) == (1, NOW + 60 * SECOND + AHEAD)


async def test_a_rate_that_is_not_used_up_announces_what_is_ready_next(store: Store) -> None:
    await narrow(store, rate="2/m", queued=1)
    await store.runs.insert_runs([new_run(lane="narrow", ready_at=NOW + MINUTE)])
    claimed = await look(store)
    assert (len(claimed.runs), claimed.next_ready_at) == (1, NOW + MINUTE)


async def test_the_highest_priority_gets_the_token(store: Store) -> None:
    await narrow(store, rate="1/m")
    inserted = await store.runs.insert_runs([new_run(lane="narrow", priority=n) for n in (1, 9, 5)])
    assert [(await claim_one(store, now=NOW + n * MINUTE)).id for n in range(3)] == [inserted[n] for n in (1, 2, 0)]


async def test_every_try_takes_a_token(store: Store) -> None:
    await narrow(store, rate="1/m", queued=1)
    await store.runs.finish_runs([retry(await claim_one(store), ready_at=NOW)])
    assert await started(store) == 0
    assert await started(store, NOW + MINUTE) == 1


async def test_a_rate_that_is_taken_away_holds_nothing_back(store: Store) -> None:
    await narrow(store, rate="1/m", queued=5)
    assert await started(store) == 1
    await store.lanes.set_lane("narrow", None, None, clear_rate=True)
    assert await started(store) == 4


async def test_after_a_clock_went_back_a_lane_with_a_rate_does_not_wait_until_it_is_there_again(store: Store) -> None:
    await narrow(store, rate="1/s")
    await store.runs.insert_runs([new_run(lane="narrow", ready_at=NOW - 2 * HOUR) for _ in range(5)])
    assert await started(store, NOW) == 1
    told = (await look(store, NOW - HOUR)).next_ready_at
    assert told == NOW - HOUR + SECOND + AHEAD
    assert len((await look(store, told - AHEAD)).runs) == 1


async def test_a_node_whose_clock_is_a_little_behind_does_not_raise_the_rate(store: Store) -> None:
    await narrow(store, rate="1/s", queued=100)
    total = 0
    for step in range(100):
        real = NOW + step * SECOND // 10
        total += await started(store, real + 400_000, node="ahead")
        total += await started(store, real, node="behind")
    assert total <= 1 + 10


async def test_a_rate_holds_over_all_nodes(first: Store, second: Store) -> None:
    await narrow(first, rate="10/m", queued=200)
    for step in range(6):
        now = NOW + step * 15 * SECOND
        claims = [started(store, now, node=f"n{n}", room=4) for n in range(4) for store in (first, second)]
        claimed = sum(await asyncio.gather(*claims))
        assert claimed == (10 if step == 0 else (15 * step) // 6 - (15 * (step - 1)) // 6), step


# --- one lane and the next


async def test_a_flood_in_one_lane_does_not_delay_another(store: Store) -> None:
    await narrow(store, limit=4, queued=500)
    assert await started(store, room=8) == 4
    (urgent,) = await store.runs.insert_runs([new_run(lane="main")])
    claimed = await look(store, room=4)
    assert ids(claimed.runs) == [urgent]


async def test_a_lane_whose_rate_is_used_up_does_not_delay_another(store: Store) -> None:
    await narrow(store, rate="1/m", queued=9)
    await look(store)
    await store.runs.insert_runs([new_run(lane="main")] * 3)
    claimed = await look(store)
    assert (len(claimed.runs), claimed.next_ready_at) == (3, NOW + MINUTE + AHEAD)


async def test_a_session_may_go_from_lane_to_lane(store: Store) -> None:
    await narrow(store, limit=1, queued=1)
    await claim_one(store)
    await send(store, 1, lane="main")
    await send(store, 2, lane="narrow")
    run = await claim_one(store)
    assert payloads(run) == [1]
    await store.runs.finish_runs([finish(run)])
    assert await started(store) == 0, "it has its turn, and its lane is full"


# --- what people see


async def test_a_lane_shows_what_is_used_queued_and_oldest(store: Store) -> None:
    await narrow(store, limit=2)
    await store.runs.insert_runs([new_run(lane="narrow", ready_at=NOW + n) for n in range(4)])
    await send_all(store, 1, 2, 3, lane="narrow", at=NOW + 9)
    await store.runs.insert_runs([new_run(lane="narrow", state=RunState.SKIPPED)])
    assert await started(store, NOW + 1) == 2
    assert await lane(store) == Lane("narrow", 2, used=2, queued=5, oldest_at=from_micros(NOW + 2))


async def test_what_waits_for_its_turn_is_queued_and_not_the_oldest(store: Store) -> None:
    await narrow(store)
    await send(store, 1, lane="main", at=NOW)
    await send(store, 2, lane="narrow", at=NOW)
    shown = await lane(store)
    assert (shown.queued, shown.oldest_at) == (1, None)


async def test_an_empty_lane_shows_nothing(store: Store) -> None:
    await narrow(store)
    assert await lane(store) == Lane("narrow", 100)


@pytest.mark.parametrize("number", [0, 1, 17])
async def test_the_counts_follow_every_change(store: Store, number: int) -> None:
    async def counts() -> Sequence[int]:
        shown = await lane(store)
        return [shown.used, shown.queued]

    await narrow(store, limit=30, queued=number + 2)
    assert await counts() == [0, number + 2]
    one, two, *_ = (await look(store)).runs
    assert await counts() == [number + 2, 0]
    await store.runs.finish_runs([finish(one), retry(two, ready_at=NOW)])
    assert await counts() == [number, 1]
    await store.lanes.clear_lane("narrow", NOW, None, 100)
    assert await counts() == [number, 0]
