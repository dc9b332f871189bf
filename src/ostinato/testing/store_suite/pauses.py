"""Schedules that are put off for a while: what holds them, what ends it, and what leaves it alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ostinato.clock import Micros, from_micros, to_micros
from ostinato.models.ids import ScheduleId
from ostinato.models.run import Run, RunFilter
from ostinato.models.schedule import DueSchedule, Pause, Schedule, ScheduleFilter
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    all_runs,
    change,
    claim_one,
    draft,
    finish,
    new_run,
    plan,
    put,
    put_many,
)

DUE = NOW + 5 * MINUTE
UNTIL = NOW + 10 * HOUR
HOLD = Pause(DUE, UNTIL, Cause.BUDGET, "budget: $5.00 of $5.00 spent today")
HELD = new_run(
    trigger=Trigger.SCHEDULE,
    due_at=DUE,
    ready_at=DUE,
    state=RunState.SKIPPED,
    last_due_at=UNTIL - 5 * MINUTE,
    count=119,
)
"""What the planner makes of it at UNTIL."""


async def schedule(store: Store, name: str = "report") -> Schedule:
    found = await store.schedules.get_schedule(name)
    assert found is not None
    return found


async def due(store: Store) -> DueSchedule:
    (found,) = (await store.schedules.due_schedules(NOW + 30 * HOUR, 10)).schedules
    return found


async def held(store: Store, **fields: Any) -> ScheduleId:
    id = await put(store, **fields)
    assert await store.schedules.pause_schedule(id, 1, HOLD, NOW)
    return id


def spans(run: Run) -> tuple[Micros, Micros | None, int]:
    return to_micros(run.due_at), to_micros(run.last_due_at) if run.last_due_at else None, run.count


async def left_out(store: Store) -> list[Any]:
    """The rows of due times that were left out: the first, the last, and how many."""
    return [spans(run) for run in await all_runs(store, states=(RunState.SKIPPED,))]


async def test_a_held_schedule_is_due_later_and_says_why(store: Store) -> None:
    await held(store)
    found = await schedule(store)
    assert (found.enabled, found.broken, found.version) == (True, None, 1)
    assert (found.next_run_at, found.next_run_reason) == (from_micros(UNTIL), f"paused: {HOLD.reason}")
    assert found.updated_at == from_micros(NOW)
    assert (found.paused, found.paused_since) == (True, from_micros(DUE))
    assert list((await store.schedules.due_schedules(UNTIL - 1, 10)).schedules) == []
    planned = await due(store)
    assert (planned.next_at, planned.paused_since, planned.paused_reason) == (UNTIL, DUE, HOLD.reason)


async def test_what_is_held_again_keeps_its_first_since(store: Store) -> None:
    id = await held(store)
    assert await store.schedules.pause_schedule(id, 1, Pause(UNTIL, UNTIL + HOUR, Cause.BUDGET, "again"), NOW)
    planned = await due(store)
    assert (planned.next_at, planned.paused_since, planned.paused_reason) == (UNTIL + HOUR, DUE, "again")


async def test_the_next_fire_ends_it(store: Store) -> None:
    id = await held(store)
    assert (await store.schedules.record_fires([plan(id, read_next_at=UNTIL)], UNTIL)).moved == [id]
    planned = await due(store)
    assert (planned.paused_since, planned.paused_reason) == (None, None)
    assert (await schedule(store)).next_run_reason is None


async def test_a_fire_that_was_planned_before_it_loses(store: Store) -> None:
    id = await held(store)
    assert (await store.schedules.record_fires([plan(id)], NOW)).moved == []
    assert (await due(store)).paused_since == DUE


async def test_a_hold_that_was_planned_before_a_fire_loses(store: Store) -> None:
    id = await put(store)
    assert (await store.schedules.record_fires([plan(id)], NOW)).moved == [id]
    # The version has not changed, and a row says what became of DUE: it cannot be skipped any more.
    assert not await store.schedules.pause_schedule(id, 1, HOLD, NOW)
    found = await due(store)
    assert (found.version, found.next_at, found.paused_since) == (1, DUE + 5 * MINUTE, None)


@pytest.mark.parametrize(
    "fields",
    [{"next_at": None}, {"enabled": False}],
    ids=["it is not due any more", "it is disabled"],
)
async def test_what_does_not_run_is_not_held(store: Store, fields: dict[str, Any]) -> None:
    id = await put(store, **fields)
    assert not await store.schedules.pause_schedule(id, 1, HOLD, NOW)
    assert (await schedule(store)).next_run_at is None


async def test_what_was_changed_meanwhile_is_not_held(store: Store) -> None:
    id = await put(store)
    assert await store.schedules.change_schedule(id, 1, change(next_at=DUE), NOW)
    assert not await store.schedules.pause_schedule(id, 1, HOLD, NOW)
    assert await store.schedules.pause_schedule(id, 2, HOLD, NOW)
    assert not await store.schedules.pause_schedule(ScheduleId(id + 1), 2, HOLD, NOW)


@pytest.mark.parametrize("enabled", [True, False])
async def test_whoever_turns_the_switch_ends_it_and_leaves_one_row(store: Store, enabled: bool) -> None:
    id = await held(store)
    then = NOW + HOUR + MINUTE
    switch = change(enabled=enabled, next_at=then + 5 * MINUTE if enabled else None)
    assert await store.schedules.change_schedule(id, 1, switch, then)
    found = await schedule(store)
    assert (found.next_run_reason, found.paused_since) == (None if enabled else "disabled", None)
    assert found.next_run_at == (from_micros(then + 5 * MINUTE) if enabled else None)
    assert await left_out(store) == [(DUE, NOW + HOUR, 12)]


async def test_the_row_is_as_the_schedule_was(store: Store) -> None:
    id = await held(store, project="blog", policy='{"lane":"slow"}', remaining=3)
    switch = change(enabled=False, next_at=None, remaining=3)
    assert await store.schedules.change_schedule(id, 1, switch, NOW + HOUR)
    (run,) = await store.runs.list_runs(RunFilter(schedule_id=id))
    assert (run.state, run.reason, run.trigger) == (RunState.SKIPPED, HOLD.reason, Trigger.SCHEDULE)
    assert (run.task, run.lane, run.project, run.attempt) == ("report", "slow", "blog", 0)
    assert (run.ready_at, run.started_at, run.finished_at) == (from_micros(DUE), None, from_micros(DUE))
    # What is left out uses up none of what remains.
    assert (await schedule(store)).remaining == 3
    assert await store.schedules.remove_schedule(id, NOW)
    assert await left_out(store) == []


async def test_whoever_read_an_older_version_ends_nothing(store: Store) -> None:
    id = await held(store)
    assert not await store.schedules.change_schedule(id, 7, change(), NOW + HOUR)
    planned = await due(store)
    assert (planned.next_at, planned.paused_since) == (UNTIL, DUE)
    assert await left_out(store) == []


@pytest.mark.parametrize("fields", [{"timing": "every 7m"}, {"zone": "Europe/Berlin"}])
async def test_another_timing_ends_it_and_leaves_a_row_of_the_old_one(store: Store, fields: dict[str, str]) -> None:
    await held(store)
    then = NOW + HOUR
    await store.schedules.put_schedules([draft(next_at=then + 7 * MINUTE, anchor_at=then, **fields)], then)
    planned = await due(store)
    assert (planned.next_at, planned.paused_since, planned.paused_reason) == (then + 7 * MINUTE, None, None)
    assert await left_out(store) == [(DUE, NOW + HOUR, 12)]


@pytest.mark.parametrize("later", [0, HOUR + MINUTE], ids=["before its first due time", "after it"])
async def test_another_budget_ends_it_and_it_goes_on_with_its_own_next_due_time(store: Store, later: Micros) -> None:
    await held(store, policy='{"budget":{"per_day_runs":2}}')
    raised = draft(policy='{"budget":{"per_day_runs":9}}', next_at=NOW + 7 * MINUTE, anchor_at=NOW + 1)
    await store.schedules.put_schedules([raised], NOW + later)
    planned = await due(store)
    assert (planned.paused_since, planned.paused_reason, planned.version) == (None, None, 2)
    assert (planned.anchor_at, planned.next_at) == (NOW, NOW + HOUR + 5 * MINUTE if later else DUE)
    assert await left_out(store) == ([(DUE, NOW + HOUR, 12)] if later else [])


async def test_of_many_drafts_only_those_that_change_a_held_one_end_its_hold(store: Store) -> None:
    budget = '{"budget":{"per_day_runs":2}}'
    for id in await put_many(store, [draft(f"s{number}", policy=budget) for number in range(6)]):
        if id % 2:
            assert await store.schedules.pause_schedule(id, 1, HOLD, NOW)
    drafts = [draft(f"s{number}", policy="{}" if number < 3 else budget) for number in range(6)]
    ids = await put_many(store, drafts, NOW + HOUR)
    paused = [one.id for one in await store.schedules.list_schedules(ScheduleFilter()) if one.paused_since is not None]
    assert sorted(paused) == [id for id in ids[3:] if id % 2]
    ended = sorted((run.schedule_id or 0, run.count) for run in await all_runs(store))
    assert ended == [(id, 12) for id in ids[:3] if id % 2]


async def test_a_name_that_is_given_twice_ends_it_once(store: Store) -> None:
    await held(store)
    await store.schedules.put_schedules([draft(timing="every 7m"), draft(timing="every 7m")], NOW + HOUR)
    assert (await due(store)).paused_since is None
    assert await left_out(store) == [(DUE, NOW + HOUR, 12)]


@pytest.mark.parametrize(
    "fields", [{"project": "blog"}, {"policy": '{"retry":{"max":7}}'}, {"note": "n"}, {"work": '{"kind":"shell"}'}]
)
async def test_another_project_work_policy_or_note_moves_nothing(store: Store, fields: dict[str, str]) -> None:
    await held(store)
    before = await due(store)
    await store.schedules.put_schedules([draft(next_at=NOW + MINUTE, anchor_at=NOW + 1, **fields)], NOW + HOUR)
    after = await due(store)
    assert (after.next_at, after.anchor_at) == (before.next_at, before.anchor_at)
    assert (after.paused_since, after.paused_reason) == (DUE, HOLD.reason)
    assert after.version == before.version + 1


async def test_another_project_leaves_the_due_time_alone(store: Store) -> None:
    await put(store)
    await store.schedules.put_schedules([draft(project="blog", next_at=NOW + MINUTE, anchor_at=NOW + 1)], NOW)
    after = await due(store)
    assert (after.project, after.next_at, after.anchor_at, after.version) == ("blog", DUE, NOW, 2)
    await store.schedules.put_schedules([draft(project="blog", next_at=NOW + MINUTE)], NOW)
    assert (await due(store)).version == 2
    await store.schedules.put_schedules([draft(project=None, next_at=NOW + MINUTE)], NOW)
    after = await due(store)
    assert (after.project, after.next_at, after.version) == (None, DUE, 3)


async def test_what_was_orphaned_while_it_was_held_begins_anew(store: Store) -> None:
    await held(store, owner="code", origin="app")
    assert await store.schedules.mark_orphans("app", [], NOW) == ["report"]
    assert (await schedule(store)).next_run_reason == "orphaned: the code no longer declares it"
    await store.schedules.put_schedules([draft(owner="code", origin="app")], NOW)
    planned = await due(store)
    assert (planned.next_at, planned.paused_since, planned.paused_reason) == (DUE, None, None)


async def test_what_is_orphaned_leaves_a_row_of_what_it_was_held_for(store: Store) -> None:
    await held(store, owner="code", origin="app")
    await put(store, "other", owner="code", origin="app")
    assert await store.schedules.mark_orphans("app", ["other"], NOW + HOUR) == ["report"]
    orphaned = await schedule(store)
    assert (orphaned.next_run_at, orphaned.paused_since) == (None, None)
    assert await left_out(store) == [(DUE, NOW + HOUR, 12)]
    assert await store.schedules.mark_orphans("app", ["other"], NOW + 2 * HOUR) == []
    assert len(await left_out(store)) == 1


async def test_what_breaks_while_it_is_held_is_broken_and_leaves_a_row(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id)], NOW)
    run = await claim_one(store, now=NOW + HOUR)
    assert await store.schedules.pause_schedule(id, 1, Pause(DUE + 5 * MINUTE, UNTIL, Cause.BUDGET, "held"), NOW)
    end = finish(run, RunState.FAILED, breaks=True, break_after=1, broken="it failed", finished_at=NOW + HOUR + MINUTE)
    assert list((await store.runs.finish_runs([end])).broken) == [id]
    broken = await schedule(store)
    assert broken.next_run_reason == "broken: it failed"
    assert (broken.next_run_at, broken.paused_since) == (None, None)
    assert await left_out(store) == [(DUE + 5 * MINUTE, NOW + HOUR, 11)]
    assert not await store.schedules.pause_schedule(id, 2, HOLD, NOW)


async def test_a_failure_that_does_not_break_it_leaves_the_hold_alone(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id)], NOW)
    run = await claim_one(store, now=NOW + HOUR)
    assert await store.schedules.pause_schedule(id, 1, Pause(DUE + 5 * MINUTE, UNTIL, Cause.BUDGET, "held"), NOW)
    end = finish(run, RunState.FAILED, breaks=True, break_after=2, broken="no", finished_at=NOW + HOUR)
    assert list((await store.runs.finish_runs([end])).broken) == []
    planned = await due(store)
    assert (planned.next_at, planned.paused_since) == (UNTIL, DUE + 5 * MINUTE)
    assert await left_out(store) == []


async def test_the_end_of_a_run_by_hand_does_not_bring_a_held_schedule_forward(store: Store) -> None:
    id = await put(store, after_finish=HOUR)
    assert await store.schedules.pause_schedule(id, 1, HOLD, NOW)
    (plain,) = plan(id).runs
    assert await store.runs.trigger_run(plain, 0) is not None
    run = await claim_one(store, now=NOW + HOUR)
    await store.runs.finish_runs([finish(run)])
    planned = await due(store)
    assert (planned.next_at, planned.paused_since) == (UNTIL, DUE)


async def test_two_nodes_that_hold_and_fire_at_once_do_one_of_both(first: Store, second: Store) -> None:
    for number in range(20):
        id = await put(first, f"s{number}")
        fired, is_held = await asyncio.gather(
            first.schedules.record_fires([plan(id)], NOW), second.schedules.pause_schedule(id, 1, HOLD, NOW)
        )
        assert bool(fired.moved) is not is_held, number
        assert (await schedule(second, f"s{number}")).next_run_at == from_micros(UNTIL if is_held else DUE + 5 * MINUTE)


async def test_nodes_that_end_the_same_hold_in_different_ways_leave_one_row(first: Store, second: Store) -> None:
    then = NOW + HOUR
    for number in range(20):
        name, fields = f"s{number}", {"owner": "code", "origin": f"app{number}"}
        id = await put(first, name, **fields)
        assert await first.schedules.pause_schedule(id, 1, HOLD, NOW)
        await asyncio.gather(
            first.schedules.put_schedules([draft(name, timing="every 7m", next_at=then + 7 * MINUTE, **fields)], then),
            second.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), then),
            second.schedules.put_schedules([draft(name, policy='{"budget":{"per_day_runs":9}}', **fields)], then),
            first.schedules.mark_orphans(f"app{number}", [], then),
        )
        assert [spans(run) for run in await all_runs(first, schedule_id=id)] == [(DUE, then, 12)], number
        assert (await schedule(second, name)).paused_since is None


async def test_a_fire_and_a_switch_at_once_leave_one_row_of_the_hold(first: Store, second: Store) -> None:
    for number in range(20):
        id = await put(first, f"s{number}")
        assert await first.schedules.pause_schedule(id, 1, HOLD, NOW)
        over = replace(HELD, schedule_id=id)
        fired, is_switched = await asyncio.gather(
            first.schedules.record_fires([plan(id, read_next_at=UNTIL, runs=(over,))], UNTIL),
            second.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), UNTIL),
        )
        assert fired.moved or is_switched, number
        assert [spans(run) for run in await all_runs(first, schedule_id=id)] == [(DUE, UNTIL - 5 * MINUTE, 119)], number
