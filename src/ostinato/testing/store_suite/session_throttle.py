"""Sessions that are full: a node that has claimed runs of them asks which may start, and the others wait again."""

from __future__ import annotations

import asyncio

from ostinato.models.event import EventKind
from ostinato.models.run import INTERRUPTED, ClaimedRun, Ending
from ostinato.models.session import STOPPED, Mode
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import MINUTE, NOW, claim, claim_one, finish, ids, retry
from ostinato.testing.store_suite.mailbox import events, outcome, payloads, row, run_all, send, send_all, session

ROUNDS = 12


async def claimed(store: Store, *payloads: object, node: str = "node-1", room: int = 10) -> list[ClaimedRun]:
    """Send these to a session in which three go at once, and claim what may go."""
    await send_all(store, *payloads, max_concurrent=3)
    return list((await store.runs.claim_runs(claim(node=node, room=room))).runs)


async def test_of_what_was_claimed_of_a_full_session_the_oldest_may_start(store: Store) -> None:
    one, *others = await claimed(store, 1, 2, 3, 4)
    assert await store.sessions.hold_back([others[1], one, others[0]], NOW) == [one.id]
    shown = await session(store)
    assert (shown.throttled, shown.max_concurrent, shown.running, shown.queued) == (True, 3, 1, 3)
    for run in [await row(store, other.id) for other in others]:
        assert (run.state, run.attempt, run.node, run.started_at, list(run.attempts)) == ("queued", 0, None, None, [])


async def test_what_is_held_back_goes_one_after_the_other_and_in_order(store: Store) -> None:
    runs = await claimed(store, 1, 2, 3, 4)
    await store.sessions.hold_back(runs, NOW)
    assert list((await store.runs.claim_runs(claim())).runs) == []
    await store.runs.finish_runs([finish(runs[0])])
    second = await claim_one(store)
    assert (payloads(second), second.attempt) == ([2], 1)
    assert await store.sessions.hold_back([second], NOW) == [second.id]
    await store.runs.finish_runs([finish(second)])
    assert await run_all(store) == [[3], [4]]


async def test_nothing_starts_in_a_full_session_beside_what_is_under_way(store: Store) -> None:
    older, newer = await claimed(store, 1, 2)
    await store.runs.finish_runs([retry(older, ready_at=NOW)])
    again = await claim_one(store)
    assert again.id == older.id
    assert await store.sessions.hold_back([again], NOW) == []
    assert (await row(store, newer.id)).state is RunState.RUNNING
    held = await row(store, older.id)
    assert (held.state, held.attempt, len(held.attempts)) == (RunState.QUEUED, 1, 1)
    assert list((await store.runs.claim_runs(claim())).runs) == []
    await store.runs.finish_runs([finish(newer)])
    assert (await claim_one(store)).id == older.id


async def test_a_full_session_takes_back_turns_of_which_no_use_was_made(store: Store) -> None:
    (one,) = await claimed(store, 1, 2, 3, room=1)
    assert await store.sessions.hold_back([one], NOW) == [one.id]
    assert list((await store.runs.claim_runs(claim())).runs) == []
    await store.runs.finish_runs([finish(one)])
    assert payloads(await claim_one(store)) == [2]


async def test_a_full_session_waits_for_an_older_run_that_has_its_turn(store: Store) -> None:
    one, two = await claimed(store, 1, 2)
    await store.runs.finish_runs([retry(one, ready_at=NOW + MINUTE)])
    assert await store.sessions.hold_back([two], NOW) == []
    assert list((await store.runs.claim_runs(claim())).runs) == []
    assert (await claim_one(store, now=NOW + MINUTE)).id == one.id


async def test_each_full_session_keeps_one(store: Store) -> None:
    for key in ("a", "b"):
        await send_all(store, 1, 2, session=key, max_concurrent=2)
    runs = list((await store.runs.claim_runs(claim())).runs)
    allowed = await store.sessions.hold_back(runs, NOW)
    assert sorted(allowed) == sorted(ids([run for run in runs if payloads(run) == [1]]))
    assert [(await session(store, key)).running for key in ("a", "b")] == [1, 1]


async def test_what_was_to_stop_while_it_was_held_back_ends_and_the_next_may_start(store: Store) -> None:
    one, two, three = await claimed(store, 1, 2, 3)
    await store.sessions.stop("s", everything=False, now=NOW)
    await store.runs.cancel_runs([three.id], Ending(Cause.CANCELLED, "by hand"), NOW)
    assert await store.sessions.hold_back([one, two, three], NOW) == [two.id]
    assert await outcome(store, one.id) == (RunState.CANCELLED, STOPPED)
    assert await outcome(store, three.id) == (RunState.CANCELLED, Ending(Cause.CANCELLED, "by hand"))


async def test_an_interrupt_goes_next_where_all_that_was_claimed_was_to_stop(store: Store) -> None:
    runs = await claimed(store, 1, 2)
    await send(store, 3, mode=Mode.INTERRUPT)
    assert await store.sessions.hold_back(runs, NOW) == []
    assert [await outcome(store, run.id) for run in runs] == [(RunState.SUPERSEDED, INTERRUPTED)] * 2
    assert payloads(await claim_one(store)) == [3]


async def test_a_run_that_others_have_by_now_may_not_start(store: Store) -> None:
    (run,) = await claimed(store, 1)
    await store.runs.finish_runs([retry(run, ready_at=NOW)])
    now_theirs = await claim_one(store, node="node-2")
    assert await store.sessions.hold_back([run], NOW) == []
    shown = await row(store, run.id)
    assert (shown.state, shown.node, shown.attempt) == (RunState.RUNNING, "node-2", 2)
    assert list((await store.runs.finish_runs([finish(now_theirs)])).lost) == []


async def test_who_held_a_run_that_was_held_back_can_write_nothing_of_it(store: Store) -> None:
    one, two = await claimed(store, 1, 2)
    await store.sessions.hold_back([one, two], NOW)
    assert list((await store.runs.finish_runs([finish(two)])).lost) == [two.id]
    await store.runs.finish_runs([finish(one)])
    again = await claim_one(store)
    assert again.id == two.id
    assert list((await store.runs.finish_runs([finish(two)])).lost) == [two.id]
    assert again.token > two.token


async def test_to_ask_again_gives_the_same_answer(store: Store) -> None:
    runs = await claimed(store, 1, 2, 3)
    assert [await store.sessions.hold_back(runs, NOW) for _ in range(2)] == [[runs[0].id]] * 2


async def test_what_is_held_back_expires_as_if_it_had_not_been_claimed(store: Store) -> None:
    one, two = await claimed(store, 1), await send(store, 2, expires_at=NOW + MINUTE)
    held = await claim_one(store)
    assert held.id == two.id
    await store.sessions.hold_back([*one, held], NOW)
    await store.runs.claim_runs(claim(now=NOW + MINUTE))
    assert (await row(store, two.id)).state is RunState.EXPIRED


async def test_only_what_may_start_is_told_as_started(store: Store) -> None:
    runs = await claimed(store, 1, 2)
    await store.sessions.hold_back(runs, NOW)
    told = [event.run for event in await events(store) if event.kind is EventKind.STARTED]
    assert told == [runs[0].id]


async def test_a_lane_has_room_again_for_what_is_held_back(store: Store) -> None:
    await store.lanes.set_lane("narrow", 2, None)
    await send_all(store, 1, 2, max_concurrent=2, lane="narrow")
    runs = list((await store.runs.claim_runs(claim())).runs)
    other = await send(store, 3, session="other", lane="narrow")
    assert list((await store.runs.claim_runs(claim())).runs) == []
    await store.sessions.hold_back(runs, NOW)
    assert (await claim_one(store)).id == other.id


async def test_a_session_that_is_full_no_longer_gives_turns_at_once(store: Store) -> None:
    runs = await claimed(store, 1, 2, 3, 4)
    await store.sessions.hold_back(runs, NOW)
    await store.sessions.unthrottle(["s", "nobody"])
    assert (await session(store)).throttled is False
    assert [payloads(run) for run in (await store.runs.claim_runs(claim())).runs] == [[2], [3]]


async def test_of_two_nodes_that_claim_in_a_full_session_at_once_one_starts(first: Store, second: Store) -> None:
    for number in range(ROUNDS):
        key = f"full:{number}"
        await send_all(first, 1, 2, session=key, max_concurrent=2)
        nodes = ((first, "node-1"), (second, "node-2"))
        runs = [(store, await claim_one(store, node=node, room=1)) for store, node in nodes]
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(store.sessions.hold_back([run], NOW) for store, run in runs))
        allowed = [id for answer in answers for id in answer]
        assert len(allowed) == 1
        shown = await session(first, key)
        assert (shown.running, shown.queued, shown.throttled) == (1, 1, True)
        ends = [finish(run) for _, run in runs if run.id in allowed]
        await first.runs.finish_runs(ends)
        await first.runs.finish_runs([finish(await claim_one(first))])
