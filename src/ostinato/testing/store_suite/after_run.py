"""Schedules with `delete_after_run`: deleted after a success, with their rows kept; off after a failure."""

from __future__ import annotations

from ostinato.models.access import AuditFilter
from ostinato.models.ids import ScheduleId
from ostinato.models.incident import SWITCHED_OFF, IncidentFilter
from ostinato.models.run import ClaimedRun, RunFilter
from ostinato.models.schedule import Schedule
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    MINUTE,
    NOW,
    all_runs,
    change,
    claim_one,
    finish,
    new_run,
    printed,
    put,
    said,
    scheduled_run,
)

DUE = NOW + 5 * MINUTE


async def fired(store: Store, id: ScheduleId, due_at: int) -> ClaimedRun:
    """A scheduled run under way."""
    await store.runs.insert_runs([scheduled_run(id, due_at)])
    return await claim_one(store, now=due_at)


async def schedule(store: Store, name: str = "report") -> Schedule:
    found = await store.schedules.get_schedule(name)
    assert found is not None
    return found


async def test_delete_after_run_leaves_a_schedule_that_is_due_again(store: Store) -> None:
    run = await fired(store, await put(store), DUE)
    await store.runs.finish_runs([finish(run, ends_schedule=True)])
    assert (await schedule(store)).next_run_at is not None
    assert await store.access.list_audit(AuditFilter()) == []


async def test_delete_after_run_takes_a_finished_schedule_and_leaves_its_rows_with_its_name(store: Store) -> None:
    id = await put(store, next_at=None)
    run = await fired(store, id, DUE)
    done = await store.runs.finish_runs([finish(run, ends_schedule=True, output=said("kept"))])
    assert (list(done.lost), list(done.broken)) == ([], [])
    assert await store.schedules.get_schedule("report") is None
    (left,) = await all_runs(store)
    assert (left.id, left.schedule, left.schedule_id, left.state) == (run.id, "report", None, RunState.SUCCEEDED)
    assert await printed(store, run.id) == "kept"
    (entry,) = await store.access.list_audit(AuditFilter())
    assert (entry.who, entry.door, entry.verb, entry.object) == ("ostinato", "engine", "schedule.remove", "report")


async def test_the_rows_of_a_removed_schedule_are_listed_by_its_name_beside_those_of_a_new_one(store: Store) -> None:
    run = await fired(store, await put(store, next_at=None), DUE)
    await store.runs.finish_runs([finish(run, ends_schedule=True)])
    other = await put(store, next_at=None)
    new = await fired(store, other, DUE)
    await store.runs.insert_runs([new_run(), new_run(schedule_id=await put(store, "other"))])
    for brief in (False, True):
        both = await store.runs.list_runs(RunFilter(schedule_id=other, removed="report", brief=brief))
        assert [(each.id, each.schedule) for each in both] == [(new.id, "report"), (run.id, "report")]
        (former,) = await store.runs.list_runs(RunFilter(removed="report", brief=brief))
        assert former.id == run.id
    assert [each.id for each in await store.runs.list_runs(RunFilter(schedule_id=other))] == [new.id]
    found = await store.runs.list_runs(RunFilter(search="EPOR", states=(RunState.SUCCEEDED,)))
    assert [each.id for each in found] == [run.id]


async def test_the_rows_of_removed_schedules_of_one_name_are_kept_up_to_their_count(store: Store) -> None:
    made = []
    for _ in range(3):
        run = await fired(store, await put(store, next_at=None, policy='{"keep":{"age":null,"count":2}}'), DUE)
        await store.runs.finish_runs([finish(run, ends_schedule=True)])
        made.append(run.id)
    assert sorted(run.id for run in await all_runs(store)) == made[1:]


async def test_delete_after_run_switches_off_what_failed_with_its_reason_and_tells_it(store: Store) -> None:
    id = await put(store, next_at=None)
    run = await fired(store, id, DUE)
    end = finish(run, RunState.FAILED, reason="the disk is full", ends_schedule=True, schedule="report")
    done = await store.runs.finish_runs([end])
    assert list(done.broken) == [id]
    found = await schedule(store)
    assert (found.enabled, found.broken) == (False, "its last run failed: the disk is full")
    assert [(each.schedule_id, each.schedule) for each in await all_runs(store)] == [(id, "report")]
    told = {each.cause for each in await store.notifications.list_incidents(IncidentFilter())}
    assert told == {SWITCHED_OFF, str(Cause.RAISED)}


async def test_what_a_person_switched_off_while_its_last_run_failed_stays_off_with_another_timing(store: Store) -> None:
    once = '{"remaining":1}'
    id = await put(store, next_at=None, enabled=False, remaining=0, policy=once)
    run = await fired(store, id, DUE)
    switched = change(enabled=False, next_at=None, remaining=0, off_by="ada")
    assert await store.schedules.change_schedule(id, 1, switched, NOW)
    await store.runs.finish_runs([finish(run, RunState.FAILED, reason="no disk", ends_schedule=True)])
    assert (await schedule(store)).broken == "its last run failed: no disk"
    await put(store, timing="every 10m", next_at=NOW + MINUTE, policy=once)
    found = await schedule(store)
    assert (found.broken, found.enabled, found.off_by, found.next_run_at) == (None, False, "ada", None)


async def test_delete_after_run_leaves_a_failed_schedule_that_is_due_again_as_it_is(store: Store) -> None:
    run = await fired(store, await put(store), DUE)
    done = await store.runs.finish_runs([finish(run, RunState.FAILED, ends_schedule=True)])
    assert list(done.broken) == []
    assert ((await schedule(store)).enabled, (await schedule(store)).broken) == (True, None)


async def test_delete_after_run_switches_off_what_succeeded_with_errors(store: Store) -> None:
    id = await put(store, next_at=None)
    run = await fired(store, id, DUE)
    end = finish(run, cause=Cause.ERRORS, reason="3 errors", ends_schedule=True, schedule="report")
    done = await store.runs.finish_runs([end])
    assert list(done.broken) == [id]
    found = await schedule(store)
    assert (found.enabled, found.broken) == (False, "its last run succeeded with 3 errors")
    assert [(each.schedule_id, each.state) for each in await all_runs(store)] == [(id, RunState.SUCCEEDED)]
