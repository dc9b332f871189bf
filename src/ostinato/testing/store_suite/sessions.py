"""Sessions: whose turn it is, how many may go at once, who is known already, and what people see of them.

Neighbours: test_session_modes (followup, interrupt, full queues), test_session_bursts (debounce),
test_session_schedules, test_session_stops, test_session_events, test_session_races (two nodes), test_session_model
(all of it at random).
"""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.ids import NodeId
from ostinato.models.run import Ending
from ostinato.models.session import Delivery, Drop, Mode, Sent
from ostinato.models.states import ENDS, Cause, RunState, Trigger
from ostinato.stores.base import Store
from ostinato.stores.upkeep import PruneCursor
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, all_runs, claim, claim_one, finish, ids, retry
from ostinato.testing.store_suite.mailbox import (
    call,
    carry_on,
    events,
    listed,
    message,
    outcome,
    outcomes,
    payloads,
    row,
    run_all,
    send,
    send_all,
    session,
)

WEEK = 7 * 24 * HOUR


async def ready(store: Store, **fields: Any) -> list[Any]:
    """Claim what may go; answers the payloads of each run."""
    return [payloads(run) for run in (await store.runs.claim_runs(claim(**fields))).runs]


# --- turns


async def test_a_message_becomes_a_run_of_its_session(store: Store) -> None:
    sent = await send(store, {"text": "hi"}, session="dm:42", at=NOW + 7, lane="team", priority=3)
    assert sent == Sent(Delivery.QUEUED, sent.id)
    run = await claim_one(store, now=NOW + 7)
    assert (run.id, run.task, run.trigger, run.session) == (sent.id, "report", Trigger.MESSAGE, "dm:42")
    assert payloads(run) == [{"text": "hi"}]
    shown = await row(store, sent.id)
    assert (shown.state, shown.session, shown.lane, shown.priority) == (RunState.RUNNING, "dm:42", "team", 3)
    assert shown.due_at == shown.ready_at == from_micros(NOW + 7)


async def test_each_message_waits_until_the_one_before_has_ended(store: Store) -> None:
    await send_all(store, 1, 2, 3)
    run = await claim_one(store)
    assert payloads(run) == [1]
    assert await ready(store) == []
    assert await carry_on(store, run) == [[2]]
    assert await ready(store) == []


@pytest.mark.parametrize("state", sorted(ENDS - {RunState.MISSED, RunState.EXPIRED}))
async def test_every_end_of_a_run_under_way_gives_the_next_turn(store: Store, state: RunState) -> None:
    await send_all(store, 1, 2)
    assert await carry_on(store, await claim_one(store), state) == [[2]]


async def test_a_queued_run_that_expires_gives_the_next_turn(store: Store) -> None:
    await send(store, 1, expires_at=NOW + SECOND)
    await send(store, 2)
    assert await ready(store, now=NOW + SECOND) == [[2]]


async def test_one_that_ends_while_it_waits_gives_nobody_a_turn(store: Store) -> None:
    _, waiting, _ = await send_all(store, 1, 2, 3)
    run = await claim_one(store)
    await store.runs.cancel_runs([waiting], Ending(Cause.CANCELLED, "not needed"), NOW)
    assert await ready(store) == []
    assert await carry_on(store, run) == [[3]]


async def test_a_late_end_of_a_run_that_others_have_taken_over_gives_nobody_a_turn(store: Store) -> None:
    await send_all(store, 1, 2)
    lost = await claim_one(store)
    await store.runs.finish_runs([retry(lost, ready_at=NOW)])
    await claim_one(store, node="node-2")
    done = await store.runs.finish_runs([finish(lost)], claim())
    assert (list(done.lost), list(done.claimed.runs)) == ([lost.id], [])


async def test_nobody_overtakes_by_priority_lane_or_readiness(store: Store) -> None:
    await send(store, 1, at=NOW + 2)
    await send(store, 2, at=NOW + 1, priority=9)
    await send(store, 3, at=NOW, lane="team")
    assert await run_all(store, now=NOW + MINUTE) == [[1], [2], [3]]


async def test_a_run_that_is_ready_later_holds_up_nobody_before(store: Store) -> None:
    await store.sessions.send([call(1, later=HOUR), message(2), message(3)], NOW)
    assert await run_all(store, now=NOW + MINUTE) == [[2], [3]]
    assert (await store.runs.claim_runs(claim(now=NOW + MINUTE))).next_ready_at == NOW + HOUR
    assert await run_all(store, now=NOW + HOUR) == [[1]]


async def test_a_run_that_is_ready_later_queues_up_when_its_time_has_come(store: Store) -> None:
    await store.sessions.send([call(1, later=HOUR), message(2)], NOW)
    under_way = await claim_one(store, now=NOW)
    assert await ready(store, now=NOW + HOUR) == []
    await store.sessions.send([message(3)], NOW + HOUR)
    await store.runs.finish_runs([finish(under_way)])
    assert await run_all(store, now=NOW + HOUR) == [[1], [3]]


async def test_what_is_ready_later_is_not_active_yet(store: Store) -> None:
    await store.sessions.send([call(1, later=HOUR)], NOW)
    assert await store.runs.count_active(NOW) == 0
    assert await store.runs.count_active(NOW + HOUR) == 1
    shown = await session(store)
    assert (shown.queued, shown.oldest_at) == (1, None)


async def test_what_is_ready_later_is_claimed_within_the_horizon(store: Store) -> None:
    await store.sessions.send([call(1, later=HOUR)], NOW)
    assert await ready(store, now=NOW + HOUR - 5, horizon=NOW + HOUR - 1) == []
    assert await ready(store, now=NOW + HOUR - 5, horizon=NOW + HOUR) == [[1]]


async def test_the_watch_tells_when_one_that_is_ready_later_queues_up(store: Store) -> None:
    await store.sessions.send([call(1, later=HOUR)], NOW)
    watch = await store.watch()
    try:
        assert (await watch.wake_hints(NodeId("node-1"))).ready_at == NOW + HOUR
    finally:
        await watch.close()


async def test_as_many_go_at_once_as_the_session_allows(store: Store) -> None:
    await send_all(store, 1, 2, 3, 4, 5, max_concurrent=3)
    runs = (await store.runs.claim_runs(claim())).runs
    assert [payloads(run) for run in runs] == [[1], [2], [3]]
    assert await ready(store) == []
    assert await carry_on(store, runs[1]) == [[4]]
    assert await carry_on(store, runs[0]) == [[5]]


async def test_a_call_that_allows_more_lets_those_who_wait_go_at_once(store: Store) -> None:
    await send_all(store, 1, 2, 3, max_concurrent=1)
    assert await ready(store) == [[1]]
    await send(store, 4, max_concurrent=3)
    assert await ready(store) == [[2], [3]]


async def test_a_call_that_allows_fewer_touches_nothing_that_runs(store: Store) -> None:
    await send_all(store, 1, 2, 3, max_concurrent=3)
    one, two, three = (await store.runs.claim_runs(claim())).runs
    await send(store, 4, max_concurrent=1)
    assert await outcomes(store, ids([one, two, three])) == [RunState.RUNNING] * 3
    assert await carry_on(store, one) == []
    assert await carry_on(store, two) == []
    assert await carry_on(store, three) == [[4]]


async def test_a_refused_message_still_says_how_many_may_go(store: Store) -> None:
    await send_all(store, 1, 2)
    assert (await send(store, 3, cap=1, drop=Drop.NEW, max_concurrent=2)).delivery is Delivery.REFUSED
    assert await ready(store) == [[1], [2]]


# --- keys of messages


async def test_a_message_that_is_sent_twice_is_one_row(store: Store) -> None:
    once = await send(store, 1, key="s/m1")
    again = await send(store, 1, key="s/m1")
    other = await send(store, 2, key="s/m2")
    assert once == again
    assert other.id != once.id
    assert len(await all_runs(store)) == 2


async def test_a_message_is_known_while_it_runs_and_after_it_ended(store: Store) -> None:
    once = await send(store, 1, key="s/m1")
    run = await claim_one(store)
    assert await send(store, 1, key="s/m1") == once
    await carry_on(store, run)
    assert await send(store, 1, key="s/m1") == once
    assert await ready(store) == []


async def test_a_debounced_message_is_known_by_the_run_that_carries_it(store: Store) -> None:
    first = await send(store, 1, key="s/m1", debounce=SECOND)
    once = await send(store, 2, key="s/m2", debounce=SECOND)
    assert once == Sent(Delivery.DEBOUNCED, first.id)
    assert await send(store, 2, key="s/m2", debounce=SECOND) == once
    await carry_on(store, await claim_one(store, now=NOW + SECOND))
    assert await send(store, 2, key="s/m2", debounce=SECOND) == once
    assert payloads(await row(store, first.id)) == [1, 2]


async def test_a_refused_message_may_come_again(store: Store) -> None:
    await send(store, 1)
    assert (await send(store, 2, key="s/m2", cap=1, drop=Drop.NEW)).delivery is Delivery.REFUSED
    await carry_on(store, await claim_one(store))
    assert (await send(store, 2, key="s/m2", cap=1, drop=Drop.NEW)).delivery is Delivery.QUEUED


async def test_a_message_that_is_sent_again_does_nothing_to_its_session(store: Store) -> None:
    await send(store, 1, key="s/m1", max_concurrent=2)
    await send(store, 2)
    before = await events(store)
    again = await send(store, 1, key="s/m1", mode=Mode.INTERRUPT, cap=1, max_concurrent=9)
    assert (list(again.dropped), list(again.cancelled)) == ([], [])
    assert await events(store) == before
    assert (await session(store)).max_concurrent == 2
    assert await ready(store) == [[1], [2]]


async def test_the_key_of_a_call_from_code_holds_while_it_is_active(store: Store) -> None:
    async def enqueue() -> Sent:
        (sent,) = await store.sessions.send([call(1, key="k")], NOW)
        return sent

    once = await enqueue()
    assert await enqueue() == once
    await store.runs.finish_runs([finish(await claim_one(store))])
    assert (await enqueue()).id != once.id


# --- what people see


async def test_a_session_shows_what_is_in_it(store: Store) -> None:
    await send(store, 1, at=NOW, max_concurrent=2)
    for number in (2, 3, 4):
        await send(store, number, at=NOW + number)
    await store.runs.claim_runs(claim(now=NOW + HOUR))
    shown = await session(store)
    assert (shown.key, shown.running, shown.queued, shown.max_concurrent) == ("s", 2, 2, 2)
    assert (shown.oldest_at, shown.sent_at) == (from_micros(NOW + 3), from_micros(NOW + 4))
    assert (shown.throttled, shown.stopped_at) == (False, None)


async def test_an_idle_session_stays_and_has_nothing_in_it(store: Store) -> None:
    await send(store, 1)
    await carry_on(store, await claim_one(store))
    shown = await session(store)
    assert (shown.running, shown.queued, shown.oldest_at) == (0, 0, None)


async def test_there_is_no_session_that_nobody_used(store: Store) -> None:
    await send(store, 1, session="s")
    assert await store.sessions.get_session("S") is None
    assert await store.sessions.get_session("") is None


async def test_sessions_are_listed_with_the_latest_message_first(store: Store) -> None:
    for key, at in (("b", 5), ("a", 7), ("c", 5), ("b", 1)):
        await send(store, session=key, at=NOW + at)
    assert await listed(store) == ["a", "b", "c"]
    assert await listed(store, limit=2) == ["a", "b"]


async def test_busy_sessions_are_those_with_something_queued_or_running(store: Store) -> None:
    await send(store, session="idle")
    await carry_on(store, await claim_one(store))
    await send(store, session="runs")
    await claim_one(store)
    await send(store, session="queued")
    await send(store, session="open burst", debounce=SECOND)
    assert await listed(store, busy=True) == ["open burst", "queued", "runs"]
    assert await listed(store) == ["idle", "open burst", "queued", "runs"]
    counts = {one.key: (one.running, one.queued) for one in await store.sessions.list_sessions(None, False, 10)}
    assert counts == {"idle": (0, 0), "open burst": (0, 1), "queued": (0, 1), "runs": (1, 0)}


@pytest.mark.parametrize(
    ("search", "found"),
    [("dm:", ["DM:1", "dm:22"]), ("M:2", ["dm:22"]), ("_", ["a_b"]), ("%", []), ("", ["DM:1", "a_b", "dm:22"])],
)
async def test_a_search_finds_any_part_of_a_key_as_it_is_written(store: Store, search: str, found: list[str]) -> None:
    for key in ("DM:1", "dm:22", "a_b"):
        await send(store, session=key)
    assert sorted(await listed(store, search)) == found


# --- retention


async def sweep(store: Store, now: int) -> None:
    cursor: PruneCursor | None = PruneCursor()
    while cursor is not None:
        cursor = (await store.upkeep.prune(now, cursor, 100)).cursor


async def test_idle_sessions_are_forgotten_after_a_week(store: Store) -> None:
    for key, at in (("old", NOW), ("young", NOW + HOUR)):
        await send(store, session=key, at=at)
    await run_all(store, now=NOW + HOUR)
    await sweep(store, NOW + WEEK)
    assert await listed(store) == ["young", "old"]
    await sweep(store, NOW + WEEK + 1)
    assert await listed(store) == ["young"]


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_a_session_with_something_in_it_is_not_forgotten(store: Store, state: str) -> None:
    await send(store, max_concurrent=3)
    if state == "running":
        await claim_one(store)
    await sweep(store, NOW + 9 * WEEK)
    assert (await session(store)).max_concurrent == 3


async def test_a_session_is_not_forgotten_while_its_cutoff_is_young(store: Store) -> None:
    await send(store)
    await store.sessions.stop("s", everything=True, now=NOW + WEEK)
    await sweep(store, NOW + 2 * WEEK)
    assert (await session(store)).stopped_at == from_micros(NOW + WEEK)
    await sweep(store, NOW + 2 * WEEK + 1)
    assert await store.sessions.get_session("s") is None


async def test_events_are_forgotten_after_a_week(store: Store) -> None:
    await send(store, 1, at=NOW)
    await send(store, 2, at=NOW + 1)
    await sweep(store, NOW + WEEK)
    assert len(await events(store)) == 2
    await sweep(store, NOW + WEEK + 1)
    assert [event.at for event in await events(store)] == [from_micros(NOW + 1)]


async def test_old_events_and_idle_sessions_go_in_steps(store: Store) -> None:
    for number in range(7):
        await send(store, number, session=f"s{number}")
    await run_all(store)
    cursor, steps = PruneCursor(runs_done=True, schedules_done=True), 0
    while True:
        pruned = await store.upkeep.prune(NOW + WEEK + MINUTE, cursor, 3)
        steps += 1
        if pruned.cursor is None:
            break
        cursor = pruned.cursor
    assert (await listed(store), await events(store, None)) == ([], [])
    assert steps >= 7, "21 events, three at a time"


async def test_a_message_is_known_as_long_as_its_row_is_kept(store: Store) -> None:
    once = await send(store, 1, key="s/m1")
    await run_all(store)
    await sweep(store, NOW + 2 * WEEK)
    assert await send(store, 1, key="s/m1", at=NOW + 2 * WEEK) == once
    assert await outcome(store, once.id) == (RunState.SUCCEEDED, None)
