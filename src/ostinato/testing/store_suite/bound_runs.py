"""Runs that wait in a session for the one process that executes them: in turn with others, and never claimed."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import INTERRUPTED, NEVER_STARTED, WAITED_TOO_LONG, ClaimedRun, Ending, NewRun
from ostinato.models.session import DROPPED, STALE, Mode
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Bound, Store
from ostinato.testing.store_suite.builders import (
    MINUTE,
    NOW,
    all_runs,
    beat,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
)
from ostinato.testing.store_suite.mailbox import events, outcome, row, send, send_all, session

HERE = NodeId("here")


def foreground(**fields: Any) -> NewRun:
    """A run of session `s` as `execute` makes it."""
    given = {"session": "s", "waiting": True, "mode": Mode.QUEUE, "trigger": Trigger.MANUAL, **fields}
    return new_run(**given)


async def queued(store: Store, **fields: Any) -> RunId:
    """Queue one for the node `here`."""
    bound = await store.runs.queue_bound(foreground(**fields), HERE, NOW)
    assert bound.id is not None
    return bound.id


async def started(store: Store, id: RunId, now: int = NOW) -> ClaimedRun:
    (run,) = (await store.runs.start_bound(id, HERE, now)).runs
    return run


async def test_a_bound_run_is_started_by_its_node_as_a_claim_would(store: Store) -> None:
    id = await queued(store)
    assert (await store.runs.claim_runs(claim())).runs == []
    run = await started(store, id, NOW + 5)
    assert (run.id, run.token, run.attempt, run.node, run.session) == (id, 1, 1, HERE, "s")
    shown = await row(store, id)
    assert (shown.state, shown.trigger, shown.node) == (RunState.RUNNING, Trigger.MANUAL, HERE)
    assert list((await store.runs.finish_runs([finish(run)])).lost) == []
    assert [event.kind for event in await events(store)] == ["enqueued", "started", "finished"]


async def test_bound_runs_take_turns_with_messages_in_the_order_in_which_they_came(store: Store) -> None:
    await send(store, "first")
    id = await queued(store)
    last = await send(store, "last")
    assert not (await store.runs.start_bound(id, HERE, NOW)).runs
    first = await claim_one(store)
    assert not (await store.runs.start_bound(id, HERE, NOW)).runs
    assert (await store.runs.finish_runs([finish(first)], claim())).claimed.runs == []
    run = await started(store, id)
    assert (await store.runs.claim_runs(claim())).runs == []
    done = await store.runs.finish_runs([finish(run)], claim())
    assert ids(done.claimed.runs) == [last.id]


async def test_a_bound_run_holds_up_no_other_work_of_its_lane(store: Store) -> None:
    await queued(store, priority=5)
    (other,) = await store.runs.insert_runs([new_run()])
    assert ids((await store.runs.claim_runs(claim())).runs) == [other]


async def test_a_bound_run_starts_in_a_lane_that_is_full_or_paused(store: Store) -> None:
    await store.lanes.pause_lane("main", True, None)
    id = await queued(store)
    assert (await started(store, id)).id == id


async def test_another_node_cannot_start_it(store: Store) -> None:
    id = await queued(store)
    assert not (await store.runs.start_bound(id, NodeId("elsewhere"), NOW)).runs
    assert (await row(store, id)).state is RunState.QUEUED


async def test_whoever_asks_again_gets_the_same_start(store: Store) -> None:
    id = await queued(store)
    first, second = await started(store, id), await started(store, id, NOW + SECOND)
    assert (first.token, second.token, second.attempt) == (1, 1, 1)
    assert [event.kind for event in await events(store)] == ["enqueued", "started"]


@pytest.mark.parametrize("mode", [Mode.QUEUE, Mode.FOLLOWUP])
async def test_what_must_not_wait_is_not_queued_where_it_would(store: Store, mode: Mode) -> None:
    sent = await send(store, "busy", mode=mode, max_concurrent=2 if mode is Mode.FOLLOWUP else 1)
    await send(store, "behind it")
    before_it_starts = await store.runs.queue_bound(foreground(), HERE, NOW, wait=False)
    await claim_one(store)
    while_it_runs = await store.runs.queue_bound(foreground(), HERE, NOW, wait=False)
    assert before_it_starts == while_it_runs == Bound(None, sent.id)
    assert len(await all_runs(store)) == 2


async def test_what_must_not_wait_is_queued_where_there_is_room(store: Store) -> None:
    await send(store, "beside it", max_concurrent=2)
    bound = await store.runs.queue_bound(foreground(), HERE, NOW, wait=False)
    assert bound.id is not None
    assert (await started(store, bound.id)).session == "s"
    full = await store.runs.queue_bound(foreground(), HERE, NOW, wait=False)
    assert full.id is None


async def test_in_a_full_session_it_waits_again_beside_what_is_under_way(store: Store) -> None:
    await send(store, "under way", max_concurrent=3)
    under_way = await claim_one(store)
    first, second = [await queued(store) for _ in range(2)]
    for id in (first, second):
        assert not (await store.runs.start_bound(id, HERE, NOW, is_full=True)).runs
        assert (await row(store, id)).waiting
    assert (await session(store)).throttled
    await store.runs.finish_runs([finish(under_way)])
    assert not (await store.runs.start_bound(second, HERE, NOW, is_full=True)).runs
    claimed = await store.runs.start_bound(first, HERE, NOW, is_full=True)
    (run,) = claimed.runs
    assert await store.runs.start_bound(first, HERE, NOW, is_full=True) == claimed, "its answer was lost"
    await store.runs.finish_runs([finish(run)])
    assert (await store.runs.start_bound(second, HERE, NOW, is_full=True)).runs


async def test_in_a_full_session_it_waits_behind_an_older_run_that_has_its_turn(store: Store) -> None:
    await send(store, "older", max_concurrent=3)
    id = await queued(store)
    assert not (await store.runs.start_bound(id, HERE, NOW, is_full=True)).runs
    assert (await row(store, id)).waiting
    await store.runs.finish_runs([finish(await claim_one(store))])
    assert (await store.runs.start_bound(id, HERE, NOW, is_full=True)).runs


async def test_a_start_in_a_session_that_is_full_no_longer_lets_others_go_beside_it(store: Store) -> None:
    await send(store, "three at once", max_concurrent=3)
    first = await claim_one(store)
    assert await store.sessions.hold_back([first], NOW) == [first.id]
    ids = [await queued(store) for _ in range(2)]
    await store.runs.finish_runs([finish(first)])
    assert not (await store.runs.start_bound(ids[1], HERE, NOW)).runs
    for id in ids:
        assert (await store.runs.start_bound(id, HERE, NOW, is_full=False)).runs
    assert not (await session(store)).throttled


async def test_what_must_not_wait_is_not_queued_beside_others_in_a_full_session(store: Store) -> None:
    sent = await send(store, "under way", max_concurrent=3)
    assert await store.runs.queue_bound(foreground(), HERE, NOW, wait=False, is_full=True) == Bound(None, sent.id)
    assert (await store.runs.queue_bound(foreground(), HERE, NOW, wait=False)).id is not None


async def test_one_that_is_cancelled_while_it_waits_never_starts(store: Store) -> None:
    await send(store)
    id = await queued(store)
    ending = Ending(Cause.CANCELLED, "not now")
    assert list((await store.runs.cancel_runs([id], ending, NOW)).ended) == [id]
    assert not (await store.runs.start_bound(id, HERE, NOW)).runs
    assert await outcome(store, id) == (RunState.CANCELLED, ending)


async def test_one_that_waits_longer_than_its_max_age_expires_without_any_claim(store: Store) -> None:
    await send(store)
    id = await queued(store, expires_at=NOW + SECOND)
    assert not (await store.runs.start_bound(id, HERE, NOW)).runs
    assert (await row(store, id)).state is RunState.QUEUED
    assert not (await store.runs.start_bound(id, HERE, NOW + SECOND)).runs
    assert await outcome(store, id) == (RunState.EXPIRED, WAITED_TOO_LONG)


async def test_a_stopped_session_takes_nothing_that_began_before(store: Store) -> None:
    await send(store)
    waiting = await queued(store)
    await store.sessions.stop("s", everything=True, now=NOW + SECOND)
    late = await queued(store)
    assert (await row(store, waiting)).cause is Cause.SESSION_STOPPED
    assert await outcome(store, late) == (RunState.SKIPPED, STALE)


async def test_an_interrupting_message_goes_before_it_and_a_full_queue_does_not_drop_it(store: Store) -> None:
    await send(store, "held")
    await send(store, "old")
    id = await queued(store)
    sent = await send(store, "new", cap=1)
    assert await outcome(store, id) == (RunState.QUEUED, None)
    assert [(await row(store, one)).reason for one in sent.dropped] == [DROPPED.reason] * len(sent.dropped)
    await send(store, "now", mode=Mode.INTERRUPT)
    assert await outcome(store, id) == (RunState.SUPERSEDED, INTERRUPTED)


async def test_one_under_way_is_told_when_it_is_interrupted(store: Store) -> None:
    id = await queued(store)
    await started(store, id)
    assert (await send(store, "now", mode=Mode.INTERRUPT)).cancelled == (id,)


async def test_when_its_node_is_lost_it_is_known_as_such_and_frees_its_session(store: Store) -> None:
    await store.nodes.renew(beat(HERE))
    id = await queued(store)
    behind = await send(store, "behind it")
    assert list((await store.runs.stale_runs([], NOW + MINUTE)).bound) == []
    stale = await store.runs.stale_runs([(HERE, NOW)], NOW + MINUTE)
    assert (list(stale.runs), list(stale.bound)) == ([], [id])
    assert not (await store.runs.start_bound(id, HERE, NOW + MINUTE)).runs, (
        "a node that was declared lost starts nothing"
    )
    assert list((await store.runs.cancel_runs(stale.bound, NEVER_STARTED, NOW + MINUTE)).ended) == [id]
    assert await outcome(store, id) == (RunState.FAILED, NEVER_STARTED)
    assert (await claim_one(store)).id == behind.id
    assert list((await store.runs.stale_runs([], NOW + MINUTE)).bound) == []


async def test_one_whose_node_has_vanished_is_known_too(store: Store) -> None:
    id = await queued(store)
    assert list((await store.runs.stale_runs([], NOW)).bound) == [id]
    run = await started(store, id)
    stale = await store.runs.stale_runs([], NOW)
    assert (ids(stale.runs), list(stale.bound)) == ([run.id], [])


async def test_a_beat_tells_a_node_what_is_queued_for_it(store: Store) -> None:
    assert (await store.nodes.renew(beat(HERE))).bound == ()
    first, second = [await queued(store) for _ in range(2)]
    await store.runs.queue_bound(foreground(), NodeId("elsewhere"), NOW)
    found = await store.nodes.renew(beat(HERE))
    assert (sorted(found.bound), found.owned) == ([first, second], ())
    await started(store, first)
    found = await store.nodes.renew(beat(HERE))
    assert (list(found.bound), [run.id for run in found.owned]) == ([second], [first])


async def test_one_that_goes_back_to_the_queue_is_anybodys(store: Store) -> None:
    run = await started(store, await queued(store))
    again = finish(run, RunState.QUEUED, ready_at=NOW, cause=Cause.SNOOZED, reason="not yet", counted=False)
    await store.runs.finish_runs([again])
    assert (await claim_one(store)).id == run.id


async def test_runs_that_share_a_turn_go_one_after_the_other_and_are_in_no_session_that_people_see(
    store: Store,
) -> None:
    line = "schedule: run 7"
    first, second = [await queued(store, session=line, mode=None) for _ in range(2)]
    assert not (await store.runs.start_bound(second, HERE, NOW)).runs
    await store.runs.finish_runs([finish(await started(store, first))])
    assert (await started(store, second)).session == line
    assert await store.sessions.get_session(line) is None
    assert await events(store, None) == []


async def test_nobody_misses_a_task_that_only_its_own_process_knows(store: Store) -> None:
    await queued(store, task="mine")
    assert await store.runs.unclaimable_runs(NOW + MINUTE) == []


async def test_a_retry_waits_in_the_session_of_its_turn(store: Store) -> None:
    (plain,) = await store.runs.insert_runs([new_run()])
    await store.runs.finish_runs([finish(await claim_one(store))])
    (first,) = await send_all(store, "first")
    again = await store.runs.repeat_run(plain, NOW, "s")
    shown = await row(store, again)
    assert (shown.session, shown.waiting) == ("s", True)
    assert (await session(store)).queued == 2
    beside = await store.runs.repeat_run(plain, NOW)
    assert (await row(store, beside)).session is None
    assert first != again
