"""Many runs of a schedule put into the queue at once, in their turn; and which tasks schedules call."""

from __future__ import annotations

from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.models.session import Mode
from ostinato.models.states import Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import MINUTE, NOW, claim, draft, finish, ids, new_run, put, put_many


def _backlog(schedule_id: int, count: int, **fields: object) -> list[NewRun]:
    given = {"trigger": Trigger.MANUAL, "lane": "cron", "session": "schedule:report", "waiting": True, **fields}
    return [
        new_run(schedule_id=schedule_id, due_at=NOW - (count - n) * MINUTE, key=f"backfill:{n}", **given)
        for n in range(count)
    ]


async def test_runs_that_wait_their_turn_start_one_after_the_other_in_their_order(store: Store) -> None:
    queued = await store.runs.queue_runs(_backlog(await put(store), 3), NOW)
    started: list[RunId] = []
    while runs := (await store.runs.claim_runs(claim())).runs:
        assert len(runs) == 1
        started += ids(runs)
        await store.runs.finish_runs([finish(run) for run in runs])
    assert started == queued == sorted(queued)


async def test_they_wait_for_a_run_of_the_schedule_that_has_its_turn_already(store: Store) -> None:
    id = await put(store)
    first = await store.runs.queue_runs(_backlog(id, 1), NOW)
    await store.runs.queue_runs([new_run(schedule_id=id, session="schedule:report", waiting=True, key="more")], NOW)
    assert ids((await store.runs.claim_runs(claim())).runs) == first


async def test_runs_without_a_session_are_only_inserted_and_may_all_start(store: Store) -> None:
    runs = _backlog(await put(store), 3, session=None, waiting=False)
    queued = await store.runs.queue_runs(runs, NOW)
    assert ids((await store.runs.claim_runs(claim())).runs) == queued


async def test_what_is_queued_already_is_not_queued_again(store: Store) -> None:
    id = await put(store)
    first = await store.runs.queue_runs(_backlog(id, 3), NOW)
    assert await store.runs.queue_runs(_backlog(id, 3), NOW) == first


async def test_in_a_session_of_people_they_are_told_as_enqueued(store: Store) -> None:
    runs = _backlog(await put(store), 2, session="dm:1", mode=Mode.QUEUE)
    queued = await store.runs.queue_runs(runs, NOW)
    events = await store.sessions.list_events("dm:1", 0, 10)
    assert [(event.kind, event.run) for event in events] == [("enqueued", id) for id in queued]
    assert ids((await store.runs.claim_runs(claim())).runs) == queued[:1]


async def test_into_a_session_that_was_stopped_meanwhile_nothing_is_queued(store: Store) -> None:
    id = await put(store)
    await store.sessions.stop("dm:1", everything=True, now=NOW + 1)
    await store.runs.queue_runs(_backlog(id, 2, session="dm:1", mode=Mode.QUEUE), NOW)
    assert (await store.runs.claim_runs(claim(now=NOW + 2))).runs == []


async def test_queueing_nothing_is_not_an_error(store: Store) -> None:
    assert await store.runs.queue_runs([], NOW) == []


async def test_the_schedules_of_each_task_are_counted(store: Store) -> None:
    await put_many(store, [draft("a"), draft("b"), draft("c", task="mail"), draft("d", task=None, kind="shell")])
    assert await store.schedules.count_tasks() == {"report": 2, "mail": 1}
    assert await store.schedules.scheduled_tasks() == {"report", "mail"}


async def test_without_schedules_no_tasks_are_scheduled(store: Store) -> None:
    assert await store.schedules.scheduled_tasks() == set()
