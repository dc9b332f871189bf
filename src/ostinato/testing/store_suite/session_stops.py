"""Stop ends the oldest that has its turn; stop_all ends everything, and nothing that was sent before it starts."""

from __future__ import annotations

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.ids import NodeId
from ostinato.models.run import INTERRUPTED, RunFilter
from ostinato.models.session import STALE, STOPPED, Delivery, Mode, Stopped
from ostinato.models.states import RunState
from ostinato.stores.base import Store
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
    plan,
    printed,
    put,
    retry,
    said,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import (
    call,
    carry_on,
    ending,
    outcome,
    outcomes,
    payloads,
    row,
    run_all,
    send,
    send_all,
    session,
    told,
)


async def stop(store: Store, key: str = "s", now: int = NOW) -> Stopped:
    return await store.sessions.stop(key, everything=False, now=now)


async def stop_all(store: Store, key: str = "s", now: int = NOW) -> Stopped:
    return await store.sessions.stop(key, everything=True, now=now)


# --- stop


async def test_stop_tells_the_run_under_way_and_leaves_the_queue(store: Store) -> None:
    await send_all(store, 1, 2, 3)
    run = await claim_one(store)
    assert await stop(store) == Stopped(cancelled=1, dropped=0)
    assert await told(store) == {run.id: STOPPED}
    assert await carry_on(store, run, RunState.CANCELLED, **STOPPED._asdict()) == [[2]]
    assert (await session(store)).queued == 1


async def test_stop_ends_one_that_has_its_turn_and_has_not_begun(store: Store) -> None:
    one, two = await send_all(store, 1, 2)
    assert await stop(store, now=NOW + 5) == Stopped(cancelled=0, dropped=1)
    assert await outcome(store, one) == (RunState.CANCELLED, STOPPED)
    assert (await row(store, one)).finished_at == from_micros(NOW + 5)
    assert (await claim_one(store)).id == two


async def test_stop_takes_the_oldest_and_then_the_next_oldest(store: Store) -> None:
    await send_all(store, 1, 2, 3, max_concurrent=2)
    one, two = (await store.runs.claim_runs(claim())).runs
    await stop(store)
    assert await told(store) == {one.id: STOPPED}
    assert await stop(store) == Stopped(cancelled=1, dropped=0)
    assert await told(store) == {one.id: STOPPED, two.id: STOPPED}
    assert await stop(store) == Stopped(), "the third waits, and has no turn that could be taken"


async def test_stop_takes_a_queued_one_that_is_older_than_what_runs(store: Store) -> None:
    later, running = await send_all(store, 1, 2, max_concurrent=2)
    run = await claim_one(store, room=1)
    assert run.id == later
    await store.runs.finish_runs([retry(run, ready_at=NOW + HOUR)])
    assert (await claim_one(store)).id == running
    await stop(store)
    assert await outcomes(store, [later, running]) == [RunState.CANCELLED, RunState.RUNNING]


async def test_stop_of_a_run_that_would_be_tried_again_is_its_end(store: Store) -> None:
    await send_all(store, 1, 2)
    run = await claim_one(store)
    await stop(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW)])
    assert await outcome(store, run.id) == (RunState.CANCELLED, STOPPED)
    assert payloads(await claim_one(store)) == [2]


# --- stop_all


async def test_stop_all_tells_what_runs_and_ends_what_is_queued(store: Store) -> None:
    sent = await send_all(store, 1, 2, 3, 4, 5, max_concurrent=2)
    runs = (await store.runs.claim_runs(claim())).runs
    assert await stop_all(store, now=NOW + 5) == Stopped(cancelled=2, dropped=3)
    assert await told(store) == dict.fromkeys(ids(runs), STOPPED)
    for id in sent[2:]:
        assert await outcome(store, id) == (RunState.CANCELLED, STOPPED)
    assert (await session(store)).stopped_at == from_micros(NOW + 5)
    done = await store.runs.finish_runs([finish(run, RunState.CANCELLED) for run in runs], claim())
    assert (list(done.lost), list(done.claimed.runs)) == ([], [])


async def test_a_call_sent_before_the_cutoff_is_stale_when_it_arrives(store: Store) -> None:
    await stop_all(store, now=NOW + 5)
    stale, fresh = await store.sessions.send([call(1, at=NOW + 4), call(2, at=NOW + 5)], NOW + 9)
    assert (stale.delivery, fresh.delivery) == (Delivery.STALE, Delivery.QUEUED)
    assert await outcome(store, stale.id) == (RunState.SKIPPED, STALE)
    assert await run_all(store, now=NOW + 9) == [[2]]


async def test_a_fire_that_was_on_its_way_when_all_was_stopped_is_stale(store: Store) -> None:
    for name, began, state in (("late", NOW + 4, RunState.SKIPPED), ("new", NOW + 5, RunState.QUEUED)):
        id = await put(store, name, next_at=NOW)
        fire = scheduled_run(id, NOW, session="s", waiting=True, mode=Mode.QUEUE)
        await stop_all(store, now=NOW + 5)
        assert (await store.schedules.record_fires([plan(id, read_next_at=NOW, runs=(fire,))], began)).moved == [id]
        (run,) = await store.runs.list_runs(RunFilter(schedule_id=id))
        assert (run.state, ending(run)) == (state, STALE if state is RunState.SKIPPED else None)


async def test_a_trigger_that_was_on_its_way_when_all_was_stopped_is_stale(store: Store) -> None:
    await stop_all(store, now=NOW + 5)
    late, new = [
        await store.runs.trigger_run(new_run(session="s", waiting=True, mode=Mode.QUEUE, ready_at=NOW + n), None)
        for n in (4, 5)
    ]
    assert await outcome(store, late) == (RunState.SKIPPED, STALE)
    assert (await claim_one(store, now=NOW + 5)).id == new


async def test_a_repeat_that_was_on_its_way_when_all_was_stopped_is_stale(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await store.runs.finish_runs([finish(run)])
    await stop_all(store, now=NOW + 5)
    assert await outcome(store, await store.runs.repeat_run(run.id, NOW + 4)) == (RunState.SKIPPED, STALE)
    again = await store.runs.repeat_run(run.id, NOW + 5)
    assert (await claim_one(store, now=NOW + 5)).id == again


async def test_after_stop_all_a_new_message_waits_for_what_is_still_stopping(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await stop_all(store)
    await send(store, 2)
    assert list((await store.runs.claim_runs(claim())).runs) == []
    assert await carry_on(store, run, RunState.CANCELLED) == [[2]]


async def test_a_message_sent_before_the_cutoff_is_stale_when_it_arrives(store: Store) -> None:
    await stop_all(store, now=NOW + 5)
    sent = await send(store, 1, at=NOW + 4, arrives=NOW + 9)
    assert sent.delivery is Delivery.STALE
    assert await outcome(store, sent.id) == (RunState.SKIPPED, STALE)
    shown = await row(store, sent.id)
    assert (shown.due_at, shown.finished_at, payloads(shown)) == (from_micros(NOW + 4), from_micros(NOW + 9), [1])
    assert await run_all(store, now=NOW + HOUR) == []


async def test_a_stale_message_does_nothing_to_its_session(store: Store) -> None:
    await stop_all(store, now=NOW + 5)
    await send(store, 1, at=NOW + 5, max_concurrent=2)
    run = await claim_one(store, now=NOW + 5)
    await send(store, 2, at=NOW + 6, debounce=SECOND)
    stale = await send(store, 3, at=NOW, arrives=NOW + 7, mode=Mode.INTERRUPT, cap=1, max_concurrent=9)
    assert (stale.delivery, list(stale.cancelled), list(stale.dropped)) == (Delivery.STALE, [], [])
    assert (await row(store, run.id)).state is RunState.RUNNING
    assert await told(store) == {}
    shown = await session(store)
    assert (shown.max_concurrent, shown.queued) == (2, 1)


async def test_a_cutoff_that_is_far_ahead_comes_from_a_wrong_clock_and_holds_up_nobody(store: Store) -> None:
    await stop_all(store, now=NOW + 5 * MINUTE)
    assert (await send(store, 1, session="s", at=NOW)).delivery is Delivery.STALE
    assert (await send(store, 2, session="s", at=NOW - 1)).delivery is Delivery.QUEUED


async def test_a_cutoff_never_goes_back(store: Store) -> None:
    await stop_all(store, now=NOW + 9)
    await stop_all(store, now=NOW + 5)
    assert (await session(store)).stopped_at == from_micros(NOW + 9)
    assert (await send(store, 1, at=NOW + 8)).delivery is Delivery.STALE


async def test_a_run_that_waited_for_another_try_does_not_start_after_stop_all(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW + MINUTE)])
    assert await stop_all(store) == Stopped(cancelled=0, dropped=1)
    assert await run_all(store, now=NOW + HOUR) == []
    assert await outcome(store, run.id) == (RunState.CANCELLED, STOPPED)


@pytest.mark.parametrize("counted", [True, False], ids=["failed", "cut off"])
async def test_a_run_that_is_put_back_after_stop_all_does_not_start(store: Store, counted: bool) -> None:
    await send(store, 1)
    run = await claim_one(store)
    assert await stop_all(store) == Stopped(cancelled=1, dropped=0)
    await store.runs.finish_runs([retry(run, ready_at=NOW, counted=counted)])
    assert await outcome(store, run.id) == (RunState.CANCELLED, STOPPED)
    assert await run_all(store, now=NOW + HOUR) == []


async def test_a_run_that_is_rescued_after_stop_all_does_not_start(store: Store) -> None:
    await store.nodes.renew(beat("node-1"))
    await send(store, 1)
    run = await claim_one(store)
    await stop_all(store)
    (stale,) = (await store.runs.stale_runs([(NodeId("node-1"), NOW)], NOW + MINUTE)).runs
    done = await store.runs.finish_runs([retry(stale, ready_at=NOW)], claim(node="node-2", now=NOW + HOUR))
    assert list(done.claimed.runs) == []
    assert await outcome(store, run.id) == (RunState.CANCELLED, STOPPED)


async def test_who_was_told_before_is_told_and_counted_once(store: Store) -> None:
    await send_all(store, 1, 2, max_concurrent=2)
    one, two = (await store.runs.claim_runs(claim())).runs
    await stop(store)
    assert await stop_all(store) == Stopped(cancelled=1, dropped=0)
    assert await stop_all(store) == Stopped()
    assert sorted(await told(store)) == ids([one, two])


async def test_an_interrupted_run_stays_interrupted_when_all_is_stopped(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await send(store, 2, mode=Mode.INTERRUPT)
    assert await stop_all(store) == Stopped(cancelled=0, dropped=1)
    assert await told(store) == {run.id: INTERRUPTED}


async def test_stopped_work_still_gets_its_final_write(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await stop_all(store)
    end = finish(run, RunState.CANCELLED, **STOPPED._asdict(), result='"half"', output=said("tidied up"))
    await store.runs.finish_runs([end])
    shown = await row(store, run.id)
    assert (shown.state, ending(shown), shown.result) == (RunState.CANCELLED, STOPPED, "half")
    assert await printed(store, run.id) == "tidied up"
