"""What people read of runs: spans of time, counts, what is late, what ended when, and which due times are answered."""

from __future__ import annotations

import random

import pytest

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import RunFilter
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import RunCounts, StateCount, Store
from tests.stores.builders import HOUR, MINUTE, NOW, claim, draft, finish, new_run, put, put_many, scheduled_run
from tests.stores.mailbox import message
from tests.stores.places import raw

START = NOW + 10 * MINUTE
END = NOW + 20 * MINUTE


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


def at(minute: float) -> Micros:
    return NOW + int(minute * MINUTE)


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


async def test_a_run_that_waits_for_its_turn_touches_the_span_of_its_due_time(store: Store) -> None:
    await store.sessions.send([message(1, at=at(15)), message(2, at=at(15))], at(15))
    found, _ = await store.runs.runs_between(START, END, None, 10)
    assert [run.session for run in found] == ["s", "s"]
    assert await store.runs.runs_between(END, END + HOUR, None, 10) == ([], False)


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


async def test_counts_tell_what_runs_what_waits_and_what_is_late(store: Store) -> None:
    assert await store.runs.count_runs(NOW, NOW) == RunCounts(0, 0, 0)
    await store.runs.insert_runs(
        [
            new_run(ready_at=NOW - 20 * SECOND),
            new_run(ready_at=NOW - 20 * SECOND),
            new_run(ready_at=NOW - 10 * SECOND),
            new_run(ready_at=NOW),
            new_run(ready_at=NOW + 1),
        ]
    )
    await store.runs.claim_runs(claim(room=1, now=NOW - SECOND))
    await store.sessions.send([message(number, at=NOW) for number in range(3)], NOW)
    # One of the session has its turn, and two wait for it.
    assert await store.runs.count_runs(NOW, NOW - 10 * SECOND) == RunCounts(running=1, queued=3 + 3, late=1)
    assert await store.runs.count_runs(NOW + 1, NOW - 10 * SECOND + 1) == RunCounts(running=1, queued=4 + 3, late=2)


async def test_late_runs_are_those_that_could_have_started_the_longest_waiting_first(store: Store) -> None:
    ids = await store.runs.insert_runs(
        [new_run(ready_at=NOW - age * SECOND, lane=lane) for age, lane in ((1, "main"), (30, "cron"), (90, "main"))]
    )
    await store.sessions.send([message(number, at=NOW - HOUR) for number in range(2)], NOW - HOUR)
    late = await store.runs.late_runs(NOW - 10 * SECOND, 10)
    assert [run.id for run in late][1:] == [ids[2], ids[1]]
    assert late[0].session == "s"
    assert [run.id for run in await store.runs.late_runs(NOW - 10 * SECOND, 2)] == [late[0].id, ids[2]]
    assert await store.runs.late_runs(NOW - 2 * HOUR, 10) == []


async def test_what_ended_is_counted_by_bucket_and_state(store: Store) -> None:
    bucket = 15 * MINUTE
    begin = NOW // bucket * bucket
    ends = [
        (begin - 1, RunState.SUCCEEDED),
        (begin, RunState.SUCCEEDED),
        (begin + bucket - 1, RunState.SUCCEEDED),
        (begin + bucket - 1, RunState.FAILED),
        (begin + bucket, RunState.FAILED),
        (begin + 2 * bucket, RunState.FAILED),
    ]
    await store.runs.insert_runs([new_run()] * len(ends) + [new_run(state=RunState.SKIPPED, ready_at=begin)])
    runs = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs(
        [
            finish(run, state, started_at=end - 3 * SECOND, finished_at=end)
            for run, (end, state) in zip(runs, ends, strict=True)
        ]
    )
    assert await store.runs.tally_ended(begin, begin + 2 * bucket, bucket) == [
        StateCount(begin, RunState.FAILED, 1, 3.0),
        StateCount(begin, RunState.SKIPPED, 1, 0.0),
        StateCount(begin, RunState.SUCCEEDED, 2, 6.0),
        StateCount(begin + bucket, RunState.FAILED, 1, 3.0),
    ]
    assert await store.runs.tally_ended(begin + 3 * bucket, begin + 9 * bucket, bucket) == []


async def test_what_ended_is_counted_as_a_plain_sum_would(store: Store) -> None:
    dice = random.Random(5)
    await store.runs.insert_runs([new_run()] * 60)
    runs = (await store.runs.claim_runs(claim(room=60))).runs
    assert len(runs) > 20
    expected: dict[tuple[Micros, RunState], list[float]] = {}
    for run in runs:
        state = dice.choice([RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED])
        end = NOW + dice.randrange(5 * MINUTE)
        await store.runs.finish_runs([finish(run, state, started_at=NOW - SECOND, finished_at=end)])
        if end < NOW + 4 * MINUTE:
            expected.setdefault((end // MINUTE * MINUTE, state), []).append((end - NOW + SECOND) / SECOND)
    found = await store.runs.tally_ended(NOW, NOW + 4 * MINUTE, MINUTE)
    assert {(one.at, one.state): one.count for one in found} == {key: len(each) for key, each in expected.items()}
    for one in found:
        assert one.seconds == pytest.approx(sum(expected[one.at, one.state]))


async def test_a_due_time_is_answered_by_a_run_that_succeeded_or_is_active(store: Store) -> None:
    id, other = await put_many(store, [draft(), draft("other")])
    await store.runs.insert_runs([scheduled_run(id, NOW + number) for number in range(5)])
    await store.runs.insert_runs([scheduled_run(other, NOW + 7)])
    # By hand, for a due time of long ago.
    await store.runs.insert_runs([new_run(schedule_id=id, due_at=NOW - HOUR, trigger=Trigger.MANUAL)])
    runs = {run.due_at: run for run in (await store.runs.claim_runs(claim(now=NOW + 3))).runs}
    await store.runs.finish_runs([finish(runs[NOW]), finish(runs[NOW + 1], RunState.FAILED)])
    # Succeeded, running (2 and 3), queued (4); what failed is not answered.
    assert await store.runs.answered_due(id, NOW - HOUR, NOW + 10) == {NOW - HOUR, NOW, NOW + 2, NOW + 3, NOW + 4}
    assert await store.runs.answered_due(id, NOW + 2, NOW + 3) == {NOW + 2, NOW + 3}
    assert await store.runs.answered_due(id, NOW + 5, NOW + HOUR) == set()


async def test_a_run_that_stands_for_several_due_times_answers_the_first_and_the_last(store: Store) -> None:
    id = await put(store)
    await run_at(store, 1, 5, 6, last_due=4, schedule_id=id)
    assert await store.runs.answered_due(id, NOW, NOW + HOUR) == {at(1), at(4)}
    assert await store.runs.answered_due(id, at(2), NOW + HOUR) == {at(4)}


async def test_runs_are_listed_by_lane_and_by_what_triggered_them(store: Store) -> None:
    id = await put(store)
    (manual,) = await store.runs.insert_runs([new_run(trigger=Trigger.MANUAL)])
    (fired,) = await store.runs.insert_runs([scheduled_run(id)])

    async def found(wanted: RunFilter) -> list[RunId]:
        return [run.id for run in await store.runs.list_runs(wanted)]

    assert await found(RunFilter(lane="cron")) == [fired]
    assert await found(RunFilter(lane="main")) == [manual]
    assert await found(RunFilter(trigger=Trigger.MANUAL)) == [manual]
    assert await found(RunFilter(trigger=Trigger.CATCH_UP)) == []
    assert await found(RunFilter(lane="cron", trigger=Trigger.SCHEDULE)) == [fired]
    assert await found(RunFilter(lane="\0")) == []
