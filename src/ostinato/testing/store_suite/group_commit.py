"""Group commit and change notices: neighbours do not undo each other, and another process's change is seen."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.errors import StoreError
from ostinato.models.ids import NodeId, ScheduleId
from ostinato.models.run import Ending, RunFilter
from ostinato.models.states import Cause, Trigger
from ostinato.stores.base import Store, WakeHints, Watch
from ostinato.testing.store_suite.builders import HOUR, NOW, change, claim, claim_one, finish, new_run, plan, put

NODE = NodeId("node-1")
MISSING = ScheduleId(10_000)


async def test_an_operation_that_fails_does_not_undo_its_neighbours(store: Store) -> None:
    bad = new_run(schedule_id=MISSING, trigger=Trigger.MANUAL)
    calls = [store.runs.insert_runs([bad if n % 7 == 3 else new_run(due_at=NOW + n)]) for n in range(30)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for number, answer in enumerate(answers):
        assert isinstance(answer, StoreError) == (number % 7 == 3), answer
    assert len(await store.runs.list_runs(RunFilter(limit=100))) == 26
    # And the store goes on as if nothing had been.
    assert len((await store.runs.claim_runs(claim(room=100))).runs) == 26


async def test_a_batch_that_fails_writes_nothing_of_itself(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.runs.insert_runs([new_run(), new_run(schedule_id=MISSING), new_run()])
    assert await store.runs.list_runs(RunFilter()) == []


async def test_a_mistake_of_the_caller_reaches_the_caller_and_nobody_else(store: Store) -> None:
    wrong = new_run(due_at="noon")
    answers = await asyncio.gather(
        store.runs.insert_runs([new_run()]),
        store.runs.insert_runs([new_run(), wrong]),
        store.runs.insert_runs([new_run()]),
        return_exceptions=True,
    )
    assert [isinstance(answer, BaseException) for answer in answers] == [False, True, False]
    assert len(await store.runs.list_runs(RunFilter())) == 2


async def test_many_callers_at_once_all_get_their_own_answer(store: Store) -> None:
    ids = await asyncio.gather(*(store.runs.insert_runs([new_run(due_at=NOW + n)] * 2) for n in range(300)))
    runs = {run.id: run for run in await store.runs.list_runs(RunFilter(limit=1000))}
    assert len(runs) == 600
    for number, pair in enumerate(ids):
        assert {(runs[id].due_at.microsecond, pair[1] - pair[0]) for id in pair} == {(number, 1)}


async def test_a_caller_that_gives_up_does_not_stop_the_others(store: Store) -> None:
    tasks = [asyncio.ensure_future(store.runs.insert_runs([new_run()])) for _ in range(10)]
    await asyncio.sleep(0)
    tasks[4].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers].count(True) == 1
    assert len(await store.runs.list_runs(RunFilter())) >= 9


async def seen(watch: Watch) -> None:
    """Wait for a notice; another process's change is to be seen within 100 ms, on a busy machine a little later."""
    await asyncio.wait_for(watch.changed(), 5)


async def test_this_process_sees_what_gives_an_engine_something_to_do(store: Store) -> None:
    watch = await store.watch()
    try:
        id = await put(store)
        await seen(watch)
        await store.schedules.record_fires([plan(id)], NOW)
        await seen(watch)
        (run,) = await store.runs.insert_runs([new_run()])
        await seen(watch)
        await store.runs.cancel_runs([run], Ending(Cause.CANCELLED, "no"), NOW)
        await seen(watch)
        await store.runs.trigger_run(new_run(schedule_id=id, trigger=Trigger.MANUAL), None)
        await seen(watch)
        await store.schedules.change_schedule(id, 1, change(), NOW)
        await seen(watch)
    finally:
        await watch.close()


async def test_another_process_sees_it_too(first: Store, second: Store) -> None:
    watch = await second.watch()
    try:
        for number in range(3):
            await first.runs.insert_runs([new_run(ready_at=NOW + number)])
            await seen(watch)
            assert (await watch.wake_hints(NODE)).ready_at == NOW
    finally:
        await watch.close()


async def test_a_change_before_the_wait_is_not_missed(first: Store, second: Store) -> None:
    watch = await second.watch()
    try:
        await first.runs.insert_runs([new_run()])
        await second.nodes.list_nodes(NOW)
        await seen(watch)
    finally:
        await watch.close()


async def test_a_glance_says_when_who_has_something_to_do(store: Store) -> None:
    watch = await store.watch()
    try:
        assert await watch.wake_hints(NODE) == WakeHints(None, None, [])
        await put(store, next_at=NOW + HOUR)
        await put(store, "sooner", next_at=NOW + 1)
        await put(store, "disabled", enabled=False)
        await store.runs.insert_runs(
            [new_run(ready_at=NOW + 9, priority=5), new_run(ready_at=NOW + 7), new_run(ready_at=NOW + 8, lane="cron")]
        )
        await store.runs.insert_runs([new_run(ready_at=NOW, session="s", waiting=True)])
        wake_hints = await watch.wake_hints(NODE)
        assert (wake_hints.next_at, wake_hints.ready_at, list(wake_hints.cancel)) == (NOW + 1, NOW + 7, [])
        run = await claim_one(store, now=NOW + 7)
        await store.runs.cancel_runs([run.id], Ending(Cause.CANCELLED, "stop it"), NOW)
        wake_hints = await watch.wake_hints(NODE)
        assert (wake_hints.ready_at, list(wake_hints.cancel)) == (
            NOW + 8,
            [(run.id, Ending(Cause.CANCELLED, "stop it"))],
        )
        await store.runs.finish_runs([finish(run)])
        assert list((await watch.wake_hints(NODE)).cancel) == []
    finally:
        await watch.close()
