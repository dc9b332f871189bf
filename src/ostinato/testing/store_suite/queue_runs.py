"""Many runs of a schedule put into the queue at once, in their turn; and which tasks schedules call."""

from __future__ import annotations

from ostinato.clock import from_micros
from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.models.session import Mode
from ostinato.models.states import Trigger
from ostinato.models.task import RunningTask
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    MINUTE,
    NOW,
    claim,
    claim_one,
    draft,
    finish,
    ids,
    new_run,
    put,
    put_many,
)


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


async def test_a_task_has_its_schedules_the_soonest_first_and_the_time_of_the_next(store: Store) -> None:
    later, off = draft("later", next_at=NOW + 9 * MINUTE), draft("off", enabled=False, next_at=None)
    await put_many(store, [later, off, draft("soon", next_at=NOW + MINUTE), draft("other", task="mail", next_at=None)])
    found = await store.schedules.task_schedules(["report", "mail", "nobody"], 10)
    assert {task: [one.name for one in schedules] for task, schedules in found.items()} == {
        "report": ["soon", "later", "off"],
        "mail": ["other"],
        "nobody": [],
    }
    soon, _, last = found["report"]
    assert (soon.timing, soon.zone, soon.enabled, soon.broken) == ("every 5m", "UTC", True, None)
    assert soon.next_run_at == from_micros(NOW + MINUTE)
    assert (last.enabled, last.next_run_at) == (False, None)
    assert len((await store.schedules.task_schedules(["report"], 2))["report"]) == 2
    assert await store.schedules.next_of_tasks(["report", "mail", "nobody"]) == {"report": NOW + MINUTE}


async def test_the_next_of_a_task_with_very_many_schedules_is_found_too(store: Store) -> None:
    many = [draft(f"s{number}", next_at=NOW + (9_000 - number) * MINUTE) for number in range(1_100)]
    await put_many(store, [*many, draft("mine", task="mail", next_at=NOW + MINUTE)])
    assert await store.schedules.next_of_tasks(["report"]) == {"report": NOW + (9_000 - 1_099) * MINUTE}


async def test_what_is_under_way_is_counted_by_task_with_when_the_oldest_began(store: Store) -> None:
    await store.runs.insert_runs([new_run(), new_run(), new_run(task="mail"), new_run(task=None, kind="shell")])
    assert await store.runs.running_tasks() == {}
    first = await claim_one(store, room=1)
    await claim_one(store, room=1, now=NOW + MINUTE)
    assert await store.runs.running_tasks() == {"report": RunningTask(2, from_micros(NOW))}
    await store.runs.finish_runs([finish(first)])
    assert await store.runs.running_tasks() == {"report": RunningTask(1, from_micros(NOW + MINUTE))}


async def test_without_schedules_no_tasks_are_scheduled(store: Store) -> None:
    assert await store.schedules.scheduled_tasks() == set()
