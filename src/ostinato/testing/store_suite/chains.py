"""Chains: runs that wait for the ends of others, released or left out in the transaction that writes those ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.chain import as_steps
from ostinato.models.ids import RunId, RunIds
from ostinato.models.run import Ending, NewRun, Run, RunFilter
from ostinato.models.session import Mode
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import FirstActiveOf, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    beat,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    retry,
)
from ostinato.testing.store_suite.mailbox import message

ENDED = NOW + 2 * SECOND
LATER = NOW + HOUR


async def chain(store: Store, *after: Sequence[int], runs: Sequence[NewRun] | None = None, now: Micros = NOW) -> RunIds:
    """Put a chain in: for each of its runs the places of those that it runs after."""
    given = [new_run() for _ in after] if runs is None else runs
    return await store.runs.insert_chain(as_steps(given, after, now), now)


async def get(store: Store, id: RunId) -> Run:
    run = await store.runs.get_run(id)
    assert run is not None
    return run


async def states(store: Store, of: Sequence[RunId]) -> list[str]:
    return [str((await get(store, id)).state) for id in of]


def numbers(runs: Sequence[Run]) -> list[RunId]:
    return [run.id for run in runs]


async def end(store: Store, state: RunState = RunState.SUCCEEDED, *, at: Micros = ENDED, **fields: Any) -> RunId:
    """Claim the one run that is ready, and end it."""
    run = await claim_one(store, now=LATER)
    await store.runs.finish_runs([finish(run, state, finished_at=at, **fields)])
    return run.id


async def test_a_step_is_claimed_when_the_one_before_it_has_succeeded(store: Store) -> None:
    first, second = await chain(store, (), (0,))
    run = await claim_one(store, now=LATER)
    assert run.id == first
    assert (await store.runs.claim_runs(claim(now=LATER))).runs == []
    await store.runs.finish_runs([finish(run, finished_at=ENDED)])
    released = await get(store, second)
    assert (released.state, released.trigger, released.waiting) == (RunState.QUEUED, Trigger.AFTER, False)
    assert (released.due_at, released.ready_at) == (from_micros(ENDED), from_micros(ENDED))
    assert (await claim_one(store, now=ENDED)).id == second


async def test_the_claim_that_comes_with_an_end_may_take_what_that_released(store: Store) -> None:
    await chain(store, (), (0,))
    run = await claim_one(store)
    finished = await store.runs.finish_runs([finish(run, finished_at=ENDED)], claim(now=ENDED))
    taken = [*finished.claimed.runs, *(await store.runs.claim_runs(claim(now=ENDED))).runs]
    assert len(taken) == 1


async def test_a_failure_skips_all_that_comes_after_it(store: Store) -> None:
    first, second, third = await chain(store, (), (0,), (1,))
    await end(store, RunState.FAILED, error="boom")
    runs = [await get(store, id) for id in (second, third)]
    assert [(run.state, run.cause) for run in runs] == [(RunState.SKIPPED, Cause.UPSTREAM)] * 2
    assert [run.reason for run in runs] == [
        f"run {first} of 'report' failed, and this runs on success",
        f"run {second} of 'report' was skipped, and this runs on success",
    ]
    assert {run.finished_at for run in runs} == {from_micros(ENDED)}
    assert (await store.runs.claim_runs(claim(now=LATER))).runs == []


async def test_a_step_after_several_waits_for_all_of_them(store: Store) -> None:
    *parts, merge = await chain(store, (), (), (), (0, 1, 2))
    for number, at in enumerate((ENDED + 2, ENDED + 9, ENDED + 5)):
        assert (await get(store, merge)).waiting, number
        (run, *_) = (await store.runs.claim_runs(claim(now=NOW, room=1))).runs
        await store.runs.finish_runs([finish(run, finished_at=at)])
    assert (await claim_one(store, now=LATER)).id == merge
    assert (await get(store, merge)).due_at == from_micros(ENDED + 9)
    assert [one.run for one in await store.runs.upstreams_of(merge)] == parts
    assert {one.task for one in await store.runs.upstreams_of(merge)} == {"report"}


async def test_the_first_failure_of_several_skips_the_step_and_the_others_go_on(store: Store) -> None:
    first, second, merge = await chain(store, (), (), (0, 1))
    runs = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(runs[1], RunState.FAILED, finished_at=ENDED)])
    assert await states(store, [first, second, merge]) == ["running", "failed", "skipped"]
    await store.runs.finish_runs([finish(runs[0], finished_at=ENDED + 1)])
    assert await states(store, [first, second, merge]) == ["succeeded", "failed", "skipped"]
    assert [one.state for one in await store.runs.upstreams_of(merge)] == ["succeeded", "failed"]


async def test_ends_of_one_batch_release_what_waits_for_them_together(store: Store) -> None:
    first, second, merge = await chain(store, (), (), (0, 1))
    runs = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(run, finished_at=ENDED) for run in runs])
    assert await states(store, [first, second]) == ["succeeded"] * 2
    assert (await claim_one(store, now=ENDED)).id == merge


async def test_a_try_that_failed_is_no_end(store: Store) -> None:
    _, second = await chain(store, (), (0,))
    await store.runs.finish_runs([retry(await claim_one(store))])
    assert (await get(store, second)).waiting
    await end(store)
    assert not (await get(store, second)).waiting


async def test_an_end_whose_token_does_not_hold_releases_nothing(store: Store) -> None:
    _, second = await chain(store, (), (0,))
    ended = finish(await claim_one(store))
    ended.token -= 1
    assert (await store.runs.finish_runs([ended])).lost == [ended.id]
    assert (await get(store, second)).waiting


async def test_an_end_that_is_written_again_releases_once(store: Store) -> None:
    _, second = await chain(store, (), (0,))
    ended = finish(await claim_one(store))
    await store.runs.finish_runs([ended])
    assert (await store.runs.finish_runs([ended])).lost == []
    assert (await claim_one(store, now=LATER)).id == second
    assert (await store.runs.finish_runs([ended])).lost == []
    assert (await get(store, second)).state is RunState.RUNNING


@pytest.mark.parametrize("outcome", [RunState.CANCELLED, RunState.SKIPPED, RunState.SUPERSEDED])
async def test_every_other_end_of_a_running_step_skips_the_next(store: Store, outcome: RunState) -> None:
    first, second = await chain(store, (), (0,))
    await end(store, outcome)
    run = await get(store, second)
    assert run.reason == f"run {first} of 'report' was {outcome}, and this runs on success"


async def test_a_queued_step_that_is_cancelled_skips_what_comes_after(store: Store) -> None:
    first, second, third = await chain(store, (), (0,), (1,))
    await store.runs.cancel_runs([first], Ending(Cause.CANCELLED, "no"), ENDED)
    assert await states(store, [first, second, third]) == ["cancelled", "skipped", "skipped"]


async def test_a_waiting_step_that_is_cancelled_skips_what_comes_after_and_leaves_what_is_before(store: Store) -> None:
    first, second, third = await chain(store, (), (0,), (1,))
    await store.runs.cancel_runs([second], Ending(Cause.CANCELLED, "no"), ENDED)
    assert await states(store, [first, second, third]) == ["queued", "cancelled", "skipped"]
    await end(store)
    assert await states(store, [first, second, third]) == ["succeeded", "cancelled", "skipped"]


async def test_a_chain_that_is_cancelled_whole_is_cancelled_in_every_step(store: Store) -> None:
    given = await chain(store, (), (0,), (1,))
    running = await claim_one(store)
    cancelled = await store.runs.cancel_runs(given, Ending(Cause.CANCELLED, "no"), ENDED)
    assert (list(cancelled.ended), list(cancelled.asked)) == (list(given[1:]), [given[0]])
    await store.runs.finish_runs([finish(running, RunState.CANCELLED)])
    assert await states(store, given) == ["cancelled"] * 3


async def test_a_step_that_expired_skips_what_comes_after(store: Store) -> None:
    first, second = await chain(store, (), (0,), runs=[new_run(expires_at=NOW + MINUTE), new_run()])
    await store.runs.claim_runs(claim(now=NOW + HOUR))
    assert await states(store, [first, second]) == ["expired", "skipped"]


async def test_max_age_and_delay_of_a_step_count_from_its_release(store: Store) -> None:
    delayed = new_run(ready_at=NOW + MINUTE, policy='{"max_age":"30s"}', expires_at=NOW + 30 * SECOND)
    _, second = await chain(store, (), (0,), runs=[new_run(), delayed])
    assert (await store.runs.claim_runs(claim(now=NOW + HOUR, room=0))).expired.ids == ()
    await end(store, at=NOW + HOUR)
    released = await get(store, second)
    assert released.due_at == released.ready_at == from_micros(NOW + HOUR + MINUTE)
    assert (await store.runs.claim_runs(claim(now=NOW + HOUR + 59 * SECOND))).runs == []
    expired = await store.runs.claim_runs(claim(now=NOW + HOUR + MINUTE + 31 * SECOND))
    assert list(expired.expired.ids) == [second]


async def test_clearing_a_lane_ends_the_steps_that_wait_for_their_turn_in_it(store: Store) -> None:
    first, second, third = await chain(
        store, (), (0,), (1,), runs=[new_run(), new_run(lane="cron"), new_run(lane="team")]
    )
    await store.lanes.clear_lane("cron", ENDED, None, 10)
    assert await states(store, [first, second, third]) == ["queued", "cancelled", "skipped"]


async def test_waiting_steps_are_listed_as_queued_and_counted_in_their_lane(store: Store) -> None:
    given = await chain(store, (), (0,))
    listed = await store.runs.list_runs(RunFilter(states=(RunState.QUEUED,)))
    assert [run.id for run in listed] == list(reversed(given))
    assert {lane.name: lane.queued for lane in await store.lanes.list_lanes()}["main"] == 2
    between, _ = await store.runs.runs_between(NOW - HOUR, NOW + HOUR, None, 10)
    assert [run.id for run in between] == list(given)


async def test_runs_are_listed_by_their_ids_whatever_is_gone(store: Store) -> None:
    first, second, third = await chain(store, (), (0,), (1,))
    of_some = RunFilter(ids=[third, first, RunId(third + 1)])
    assert [run.id for run in await store.runs.list_runs(of_some)] == [third, first]
    await end(store)
    active = RunFilter(ids=[first, second], states=(RunState.QUEUED, RunState.RUNNING), brief=True)
    assert [run.id for run in await store.runs.list_runs(active)] == [second]


async def test_waiting_steps_are_not_active_and_not_late(store: Store) -> None:
    await chain(store, (), (0,))
    assert await store.runs.count_active(LATER) == 1
    counts = await store.runs.count_runs(LATER, LATER - 1)
    assert (counts.running, counts.queued, counts.late) == (0, 1, 1)
    watch = await store.watch()
    await claim_one(store)
    assert (await watch.wake_hints(beat().id)).ready_at is None
    await watch.close()


async def test_a_key_that_is_active_stands_for_its_run(store: Store) -> None:
    (known,) = await store.runs.insert_runs([new_run(key="k")])
    given = await chain(store, (), (0,), runs=[new_run(key="k"), new_run()])
    assert (given[0], set(given.known)) == (known, {known})
    running = await claim_one(store)
    assert running.id == known
    await store.runs.finish_runs([finish(running)])
    assert (await claim_one(store, now=LATER)).id == given[1]


async def test_a_key_that_is_active_in_the_middle_waits_for_nothing_of_the_chain(store: Store) -> None:
    (known,) = await store.runs.insert_runs([new_run(key="k")])
    running = await claim_one(store)
    first, second, third = await chain(store, (), (0,), (1,), runs=[new_run(), new_run(key="k"), new_run()])
    assert second == known
    await store.runs.finish_runs([finish(running)])
    assert sorted(ids((await store.runs.claim_runs(claim(now=LATER))).runs)) == [first, third]


async def test_a_key_of_a_waiting_step_is_active(store: Store) -> None:
    _, second = await chain(store, (), (0,), runs=[new_run(), new_run(key="k")])
    again = await store.runs.insert_runs([new_run(key="k")])
    assert (list(again), set(again.known)) == ([second], {second})


async def test_a_key_that_is_given_twice_in_a_chain_is_one_step(store: Store) -> None:
    given = await chain(store, (), (0,), (1,), runs=[new_run(key="k"), new_run(key="k"), new_run()])
    assert given[0] == given[1] != given[2]
    await end(store)
    assert (await claim_one(store, now=LATER)).id == given[2]


async def test_a_key_that_is_given_twice_is_waited_for_wherever_it_stands(store: Store) -> None:
    first, same, after = await chain(store, (), (), (1,), runs=[new_run(key="k"), new_run(key="k"), new_run()])
    assert first == same
    await end(store)
    assert (await claim_one(store, now=LATER)).id == after


async def test_a_step_comes_into_its_session_when_it_is_released(store: Store) -> None:
    (other,) = await store.runs.queue_runs([new_run(session="user", waiting=True, mode="queue")], NOW)
    _, second = await chain(store, (), (0,), runs=[new_run(), new_run(policy='{"session":"user"}', session="user")])
    found = await store.sessions.get_session("user")
    assert found is not None
    assert found.queued == 1
    runs = {run.id: run for run in (await store.runs.claim_runs(claim())).runs}
    await store.runs.finish_runs([finish(run, finished_at=ENDED) for id, run in runs.items() if id != other])
    waits = await get(store, second)
    assert (waits.session, waits.waiting, waits.state) == ("user", True, RunState.QUEUED)
    await store.runs.finish_runs([finish(runs[other], finished_at=ENDED)])
    assert (await claim_one(store, now=LATER)).id == second


async def delayed_into_session(store: Store) -> RunId:
    """The step of a chain that is delayed by an hour after its release at ENDED, into the session 'user'."""
    delayed = new_run(policy='{"session":"user"}', session="user", ready_at=NOW + HOUR)
    _, second = await chain(store, (), (0,), runs=[new_run(), delayed])
    return second


async def test_a_delayed_step_leaves_its_session_to_others_until_its_time_has_come(store: Store) -> None:
    second = await delayed_into_session(store)
    await end(store)
    (sent,) = await store.sessions.send([message(session="user", at=LATER)], LATER)
    assert (await claim_one(store, now=LATER)).id == sent.id
    assert (await store.runs.claim_runs(claim(now=ENDED + HOUR))).runs == []
    assert (await get(store, second)).waiting


async def test_a_delayed_step_has_its_turn_when_its_time_has_come(store: Store) -> None:
    second = await delayed_into_session(store)
    await end(store)
    watch = await store.watch()
    assert (await watch.wake_hints(beat().id)).ready_at == ENDED + HOUR
    await watch.close()
    assert (await store.runs.claim_runs(claim(now=ENDED + HOUR - 1))).runs == []
    assert (await claim_one(store, now=ENDED + HOUR)).id == second


async def test_a_delayed_step_comes_into_its_session_at_its_release(store: Store) -> None:
    await delayed_into_session(store)
    await end(store)
    session = await store.sessions.get_session("user")
    assert session is not None
    assert session.sent_at == from_micros(ENDED)
    assert [event.at for event in await store.sessions.list_events("user", 0, 10)] == [from_micros(ENDED)]


async def test_a_delayed_step_of_a_session_that_was_stopped_ends_at_its_release(store: Store) -> None:
    second = await delayed_into_session(store)
    await store.sessions.stop("user", everything=True, now=NOW + SECOND)
    await end(store)
    run = await get(store, second)
    assert (run.cause, run.finished_at) == (Cause.STALE, from_micros(ENDED))


async def test_a_session_that_was_stopped_takes_no_step_of_an_older_chain(store: Store) -> None:
    runs = [new_run(), new_run(policy='{"session":"user"}', session="user"), new_run()]
    _, second, third = await chain(store, (), (0,), (1,), runs=runs)
    await store.sessions.stop("user", everything=True, now=NOW + SECOND)
    await end(store)
    assert await states(store, [second, third]) == ["skipped", "skipped"]
    assert (await get(store, second)).cause is Cause.STALE


async def test_the_first_step_waits_its_turn_in_its_session(store: Store) -> None:
    first, second = await chain(store, (), (0,), runs=[new_run(policy='{"session":"user"}', session="user"), new_run()])
    await store.sessions.stop("user", everything=True, now=NOW + SECOND)
    assert await states(store, [first, second]) == ["cancelled", "skipped"]


@pytest.mark.parametrize("is_running", [False, True])
async def test_a_first_step_that_a_newer_message_interrupts_skips_what_comes_after(
    store: Store, is_running: bool
) -> None:
    first, second = await chain(store, (), (0,), runs=[new_run(policy='{"session":"user"}', session="user"), new_run()])
    running = await claim_one(store) if is_running else None
    (sent,) = await store.sessions.send([message(session="user", mode=Mode.INTERRUPT, at=ENDED)], ENDED)
    if running is not None:
        assert list(sent.cancelled) == [first]
        await store.runs.finish_runs([finish(running, RunState.SUPERSEDED, finished_at=ENDED)])
    assert await states(store, [first, second]) == ["superseded", "skipped"]


async def test_who_comes_before_and_after_is_known_while_it_waits_and_after(store: Store) -> None:
    first, second, third = await chain(store, (), (0,), (0, 1))
    found = await store.runs.related_runs(second)
    assert [(one.id, one.task, str(one.state)) for one in found.upstreams] == [(first, "report", "queued")]
    assert [(one.id, one.task, str(one.state)) for one in found.dependents] == [(third, "report", "queued")]
    await end(store)
    (before,) = (await store.runs.related_runs(second)).upstreams
    assert str(before.state) == "succeeded"
    assert [one.id for one in (await store.runs.related_runs(third)).upstreams] == [first, second]


async def test_what_a_step_waits_for_is_found_over_all_steps_before_it(store: Store) -> None:
    first, second, third = await chain(store, (), (0,), (1,))
    found = (await store.runs.first_active(FirstActiveOf(NOW, after=[third]))).after
    assert {id: numbers(runs) for id, runs in found.items()} == {third: [second], second: [first]}
    await end(store)
    found = (await store.runs.first_active(FirstActiveOf(NOW, after=[second, third]))).after
    assert {id: numbers(runs) for id, runs in found.items()} == {third: [second]}


async def test_all_that_a_step_waits_for_is_found_in_its_order(store: Store) -> None:
    first, second, merge, last = await chain(store, (), (), (1, 0), (2,))
    found = (await store.runs.first_active(FirstActiveOf(NOW, after=[last]))).after
    assert {id: numbers(runs) for id, runs in found.items()} == {last: [merge], merge: [second, first]}


async def test_of_very_much_that_a_step_waits_for_some_is_found_and_the_way_to_the_first(store: Store) -> None:
    level = tuple(range(40))
    after = [()] * 40 + [level] * 40 + [tuple(range(40, 80))]
    given = await chain(store, *after)
    found = (await store.runs.first_active(FirstActiveOf(NOW, after=[given[-1]]))).after
    assert numbers(found[given[-1]]) == given[40:80]
    assert numbers(found[given[40]])[0] == given[0]
    assert sum(map(len, found.values())) <= 1_100


async def test_there_is_nothing_to_settle_where_every_end_was_noted(store: Store) -> None:
    given = await chain(store, (), (0,), (1,))
    assert await store.runs.settle_parked(LATER) == 0
    await end(store)
    assert await store.runs.settle_parked(LATER) == 0
    await store.runs.cancel_runs(given[1:], Ending(Cause.CANCELLED, "no"), ENDED)
    assert await store.runs.settle_parked(LATER) == 0


async def test_a_run_that_is_run_again_has_the_same_upstreams(store: Store) -> None:
    first, second = await chain(store, (), (0,))
    await end(store, RunState.FAILED, error="boom")
    again = await store.runs.repeat_run(second, LATER)
    assert again is not None
    assert (await claim_one(store, now=LATER)).id == again
    (upstream,) = await store.runs.upstreams_of(again)
    assert (upstream.run, upstream.state, upstream.error, upstream.schedule) == (first, "failed", "boom", None)


async def test_a_step_that_is_run_again_revives_nothing(store: Store) -> None:
    first, second = await chain(store, (), (0,))
    await end(store, RunState.FAILED)
    again = await store.runs.repeat_run(first, LATER)
    assert await end(store, at=LATER) == again
    assert await states(store, [second]) == ["skipped"]


async def test_two_nodes_that_end_the_halves_of_a_group_at_once_release_it_once(first: Store, second: Store) -> None:
    for _ in range(10):
        *_, merge = await chain(first, (), (), (0, 1))
        runs = (await first.runs.claim_runs(claim())).runs
        await asyncio.gather(
            first.runs.finish_runs([finish(runs[0], finished_at=ENDED)]),
            second.runs.finish_runs([finish(runs[1], finished_at=ENDED)]),
        )
        taken = await asyncio.gather(*(one.runs.claim_runs(claim(now=ENDED)) for one in (first, second)))
        (released,) = [run for one in taken for run in one.runs]
        assert released.id == merge
        await first.runs.finish_runs([finish(released, finished_at=ENDED)])


async def test_an_end_and_a_cancel_of_the_whole_at_once_leave_nothing_waiting(first: Store, second: Store) -> None:
    for _ in range(10):
        given = await chain(first, (), (0,), (1,))
        run = await claim_one(first)
        await asyncio.gather(
            first.runs.finish_runs([finish(run, finished_at=ENDED)]),
            second.runs.cancel_runs(given, Ending(Cause.CANCELLED, "no"), ENDED),
        )
        assert (await states(first, given))[1:] == ["cancelled", "cancelled"]


async def test_whatever_two_nodes_end_at_once_leaves_nothing_waiting(first: Store, second: Store) -> None:
    chance = random.Random(20261119)
    after: list[Sequence[int]] = [(), (), (0, 1), (2,), (2,), (3, 4)]
    chains = [await chain(first, *after) for _ in range(12)]
    for _ in range(40):
        runs = (await first.runs.claim_runs(claim(now=LATER, room=chance.randint(1, 12)))).runs
        ends = [finish(run, chance.choice([*[RunState.SUCCEEDED] * 5, RunState.FAILED])) for run in runs]
        chance.shuffle(ends)
        half = len(ends) // 2
        cancelled = chance.choice(chains) if chance.random() < 0.2 else []
        await asyncio.gather(
            first.runs.finish_runs(ends[:half]),
            second.runs.finish_runs(ends[half:]),
            second.runs.cancel_runs(cancelled, Ending(Cause.CANCELLED, "no"), ENDED),
        )
    for given in chains:
        ended = await states(first, given)
        for place, before in enumerate(after):
            if before and ended[place] != "cancelled":
                are_done = all(ended[one] == "succeeded" for one in before)
                assert (ended[place] in ("succeeded", "failed")) == are_done, ended


async def test_a_key_that_ends_while_a_chain_is_put_behind_it_decides_at_once(first: Store, second: Store) -> None:
    for number in range(10):
        await first.runs.insert_runs([new_run(key="k")])
        run = await claim_one(first)
        state = RunState.SUCCEEDED if number % 2 else RunState.FAILED
        given, _ = await asyncio.gather(
            chain(second, (), (0,), runs=[new_run(key="k"), new_run()]),
            first.runs.finish_runs([finish(run, state, finished_at=ENDED)]),
        )
        if given[0] == run.id and state is RunState.FAILED:
            assert await states(first, [given[1]]) == ["skipped"]
        else:
            left = (await first.runs.claim_runs(claim(now=LATER))).runs
            while left:
                await first.runs.finish_runs([finish(one, finished_at=LATER) for one in left])
                left = (await first.runs.claim_runs(claim(now=LATER))).runs
            assert await states(first, [given[1]]) == ["succeeded"]
