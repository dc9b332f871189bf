"""What people read of runs: spans of time, counts, what is late, what ended when, and which due times are answered."""

from __future__ import annotations

import random

import pytest

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import RunId
from ostinato.models.run import RunFilter
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import RunCounts, StateCount, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    draft,
    finish,
    new_run,
    put,
    put_many,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import message

START = NOW + 10 * MINUTE
END = NOW + 20 * MINUTE


def at(minute: float) -> Micros:
    return NOW + int(minute * MINUTE)


async def test_a_run_that_waits_for_its_turn_touches_the_span_of_its_due_time(store: Store) -> None:
    await store.sessions.send([message(1, at=at(15)), message(2, at=at(15))], at(15))
    found, _ = await store.runs.runs_between(START, END, None, 10)
    assert [run.session for run in found] == ["s", "s"]
    assert await store.runs.runs_between(END, END + HOUR, None, 10) == ([], False)


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


async def test_what_succeeded_with_errors_is_counted_among_what_succeeded(store: Store) -> None:
    bucket = 15 * MINUTE
    begin = NOW // bucket * bucket
    # When it ended, and whether with errors; the first and the last are outside of what is asked for.
    ends = [
        (-1, True),
        (0, True),
        (1, False),
        (bucket - 1, True),
        (bucket, False),
        (2 * bucket, True),
        (5 * bucket, True),
    ]
    await store.runs.insert_runs([new_run()] * len(ends))
    runs = (await store.runs.claim_runs(claim())).runs
    for run, (end, with_errors) in zip(runs, ends, strict=True):
        cause = Cause.ERRORS if with_errors else None
        at = begin + end
        await store.runs.finish_runs([finish(run, cause=cause, started_at=at - SECOND, finished_at=at)])
    assert await store.runs.tally_ended(begin, begin + 2 * bucket + 1, bucket) == [
        StateCount(begin, RunState.SUCCEEDED, 3, 3.0, with_errors=2),
        StateCount(begin + bucket, RunState.SUCCEEDED, 1, 1.0),
        StateCount(begin + 2 * bucket, RunState.SUCCEEDED, 1, 1.0, with_errors=1),
    ]
    # A span that begins within a bucket.
    (part,) = await store.runs.tally_ended(begin + 1, begin + bucket, bucket)
    assert part == StateCount(begin, RunState.SUCCEEDED, 2, 2.0, with_errors=1)


async def test_a_due_time_that_succeeded_with_errors_is_answered(store: Store) -> None:
    (id,) = await put_many(store, [draft()])
    await store.runs.insert_runs([scheduled_run(id, NOW)])
    (run,) = (await store.runs.claim_runs(claim(now=NOW))).runs
    await store.runs.finish_runs([finish(run, cause=Cause.ERRORS, reason="1 error")])
    assert await store.runs.answered_due(id, NOW, NOW) == {NOW}


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
