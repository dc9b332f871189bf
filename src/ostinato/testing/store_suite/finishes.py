"""Final writes: fenced by their token, with all that follows from them in the same transaction."""

from __future__ import annotations

import asyncio

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import RepeatedRun
from ostinato.models.run import INTERRUPTED, ClaimedRun, Ending, Report, RunFilter
from ostinato.models.schedule import Schedule
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    change,
    claim,
    claim_one,
    draft,
    finish,
    ids,
    new_run,
    plan,
    printed,
    put,
    retry,
    said,
    scheduled_run,
)

DUE = NOW + 5 * MINUTE


async def started(store: Store, **fields: object) -> ClaimedRun:
    """A run under way."""
    await store.runs.insert_runs([new_run(**fields)])
    return await claim_one(store, now=NOW + HOUR)


async def fired(store: Store, id: ScheduleId, due_at: int) -> ClaimedRun:
    """A scheduled run under way."""
    await store.runs.insert_runs([scheduled_run(id, due_at)])
    return await claim_one(store, now=due_at)


async def schedule(store: Store, name: str = "report") -> Schedule:
    found = await store.schedules.get_schedule(name)
    assert found is not None
    return found


async def test_an_end_is_written_with_everything_it_says(store: Store) -> None:
    run = await started(store)
    end = finish(
        run,
        RunState.FAILED,
        started_at=NOW + 3,
        finished_at=NOW + 9,
        reason="it raised",
        error="ValueError: no",
        result='{"a":[1]}',
        totals='{"copied":3}',
        progress='{"done":1,"total":2,"text":"half"}',
        output=said("line\n"),
    )
    done = await store.runs.finish_runs([end])
    assert (list(done.lost), list(done.broken)) == ([], [])
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert (shown.state, shown.reason, shown.error) == (RunState.FAILED, "it raised", "ValueError: no")
    assert (shown.result, shown.totals) == ({"a": [1]}, {"copied": 3.0})
    assert shown.progress is not None
    assert (shown.progress.done, shown.progress.total, shown.progress.text) == (1, 2, "half")
    assert (shown.started_at, shown.finished_at) == (from_micros(NOW + 3), from_micros(NOW + 9))
    assert [(attempt.state, attempt.error, attempt.node) for attempt in shown.attempts] == [
        ("failed", "ValueError: no", "node-1")
    ]
    assert await printed(store, run.id) == "line\n"


async def test_texts_of_any_kind_survive(store: Store) -> None:
    text = 'quote " back \\ brace {} comma , newline \n null NULL snow ☃ emoji 🎶'
    run = await started(store)
    await store.runs.finish_runs([finish(run, RunState.FAILED, reason=text, error=text, output=said(text))])
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert (shown.reason, shown.error, await printed(store, run.id)) == (text, text, text)


async def test_a_nul_in_output_does_not_stop_the_finish(store: Store) -> None:
    run = await started(store)
    done = await store.runs.finish_runs([finish(run, RunState.FAILED, error="a\0b", output=said("c\0d"))])
    assert list(done.lost) == []
    assert (await printed(store, run.id)).replace("\ufffd", "\0") == "c\0d"


async def test_an_end_that_names_no_start_keeps_the_claims(store: Store) -> None:
    run = await started(store)
    await store.runs.finish_runs([finish(run, started_at=None)])
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert shown.started_at == from_micros(NOW + HOUR)


async def test_a_batch_of_ends_is_one_call(store: Store) -> None:
    inserted = await store.runs.insert_runs([new_run() for _ in range(30)])
    claimed = (await store.runs.claim_runs(claim(room=30))).runs
    states = [RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED]
    await store.runs.finish_runs([finish(run, states[n % 3], result=str(n)) for n, run in enumerate(claimed)])
    shown = {run.id: run for run in await store.runs.list_runs(RunFilter())}
    assert [shown[id].result for id in inserted] == list(range(30))
    assert [shown[id].state for id in inserted] == states * 10


async def test_finishing_nothing_is_not_an_error(store: Store) -> None:
    done = await store.runs.finish_runs([])
    assert (list(done.lost), list(done.claimed.runs)) == ([], [])
    await store.runs.insert_runs([new_run()])
    assert len((await store.runs.finish_runs([], claim())).claimed.runs) == 1


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_a_stale_token_is_lost_and_writes_nothing(store: Store, kind: str) -> None:
    run = await started(store, session="s")
    await store.runs.finish_runs([retry(run, ready_at=NOW, error="rescued")])
    again = await claim_one(store, now=NOW + HOUR)
    late = finish(run, output=said("late")) if kind == "end" else retry(run, output=said("late"))
    done = await store.runs.finish_runs([late])
    assert list(done.lost) == [run.id]
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert shown.state == RunState.RUNNING
    assert len(shown.attempts) == 2
    assert await printed(store, run.id) == ""
    assert list((await store.runs.finish_runs([finish(again)])).lost) == []


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_a_run_that_was_deleted_is_lost(store: Store, kind: str) -> None:
    id = await put(store)
    run = await fired(store, id, DUE)
    await store.schedules.remove_schedule(id, NOW)
    end = finish(run, breaks=True, break_after=1, broken="x", output=said("x"))
    late = end if kind == "end" else retry(run, output=said("x"))
    done = await store.runs.finish_runs([late])
    assert (list(done.lost), list(done.broken)) == ([run.id], [])


async def test_the_same_end_twice_is_not_lost(store: Store) -> None:
    """A node whose connection broke during the commit asks again, and learns that it was written."""
    run = await started(store)
    await store.runs.finish_runs([finish(run)])
    assert list((await store.runs.finish_runs([finish(run)])).lost) == []
    assert list((await store.runs.finish_runs([finish(run, RunState.FAILED)])).lost) == [run.id]
    assert (await store.runs.get_run(run.id)).state == RunState.SUCCEEDED  # type: ignore[union-attr]


async def test_one_lost_end_does_not_hold_up_the_others(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 3)
    one, two, three = (await store.runs.claim_runs(claim())).runs
    two.token += 1
    done = await store.runs.finish_runs([finish(one), finish(two), finish(three, output=said("o"))])
    assert list(done.lost) == [two.id]
    states = {run.id: run.state for run in await store.runs.list_runs(RunFilter())}
    assert states == {one.id: "succeeded", two.id: "running", three.id: "succeeded"}


@pytest.mark.parametrize("count", [19, 20, 21, 45])
async def test_of_many_ends_each_is_written_with_its_own_values_and_only_the_lost_are_lost(
    store: Store, count: int
) -> None:
    """However many rows one statement takes."""
    await store.lanes.ensure_lanes({"wide": 100}, [])
    await store.runs.insert_runs([new_run(lane="wide")] * count)
    runs = (await store.runs.claim_runs(claim(room=count))).runs
    assert len(runs) == count
    late = {runs[0].id, runs[count // 2].id, runs[-1].id}
    ends = [finish(run, finished_at=NOW + number, result=str(number)) for number, run in enumerate(runs)]
    for end in ends:
        end.token += end.id in late
    done = await store.runs.finish_runs(ends)
    assert set(done.lost) == late
    shown = {run.id: run for run in await store.runs.list_runs(RunFilter(limit=count))}
    for number, run in enumerate(runs):
        if run.id in late:
            assert (shown[run.id].state, shown[run.id].result) == (RunState.RUNNING, None)
        else:
            assert (shown[run.id].state, shown[run.id].result) == (RunState.SUCCEEDED, number)
            assert shown[run.id].finished_at == from_micros(NOW + number)
    assert list((await store.runs.finish_runs([finish(run) for run in runs if run.id in late])).lost) == []


async def test_an_end_makes_room_for_a_claim_in_the_same_call(store: Store) -> None:
    await store.lanes.ensure_lanes({"narrow": 1}, [])
    inserted = await store.runs.insert_runs([new_run(lane="narrow")] * 2)
    run = await claim_one(store)
    assert run.id == inserted[0]
    done = await store.runs.finish_runs([finish(run)], claim())
    assert ids(done.claimed.runs) == [inserted[1]]


async def test_a_retry_goes_back_to_the_queue_and_keeps_its_attempts(store: Store) -> None:
    run = await started(store)
    for number in (1, 2):
        await store.runs.finish_runs(
            [
                retry(
                    run,
                    started_at=NOW + number,
                    finished_at=NOW + number + 5,
                    ready_at=NOW + number * MINUTE,
                    error=f"boom {number}",
                    reason="trying again",
                    totals='{"tries":1}',
                    output=said(f"part {number};"),
                )
            ]
        )
        shown = await store.runs.get_run(run.id)
        assert shown is not None
        assert (shown.state, shown.reason, shown.attempt) == (RunState.QUEUED, "trying again", number)
        assert shown.ready_at == from_micros(NOW + number * MINUTE)
        assert shown.node is None
        run = await claim_one(store, now=NOW + HOUR)
        assert (run.attempt, run.totals) == (number + 1, '{"tries":1}')
    await store.runs.finish_runs([finish(run)])
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert [(attempt.state, attempt.error) for attempt in shown.attempts] == [
        ("failed", "boom 1"),
        ("failed", "boom 2"),
        ("succeeded", None),
    ]
    assert shown.attempts[0].started_at == from_micros(NOW + 1)
    assert shown.attempts[0].finished_at == from_micros(NOW + 6)
    assert shown.totals == {"tries": 1.0}
    assert await printed(store, run.id) == "part 1;part 2;"


async def test_a_try_that_does_not_count_gives_the_attempt_back(store: Store) -> None:
    run = await started(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW, counted=False, attempt_state=None, error=None)])
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert (shown.state, shown.attempt, shown.attempts) == (RunState.QUEUED, 0, ())
    again = await claim_one(store)
    assert (again.attempt, again.token) == (1, 2)


async def test_a_run_that_somebody_wants_to_stop_gets_no_other_try(store: Store) -> None:
    run, other = await started(store), await started(store)
    await store.runs.cancel_runs([run.id], Ending(Cause.CANCELLED, "stop it"), NOW)
    done = await store.runs.finish_runs([retry(run), retry(other)])
    assert list(done.lost) == []
    stopped, retried = await store.runs.get_run(run.id), await store.runs.get_run(other.id)
    assert stopped is not None
    assert retried is not None
    assert (stopped.state, stopped.reason) == (RunState.CANCELLED, "stop it")
    assert stopped.finished_at is not None
    assert retried.state is RunState.QUEUED


async def test_a_run_that_was_to_stop_when_its_node_was_lost_has_ended_as_asked(store: Store) -> None:
    run, other = await started(store), await started(store)
    await store.runs.cancel_runs([run.id], INTERRUPTED, NOW)
    lost = {"cause": Cause.NODE_LOST, "reason": "its node was lost", "abandoned": True}
    done = await store.runs.finish_runs([finish(one, RunState.FAILED, **lost) for one in (run, other)])
    assert [one.state for one in done.instead] == [RunState.SUPERSEDED]
    stopped, failed = await store.runs.get_run(run.id), await store.runs.get_run(other.id)
    assert stopped is not None
    assert failed is not None
    assert (stopped.state, stopped.cause, stopped.reason) == (RunState.SUPERSEDED, *INTERRUPTED)
    assert (failed.state, failed.cause) == (RunState.FAILED, Cause.NODE_LOST)


async def test_the_breaker_counts_failures_in_a_row_and_trips(store: Store) -> None:
    id = await put(store)
    bad = {"breaks": True, "break_after": 3, "broken": "3 runs failed in a row"}
    for number in (1, 2):
        run = await fired(store, id, DUE + number)
        done = await store.runs.finish_runs([finish(run, RunState.FAILED, **bad)])
        assert list(done.broken) == []
        assert (await schedule(store)).failures == number
    run = await fired(store, id, DUE + 3)
    done = await store.runs.finish_runs([finish(run, RunState.FAILED, finished_at=NOW + 77, **bad)])
    assert list(done.broken) == [id]
    broken = await schedule(store)
    assert (broken.enabled, broken.broken, broken.next_run_at) == (False, "3 runs failed in a row", None)
    assert broken.version == 2
    assert broken.updated_at == from_micros(NOW + 77)


async def test_a_success_resets_the_breaker_and_none_leaves_it(store: Store) -> None:
    id = await put(store)
    for number, (breaks, failures) in enumerate([(True, 1), (None, 1), (True, 2), (False, 0), (True, 1)]):
        run = await fired(store, id, DUE + number)
        await store.runs.finish_runs([finish(run, breaks=breaks, break_after=3, broken="x")])
        assert (await schedule(store)).failures == failures


async def test_the_order_inside_a_batch_counts_for_the_breaker(store: Store) -> None:
    id = await put(store)
    await store.runs.insert_runs([scheduled_run(id, DUE + n) for n in range(5)])
    runs = (await store.runs.claim_runs(claim(now=DUE + HOUR))).runs
    verdicts = [True, True, False, True, True]
    done = await store.runs.finish_runs(
        [finish(run, breaks=bad, break_after=3, broken="x") for run, bad in zip(runs, verdicts, strict=True)]
    )
    assert list(done.broken) == []
    assert (await schedule(store)).failures == 2


async def test_a_schedule_that_is_disabled_already_does_not_trip_again(store: Store) -> None:
    id = await put(store)
    run = await fired(store, id, DUE)
    await store.schedules.change_schedule(id, 1, change(enabled=False, off_note="mine", next_at=None), NOW + HOUR)
    done = await store.runs.finish_runs([finish(run, breaks=True, break_after=1, broken="x")])
    assert list(done.broken) == []
    assert (await schedule(store)).broken is None


async def test_a_lost_end_does_not_count_for_the_breaker(store: Store) -> None:
    id = await put(store)
    run = await fired(store, id, DUE)
    run.token += 1
    await store.runs.finish_runs([finish(run, RunState.FAILED, breaks=True, break_after=1, broken="x")])
    assert (await schedule(store)).failures == 0


async def test_the_next_due_time_counts_from_the_end_of_the_last_run_of_any_trigger(store: Store) -> None:
    id = await put(store, after_finish=HOUR)
    await store.schedules.record_fires([plan(id, next_at=None)], NOW)
    await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL)])
    one, two = (await store.runs.claim_runs(claim(now=DUE))).runs
    await store.runs.finish_runs([finish(one, finished_at=DUE + 1)])
    assert (await schedule(store)).next_run_at is None
    await store.runs.finish_runs([finish(two, finished_at=DUE + 2)])
    assert (await schedule(store)).next_run_at == from_micros(DUE + 2 + HOUR)


async def test_a_due_time_that_counts_from_a_finish_waits_for_runs_by_hand(store: Store) -> None:
    id = await put(store, after_finish=HOUR, next_at=NOW + HOUR)
    first = await store.runs.trigger_run(new_run(schedule_id=id, trigger=Trigger.MANUAL), 0)
    assert first is not None
    for ended_at in (DUE + 1, DUE + 2):
        waiting = await schedule(store)
        assert waiting.next_run_at is None
        assert waiting.next_run_reason == "running: the next due time is set when it ends"
        (run,) = (await store.runs.claim_runs(claim(now=DUE))).runs
        await store.runs.finish_runs([finish(run, finished_at=ended_at)])
        assert (await schedule(store)).next_run_at == from_micros(ended_at + HOUR)
        await store.runs.repeat_run(first, DUE)
    assert (await schedule(store)).next_run_at is None


async def test_a_due_time_that_has_come_stays_until_it_has_its_row_whoever_runs_it_by_hand(store: Store) -> None:
    id = await put(store, after_finish=HOUR, next_at=NOW)
    late = new_run(schedule_id=id, trigger=Trigger.MANUAL, due_at=NOW + 9, ready_at=NOW + 9)
    first = await store.runs.trigger_run(late, 0)
    assert first is not None
    assert (await schedule(store)).next_run_at == from_micros(NOW)
    await store.runs.cancel_runs([first], Ending(Cause.CANCELLED, "no"), NOW + 10)
    assert (await schedule(store)).next_run_at == from_micros(NOW)


async def test_enabling_and_editing_wait_for_the_finish_of_what_runs(store: Store) -> None:
    id = await put(store, after_finish=HOUR, next_at=NOW + HOUR)
    await store.runs.trigger_run(new_run(schedule_id=id, trigger=Trigger.MANUAL), 0)
    assert await store.schedules.change_schedule(id, 1, change(enabled=True, next_at=NOW + HOUR), NOW)
    assert (await schedule(store)).next_run_at is None
    edited = draft(after_finish=2 * HOUR, timing="every 2h after finish", next_at=NOW + 2 * HOUR)
    assert await store.schedules.edit_schedule(edited, id, 2, NOW) is not None
    assert (await schedule(store)).next_run_at is None
    (run,) = (await store.runs.claim_runs(claim(now=DUE))).runs
    await store.runs.finish_runs([finish(run, finished_at=DUE)])
    assert (await schedule(store)).next_run_at == from_micros(DUE + 2 * HOUR)


async def test_a_run_by_hand_does_not_touch_a_due_time_on_a_grid(store: Store) -> None:
    id = await put(store, next_at=NOW + HOUR)
    first = await store.runs.trigger_run(new_run(schedule_id=id, trigger=Trigger.MANUAL), 0)
    assert first is not None
    await store.runs.repeat_run(first, DUE)
    assert (await schedule(store)).next_run_at == from_micros(NOW + HOUR)


async def test_no_due_time_follows_for_what_is_disabled(store: Store) -> None:
    id = await put(store, after_finish=HOUR)
    run = await fired(store, id, DUE)
    await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW + HOUR)
    await store.runs.finish_runs([finish(run)])
    assert (await schedule(store)).next_run_at is None


async def test_a_cancelled_or_expired_run_counts_as_an_end_for_the_next_due_time(store: Store) -> None:
    for name, expires_at in (("cancelled", None), ("expired", NOW + 9)):
        id = await put(store, name, after_finish=HOUR, next_at=None)
        (run,) = await store.runs.insert_runs([scheduled_run(id, expires_at=expires_at)])
        if expires_at is None:
            await store.runs.cancel_runs([run], Ending(Cause.CANCELLED, "no"), NOW + 9)
        else:
            await store.runs.claim_runs(claim(now=NOW + 9))
        assert (await schedule(store, name)).next_run_at == from_micros(NOW + 9 + HOUR)


async def test_a_repeated_run_has_the_same_work_and_policy(store: Store) -> None:
    run = await started(store, policy='{"retry":{"max":7}}', priority=4)
    await store.runs.finish_runs([finish(run, RunState.FAILED)])
    id = await store.runs.repeat_run(run.id, NOW + 5)
    assert id is not None
    again = await claim_one(store, now=NOW + HOUR)
    assert (again.id, again.trigger, again.due_at, again.attempt) == (id, Trigger.MANUAL, NOW + 5, 1)
    assert (again.work, again.policy) == (run.work, run.policy)
    assert await store.runs.repeat_run(RunId(99_999), NOW) is None


async def test_a_repeated_run_says_of_which_run_and_what_became_of_it(store: Store) -> None:
    run = await started(store)
    await store.runs.finish_runs([finish(run, RunState.FAILED)])
    assert await store.notifications.repeated_runs([run.id]) == []
    first = await store.runs.repeat_run(run.id, NOW + 5)
    await store.runs.finish_runs([finish(await claim_one(store, now=NOW + HOUR))])
    second = await store.runs.repeat_run(run.id, NOW + 6)
    assert first is not None
    assert second is not None
    assert await store.notifications.repeated_runs([run.id, RunId(99_999)]) == [
        RepeatedRun(run.id, second, RunState.QUEUED),
        RepeatedRun(run.id, first, RunState.SUCCEEDED),
    ]


async def test_reports_are_kept_while_the_token_holds(store: Store) -> None:
    run = await started(store)
    await store.runs.report_runs(
        [
            Report(run.id, run.token, progress='{"done":1}', totals='{"a":1}', output=said("one ")),
            Report(run.id, run.token, progress='{"done":2}', output=said("two ")),
            Report(run.id, run.token + 1, progress='{"done":9}', output=said("stale")),
        ]
    )
    await store.runs.report_runs([Report(run.id, run.token, totals='{"a":2}', output=said("three"))])
    await store.runs.report_runs([])
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert shown.progress is not None
    assert (shown.progress.done, shown.totals) == (2, {"a": 2.0})
    assert await printed(store, run.id) == "one two three"
    await store.runs.finish_runs([finish(run, output=said(" end"))])
    await store.runs.report_runs([Report(run.id, run.token, output=said("too late"))])
    assert await printed(store, run.id) == "one two three end"


async def test_two_nodes_that_end_the_last_runs_together_still_set_the_next_due_time(
    first: Store, second: Store
) -> None:
    for number in range(12):
        id = await put(first, f"s{number}", after_finish=HOUR, next_at=None)
        await first.runs.insert_runs([scheduled_run(id, DUE + 2 * number + n) for n in (0, 1)])
        one, two = (await first.runs.claim_runs(claim(now=DUE + HOUR))).runs
        ends = (first.runs.finish_runs([finish(one)]), second.runs.finish_runs([finish(two)]))
        await asyncio.gather(*ends)
        assert (await schedule(first, f"s{number}")).next_run_at == from_micros(NOW + 2 * SECOND + HOUR), number
