"""Events: what happened in sessions, each recorded once, in order, with what people want to know."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.event import Event, EventKind
from ostinato.models.ids import RunId
from ostinato.models.run import INTERRUPTED, Ending
from ostinato.models.session import DROPPED, REFUSED, STALE, Drop, Mode
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    claim_one,
    finish,
    new_run,
    plan,
    put,
    retry,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import call, carry_on, events, send, send_all

DUE = NOW + 5 * MINUTE


def brief(told: list[Event]) -> list[tuple[str, RunId | None]]:
    return [(event.kind, event.run) for event in told]


async def said(store: Store, run: RunId | None, kind: EventKind) -> dict[str, Any]:
    """What the one event of this kind says of a run."""
    (event,) = [event for event in await events(store) if (event.run, event.kind) == (run, kind)]
    return dict(event.data)


async def test_a_message_is_enqueued_started_and_finished(store: Store) -> None:
    sent = await send(store, 1)
    await store.runs.finish_runs([finish(await claim_one(store, now=NOW + 5), RunState.FAILED, reason="it raised")])
    told = await events(store)
    assert brief(told) == [("enqueued", sent.id), ("started", sent.id), ("finished", sent.id)]
    assert [event.at for event in told] == [from_micros(NOW), from_micros(NOW + 5), from_micros(NOW + 2 * SECOND)]
    assert {event.session for event in told} == {"s"}
    assert [event.data["state"] for event in told] == ["queued", "running", "failed"]
    assert told[2].data["reason"] == "it raised"


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.CANCELLED, RunState.SUPERSEDED, RunState.SKIPPED])
async def test_every_end_of_what_ran_is_a_finish(store: Store, state: RunState) -> None:
    sent = await send(store, 1)
    await carry_on(store, await claim_one(store), state)
    assert (await said(store, sent.id, EventKind.FINISHED))["state"] == state


async def test_each_attempt_is_a_start_and_only_the_last_is_a_finish(store: Store) -> None:
    sent = await send(store, 1)
    await store.runs.finish_runs([retry(await claim_one(store), ready_at=NOW)])
    await carry_on(store, await claim_one(store))
    told = await events(store)
    assert [event.kind for event in told] == ["enqueued", "started", "started", "finished"]
    assert [event.data["attempt"] for event in told] == [0, 1, 2, 2]
    assert {event.run for event in told} == {sent.id}


async def test_a_message_that_joins_is_debounced_and_has_no_other_event(store: Store) -> None:
    burst = await send(store, 1, debounce=SECOND)
    await send(store, 2, debounce=SECOND)
    enqueued, debounced = await events(store)
    assert (enqueued.kind, enqueued.run) == ("enqueued", burst.id)
    assert (debounced.kind, dict(debounced.data)) == ("debounced", {"into": burst.id})
    assert debounced.run not in (None, burst.id), "it has a row of its own"


async def test_what_a_full_queue_loses_is_dropped(store: Store) -> None:
    one = await send(store, 1, cap=1)
    two = await send(store, 2, cap=1)
    assert brief(await events(store)) == [("enqueued", one.id), ("dropped", one.id), ("enqueued", two.id)]
    assert (await said(store, one.id, EventKind.DROPPED))["reason"] == DROPPED.reason


async def test_a_refused_message_is_dropped_without_a_run(store: Store) -> None:
    one = await send(store, 1, cap=1)
    await send(store, 2, cap=1, drop=Drop.NEW)
    assert brief(await events(store)) == [("enqueued", one.id), ("dropped", None)]
    assert (await said(store, None, EventKind.DROPPED))["reason"] == REFUSED


async def test_a_stale_message_is_dropped(store: Store) -> None:
    await store.sessions.stop("s", everything=True, now=NOW + 5)
    stale = await send(store, 1, arrives=NOW + 9)
    assert brief(await events(store)) == [("stopped", None), ("dropped", stale.id)]
    assert (await said(store, stale.id, EventKind.DROPPED))["reason"] == STALE.reason


async def test_what_an_interrupt_ends_is_finished_as_superseded(store: Store) -> None:
    running, queued = await send_all(store, 1, 2)
    run = await claim_one(store)
    new = await send(store, 3, mode=Mode.INTERRUPT)
    await carry_on(store, run, RunState.SUPERSEDED)
    assert brief(await events(store))[3:] == [
        ("finished", queued),
        ("enqueued", new.id),
        ("finished", running),
        ("started", new.id),
    ]
    assert await said(store, queued, EventKind.FINISHED) == {
        "state": "superseded",
        "attempt": 0,
        **INTERRUPTED._asdict(),
    }


async def test_a_stop_is_told_with_what_it_did(store: Store) -> None:
    one = await send(store, 1)
    await store.sessions.stop("s", everything=False, now=NOW + 5)
    first, *rest = await events(store)
    assert (first.kind, first.run) == ("enqueued", one.id)
    assert sorted(brief(rest), key=str) == [("finished", one.id), ("stopped", None)]
    assert await said(store, None, EventKind.STOPPED) == {"cancelled": 0, "dropped": 1}


async def test_a_stop_of_everything_is_told_once(store: Store) -> None:
    sent = await send_all(store, 1, 2, 3, max_concurrent=1)
    run = await claim_one(store)
    await store.sessions.stop("s", everything=True, now=NOW + 5)
    await carry_on(store, run, RunState.CANCELLED)
    told = brief(await events(store))[4:]
    assert sorted(told[:3], key=str) == [("finished", sent[1]), ("finished", sent[2]), ("stopped", None)]
    assert told[3:] == [("finished", sent[0])]
    assert await said(store, None, EventKind.STOPPED) == {"cancelled": 1, "dropped": 2}


async def test_what_expires_is_finished(store: Store) -> None:
    sent = await send(store, 1, expires_at=NOW + SECOND)
    other = await send(store, 2)
    assert (await claim_one(store, now=NOW + SECOND)).id == other.id
    assert brief(await events(store))[2:] == [("finished", sent.id), ("started", other.id)]
    assert (await said(store, sent.id, EventKind.FINISHED))["state"] == "expired"


async def test_an_end_that_is_written_twice_is_told_once(store: Store) -> None:
    """A node whose connection broke during the commit asks again."""
    await send(store, 1)
    end = finish(await claim_one(store))
    await store.runs.finish_runs([end])
    await store.runs.finish_runs([end])
    assert [event.kind for event in await events(store)] == ["enqueued", "started", "finished"]


async def test_a_late_end_of_an_older_generation_is_not_told(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await store.sessions.stop("s", everything=True, now=NOW)
    await store.runs.finish_runs([finish(run, RunState.CANCELLED)])
    before = await events(store)
    await store.runs.finish_runs([finish(run, RunState.SUCCEEDED)])
    assert await events(store) == before


async def test_each_end_of_a_batch_is_told_with_its_own_time(store: Store) -> None:
    for name in ("a", "b", "c"):
        await send(store, 1, session=name)
    runs = (await store.runs.claim_runs(claim())).runs
    times = {run.id: NOW + n * SECOND for run, n in zip(runs, (3, 1, 2), strict=True)}
    await store.runs.finish_runs([finish(run, finished_at=times[run.id]) for run in runs])
    told = [event for name in ("a", "b", "c") for event in await events(store, name) if event.kind == "finished"]
    assert {event.run: event.at for event in told} == {id: from_micros(at) for id, at in times.items()}


async def test_a_fire_in_the_session_of_its_policy_is_told(store: Store) -> None:
    id = await put(store)
    fired = scheduled_run(id, DUE, session="s", waiting=True, mode=Mode.QUEUE)
    await store.schedules.record_fires([plan(id, runs=(fired,))], DUE)
    run = await claim_one(store, now=DUE)
    await carry_on(store, run)
    assert brief(await events(store)) == [("enqueued", run.id), ("started", run.id), ("finished", run.id)]


async def test_a_repeat_in_a_session_is_told(store: Store) -> None:
    await send(store, 1)
    run = await claim_one(store)
    await carry_on(store, run)
    again = await store.runs.repeat_run(run.id, NOW + 5)
    assert brief(await events(store))[3:] == [("enqueued", again)]


async def test_a_fire_that_came_too_late_is_dropped_and_nothing_else(store: Store) -> None:
    id = await put(store)
    await store.sessions.stop("s", everything=True, now=DUE + 5)
    fired = scheduled_run(id, DUE, session="s", waiting=True, mode=Mode.QUEUE)
    await store.schedules.record_fires([plan(id, runs=(fired,))], DUE)
    assert [event.kind for event in await events(store)] == ["stopped", "dropped"]


async def test_the_turns_of_an_overlap_are_not_told(store: Store) -> None:
    id = await put(store)
    runs = [scheduled_run(id, DUE + n, session="schedule:report", waiting=True) for n in (0, 1, 2)]
    await store.schedules.record_fires([plan(id, runs=tuple(runs))], DUE)
    first = await claim_one(store, now=DUE + HOUR)
    await store.runs.finish_runs([finish(first)])
    second = await claim_one(store, now=DUE + HOUR)
    await store.runs.cancel_runs([RunId(second.id + 1)], Ending(Cause.CANCELLED, "not needed"), NOW)
    assert await events(store, None) == []


async def test_runs_in_no_session_are_not_told(store: Store) -> None:
    await store.runs.insert_runs([new_run(), new_run()])
    run = await claim_one(store, room=1)
    await store.runs.finish_runs([finish(run)])
    await store.lanes.clear_lane("main", NOW, None, 10)
    assert await events(store, None) == []


async def test_events_are_read_from_where_one_left_off(store: Store) -> None:
    for number in range(3):
        await send(store, number, session="a")
        await send(store, number, session="b")
    everything = await events(store, None)
    assert [event.session for event in everything] == ["a", "b"] * 3
    assert [event.id for event in everything] == sorted({event.id for event in everything})
    assert await store.sessions.list_events(None, everything[1].id, 3) == everything[2:5]
    assert await store.sessions.list_events("b", everything[1].id, 10) == [everything[3], everything[5]]
    assert await store.sessions.list_events("c", 0, 10) == []
    assert await store.sessions.list_events(None, everything[-1].id, 10) == []


async def test_the_newest_events_come_in_order_too(store: Store) -> None:
    for number in range(3):
        await send(store, number, session="a")
        await send(store, number, session="b")
    everything = await events(store, None)
    assert await store.sessions.list_events(None, 0, 2, newest=True) == everything[-2:]
    assert await store.sessions.list_events("a", 0, 2, newest=True) == [everything[2], everything[4]]
    assert await store.sessions.list_events(None, everything[3].id, 99, newest=True) == everything[4:]


async def test_calls_of_one_batch_are_each_told(store: Store) -> None:
    sent = await store.sessions.send([call(1), call(2, session="t"), call(3)], NOW)
    assert brief(await events(store, None)) == [("enqueued", one.id) for one in sent]
