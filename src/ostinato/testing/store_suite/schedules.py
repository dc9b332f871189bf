"""Schedules: the idempotent upsert by name, the switch, orphans, and what lists show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ostinato.clock import SECOND, from_micros, to_micros
from ostinato.errors import Conflict
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import Pause, Schedule, ScheduleFilter, ScheduleState
from ostinato.models.states import Cause, Trigger
from ostinato.models.work import Function
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    all_runs,
    change,
    claim,
    draft,
    finish,
    new_run,
    plan,
    put,
    put_many,
    scheduled_run,
)


async def get(store: Store, name: str = "report") -> Schedule:
    found = await store.schedules.get_schedule(name)
    assert found is not None
    return found


async def test_a_new_schedule_is_read_back_as_it_was_given(store: Store) -> None:
    await put(store, project="shop", owner="api", note="nightly", remaining=3, policy='{"priority":2}')
    schedule = await get(store)
    assert (schedule.name, schedule.timing, schedule.zone) == ("report", "every 5m", "UTC")
    assert (schedule.project, schedule.owner, schedule.note, schedule.remaining) == ("shop", "api", "nightly", 3)
    assert schedule.policy.priority == 2
    assert schedule.enabled
    assert schedule.broken is None
    assert schedule.next_run_at == from_micros(NOW + 5 * MINUTE)
    assert schedule.anchor_at == schedule.created_at == schedule.updated_at == from_micros(NOW)
    assert schedule.version == 1


async def test_nothing_is_written_where_one_is_not_to_replace_what_is_somebody_elses(store: Store) -> None:
    await put(store, made_by="ada")
    await put(store, "import", owner="crontab:ada")
    for name in ("report", "import"):
        taken = draft(name, made_by="bob", timing="every 9m", replaces=False)
        with pytest.raises(Conflict, match=rf"{name!r} exists and was made by .*ada.*: it is not replaced"):
            await store.schedules.put_schedules([draft("new", replaces=False), taken], NOW)
        assert (await get(store, name)).version == 1
    assert await store.schedules.get_schedule("new") is None
    await put(store, made_by="bob", note="the same otherwise", replaces=False)
    await put(store, made_by="ada", timing="every 8m", replaces=False)
    await put(store, made_by="bob", timing="every 9m", replaces=True)
    found = await get(store)
    assert (found.timing, found.made_by, found.version) == ("every 9m", "bob", 4)


async def test_a_schedule_that_does_not_exist_is_none(store: Store) -> None:
    assert await store.schedules.get_schedule("nobody") is None


async def test_only_the_first_of_a_name_is_inserted(store: Store) -> None:
    assert await store.schedules.insert_schedule(draft(note="mine"), NOW)
    before = await get(store)
    assert not await store.schedules.insert_schedule(draft(timing="every 9m", note="theirs"), NOW + 1)
    assert await get(store) == before
    assert (before.note, before.version, before.next_run_at) == ("mine", 1, from_micros(NOW + 5 * MINUTE))


async def test_what_is_inserted_is_as_if_it_were_put(store: Store) -> None:
    await put(store, project="shop", note="nightly", remaining=3, policy='{"priority":2}')
    before = await get(store)
    await store.schedules.remove_schedule(before.id, NOW)
    given = draft(project="shop", note="nightly", remaining=3, policy='{"priority":2}')
    assert await store.schedules.insert_schedule(given, NOW)
    assert replace(await get(store), id=before.id) == before
    assert await store.schedules.insert_schedule(draft("off", enabled=False), NOW)
    assert (await get(store, "off")).next_run_at is None


async def test_an_edit_answers_the_version_that_it_wrote(store: Store) -> None:
    id = await put(store)
    assert await store.schedules.edit_schedule(draft(note="one"), id, 1, NOW) == 2
    assert await store.schedules.edit_schedule(draft(note="one"), id, 2, NOW) == 2
    assert await store.schedules.edit_schedule(draft(note="two"), id, 1, NOW) is None


async def test_a_schedule_that_was_removed_and_added_again_is_not_edited_in_its_place(store: Store) -> None:
    old = await put(store)
    await store.schedules.remove_schedule(old, NOW)
    new = await put(store, note="another")
    assert (await get(store)).version == 1
    assert await store.schedules.edit_schedule(draft(note="one"), old, 1, NOW) is None
    assert (await get(store)).note == "another"
    assert await store.schedules.edit_schedule(draft(note="one"), new, 1, NOW) == 2


async def test_a_schedule_of_another_version_is_not_removed(store: Store) -> None:
    id = await put(store)
    assert not await store.schedules.remove_schedule(id, NOW, 2)
    assert (await get(store)).version == 1
    assert await store.schedules.remove_schedule(id, NOW, 1)
    assert await store.schedules.get_schedule("report") is None


async def test_the_ids_stay_when_the_same_schedules_are_put_again(store: Store) -> None:
    names = ["c", "a", "b"]
    ids = await put_many(store, [draft(name) for name in names])
    assert await put_many(store, [draft(name) for name in reversed(names)]) == list(reversed(ids))
    assert len(set(ids)) == 3


async def test_putting_nothing_is_not_an_error(store: Store) -> None:
    await store.schedules.put_schedules([], NOW)
    assert await store.schedules.list_schedules(ScheduleFilter()) == []


async def test_putting_the_same_again_changes_nothing(store: Store) -> None:
    id = await put(store)
    before = await get(store)
    assert await put_many(store, [draft(next_at=NOW + HOUR, anchor_at=NOW + 1)], NOW + HOUR) == [id]
    assert await get(store) == before


async def test_the_same_name_twice_in_one_call_makes_one_schedule(store: Store) -> None:
    first, second = await put_many(store, [draft(), draft(note="later")])
    assert first == second
    assert (await get(store)).note == "later"


async def test_a_disabled_draft_has_no_due_time(store: Store) -> None:
    await put(store, enabled=False)
    schedule = await get(store)
    assert not schedule.enabled
    assert schedule.next_run_at is None
    assert (await store.schedules.due_schedules(NOW + HOUR, 10)).schedules == []


async def test_a_change_of_work_keeps_the_due_time_and_a_persons_pause(store: Store) -> None:
    id = await put(store)
    assert await store.schedules.change_schedule(id, 1, change(enabled=False, off_note="holiday", next_at=None), NOW)
    await put(store, work='{"kind":"function","task":"other","args":[],"kwargs":{}}', task="other")
    schedule = await get(store)
    assert not schedule.enabled
    assert (schedule.off_note, schedule.note) == ("holiday", None)
    assert schedule.next_run_at is None
    assert schedule.work == Function("other")
    assert schedule.version == 3


async def test_a_change_of_policy_keeps_the_due_time(store: Store) -> None:
    await put(store)
    await put(store, policy='{"priority":5}', next_at=NOW + HOUR)
    schedule = await get(store)
    assert schedule.policy.priority == 5
    assert schedule.next_run_at == from_micros(NOW + 5 * MINUTE)


async def test_a_change_of_timing_moves_the_due_time_and_the_anchor(store: Store) -> None:
    await put(store)
    await put(store, timing="every 1h", next_at=NOW + HOUR, anchor_at=NOW + 7)
    schedule = await get(store)
    assert schedule.timing == "every 1h"
    assert schedule.next_run_at == from_micros(NOW + HOUR)
    assert schedule.anchor_at == from_micros(NOW + 7)


async def test_a_change_of_zone_is_a_change_of_timing(store: Store) -> None:
    await put(store)
    await put(store, zone="Europe/Berlin", next_at=NOW + HOUR)
    assert (await get(store)).next_run_at == from_micros(NOW + HOUR)


async def test_a_change_of_timing_does_not_wake_what_a_person_paused(store: Store) -> None:
    id = await put(store)
    await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    await put(store, timing="every 1h", next_at=NOW + HOUR)
    schedule = await get(store)
    assert not schedule.enabled
    assert schedule.next_run_at is None


async def test_a_person_enabled_it_and_new_timing_of_a_disabled_draft_still_gives_a_due_time(store: Store) -> None:
    id = await put(store, enabled=False)
    await store.schedules.change_schedule(id, 1, change(next_at=NOW + MINUTE), NOW)
    await put(store, enabled=False, timing="every 1h", next_at=NOW + HOUR)
    schedule = await get(store)
    assert schedule.enabled
    assert schedule.next_run_at == from_micros(NOW + HOUR)


async def test_a_new_note_is_written_and_none_keeps_the_old_one(store: Store) -> None:
    await put(store, note="first")
    await put(store, note="second")
    assert (await get(store)).note == "second"
    await put(store, policy='{"priority":1}')
    assert (await get(store)).note == "second"


async def test_remaining_is_given_anew_only_with_a_new_policy_or_timing(store: Store) -> None:
    id = await put(store, remaining=5)
    await store.schedules.record_fires([plan(id, remaining=4)], NOW)
    await put(store, remaining=5)
    assert (await get(store)).remaining == 4
    await put(store, remaining=9, policy='{"remaining":9}')
    assert (await get(store)).remaining == 9


async def test_the_switch_is_written_only_if_the_version_still_holds(store: Store) -> None:
    id = await put(store)
    assert await store.schedules.change_schedule(id, 1, change(off_note="mine"), NOW)
    assert not await store.schedules.change_schedule(id, 1, change(off_note="too late"), NOW)
    schedule = await get(store)
    assert (schedule.off_note, schedule.version) == ("mine", 2)


async def test_why_it_is_off_stands_beside_its_own_note(store: Store) -> None:
    await put(store, enabled=False, note="owner: ada", off_note="checks failed: disk: full")
    schedule = await get(store)
    assert (schedule.note, schedule.off_note) == ("owner: ada", "checks failed: disk: full")
    assert schedule.next_run_reason == "disabled: checks failed: disk: full"
    await put(store, note="owner: bob", off_note="another")
    schedule = await get(store)
    assert (schedule.note, schedule.off_note) == ("owner: bob", "checks failed: disk: full")
    assert await store.schedules.change_schedule(schedule.id, schedule.version, change(), NOW)
    schedule = await get(store)
    assert (schedule.enabled, schedule.note, schedule.off_note) == (True, "owner: bob", None)


async def broken_one(store: Store) -> ScheduleId:
    """A schedule that the breaker has switched off."""
    id = await put(store)
    await store.schedules.record_fires([plan(id, runs=(), next_at=None, enabled=False, broken="no ink")], NOW)
    return id


async def test_another_timing_switches_on_what_the_breaker_switched_off_if_its_checks_pass(store: Store) -> None:
    await broken_one(store)
    await put(store, note="looked at")
    assert (await get(store)).broken == "no ink"
    await put(store, timing="every 7m", may_switch_on=False)
    schedule = await get(store)
    assert (schedule.enabled, schedule.broken, schedule.next_run_at) == (False, "no ink", None)
    await put(store, timing="every 8m")
    schedule = await get(store)
    assert (schedule.enabled, schedule.broken) == (True, None)
    assert schedule.next_run_at is not None


async def test_another_timing_does_not_switch_on_what_a_person_switched_off_after_it_broke(store: Store) -> None:
    id = await broken_one(store)
    off = change(enabled=False, off_note="holiday", next_at=None)
    assert await store.schedules.change_schedule(id, (await get(store)).version, off, NOW)
    assert (await get(store)).broken is None
    await put(store, timing="every 7m")
    schedule = await get(store)
    assert (schedule.enabled, schedule.off_note, schedule.next_run_at) == (False, "holiday", None)


async def test_disabling_takes_back_runs_recorded_ahead_of_their_due_time(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id, runs=(scheduled_run(id, NOW + SECOND),))], NOW)
    past = new_run(schedule_id=id, trigger=Trigger.SCHEDULE, due_at=NOW - SECOND)
    manual = new_run(schedule_id=id, trigger=Trigger.MANUAL, due_at=NOW + SECOND)
    kept = await store.runs.insert_runs([past, manual])
    assert await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    assert [run.id for run in await all_runs(store)] == kept


async def test_enabling_leaves_the_runs_alone(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id)], NOW)
    await store.schedules.change_schedule(id, 1, change(), NOW)
    assert len(await all_runs(store)) == 1


async def test_what_the_code_no_longer_declares_is_orphaned_and_not_deleted(store: Store) -> None:
    for name in ("a", "b"):
        await put(store, name, owner="code", origin="app")
    await put(store, "of another app", owner="code", origin="other")
    await put(store, "of a person")
    assert await store.schedules.mark_orphans("app", ["a"], NOW) == ["b"]
    assert await store.schedules.mark_orphans("app", ["a"], NOW) == []
    orphan = await get(store, "b")
    assert orphan.orphaned
    assert orphan.enabled
    assert orphan.next_run_at is None
    assert orphan.next_run_reason == "orphaned: the code no longer declares it"
    assert await store.schedules.mark_orphans("app", [], NOW) == ["a"]
    assert [(await get(store, name)).orphaned for name in ("of another app", "of a person")] == [False, False]


async def test_an_orphan_that_is_declared_again_goes_on(store: Store) -> None:
    await put(store, owner="code", origin="app")
    await store.schedules.mark_orphans("app", [], NOW)
    await put(store, owner="code", origin="app", next_at=NOW + HOUR)
    schedule = await get(store)
    assert not schedule.orphaned
    assert schedule.next_run_at == from_micros(NOW + HOUR)


async def test_an_orphan_that_a_person_had_paused_comes_back_paused(store: Store) -> None:
    id = await put(store, owner="code", origin="app")
    await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    await store.schedules.mark_orphans("app", [], NOW)
    await put(store, owner="code", origin="app", next_at=NOW + HOUR)
    schedule = await get(store)
    assert not schedule.orphaned
    assert not schedule.enabled
    assert schedule.next_run_at is None


async def test_lists_show_the_soonest_first_and_what_is_never_due_last(store: Store) -> None:
    await put(store, "later", next_at=NOW + HOUR)
    await put(store, "never", enabled=False)
    await put(store, "soon", next_at=NOW + SECOND)
    await put(store, "Same", next_at=NOW + HOUR)
    names = [schedule.name for schedule in await store.schedules.list_schedules(ScheduleFilter())]
    assert names == ["soon", "Same", "later", "never"]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (ScheduleFilter(names=("a", "b_%")), ["a", "b_%"]),
        (ScheduleFilter(search="EKL"), ["weekly"]),
        (ScheduleFilter(search="_%"), ["b_%"]),
        (ScheduleFilter(owner="code"), ["a"]),
        (ScheduleFilter(enabled=False), ["b_%"]),
        (ScheduleFilter(enabled=True, limit=1), ["a"]),
        (ScheduleFilter(search="nothing like it"), []),
    ],
)
async def test_lists_show_only_what_is_asked_for(store: Store, wanted: ScheduleFilter, names: list[str]) -> None:
    await put(store, "a", owner="code", origin="app")
    await put(store, "b_%", enabled=False)
    await put(store, "weekly")
    assert [schedule.name for schedule in await store.schedules.list_schedules(wanted)] == names


async def test_a_schedule_shows_its_last_run(store: Store) -> None:
    id = await put(store)
    assert (await get(store)).last_run is None
    await store.schedules.record_fires([plan(id)], NOW)
    await store.schedules.record_fires([plan(id, read_next_at=NOW + 10 * MINUTE)], NOW)
    schedule = await get(store)
    assert schedule.last_run is not None
    assert schedule.last_run.due_at == from_micros(NOW + 10 * MINUTE)
    assert schedule.last_run.schedule == "report"


async def test_a_schedule_that_counts_from_its_finish_says_that_it_runs(store: Store) -> None:
    id = await put(store, after_finish=HOUR)
    await store.schedules.record_fires([plan(id, next_at=None)], NOW)
    schedule = await get(store)
    assert schedule.next_run_at is None
    assert schedule.next_run_reason == "running: the next due time is set when it ends"


async def test_a_schedule_without_a_further_due_time_is_on_while_its_last_run_is_active(store: Store) -> None:
    id = await put(store)
    await store.schedules.record_fires([plan(id, next_at=None)], NOW)
    for state in (ScheduleState.ON, ScheduleState.FINISHED):
        (row,), _ = await store.schedules.page_schedules(ScheduleFilter(state=state, limit=5))
        assert row.schedule.state is state
        for run in (await store.runs.claim_runs(claim(now=NOW + HOUR))).runs:
            await store.runs.finish_runs([finish(run)])


async def test_who_switched_it_off_is_known_until_it_is_on_again_by_whatever_way(store: Store) -> None:
    id = await put(store)
    off = change(enabled=False, off_by="ada", off_at=NOW + MINUTE, next_at=None)
    assert await store.schedules.change_schedule(id, 1, off, NOW)
    await put(store, note="another note")
    schedule = await get(store)
    assert (schedule.enabled, schedule.off_by, schedule.off_at) == (False, "ada", from_micros(NOW + MINUTE))
    assert await store.schedules.change_schedule(id, schedule.version, change(), NOW)
    assert ((await get(store)).off_by, (await get(store)).off_at) == (None, None)


async def test_a_paused_schedule_says_why_as_one_word(store: Store) -> None:
    id = await put(store)
    due = to_micros((await get(store)).next_run_at or from_micros(0))
    assert await store.schedules.pause_schedule(id, 1, Pause(due, due + HOUR, Cause.BUDGET, "budget: 3 of 3"), NOW)
    assert (await get(store)).paused_cause is Cause.BUDGET
