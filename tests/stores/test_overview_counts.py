"""Spans of time over runs whose instants are written past the store."""

from __future__ import annotations

from functools import partial

import pytest

from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    new_run,
    put,
)
from ostinato.testing.store_suite.overview_counts import END, START, at
from tests.stores.places import raw


async def run_at(
    store: Store,
    due: float,
    started: float | None = None,
    finished: float | None = None,
    *,
    last_due: float | None = None,
    schedule_id: ScheduleId | None = None,
) -> RunId:
    """A run with these instants, in minutes after NOW: queued, running, ended, or ended without a start."""
    state = RunState.QUEUED if started is None else RunState.RUNNING
    if finished is not None:
        state = RunState.SKIPPED if started is None else RunState.SUCCEEDED
    (id,) = await store.runs.insert_runs([new_run(due_at=at(due), schedule_id=schedule_id, trigger=Trigger.MANUAL)])
    given = {"last_due_at": last_due, "started_at": started, "finished_at": finished}
    instants = [f"{name} = {'NULL' if minute is None else at(minute)}" for name, minute in given.items()]
    tries = int(started is not None)
    await raw(store, f"UPDATE runs SET state = '{state}', attempt = {tries}, {', '.join(instants)} WHERE id = {id}")
    return id


@pytest.mark.parametrize(
    ("due", "started", "finished", "last_due", "touches"),
    [
        (5, None, None, None, False),  # queued, due before
        (10, None, None, None, True),
        (20, None, None, None, True),
        (21, None, None, None, False),
        (5, 6, None, None, True),  # under way since before
        (15, 16, None, None, True),
        (15, 25, None, None, True),  # due in it, begun after
        (21, 22, None, None, False),
        (5, 6, 9, None, False),  # ended before
        (5, 6, 10, None, True),
        (5, 6, 30, None, True),  # all the time
        (12, 13, 14, None, True),
        (19, 25, 30, None, True),
        (20, 20, 20, None, True),
        (21, 22, 23, None, False),
        (5, 21, 30, None, False),  # waited all through it
        (5, None, 15, None, True),  # skipped in it
        (15, None, 30, None, True),  # its due time was found out later
        (5, None, 30, 12, True),  # one row for several due times, the last of them in it
        (5, None, 30, 25, True),
        (5, None, 30, 9, False),
        (21, None, 30, 25, False),
    ],
)
async def test_a_run_touches_a_span_by_its_due_time_its_work_or_its_end(
    store: Store, due: float, started: float | None, finished: float | None, last_due: float | None, touches: bool
) -> None:
    schedule_id = await put(store)
    id = await run_at(store, due, started, finished, last_due=last_due, schedule_id=schedule_id)
    for wanted in (None, [schedule_id], [schedule_id, ScheduleId(999)]):
        found, has_more = await store.runs.runs_between(START, END, wanted, 10)
        assert ([run.id for run in found], has_more) == ([id] if touches else [], False)
    assert await store.runs.runs_between(START, END, [ScheduleId(999)], 10) == ([], False)
    assert await store.runs.runs_between(START, END, [], 10) == ([], False)


async def test_of_too_many_what_is_active_is_shown_before_what_ended_last(store: Store) -> None:
    long = await run_at(store, 5, 6)
    queued = await run_at(store, 15)
    ended = [await run_at(store, 10, 11, 12 + number) for number in (3, 1, 2)]
    running = await run_at(store, 12, 13)
    for limit, expected in (
        (10, [long, queued, *ended, running]),
        (6, [long, queued, *ended, running]),
        (5, [long, queued, ended[0], ended[2], running]),
        (4, [long, queued, ended[0], running]),
        (2, [long, running]),
        (1, [running]),
    ):
        found, has_more = await store.runs.runs_between(START, END, None, limit)
        assert [run.id for run in found] == sorted(expected), limit
        assert has_more == (limit < 6)


async def test_what_is_not_listed_of_a_span_is_counted_by_schedule_state_and_time(store: Store) -> None:
    one, two = await put(store, "one"), await put(store, "two")
    listed = await run_at(store, 12, 12, 13, schedule_id=one)
    for due in (11, 11.5, 15):
        await run_at(store, due, due, due + 0.1, schedule_id=one)
    failed = await run_at(store, 11.2, 11.2, 11.3, schedule_id=one)
    await raw(store, f"UPDATE runs SET state = 'failed' WHERE id = {failed}")
    skipped = await run_at(store, 5, None, 30, last_due=12, schedule_id=two)
    await raw(store, f"UPDATE runs SET count = 8 WHERE id = {skipped}")
    loose = await run_at(store, 14, 14)
    await run_at(store, 1, 1, 2, schedule_id=one)
    count = partial(store.runs.count_runs_between, START, END, listed=[listed], bucket=2 * MINUTE, now=at(16))
    found = await count(None, most=100)
    told = [(s.schedule, s.task, s.state, s.start, s.end, s.runs, s.due_times, s.run) for s in found.stretches]
    assert told == [
        ("two", None, RunState.SKIPPED, at(5), at(12), 1, 8, skipped),
        ("one", None, RunState.SUCCEEDED, at(11), at(11.6), 2, 2, None),
        ("one", None, RunState.FAILED, at(11.2), at(11.3), 1, 1, failed),
        (None, "report", RunState.RUNNING, at(14), at(16), 1, 1, loose),
        ("one", None, RunState.SUCCEEDED, at(15), at(15.1), 1, 1, listed + 3),
    ]
    assert found.known_from is None
    assert [s.schedule for s in (await count([two], most=100)).stretches] == ["two"]


async def test_runs_of_a_removed_schedule_are_counted_under_its_name_as_they_are_listed(store: Store) -> None:
    gone = await put(store, "gone")
    ids = [await run_at(store, due, due, due + 0.1, schedule_id=gone) for due in (11, 11.2, 15)]
    await raw(store, "UPDATE runs SET schedule_name = 'gone', schedule_id = NULL")
    listed, _ = await store.runs.runs_between(START, END, None, 1)
    assert [run.schedule for run in listed] == ["gone"]
    found = await store.runs.count_runs_between(
        START, END, None, listed=ids[2:], bucket=2 * MINUTE, now=at(16), most=100
    )
    assert [(one.schedule, one.task, one.runs) for one in found.stretches] == [("gone", None, 2)]


async def test_of_very_many_runs_of_a_span_those_that_ended_last_are_counted(store: Store) -> None:
    for due in (11, 12, 13, 14):
        await run_at(store, due, due, due + 0.5)
    count = partial(store.runs.count_runs_between, START, END, None, listed=[], bucket=MINUTE, now=at(16))
    found = await count(most=2)
    assert [s.start for s in found.stretches] == [at(13), at(14)]
    assert found.known_from == at(12.5)


async def test_a_run_that_stands_for_several_due_times_answers_the_first_and_the_last(store: Store) -> None:
    id = await put(store)
    await run_at(store, 1, 5, 6, last_due=4, schedule_id=id)
    assert await store.runs.answered_due(id, NOW, NOW + HOUR) == {at(1), at(4)}
    assert await store.runs.answered_due(id, at(2), NOW + HOUR) == {at(4)}
