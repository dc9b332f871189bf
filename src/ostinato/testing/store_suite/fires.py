"""`due_schedules` and `record_fires`: every due time gets exactly one row, whoever gets there first."""

from __future__ import annotations

import asyncio

from ostinato.clock import from_micros
from ostinato.models.ids import ScheduleId
from ostinato.models.run import Ending, RunFilter
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    all_runs,
    change,
    claim,
    claim_one,
    draft,
    finish,
    new_run,
    plan,
    put,
    put_many,
    scheduled_run,
)

DUE = NOW + 5 * MINUTE


async def count(store: Store) -> int:
    return len(await all_runs(store))


async def test_due_are_those_until_the_horizon_soonest_first_and_then_the_next_moment(store: Store) -> None:
    for name, next_at in (("late", NOW + HOUR), ("b", NOW + 2), ("a", NOW + 1), ("latest", NOW + 2 * HOUR)):
        await put(store, name, next_at=next_at)
    due = await store.schedules.due_schedules(NOW + 2, 10)
    assert [schedule.name for schedule in due.schedules] == ["a", "b"]
    assert due.next_at == NOW + HOUR


async def test_the_horizon_itself_is_due(store: Store) -> None:
    await put(store, next_at=NOW)
    assert (await store.schedules.due_schedules(NOW - 1, 10)).schedules == []
    assert len((await store.schedules.due_schedules(NOW, 10)).schedules) == 1


async def test_past_the_limit_the_next_moment_is_now(store: Store) -> None:
    for number in range(3):
        await put(store, f"s{number}", next_at=NOW + number)
    due = await store.schedules.due_schedules(NOW + 5, 2)
    assert [schedule.name for schedule in due.schedules] == ["s0", "s1"]
    assert due.next_at is not None
    assert due.next_at <= NOW + 2


async def test_next_due_times_are_counted_from_edge_to_edge(store: Store) -> None:
    for number, next_at in enumerate((NOW, NOW + 1, NOW + HOUR - 1, NOW + HOUR, NOW + 2 * HOUR)):
        await put(store, f"s{number}", next_at=next_at)
    await put(store, "off", next_at=None)
    edges = (0, NOW, NOW + 1, NOW + HOUR, NOW + 2 * HOUR)
    assert await store.schedules.count_due(edges) == [0, 1, 2, 1]
    assert await store.schedules.count_due((0, NOW + 3 * HOUR)) == [5]


async def test_nothing_due_and_nothing_planned_is_none(store: Store) -> None:
    due = await store.schedules.due_schedules(NOW, 10)
    assert (list(due.schedules), due.next_at) == ([], None)


async def test_a_due_schedule_carries_what_the_planner_needs(store: Store) -> None:
    id = await put(store, policy='{"priority":3}', remaining=2, anchor_at=NOW - 1)
    runs = await store.runs.insert_runs(
        [
            new_run(schedule_id=id, trigger=Trigger.MANUAL),
            new_run(schedule_id=id, trigger=Trigger.MANUAL, waiting=True, session="s"),
            new_run(schedule_id=id, trigger=Trigger.MANUAL),
            new_run(schedule_id=id, trigger=Trigger.MANUAL, state=RunState.SKIPPED, reason="over"),
        ]
    )
    (due,) = (await store.schedules.due_schedules(DUE, 10)).schedules
    assert (due.id, due.name, due.timing, due.zone, due.kind, due.task) == (
        id,
        "report",
        "every 5m",
        "UTC",
        "function",
        "report",
    )
    assert (due.policy, due.anchor_at, due.next_at, due.remaining, due.version) == (
        '{"priority":3}',
        NOW - 1,
        DUE,
        2,
        1,
    )
    assert due.active == (runs[0], runs[2])
    assert len(due.waiting) == 1


async def test_a_fire_inserts_its_runs_and_moves_the_schedule_on(store: Store) -> None:
    id = await put(store)
    assert (await store.schedules.record_fires([plan(id)], NOW)).moved == [id]
    (run,) = await store.runs.list_runs(RunFilter())
    assert (run.schedule, run.state, run.trigger) == ("report", RunState.QUEUED, Trigger.SCHEDULE)
    assert run.due_at == from_micros(DUE)
    schedule = await store.schedules.get_schedule("report")
    assert schedule is not None
    assert schedule.next_run_at == from_micros(DUE + 5 * MINUTE)
    assert schedule.version == 1


async def test_many_fires_are_one_call_and_come_back_in_order(store: Store) -> None:
    ids = await put_many(store, [draft(f"s{number}") for number in range(30)])
    plans = [plan(id) for id in reversed(ids)]
    assert (await store.schedules.record_fires(plans, NOW)).moved == list(reversed(ids))
    assert await count(store) == 30
    assert (await store.schedules.record_fires([], NOW)).moved == []


async def test_a_collapsed_row_of_missed_due_times_is_at_its_end_already(store: Store) -> None:
    id = await put(store)
    missed = scheduled_run(id, DUE, state=RunState.MISSED, reason="nobody was there", last_due_at=DUE + HOUR, count=13)
    await store.schedules.record_fires([plan(id, runs=(missed,))], NOW)
    (run,) = await store.runs.list_runs(RunFilter())
    assert (run.state, run.reason, run.count) == (RunState.MISSED, "nobody was there", 13)
    assert run.last_due_at == from_micros(DUE + HOUR)
    assert run.finished_at == from_micros(DUE)
    assert run.ended


async def test_who_read_an_older_due_time_writes_nothing(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id)], NOW)
    assert (await store.schedules.record_fires([plan(id)], NOW)).moved == []
    assert await count(store) == 1


async def test_who_read_an_older_version_writes_nothing(store: Store) -> None:
    id = await put(store)
    await store.schedules.change_schedule(id, 1, change(next_at=DUE), NOW)
    assert (await store.schedules.record_fires([plan(id, version=1)], NOW)).moved == []
    assert await count(store) == 0
    assert (await store.schedules.record_fires([plan(id, version=2)], NOW)).moved == [id]


async def test_one_lost_plan_does_not_hold_up_the_others(store: Store) -> None:
    lost, won = await put(store, "lost"), await put(store, "won")
    await store.schedules.remove_schedule(lost, NOW)
    assert (await store.schedules.record_fires([plan(lost), plan(won)], NOW)).moved == [won]
    assert await count(store) == 1


async def test_a_due_time_that_has_its_row_gets_no_second_one(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id)], NOW)
    # The clock went back, and the same due time comes up again.
    again = plan(id, read_next_at=DUE + 5 * MINUTE, runs=(scheduled_run(id, DUE), scheduled_run(id, DUE + 5 * MINUTE)))
    assert (await store.schedules.record_fires([again], NOW)).moved == [id]
    assert [run.due_at for run in await store.runs.list_runs(RunFilter())] == [
        from_micros(DUE + 5 * MINUTE),
        from_micros(DUE),
    ]


async def test_a_catch_up_counts_as_the_row_of_its_due_time(store: Store) -> None:
    id = await put(store)
    caught_up = scheduled_run(id, DUE, trigger=Trigger.CATCH_UP)
    await store.schedules.record_fires([plan(id, runs=(caught_up, scheduled_run(id, DUE)))], NOW)
    (run,) = await store.runs.list_runs(RunFilter())
    assert run.trigger == Trigger.CATCH_UP


async def test_an_idle_plan_is_refused_when_something_of_it_is_active(store: Store) -> None:
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL)])
    assert (await store.schedules.record_fires([plan(id, idle=True)], NOW)).moved == []
    assert await count(store) == 1
    run = await claim_one(store)
    assert (await store.schedules.record_fires([plan(id, idle=True)], NOW)).moved == []
    await store.runs.finish_runs([finish(run)])
    assert (await store.schedules.record_fires([plan(id, idle=True)], NOW)).moved == [id]


async def test_a_plan_may_disable_break_and_count_down(store: Store) -> None:
    id = await put(store, remaining=1)
    await store.schedules.record_fires([plan(id, next_at=None, remaining=0, enabled=False, broken="no more")], NOW)
    schedule = await store.schedules.get_schedule("report")
    assert schedule is not None
    assert (schedule.enabled, schedule.broken, schedule.remaining) == (False, "no more", 0)
    assert schedule.version == 2


async def test_a_plan_may_cancel_what_the_newer_run_replaces(store: Store) -> None:
    id = await put(store)
    queued, running = await store.runs.insert_runs(
        [new_run(schedule_id=id, trigger=Trigger.MANUAL, ready_at=NOW + n) for n in (1, 0)]
    )
    assert (await claim_one(store)).id == running
    replaced = plan(id, cancel=(queued, running), ending=Ending(Cause.OVERLAP, "replaced by a newer run"))
    await store.schedules.record_fires([replaced], NOW + 9)
    ended = await store.runs.get_run(queued)
    assert ended is not None
    assert (ended.state, ended.reason) == (RunState.CANCELLED, "replaced by a newer run")
    assert (await store.runs.get_run(running)).cancelling == "replaced by a newer run"  # type: ignore[union-attr]


async def test_a_lost_plan_cancels_nothing(store: Store) -> None:
    id = await put(store)
    (run,) = await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL)])
    await store.schedules.record_fires(
        [plan(id, version=7, cancel=(run,), ending=Ending(Cause.OVERLAP, "replaced"))], NOW
    )
    assert (await store.runs.get_run(run)).state == RunState.QUEUED  # type: ignore[union-attr]


async def test_a_fire_in_an_idle_session_gets_its_turn_at_once(store: Store) -> None:
    id = await put(store)
    waiting = scheduled_run(id, DUE, session="s", waiting=True)
    await store.schedules.record_fires([plan(id, runs=(waiting,))], NOW)
    assert (await claim_one(store, now=DUE)).session == "s"


async def test_two_nodes_that_fire_the_same_due_time_leave_one_row(first: Store, second: Store) -> None:
    ids = await put_many(first, [draft(f"s{number}") for number in range(20)])
    for step in range(10):
        read = DUE + step * 5 * MINUTE
        plans = [plan(id, read_next_at=read) for id in ids]
        one, other = await asyncio.gather(
            first.schedules.record_fires(plans, NOW), second.schedules.record_fires(plans[::-1], NOW)
        )
        assert sorted([*one.moved, *other.moved]) == sorted(ids)
    for id in ids:
        runs = await all_runs(first, schedule_id=id)
        assert len(runs) == len({run.due_at for run in runs}) == 10


async def test_an_idle_plan_and_a_trigger_at_the_same_time_do_not_both_win(first: Store, second: Store) -> None:
    for number in range(15):
        id = await put(first, f"s{number}")
        fired, triggered = await asyncio.gather(
            first.schedules.record_fires([plan(id, idle=True)], NOW),
            second.runs.trigger_run(new_run(schedule_id=id, trigger=Trigger.MANUAL), 0),
        )
        assert [bool(fired.moved), triggered is not None].count(True) == 1
        assert len(await first.runs.list_runs(RunFilter(schedule_id=id))) == 1


async def test_fires_and_ends_of_the_same_schedules_do_not_hold_each_other_up(first: Store, second: Store) -> None:
    """One node fires and cancels what runs, the other ends just those: both take the schedule first."""
    ids = await put_many(first, [draft(f"s{number}") for number in range(8)])
    await first.schedules.record_fires([plan(id) for id in ids], NOW)
    for step in range(1, 7):
        running = {
            ScheduleId(run.schedule_id or 0): run for run in (await second.runs.claim_runs(claim(now=DUE + HOUR))).runs
        }
        assert sorted(running) == sorted(ids)
        fires = [
            plan(
                id,
                read_next_at=DUE + step * 5 * MINUTE,
                cancel=(running[id].id,),
                ending=Ending(Cause.OVERLAP, "newer"),
            )
            for id in ids
        ]
        ends = [finish(running[id], RunState.FAILED, breaks=True, break_after=99, broken="x") for id in reversed(ids)]
        async with asyncio.timeout(5):
            fired, done = await asyncio.gather(first.schedules.record_fires(fires, NOW), second.runs.finish_runs(ends))
        assert (sorted(fired.moved), list(done.lost)) == (sorted(ids), [])
    assert await count(first) == 8 * 7
