"""Rows into the ledger: batches, keys that are unique while active, triggers by hand, and sessions."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.clock import from_micros
from ostinato.models.ids import RunId
from ostinato.models.run import RunFilter
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    all_runs,
    claim,
    claim_one,
    finish,
    new_run,
    printed,
    put,
    retry,
)


async def test_a_batch_is_inserted_whole_and_its_ids_ascend_in_its_order(store: Store) -> None:
    inserted = await store.runs.insert_runs([new_run(due_at=NOW + n) for n in range(1000)])
    assert inserted == sorted(set(inserted))
    runs = await store.runs.list_runs(RunFilter(limit=2000))
    assert [run.due_at for run in reversed(runs)] == [from_micros(NOW + n) for n in range(1000)]


@pytest.mark.parametrize("count", [1, 19, 20, 21, 45])
async def test_each_row_of_a_batch_has_its_own_values_and_its_own_id(store: Store, count: int) -> None:
    """However many rows one statement takes."""
    given = [new_run(due_at=NOW + n, reason=None if n % 3 else f'{n} "\\') for n in range(count)]
    inserted = await store.runs.insert_runs(given)
    assert len(inserted) == count
    for id, run in zip(inserted, given, strict=True):
        shown = await store.runs.get_run(id)
        assert shown is not None
        assert (shown.due_at, shown.reason) == (from_micros(run.due_at), run.reason)


async def test_inserting_nothing_is_not_an_error(store: Store) -> None:
    assert await store.runs.insert_runs([]) == []


async def test_a_run_is_read_back_as_it_was_given(store: Store) -> None:
    id = await put(store)
    (run_id,) = await store.runs.insert_runs(
        [
            new_run(
                schedule_id=id,
                trigger=Trigger.MESSAGE,
                due_at=NOW + 1,
                ready_at=NOW + 2,
                last_due_at=NOW + 3,
                count=4,
                lane="team",
                priority=-5,
                session="s",
                key="k",
                reason="because",
            )
        ]
    )
    run = await store.runs.get_run(run_id)
    assert run is not None
    assert (run.schedule, run.task, run.state, run.reason) == ("report", "report", RunState.QUEUED, "because")
    assert (run.trigger, run.count, run.lane, run.priority) == (Trigger.MESSAGE, 4, "team", -5)
    assert (run.session, run.key, run.attempt, run.attempts) == ("s", "k", 0, ())
    assert (run.due_at, run.ready_at, run.last_due_at) == tuple(from_micros(NOW + n) for n in (1, 2, 3))
    assert (run.started_at, run.finished_at, run.result, run.error, run.progress) == (None,) * 5
    assert run.work == Function("report", [1])


async def test_a_run_that_does_not_exist_is_none_and_has_no_output(store: Store) -> None:
    assert await store.runs.get_run(RunId(99)) is None
    assert await printed(store, RunId(99)) == ""


async def test_a_run_without_a_key_gets_one_that_stays(store: Store) -> None:
    (id,) = await store.runs.insert_runs([new_run()])
    assert (await store.runs.get_run(id)).key == f"run-{id}"  # type: ignore[union-attr]


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_a_key_that_is_active_answers_the_run_that_has_it(store: Store, state: str) -> None:
    (id,) = await store.runs.insert_runs([new_run(key="k")])
    if state == "running":
        await claim_one(store)
    assert await store.runs.insert_runs([new_run(key="k")]) == [id]
    assert len(await store.runs.list_runs(RunFilter())) == 1


async def test_a_key_belongs_to_a_task_to_a_kind_of_other_work_or_to_a_scope_that_tasks_share(store: Store) -> None:
    shell = new_run(key="k", kind="shell", task=None)
    shared = [new_run(key="k", scope="users"), new_run(key="k", scope="users", task="other")]
    ids = await store.runs.insert_runs([new_run(key="k"), new_run(key="k", task="other"), shell, *shared])
    assert len(set(ids)) == 4
    assert ids[3] == ids[4]
    again = await store.runs.insert_runs([new_run(key="k", task="other"), new_run(key="k", task="users")])
    assert again[0] == ids[1]
    assert again.known == {ids[1]}
    assert again[1] not in ids, "a scope is no task of the same name"


async def test_a_key_is_free_again_when_its_run_has_ended(store: Store) -> None:
    (id,) = await store.runs.insert_runs([new_run(key="k")])
    await store.runs.finish_runs([finish(await claim_one(store))])
    (again,) = await store.runs.insert_runs([new_run(key="k")])
    assert again != id


async def test_a_key_stays_taken_over_a_retry(store: Store) -> None:
    (id,) = await store.runs.insert_runs([new_run(key="k")])
    await store.runs.finish_runs([retry(await claim_one(store))])
    assert await store.runs.insert_runs([new_run(key="k")]) == [id]


async def test_a_batch_may_mix_new_keys_known_keys_doubles_and_none(store: Store) -> None:
    (known,) = await store.runs.insert_runs([new_run(key="known")])
    keys = [None, "new", "known", None, "new", 'quo"te\\', "known"]
    answer = await store.runs.insert_runs([new_run(key=key) for key in keys])
    assert answer[2] == answer[6] == known
    assert answer[1] == answer[4]
    assert len(set(answer)) == 5
    assert len(await store.runs.list_runs(RunFilter())) == 5
    plain = [answer[place] for place in (0, 1, 3, 5)]
    assert plain == sorted(plain)


async def test_of_many_who_insert_one_key_at_once_all_get_the_same_run(first: Store, second: Store) -> None:
    for number in range(10):
        calls = [store.runs.insert_runs([new_run(key=f"k{number}")]) for store in (first, second) * 4]
        answers = await asyncio.gather(*calls)
        assert len({id for answer in answers for id in answer}) == 1
    assert len(await first.runs.list_runs(RunFilter(limit=100))) == 10


async def test_batches_of_the_same_keys_in_opposite_order_both_come_through(first: Store, second: Store) -> None:
    runs = [new_run(key=f"k{number}") for number in range(50)]
    there, back = await asyncio.gather(first.runs.insert_runs(runs), second.runs.insert_runs(runs[::-1]))
    assert there == back[::-1]
    assert len(set(there)) == 50


async def test_a_key_that_is_inserted_and_ended_all_the_time_is_never_active_twice(first: Store, second: Store) -> None:
    async def enqueue(store: Store) -> None:
        for _ in range(25):
            await store.runs.insert_runs([new_run(key="k")])

    async def execute(store: Store) -> None:
        for _ in range(40):
            for run in (await store.runs.claim_runs(claim())).runs:
                assert list((await store.runs.finish_runs([finish(run)])).lost) == []

    await asyncio.gather(enqueue(first), enqueue(second), execute(first), execute(second))
    assert len(await all_runs(first, states=(RunState.QUEUED, RunState.RUNNING))) <= 1


async def test_a_trigger_is_refused_when_more_than_allowed_are_active(store: Store) -> None:
    id = await put(store)
    run = new_run(schedule_id=id, trigger=Trigger.MANUAL)
    assert await store.runs.trigger_run(run, 0) is not None
    assert await store.runs.trigger_run(run, 0) is None
    assert await store.runs.trigger_run(run, 1) is not None
    assert await store.runs.trigger_run(run, 1) is None
    assert await store.runs.trigger_run(run, None) is not None
    for claimed in (await store.runs.claim_runs(claim())).runs:
        await store.runs.finish_runs([finish(claimed)])
    assert await store.runs.trigger_run(run, 0) is not None


async def test_of_two_triggers_at_once_one_is_refused(first: Store, second: Store) -> None:
    for number in range(10):
        id = await put(first, f"s{number}")
        run = new_run(schedule_id=id, trigger=Trigger.MANUAL)
        answers = await asyncio.gather(first.runs.trigger_run(run, 0), second.runs.trigger_run(run, 0))
        assert [answer is None for answer in answers].count(True) == 1


async def test_runs_of_a_session_go_one_after_the_other_in_their_order(store: Store) -> None:
    id = await put(store)
    for _ in range(4):
        await store.runs.trigger_run(new_run(schedule_id=id, session="s", waiting=True), None)
    seen = []
    for _ in range(4):
        run = await claim_one(store, now=NOW + HOUR)
        assert (await store.runs.claim_runs(claim(now=NOW + HOUR))).runs == []
        seen.append(run.id)
        await store.runs.finish_runs([finish(run)])
    assert seen == sorted(seen)
    assert (await store.runs.claim_runs(claim(now=NOW + HOUR))).runs == []


async def test_a_session_never_stalls_when_one_node_adds_while_the_other_ends(first: Store, second: Store) -> None:
    id = await put(first)
    message = new_run(schedule_id=id, session="s", waiting=True)
    await first.runs.trigger_run(message, None)
    for _ in range(25):
        run = await claim_one(first)
        await asyncio.gather(first.runs.finish_runs([finish(run)]), second.runs.trigger_run(message, None))
