"""Schedules and runs by hand in a user session: they wait their turn among the messages."""

from __future__ import annotations

from typing import Any

from ostinato.clock import SECOND, from_micros
from ostinato.models.run import Ending
from ostinato.models.schedule import REMOVED
from ostinato.models.session import Mode
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    change,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    plan,
    put,
    retry,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import (
    carry_on,
    events,
    listed,
    outcome,
    payloads,
    row,
    run_all,
    send,
    send_all,
    session,
    told,
)

DUE = NOW + 5 * MINUTE


async def ready(store: Store, **fields: Any) -> list[Any]:
    """Claim what may go; answers the payloads of each run."""
    return [payloads(run) for run in (await store.runs.claim_runs(claim(**fields))).runs]


def in_session(schedule_id: Any, due_at: int = DUE, session: str = "s", mode: Mode | None = Mode.QUEUE) -> Any:
    return plan(
        schedule_id,
        read_next_at=due_at,
        runs=(scheduled_run(schedule_id, due_at, session=session, waiting=True, mode=mode),),
    )


async def test_a_fire_waits_its_turn_among_the_messages_of_its_policys_session(store: Store) -> None:
    id = await put(store)
    await send(store, 1)
    await store.schedules.record_fires([in_session(id)], DUE)
    await send(store, 2, at=DUE)
    first = await claim_one(store, now=DUE)
    assert payloads(first) == [1]
    (fired,) = (await store.runs.finish_runs([finish(first)], claim(now=DUE))).claimed.runs
    assert (fired.schedule, fired.session) == ("report", "s")
    assert await carry_on(store, fired, finished_at=DUE) == []
    assert await ready(store, now=DUE) == [[2]]


async def test_fires_go_as_many_at_once_as_the_session_allows(store: Store) -> None:
    id = await put(store)
    await send(store, 1, max_concurrent=2)
    for number in range(3):
        await store.schedules.record_fires([in_session(id, DUE + number * 5 * MINUTE)], DUE)
    assert len((await store.runs.claim_runs(claim(now=DUE + HOUR))).runs) == 2


async def test_a_fire_makes_its_session(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], DUE)
    shown = await session(store)
    assert (shown.queued, shown.max_concurrent, shown.oldest_at) == (1, 1, from_micros(DUE))


async def test_a_trigger_by_hand_waits_its_turn(store: Store) -> None:
    id = await put(store)
    await send(store, 1)
    run = new_run(schedule_id=id, trigger=Trigger.MANUAL, session="s", waiting=True, mode=Mode.QUEUE)
    triggered = await store.runs.trigger_run(run, None)
    first = await claim_one(store)
    assert payloads(first) == [1]
    assert ids((await store.runs.finish_runs([finish(first)], claim())).claimed.runs) == [triggered]


async def test_a_fire_that_is_to_start_later_holds_up_nobody_before(store: Store) -> None:
    """Recorded ahead of its due time, or with a jitter."""
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], NOW)
    await send(store, 1)
    run = await claim_one(store)
    assert payloads(run) == [1]
    await store.runs.finish_runs([finish(run)])
    assert await ready(store, now=DUE - 1) == []
    assert (await claim_one(store, now=DUE)).schedule == "report"


async def test_the_turns_of_an_overlap_are_no_session_of_peoples(store: Store) -> None:
    id = await put(store)
    for number in range(2):
        await store.schedules.record_fires([in_session(id, DUE + number * 5 * MINUTE, "schedule:report", None)], DUE)
    assert len((await store.runs.claim_runs(claim(now=DUE + HOUR))).runs) == 1
    assert await listed(store) == []


async def test_the_same_due_time_is_not_put_into_the_session_twice(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], DUE)
    # The clock went back, and the same due time comes up again.
    again = plan(id, read_next_at=DUE + 5 * MINUTE, runs=in_session(id).runs)
    assert (await store.schedules.record_fires([again], DUE)).moved == [id]
    assert (await session(store)).queued == 1
    assert len(await events(store)) == 1


async def test_a_schedule_that_is_removed_before_its_run_began_gives_the_turn_to_the_next(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], DUE)
    await send(store, 1, at=DUE)
    await store.schedules.remove_schedule(id, NOW)
    assert await ready(store, now=DUE) == [[1]]


async def test_a_run_whose_schedule_is_removed_is_told_to_stop_and_holds_its_turn_until_it_has(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], DUE)
    run = await claim_one(store, now=DUE)
    await send(store, 1)
    await store.schedules.remove_schedule(id, NOW)
    assert await told(store) == {run.id: Ending(Cause.REMOVED, REMOVED)}
    assert await ready(store) == []
    assert await carry_on(store, run, RunState.CANCELLED) == [[1]]
    assert (await row(store, run.id)).schedule is None


async def test_a_run_whose_schedule_is_removed_is_not_tried_again(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], DUE)
    run = await claim_one(store, now=DUE)
    await store.schedules.remove_schedule(id, NOW)
    assert list((await store.runs.finish_runs([retry(run)])).lost) == []
    assert await outcome(store, run.id) == (RunState.CANCELLED, Ending(Cause.REMOVED, REMOVED))


async def test_a_repeated_run_waits_its_turn_in_its_session_again(store: Store) -> None:
    await send_all(store, 1, 2, debounce=SECOND)
    run = await claim_one(store, now=NOW + SECOND)
    await store.runs.finish_runs([finish(run, RunState.FAILED)])
    await send(store, 3)
    again = await store.runs.repeat_run(run.id, NOW)
    assert await run_all(store) == [[3], [1, 2]]
    assert (await row(store, again)).session == "s"


async def test_a_fire_that_is_taken_back_gives_its_turn_to_the_next(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([in_session(id)], DUE)
    await send(store, 1)
    assert await ready(store) == [], "the fire has the turn"
    assert await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    assert await ready(store) == [[1]]
