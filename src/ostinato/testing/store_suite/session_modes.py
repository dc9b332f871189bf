"""What a message does to its session: wait alone (followup), go next (interrupt), or go where the queue is full."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND
from ostinato.models.ids import NodeId
from ostinato.models.run import INTERRUPTED, ClaimedRun
from ostinato.models.session import DROPPED, Delivery, Drop, Mode, Sent
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    all_runs,
    beat,
    claim,
    claim_one,
    finish,
    ids,
    retry,
)
from ostinato.testing.store_suite.mailbox import (
    call,
    carry_on,
    outcome,
    outcomes,
    payloads,
    row,
    run_all,
    send,
    send_all,
    told,
)


async def ready(store: Store, **fields: Any) -> list[Any]:
    """Claim what may go; answers the payloads of each run."""
    return [payloads(run) for run in (await store.runs.claim_runs(claim(**fields))).runs]


async def under_way(store: Store, *numbers: int, **fields: Any) -> list[ClaimedRun]:
    """Send messages and start them all."""
    await send_all(store, *numbers, **{"max_concurrent": len(numbers), **fields})
    runs = (await store.runs.claim_runs(claim())).runs
    assert len(runs) == len(numbers)
    return list(runs)


# --- followup


async def test_a_followup_waits_until_nothing_of_its_session_is_under_way(store: Store) -> None:
    one, two = await under_way(store, 1, 2, max_concurrent=3)
    await send(store, 3, mode=Mode.FOLLOWUP)
    assert await ready(store) == []
    assert await carry_on(store, two) == []
    assert await carry_on(store, one) == [[3]]


async def test_a_followup_waits_for_one_that_will_be_tried_again(store: Store) -> None:
    (run,) = await under_way(store, 1, max_concurrent=3)
    await send(store, 2, mode=Mode.FOLLOWUP)
    await store.runs.finish_runs([retry(run, ready_at=NOW + MINUTE)])
    assert await ready(store) == []


async def test_nothing_starts_next_to_a_followup(store: Store) -> None:
    await send(store, 1, mode=Mode.FOLLOWUP, max_concurrent=3)
    run = await claim_one(store)
    await send_all(store, 2, 3, 4, 5)
    assert await ready(store) == []
    assert await carry_on(store, run) == [[2], [3], [4]]


async def test_nobody_overtakes_a_followup_that_waits(store: Store) -> None:
    (one,) = await under_way(store, 1, max_concurrent=3)
    await send(store, 2, mode=Mode.FOLLOWUP)
    await send_all(store, 3, 4)
    assert await ready(store) == []
    assert await carry_on(store, one) == [[2]]
    assert await ready(store) == []


async def test_what_goes_before_a_followup_goes_together(store: Store) -> None:
    (one,) = await under_way(store, 1, max_concurrent=1)
    await send_all(store, 2, 3, max_concurrent=1)
    await send(store, 4, mode=Mode.FOLLOWUP, max_concurrent=1)
    await send(store, 5, max_concurrent=4)
    assert await ready(store) == [[2], [3]]
    assert await carry_on(store, one) == []


async def test_messages_join_a_followup_after_its_timer_while_something_runs(store: Store) -> None:
    (run,) = await under_way(store, 1, max_concurrent=1)
    waiting = await send(store, 2, mode=Mode.FOLLOWUP, debounce=SECOND)
    late = NOW + HOUR
    joined = await send(store, 3, mode=Mode.FOLLOWUP, debounce=SECOND, at=late)
    assert joined == Sent(Delivery.DEBOUNCED, waiting.id)
    await store.runs.finish_runs([finish(run)])
    assert await ready(store, now=late + SECOND) == [[2, 3]]


async def test_a_message_to_the_queue_does_not_join_after_the_timer(store: Store) -> None:
    await under_way(store, 1, max_concurrent=1)
    waiting = await send(store, 2, debounce=SECOND)
    assert (await send(store, 3, debounce=SECOND, at=NOW + HOUR)).delivery is Delivery.QUEUED
    assert payloads(await row(store, waiting.id)) == [2]


# --- interrupt


async def test_an_interrupt_tells_what_runs_to_stop_and_ends_what_is_queued(store: Store) -> None:
    runs = await under_way(store, 1, 2)
    queued = await send_all(store, 3, 4)
    sent = await send(store, 5, mode=Mode.INTERRUPT)
    assert sent == Sent(Delivery.QUEUED, sent.id, (), tuple(ids(runs)))
    assert await told(store) == dict.fromkeys(ids(runs), INTERRUPTED)
    assert await outcomes(store, ids(runs)) == [RunState.RUNNING] * 2
    for id in queued:
        assert await outcome(store, id) == (RunState.SUPERSEDED, INTERRUPTED)


async def test_an_interrupted_run_that_would_be_tried_again_is_superseded(store: Store) -> None:
    (run,) = await under_way(store, 1)
    await send(store, 2, mode=Mode.INTERRUPT)
    assert list((await store.runs.finish_runs([retry(run, ready_at=NOW)])).lost) == []
    assert await outcome(store, run.id) == (RunState.SUPERSEDED, INTERRUPTED)
    assert await ready(store) == [[2]]


async def test_an_interrupted_run_whose_node_was_cut_off_is_superseded(store: Store) -> None:
    (run,) = await under_way(store, 1)
    await send(store, 2, mode=Mode.INTERRUPT)
    await store.runs.finish_runs([retry(run, ready_at=NOW, counted=False, attempt_state=None, error=None)])
    assert await outcome(store, run.id) == (RunState.SUPERSEDED, INTERRUPTED)


async def test_an_interrupted_run_whose_node_crashed_is_superseded_by_the_rescue(store: Store) -> None:
    await store.nodes.renew(beat("node-1"))
    (run,) = await under_way(store, 1)
    await send(store, 2, mode=Mode.INTERRUPT)
    (stale,) = (await store.runs.stale_runs([(NodeId("node-1"), NOW)], NOW + MINUTE)).runs
    assert stale.id == run.id
    done = await store.runs.finish_runs([retry(stale, ready_at=NOW)], claim(node="node-2", now=NOW + MINUTE))
    assert await outcome(store, run.id) == (RunState.SUPERSEDED, INTERRUPTED)
    assert [payloads(run) for run in done.claimed.runs] == [[2]]


async def test_a_run_that_waits_for_another_try_is_superseded_at_once(store: Store) -> None:
    (run,) = await under_way(store, 1)
    await store.runs.finish_runs([retry(run, ready_at=NOW + HOUR)])
    sent = await send(store, 2, mode=Mode.INTERRUPT)
    assert list(sent.cancelled) == []
    assert await outcome(store, run.id) == (RunState.SUPERSEDED, INTERRUPTED)
    assert await ready(store) == [[2]]


async def test_an_interrupted_run_that_ends_well_has_ended_well(store: Store) -> None:
    (run,) = await under_way(store, 1)
    await send(store, 2, mode=Mode.INTERRUPT)
    assert await carry_on(store, run) == [[2]]
    assert (await row(store, run.id)).state is RunState.SUCCEEDED


async def test_a_second_interrupt_replaces_the_first_and_tells_nobody_twice(store: Store) -> None:
    (run,) = await under_way(store, 1)
    first = await send(store, 2, mode=Mode.INTERRUPT)
    second = await send(store, 3, mode=Mode.INTERRUPT)
    assert list(second.cancelled) == []
    assert await outcome(store, first.id) == (RunState.SUPERSEDED, INTERRUPTED)
    assert await carry_on(store, run) == [[3]]


async def test_an_interrupting_message_joins_the_burst_that_interrupted_before_it(store: Store) -> None:
    (run,) = await under_way(store, 1)
    burst = await send(store, 2, mode=Mode.INTERRUPT, debounce=SECOND)
    joined = await send(store, 3, mode=Mode.INTERRUPT, debounce=SECOND, at=NOW + 1)
    assert joined == Sent(Delivery.DEBOUNCED, burst.id)
    await carry_on(store, run, RunState.SUPERSEDED)
    assert await ready(store, now=NOW + SECOND + 1) == [[2, 3]]


async def test_an_interrupting_message_joins_its_burst_and_stops_what_began_meanwhile(store: Store) -> None:
    burst = await send(store, 1, mode=Mode.INTERRUPT, debounce=SECOND, max_concurrent=2)
    await send(store, 2, max_concurrent=2)
    run = await claim_one(store)
    assert payloads(run) == [2]
    joined = await send(store, 3, mode=Mode.INTERRUPT, debounce=SECOND, max_concurrent=2)
    assert joined == Sent(Delivery.DEBOUNCED, burst.id, cancelled=(run.id,))
    assert payloads(await row(store, burst.id)) == [1, 3]


@pytest.mark.parametrize(
    "other",
    [{"debounce": 0}, {"task": "other"}, {"at": NOW + SECOND}],
    ids=["no debounce", "another task", "after the timer"],
)
async def test_an_interrupt_that_cannot_join_the_burst_supersedes_it(store: Store, other: dict[str, Any]) -> None:
    burst = await send(store, 1, mode=Mode.INTERRUPT, debounce=SECOND)
    sent = await send(store, 2, **{"mode": Mode.INTERRUPT, "debounce": SECOND, **other})
    assert sent.delivery is Delivery.QUEUED
    assert await outcome(store, burst.id) == (RunState.SUPERSEDED, INTERRUPTED)


async def test_an_interrupt_supersedes_an_open_burst_of_another_mode(store: Store) -> None:
    burst = await send(store, 1, debounce=SECOND)
    sent = await send(store, 2, mode=Mode.INTERRUPT, debounce=SECOND)
    assert sent.delivery is Delivery.QUEUED
    assert await outcome(store, burst.id) == (RunState.SUPERSEDED, INTERRUPTED)


# --- full queues


async def test_a_full_queue_loses_its_oldest(store: Store) -> None:
    one, two, three = await send_all(store, 1, 2, 3, cap=3)
    sent = await send(store, 4, cap=3)
    assert sent == Sent(Delivery.QUEUED, sent.id, (one,))
    assert await outcome(store, one) == (RunState.SKIPPED, DROPPED)
    assert await run_all(store) == [[2], [3], [4]]
    assert await outcomes(store, [two, three]) == [RunState.SUCCEEDED] * 2


async def test_a_full_queue_refuses_the_new_one(store: Store) -> None:
    await send_all(store, 1, 2, cap=2)
    assert await send(store, 3, cap=2, drop=Drop.NEW) == Sent(Delivery.REFUSED, None)
    assert len(await all_runs(store)) == 2
    assert await run_all(store) == [[1], [2]]


async def test_what_has_started_once_is_never_dropped(store: Store) -> None:
    (run,) = await under_way(store, 1)
    await store.runs.finish_runs([retry(run, ready_at=NOW)])
    waiting = await send(store, 2, cap=1)
    sent = await send(store, 3, cap=1)
    assert list(sent.dropped) == [waiting.id]
    assert await run_all(store) == [[1], [3]]


@pytest.mark.parametrize("later", [0, HOUR])
async def test_calls_from_code_do_not_count_and_are_not_dropped(store: Store, later: int) -> None:
    await store.sessions.send([call(1, later=later), call(2, later=later)], NOW)
    kept, refused = [await send(store, number, cap=1, drop=Drop.NEW) for number in (3, 4)]
    assert (kept.delivery, refused.delivery) == (Delivery.QUEUED, Delivery.REFUSED)
    assert (await send(store, 5, cap=1)).dropped == (kept.id,)
    assert sorted(await run_all(store, now=NOW + 2 * HOUR)) == [[1], [2], [5]]


async def test_an_interrupt_ends_what_is_to_start_later(store: Store) -> None:
    (sent,) = await store.sessions.send([call(1, later=HOUR)], NOW)
    await send(store, 2, mode=Mode.INTERRUPT)
    assert await outcome(store, sent.id) == (RunState.SUPERSEDED, INTERRUPTED)
