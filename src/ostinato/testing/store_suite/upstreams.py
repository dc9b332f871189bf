"""Schedules that run after others: every end they follow is noted with it, and answered by exactly one row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.errors import InvalidInput
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import SWITCHED_OFF, IncidentFilter
from ostinato.models.run import Ending, NewRun
from ostinato.models.schedule import DueSchedule, FirePlan, Schedule, ScheduleFilter, ScheduleState
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.upstream import UpstreamEnd
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
    plan,
    put,
    put_many,
    retry,
    scheduled_run,
)

ENDED = NOW + 2 * SECOND


async def follower(store: Store, name: str = "after", timing: str = "after report", **fields: Any) -> ScheduleId:
    return await put(store, name, timing=timing, follows=True, **{"next_at": None, **fields})


async def run_of(store: Store, id: ScheduleId, state: RunState = RunState.SUCCEEDED, at: Micros = ENDED) -> RunId:
    """A run of a schedule, begun and ended."""
    (run,) = await store.runs.insert_runs([scheduled_run(id, NOW, trigger=Trigger.MANUAL)])
    await store.runs.finish_runs([finish(await claim_one(store), state, finished_at=at)])
    return run


async def due(store: Store, now: Micros = ENDED) -> list[DueSchedule]:
    """What is due, without the upstream itself."""
    return [one for one in (await store.schedules.due_schedules(now, 10)).schedules if one.name != "report"]


def answer(schedule: DueSchedule, *ends: RunId, held: tuple[RunId, ...] = (), **fields: Any) -> FirePlan:
    """A plan that answers these ends with a run."""
    runs: tuple[NewRun, ...] = ()
    if ends:
        run = scheduled_run(schedule.id, schedule.next_at, trigger=Trigger.AFTER)
        run.after = ends
        runs = (run,)
    given = {"read_next_at": schedule.next_at, "version": schedule.version, "next_at": None, "runs": runs, **fields}
    return plan(schedule.id, **given, held=held, follows=True)


async def get(store: Store, name: str = "after") -> Schedule:
    found = await store.schedules.get_schedule(name)
    assert found is not None
    return found


async def test_the_end_of_a_run_makes_its_followers_due_in_the_same_transaction(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await follower(store, "other", "after elsewhere")
    assert await due(store) == []
    run = await run_of(store, upstream)
    (found,) = await due(store)
    assert (found.name, found.next_at, found.follows) == ("after", ENDED, True)
    assert found.ends == (UpstreamEnd(run, "report", RunState.SUCCEEDED, ENDED),)


async def test_a_run_that_is_tried_again_has_not_ended(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await store.runs.insert_runs([scheduled_run(upstream, NOW, trigger=Trigger.MANUAL)])
    await store.runs.finish_runs([retry(await claim_one(store))])
    assert await due(store) == []


async def test_an_end_that_is_written_again_is_noted_once(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await store.runs.insert_runs([scheduled_run(upstream, NOW, trigger=Trigger.MANUAL)])
    end = finish(await claim_one(store))
    await store.runs.finish_runs([end])
    (found,) = await due(store)
    await store.schedules.record_fires([answer(found, found.ends[0].run)], NOW)
    await store.runs.finish_runs([end])
    assert await due(store) == []


async def test_a_fence_that_does_not_hold_notes_nothing(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await store.runs.insert_runs([scheduled_run(upstream, NOW, trigger=Trigger.MANUAL)])
    end = finish(await claim_one(store))
    end.token -= 1
    assert (await store.runs.finish_runs([end])).lost == [end.id]
    assert await due(store) == []


async def test_a_queued_run_that_is_cancelled_has_ended_too(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    ids = await store.runs.insert_runs([scheduled_run(upstream, NOW, trigger=Trigger.MANUAL)])
    await store.runs.cancel_runs(ids, Ending(Cause.CANCELLED, "no"), ENDED)
    (found,) = await due(store)
    assert found.ends == (UpstreamEnd(ids[0], "report", RunState.CANCELLED, ENDED),)


async def test_an_answered_end_is_answered_for_good(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    run = await run_of(store, upstream)
    (found,) = await due(store)
    assert (await store.schedules.record_fires([answer(found, run)], NOW)).moved == [found.id]
    assert await due(store) == []
    (made,) = await all_runs(store, schedule_id=found.id)
    assert (made.trigger, made.state, made.due_at) == (Trigger.AFTER, RunState.QUEUED, from_micros(ENDED))
    assert [one.run for one in await store.runs.upstreams_of(made.id)] == [run]


async def test_of_two_nodes_that_answer_the_same_end_one_wins(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    run = await run_of(store, upstream)
    (found,) = await due(store)
    await store.schedules.record_fires([answer(found, run)], NOW)
    # Ended in the same instant: the schedule is due again as the second node has read it.
    other = await run_of(store, upstream)
    assert (await store.schedules.record_fires([answer(found, run)], NOW)).moved == []
    (again,) = await due(store)
    assert [end.run for end in again.ends] == [other]
    assert len(await all_runs(store, schedule_id=found.id)) == 1


async def test_what_ends_while_a_plan_is_made_makes_it_due_again(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    first = await run_of(store, upstream)
    (found,) = await due(store)
    second = await run_of(store, upstream, at=ENDED + SECOND)
    await store.schedules.record_fires([answer(found, first)], NOW)
    (again,) = await due(store, ENDED + SECOND)
    assert (again.next_at, [end.run for end in again.ends]) == (ENDED + SECOND, [second])


async def test_one_run_may_answer_several_ends(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    runs = [await run_of(store, upstream, at=ENDED + number) for number in range(3)]
    (found,) = await due(store, ENDED + 5)
    assert [end.run for end in found.ends] == runs
    await store.schedules.record_fires([answer(found, *runs)], NOW)
    assert await due(store, ENDED + HOUR) == []
    (made,) = await all_runs(store, schedule_id=found.id)
    assert [one.run for one in await store.runs.upstreams_of(made.id)] == runs


async def test_a_held_end_waits_until_its_time_or_the_next_end(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    first = await run_of(store, upstream)
    (found,) = await due(store)
    await store.schedules.record_fires([answer(found, held=(first,), next_at=NOW + HOUR)], NOW)
    assert await due(store, NOW + MINUTE) == []
    (at_its_time,) = await due(store, NOW + HOUR)
    assert at_its_time.ends == (UpstreamEnd(first, "report", RunState.SUCCEEDED, ENDED, held=True),)
    second = await run_of(store, upstream, at=ENDED + MINUTE)
    (again,) = await due(store, NOW + HOUR)
    assert (again.next_at, [end.run for end in again.ends]) == (ENDED + MINUTE, [first, second])


@pytest.mark.parametrize("how", ["off", "broken", "orphaned"])
async def test_of_what_is_not_on_nothing_is_noted(store: Store, how: str) -> None:
    upstream, other = await put_many(store, [draft(), draft("other", next_at=None)])
    origin = {"owner": "code", "origin": "app"} if how == "orphaned" else {}
    id = await follower(store, timing="after report or other", **origin)
    if how == "orphaned":
        await store.schedules.mark_orphans("app", [], NOW)
    elif how == "broken":
        await store.schedules.remove_schedule(other, NOW)
    else:
        await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    assert str((await get(store)).state) == how
    await run_of(store, upstream)
    if how != "orphaned":
        version = (await get(store)).version
        assert await store.schedules.change_schedule(id, version, change(next_at=None), NOW)
    assert await due(store) == []


async def test_what_was_not_answered_when_it_is_switched_off_is_forgotten(store: Store) -> None:
    upstream = await put(store)
    id = await follower(store)
    await run_of(store, upstream)
    await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    await store.schedules.change_schedule(id, 2, change(next_at=None), NOW)
    assert await due(store) == []
    await run_of(store, upstream, at=ENDED + SECOND)
    (found,) = await due(store, ENDED + SECOND)
    assert len(found.ends) == 1


async def test_with_another_timing_it_follows_others(store: Store) -> None:
    one, two = await put_many(store, [draft("one"), draft("two")])
    await follower(store, timing="after one")
    await follower(store, timing="after two")
    await run_of(store, one)
    assert await due(store) == []
    await run_of(store, two)
    assert len(await due(store)) == 1


async def test_one_that_follows_no_more_is_due_by_the_clock_alone(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await run_of(store, upstream)
    await put(store, "after", next_at=NOW + HOUR)
    assert await due(store) == []
    assert [schedule.name for schedule in await due(store, NOW + HOUR)] == ["after"]


@pytest.mark.parametrize("way", ["put", "insert", "edit"])
async def test_a_circle_is_refused_and_nothing_of_it_is_stored(store: Store, way: str) -> None:
    await follower(store, "a", "after c")
    await follower(store, "b", "after a")
    closing = draft("c", timing="after b", follows=True, next_at=None)
    known = await put(store, "c") if way == "edit" else ScheduleId(0)
    ways: dict[str, Callable[[], Awaitable[Any]]] = {
        "put": lambda: store.schedules.put_schedules([closing], NOW),
        "insert": lambda: store.schedules.insert_schedule(closing, NOW),
        "edit": lambda: store.schedules.edit_schedule(closing, known, 1, NOW),
    }
    with pytest.raises(InvalidInput, match="would run after itself: c → a → b → c"):
        await ways[way]()
    found = await store.schedules.get_schedule("c")
    assert found is None or found.timing == "every 5m"


async def test_nothing_runs_after_itself(store: Store) -> None:
    with pytest.raises(InvalidInput, match="would run after itself: a → a"):
        await follower(store, "a", "after a")
    assert await store.schedules.get_schedule("a") is None


async def test_when_it_is_looked_at_is_no_due_time_that_people_are_told(store: Store) -> None:
    await put(store, next_at=ENDED + HOUR)
    await follower(store, timing="after report and other within 1h", next_at=ENDED + 1)
    found = await get(store)
    assert (found.next_run_at, found.waits_until) == (None, from_micros(ENDED + 1))
    listed = await store.schedules.list_schedules(ScheduleFilter())
    assert [schedule.name for schedule in listed] == ["report", "after"]
    first, _ = await store.schedules.page_schedules(ScheduleFilter(limit=1))
    rest, _ = await store.schedules.page_schedules(ScheduleFilter(limit=2, after=first[0].key))
    assert [row.schedule.name for row in (*first, *rest)] == ["report", "after"]
    until = ENDED + 2 * HOUR
    shown = await store.schedules.due_schedules(until, 10, shown=True)
    assert [one.name for one in shown.schedules] == ["report"]
    assert [one.name for one in (await store.schedules.due_schedules(until, 10)).schedules] == ["after", "report"]
    assert await store.schedules.next_of_tasks(["report"]) == {"report": ENDED + HOUR}


async def test_where_an_upstream_is_removed_its_followers_are_broken_and_people_told(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await follower(store, "off", enabled=False)
    await store.schedules.remove_schedule(upstream, NOW)
    found = await get(store)
    assert found.broken == (
        "it runs after 'report', which was removed: give it another timing, or add 'report' again and enable it"
    )
    assert (found.enabled, found.state, found.version) == (False, ScheduleState.BROKEN, 2)
    assert (await get(store, "off")).broken is None
    (incident,) = await store.notifications.list_incidents(IncidentFilter())
    assert (incident.subject, incident.cause) == ("after", SWITCHED_OFF)


async def test_an_upstream_that_is_added_again_is_followed_again(store: Store) -> None:
    upstream = await put(store)
    id = await follower(store)
    await store.schedules.remove_schedule(upstream, NOW)
    again = await put(store)
    await store.schedules.change_schedule(id, 2, change(next_at=None), NOW)
    await run_of(store, again)
    assert [schedule.name for schedule in await due(store)] == ["after"]


async def test_one_that_follows_others_is_on_and_never_finished(store: Store) -> None:
    await put(store)
    await follower(store)
    await follower(store, "done", enabled=False, remaining=0, policy='{"remaining":1}')
    assert (await get(store)).state is ScheduleState.ON
    assert (await get(store)).next_run_reason == "it runs after each run of 'report' that succeeded"
    counts = await store.schedules.count_schedules(())
    assert (counts[ScheduleState.ON], counts[ScheduleState.FINISHED]) == (2, 1)
    for state, names in ((ScheduleState.ON, ["report", "after"]), (ScheduleState.FINISHED, ["done"])):
        listed = await store.schedules.list_schedules(ScheduleFilter(state=state))
        assert [schedule.name for schedule in listed] == names


async def test_it_is_not_deleted_after_a_run_while_more_may_come(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    run = await run_of(store, upstream)
    (found,) = await due(store)
    await store.schedules.record_fires([answer(found, run)], NOW)
    claimed = await claim_one(store, now=ENDED)
    await store.runs.finish_runs([finish(claimed, ends_schedule=True)])
    assert (await get(store)).state is ScheduleState.ON


async def test_with_its_runs_the_answers_are_removed(store: Store) -> None:
    upstream = await put(store)
    id = await follower(store)
    run = await run_of(store, upstream)
    (found,) = await due(store)
    await store.schedules.record_fires([answer(found, run)], NOW)
    await store.schedules.remove_schedule(id, NOW)
    assert await all_runs(store, schedule_id=id) == []
    assert await store.runs.upstreams_of(RunId(run + 1)) == []


async def test_an_upstream_says_how_it_ended_and_what_it_returned(store: Store) -> None:
    upstream = await put(store)
    await follower(store)
    await store.runs.insert_runs([scheduled_run(upstream, NOW, trigger=Trigger.MANUAL)])
    claimed = await claim_one(store)
    await store.runs.finish_runs([finish(claimed, finished_at=ENDED, result='{"rows":3}')])
    (found,) = await due(store)
    await store.schedules.record_fires([answer(found, claimed.id)], NOW)
    (made,) = (await store.runs.claim_runs(claim(now=ENDED))).runs
    (seen,) = await store.runs.upstreams_of(made.id)
    assert (seen.schedule, seen.state, seen.ended_at) == ("report", RunState.SUCCEEDED, from_micros(ENDED))
    assert (seen.result, seen.error) == ({"rows": 3}, None)
