"""Pages of schedules: every one exactly once, in every order, direction and filter, as a plain oracle says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.schedule import ScheduleFilter, ScheduleSort, ScheduleState
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import StateCount, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    claim_one,
    draft,
    finish,
    put,
    put_many,
    scheduled_run,
)


async def test_a_page_goes_on_behind_the_last_row_whatever_was_added_or_removed_before_it(store: Store) -> None:
    ids = await put_many(store, [draft(name) for name in "bdfh"])
    wanted = ScheduleFilter(sort=ScheduleSort.NAME, limit=2)
    first, total = await store.schedules.page_schedules(wanted)
    assert ([row.schedule.name for row in first], total) == (["b", "d"], 4)
    await store.schedules.remove_schedule(ids[1], NOW)
    await put_many(store, [draft(name) for name in "ae"])
    second, total = await store.schedules.page_schedules(replace(wanted, after=first[-1].key))
    assert ([row.schedule.name for row in second], total) == (["e", "f"], 5)


async def test_a_row_shows_its_last_run_as_a_list_does(store: Store) -> None:
    id = await put(store, zone="Europe/Berlin")
    await store.runs.insert_runs([scheduled_run(id, NOW), scheduled_run(id, NOW + MINUTE)])
    await store.runs.finish_runs([finish(await claim_one(store, now=NOW))])
    ((row,), total) = await store.schedules.page_schedules(ScheduleFilter(limit=10))
    assert total == 1
    assert row.schedule == await store.schedules.get_schedule("report")
    last = row.schedule.last_run
    assert last is not None
    assert (last.state, last.schedule, last.schedule_id, last.zone) == (RunState.QUEUED, "report", id, "Europe/Berlin")
    assert row.active == 1


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("50%", ["50%_off"]),
        ("%", ["50%_off"]),
        ("_", ["50%_off"]),
        ("*", ["a*b?c"]),
        ("?C", ["a*b?c"]),
        ("[X]", ["[x]^-."]),
        ("]^", ["[x]^-."]),
        ("^", ["[x]^-."]),
        (".", ["[x]^-."]),
        ("-", ["[x]^-."]),
        ("ärger λ", ["ÄRGER Λ"]),
        ("\\", ["back\\slash"]),
        ("K\\S", ["back\\slash"]),
        ("(?i)", []),
        ("***=a", []),
        ("\0", []),
    ],
)
async def test_a_search_means_its_text_whatever_the_case(store: Store, search: str, names: list[str]) -> None:
    there = ("50%_off", "a*b?c", "[x]^-.", "ÄRGER Λ", "back\\slash", "plain")
    await put_many(store, [draft(name) for name in there])
    listed = await store.schedules.list_schedules(ScheduleFilter(search=search))
    assert [schedule.name for schedule in listed] == names


async def test_a_schedule_is_failing_while_the_last_of_its_runs_that_succeeded_or_failed_is_a_failed_one(
    store: Store,
) -> None:
    names = ("mended", "fails", "fails-and-runs", "fine", "never")
    made = dict(zip(names, await put_many(store, [draft(name) for name in names]), strict=True))
    ends = {
        "mended": (RunState.FAILED, RunState.SUCCEEDED),
        "fails": (RunState.SUCCEEDED, RunState.FAILED),
        "fails-and-runs": (RunState.FAILED,),
        "fine": (RunState.SUCCEEDED,),
    }
    for place in range(2):
        of = {made[name]: states[place] for name, states in ends.items() if len(states) > place}
        await store.runs.insert_runs([scheduled_run(id, NOW + place) for id in of])
        runs = (await store.runs.claim_runs(claim(now=NOW + place))).runs
        await store.runs.finish_runs([finish(run, of[run.schedule_id]) for run in runs if run.schedule_id])
    skipped = scheduled_run(made["fails"], NOW + 5, state=RunState.SKIPPED, cause=Cause.OVERLAP)
    await store.runs.insert_runs([skipped, scheduled_run(made["fails-and-runs"], NOW + 5)])
    wanted = ScheduleFilter(state=ScheduleState.FAILING, sort=ScheduleSort.NAME, limit=5)
    rows, total = await store.schedules.page_schedules(wanted)
    assert ([row.schedule.name for row in rows], total) == (["fails", "fails-and-runs"], 2)


async def test_recent_runs_are_the_last_ones_of_each_oldest_first(store: Store) -> None:
    busy, calm, other = await put_many(store, [draft("busy"), draft("calm"), draft("other")])
    await store.runs.insert_runs([scheduled_run(busy, NOW + number) for number in range(4)])
    await store.runs.insert_runs([scheduled_run(other, NOW)])
    runs = (await store.runs.claim_runs(claim(now=NOW + SECOND))).runs
    ours = [run for run in runs if run.schedule_id == busy]
    errors = finish(ours[1], cause=Cause.ERRORS, reason="1 error", finished_at=NOW + 2 * SECOND)
    await store.runs.finish_runs([errors, finish(ours[2], RunState.FAILED, finished_at=NOW + 3 * SECOND)])
    found = await store.schedules.recent_runs([busy, calm], 3)
    assert list(found) == [busy, calm]
    assert found[calm] == []
    assert [(run.id, run.state, run.seconds, run.cause) for run in found[busy]] == [
        (ours[1].id, RunState.SUCCEEDED, 1.0, Cause.ERRORS),
        (ours[2].id, RunState.FAILED, 2.0, Cause.RAISED),
        (ours[3].id, RunState.RUNNING, None, None),
    ]
    moments = (NOW + 2 * SECOND, NOW + 3 * SECOND, NOW + 3)
    assert [run.at for run in found[busy]] == [from_micros(at) for at in moments]


async def test_the_history_counts_ended_runs_by_the_quarter_of_an_hour_in_which_they_were_due(store: Store) -> None:
    id, other = await put_many(store, [draft(), draft("other")])
    quarter = 15 * MINUTE
    begin = NOW // HOUR * HOUR
    due = [begin - 1, begin, begin + 1, begin + quarter - 1, begin + quarter]
    await store.runs.insert_runs([scheduled_run(id, at) for at in due] + [scheduled_run(other, begin)])
    runs = (await store.runs.claim_runs(claim(now=begin + 2 * HOUR))).runs
    for run in runs:
        if run.schedule_id == id and run.due_at != begin + 1:
            state = RunState.FAILED if run.due_at == begin + quarter - 1 else RunState.SUCCEEDED
            cause = Cause.ERRORS if run.due_at == begin + quarter else None
            await store.runs.finish_runs([finish(run, state, cause=cause)])
    assert await store.schedules.schedule_history(id, begin) == [
        StateCount(begin, RunState.FAILED, 1, 1.0),
        StateCount(begin, RunState.SUCCEEDED, 1, 1.0),
        StateCount(begin + quarter, RunState.SUCCEEDED, 1, 1.0, with_errors=1),
    ]
    assert len(await store.schedules.schedule_history(id, 0)) == 4


async def test_an_edit_counts_only_if_nobody_changed_the_schedule_meanwhile(store: Store) -> None:
    id = await put(store)
    assert await store.schedules.edit_schedule(draft(timing="every 7m", note="slower"), id, 1, NOW + SECOND)
    edited = await store.schedules.get_schedule("report")
    assert edited is not None
    assert (edited.id, edited.timing, edited.note, edited.version) == (id, "every 7m", "slower", 2)
    assert edited.updated_at == from_micros(NOW + SECOND)
    assert not await store.schedules.edit_schedule(draft(timing="every 9m"), id, 1, NOW + 2 * SECOND)
    assert not await store.schedules.edit_schedule(draft("nobody"), id, 1, NOW)
    assert await store.schedules.list_schedules(ScheduleFilter()) == [edited]
