"""Calendars: a change of one plans its schedules anew in the same transaction, and no due time is lost or doubled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.errors import InvalidInput
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import Pause, Schedule, ScheduleFilter, ScheduleState
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    all_runs,
    change,
    claim_one,
    draft,
    plan,
    put,
    put_many,
    scheduled_run,
)
from ostinato.timing import Dates
from ostinato.timing.calendar_days import NO_DATES

DAY: Micros = 24 * HOUR
TODAY, TOMORROW = "2027-01-15", "2027-01-16"
DUE = NOW + HOUR
"""09:00 in UTC: it is 08:00 on a Friday."""


async def office(store: Store, dates: str = "12-24", version: int | None = None, **fields: Any) -> list[str] | None:
    """Put the calendar of the tests; answers what was planned anew."""
    given = {"note": None, "by": "ada", "now": NOW, **fields}
    listed = Dates(dates) if dates else NO_DATES
    moved = await store.calendars.put_calendar("office", listed, version=version, **given)
    return None if moved is None else list(moved)


def timing(dates: str = "12-24", base: str = "daily 09:00") -> str:
    return f"{base} except calendar(office:{' ' if dates else ''}{dates})"


async def using(store: Store, name: str = "report", dates: str = "12-24", **fields: Any) -> ScheduleId:
    """A schedule that is due daily at 09:00, but not on the days of the calendar."""
    return await put(store, name, **{"timing": timing(dates), "next_at": DUE, **fields})


async def get(store: Store, name: str = "report") -> Schedule:
    found = await store.schedules.get_schedule(name)
    assert found is not None
    return found


async def next_at(store: Store, name: str = "report") -> Micros | None:
    """The due time as the ticker sees it, also of what is broken."""
    found = [one for one in (await store.schedules.due_schedules(NOW + 900 * DAY, 100)).schedules if one.name == name]
    return found[0].next_at if found else None


async def test_calendars_are_listed_by_name_with_what_uses_them(store: Store) -> None:
    await store.calendars.put_calendar("sales", Dates("2027-05-01"), "ours", "bob", NOW)
    assert await office(store, "12-24,2026-12-31") == []
    await using(store, "b", "12-24,2026-12-31")
    await using(store, "a", "12-24,2026-12-31")
    office_, sales = await store.calendars.list_calendars()
    assert (office_.name, list(office_.dates), office_.note) == ("office", ["12-24", "2026-12-31"], None)
    assert (list(office_.schedules), office_.made_by, office_.version) == (["a", "b"], "ada", 1)
    assert (sales.name, sales.note, list(sales.schedules), sales.created_at) == ("sales", "ours", [], from_micros(NOW))
    assert await store.calendars.list_calendars("sales") == [sales]
    assert await store.calendars.list_calendars("Sales") == []
    assert await store.calendars.calendar_dates(["sales", "nobody's"]) == {"sales": Dates("2027-05-01")}


async def test_a_calendar_may_be_without_dates(store: Store) -> None:
    await office(store, "")
    await using(store, dates="")
    assert list((await store.calendars.list_calendars())[0].dates) == []
    assert (await get(store)).timing == "daily 09:00 except calendar(office)"
    assert await office(store, TODAY) == ["report"]
    assert await office(store, "") == ["report"]
    assert await next_at(store) == DUE


async def test_a_note_stays_until_there_is_another_and_an_empty_one_clears_it(store: Store) -> None:
    await office(store, note="closed")
    await office(store, "12-25")
    assert (await store.calendars.list_calendars())[0].note == "closed"
    await office(store, "12-25", note="", by="bob", now=NOW + HOUR)
    (found,) = await store.calendars.list_calendars()
    assert (found.note, found.version, found.made_by, found.updated_by) == (None, 3, "ada", "bob")
    assert (found.created_at, found.updated_at) == (from_micros(NOW), from_micros(NOW + HOUR))


async def test_a_calendar_that_is_put_again_changes_nothing(store: Store) -> None:
    await office(store)
    await using(store)
    assert await office(store, now=NOW + HOUR) == []
    (found,) = await store.calendars.list_calendars()
    assert (found.version, found.updated_at, (await get(store)).version) == (1, from_micros(NOW), 1)


async def test_a_calendar_is_put_only_if_it_has_the_version_that_was_read(store: Store) -> None:
    assert await office(store, version=1) is None
    assert await office(store, version=0) == []
    assert await office(store, "12-25", version=0) is None
    assert await office(store, "12-25", version=1) == []
    assert await office(store, "12-26", version=1) is None
    assert list((await store.calendars.list_calendars())[0].dates) == ["12-25"]


async def test_another_date_plans_the_schedules_that_use_it_anew(store: Store) -> None:
    await office(store)
    await using(store)
    await put(store, "other", timing="daily 09:00", next_at=DUE)
    assert await office(store, f"12-24,{TODAY}") == ["report"]
    changed, other = await get(store), await get(store, "other")
    assert (changed.timing, changed.version) == ("daily 09:00 except calendar(office)", 2)
    assert changed.resolved_timing == timing(f"12-24,{TODAY}")
    assert changed.next_run_at == from_micros(DUE + DAY)
    assert changed.updated_at == from_micros(NOW)
    assert (other.next_run_at, other.version) == (from_micros(DUE), 1)


async def test_a_date_that_is_taken_out_makes_its_day_due_again(store: Store) -> None:
    await office(store, TODAY)
    await using(store, dates=TODAY, next_at=DUE + DAY)
    assert await office(store, TOMORROW) == ["report"]
    assert await next_at(store) == DUE


async def test_the_grid_of_an_interval_stays_where_it_is(store: Store) -> None:
    await office(store)
    await put(store, timing=timing(base="every 7h"), next_at=NOW + 7 * HOUR)
    later = NOW + 5 * HOUR
    assert await office(store, TODAY, now=later) == ["report"]
    # Every seven hours from 08:00: 15:00 and 22:00 are off.
    assert (await get(store)).anchor_at == from_micros(NOW)
    assert await next_at(store) == NOW + 21 * HOUR


async def test_what_was_due_before_and_is_not_answered_stays_due_unless_its_day_is_off_now(store: Store) -> None:
    await office(store)
    await using(store, "kept")
    await using(store, "off", next_at=DUE + DAY)
    later = NOW + 2 * DAY + 2 * HOUR
    assert await office(store, TOMORROW, now=later) == ["kept", "off"]
    assert (await next_at(store, "kept"), await next_at(store, "off")) == (DUE, DUE + 2 * DAY)


async def test_what_is_off_broken_orphaned_or_finished_gets_the_dates_and_is_not_switched_on(store: Store) -> None:
    await office(store)
    disabled, _, broken, _ = [
        await using(store, "disabled"),
        await using(store, "orphaned", owner="code", origin="app"),
        await using(store, "broken"),
        await using(store, "finished", remaining=0),
    ]
    await store.schedules.change_schedule(disabled, 1, change(enabled=False, next_at=None), NOW)
    await store.schedules.mark_orphans("app", [], NOW)
    await store.schedules.record_fires([plan(broken, read_next_at=DUE, runs=(), enabled=False, broken="bad")], NOW)
    probed = await next_at(store, "broken")
    before = {one.name: (one.state, one.version) for one in await store.schedules.list_schedules(ScheduleFilter())}
    await office(store, f"12-24,{TODAY}")
    for name in ("disabled", "orphaned", "broken", "finished"):
        found = await get(store, name)
        assert (found.state, found.version) == (before[name][0], before[name][1] + 1)
        assert found.resolved_timing == timing(f"12-24,{TODAY}")
    assert await next_at(store, "disabled") is None
    assert await next_at(store, "broken") == probed
    assert (await get(store, "broken")).broken == "bad"


async def test_what_had_no_further_due_time_is_due_again_once_its_day_is_on(store: Store) -> None:
    await office(store, TODAY)
    await put(store, timing=timing(TODAY, f"daily 09:00 until {TODAY}"), next_at=None)
    assert (await get(store)).state is ScheduleState.FINISHED
    await office(store, "12-24")
    assert await next_at(store) == DUE
    await office(store, TODAY)
    assert (await get(store)).state is ScheduleState.FINISHED


async def test_a_pause_ends_with_its_row_and_the_schedule_is_planned_anew(store: Store) -> None:
    await office(store)
    id = await using(store)
    hold = Pause(DUE, NOW + 10 * DAY, Cause.BUDGET, "budget: $5.00 of $5.00 spent today")
    assert await store.schedules.pause_schedule(id, 1, hold, NOW)
    now = NOW + 2 * DAY
    await office(store, "2027-01-17", now=now)
    (row,) = await all_runs(store, schedule_id=id)
    assert (row.state, row.count, row.due_at) == (RunState.SKIPPED, 2, from_micros(DUE))
    assert ((await get(store)).paused_since, await next_at(store)) == (None, DUE + 3 * DAY)


async def test_a_fire_that_was_planned_before_is_not_written(store: Store) -> None:
    await office(store)
    id = await using(store)
    await office(store, TODAY)
    assert (await store.schedules.record_fires([plan(id, read_next_at=DUE)], NOW)).moved == []
    assert await all_runs(store) == []
    await office(store, "12-24")
    assert (await store.schedules.record_fires([plan(id, read_next_at=DUE)], NOW)).moved == []
    assert (await store.schedules.record_fires([plan(id, read_next_at=DUE, version=3)], NOW)).moved == [id]


@pytest.mark.parametrize("session", [None, "chat"])
async def test_what_was_recorded_ahead_for_a_day_that_is_off_now_is_taken_back(
    store: Store, session: str | None
) -> None:
    await office(store)
    id = await using(store, remaining=5)
    ahead = DUE - SECOND
    run = scheduled_run(id, DUE, session=session)
    await store.schedules.record_fires([plan(id, read_next_at=DUE, runs=(run,), next_at=DUE + DAY, remaining=4)], ahead)
    assert await office(store, TODAY, now=ahead) == ["report"]
    assert await all_runs(store) == []
    assert ((await get(store)).remaining, await next_at(store)) == (5, DUE + DAY)


async def test_the_last_of_its_runs_is_to_run_again_once_it_is_taken_back(store: Store) -> None:
    await office(store)
    id = await using(store, remaining=1)
    ahead = DUE - SECOND
    last = plan(id, read_next_at=DUE, next_at=None, remaining=0, enabled=False)
    assert (await store.schedules.record_fires([last], ahead)).moved == [id]
    await office(store, TOMORROW, now=ahead)
    found = await get(store)
    assert (found.enabled, found.remaining, len(await all_runs(store))) == (False, 0, 1)
    assert await next_at(store) is None
    await office(store, TODAY, now=ahead)
    found = await get(store)
    assert await all_runs(store) == []
    assert (found.state, found.enabled, found.remaining) == (ScheduleState.ON, True, 1)
    assert await next_at(store) == DUE + DAY


async def test_what_code_no_longer_declares_runs_no_last_time_on_a_day_that_is_off(store: Store) -> None:
    await office(store)
    declared: dict[str, Any] = {"owner": "code", "origin": "app", "timing": timing(), "remaining": 1}
    id = await put(store, next_at=DUE, **declared)
    ahead = DUE - SECOND
    await store.schedules.record_fires([plan(id, read_next_at=DUE, next_at=None, remaining=0, enabled=False)], ahead)
    await store.schedules.mark_orphans("app", [], ahead)
    await office(store, TODAY, now=ahead)
    assert await all_runs(store) == []
    assert await next_at(store) is None
    await store.schedules.put_schedules([draft(next_at=DUE + DAY, **declared)], ahead)
    assert ((await get(store)).remaining, await next_at(store)) == (1, DUE + DAY)


async def test_what_was_recorded_ahead_and_is_due_still_is_not_due_twice(store: Store) -> None:
    await office(store)
    id = await using(store, remaining=5)
    ahead = DUE - SECOND
    await store.schedules.record_fires([plan(id, read_next_at=DUE, next_at=DUE + DAY, remaining=4)], ahead)
    await office(store, TOMORROW, now=ahead)
    assert len(await all_runs(store)) == 1
    assert ((await get(store)).remaining, await next_at(store)) == (4, DUE + 2 * DAY)


async def test_what_a_node_has_claimed_ahead_goes_on(store: Store) -> None:
    await office(store)
    id = await using(store)
    ahead = DUE - SECOND
    await store.schedules.record_fires([plan(id, read_next_at=DUE, next_at=DUE + DAY)], ahead)
    claimed = await claim_one(store, now=ahead, horizon=DUE)
    await office(store, TODAY, now=ahead)
    (run,) = await all_runs(store)
    assert (run.id, run.state, await next_at(store)) == (claimed.id, RunState.RUNNING, DUE + DAY)


async def test_a_run_by_hand_and_a_row_of_the_past_stay(store: Store) -> None:
    await office(store)
    id = await using(store)
    await store.runs.insert_runs([scheduled_run(id, DUE, trigger=Trigger.MANUAL), scheduled_run(id, NOW - DAY)])
    await office(store, f"{TODAY},2027-01-14")
    assert len(await all_runs(store)) == 2


async def test_a_schedule_that_names_two_calendars_keeps_the_other_as_it_is(store: Store) -> None:
    await office(store)
    await store.calendars.put_calendar("sales team", Dates("05-01"), None, "ada", NOW)
    both = 'daily 09:00 except calendar(office: 12-24) except calendar("sales team": 05-01)'
    await put(store, timing=both, next_at=DUE)
    assert await store.calendars.put_calendar("sales team", Dates(TODAY), None, "ada", NOW) == ["report"]
    found = await get(store)
    assert found.timing == 'daily 09:00 except calendar(office) except calendar("sales team")'
    assert found.resolved_timing == both.replace("05-01", TODAY)
    assert [list(one.schedules) for one in await store.calendars.list_calendars()] == [["report"], ["report"]]


async def test_a_schedule_whose_timing_cannot_be_read_gets_the_dates_too(store: Store) -> None:
    await office(store)
    await put(store, timing=timing(base="daily at noon o'clock of nobody"), next_at=DUE)
    assert await office(store, TODAY) == ["report"]
    found = await get(store)
    assert found.resolved_timing == timing(TODAY, "daily at noon o'clock of nobody")
    assert found.broken is not None
    assert await next_at(store) == DUE


async def test_a_draft_that_was_made_before_a_change_gets_the_dates_that_hold(store: Store) -> None:
    await office(store, TODAY)
    await using(store, "put")
    assert await store.schedules.insert_schedule(draft("inserted", timing=timing(), next_at=DUE), NOW)
    for name in ("put", "inserted"):
        assert (await get(store, name)).resolved_timing == timing(TODAY)
        assert await next_at(store, name) == DUE + DAY
    assert list((await store.calendars.list_calendars())[0].schedules) == ["inserted", "put"]


async def test_an_edit_that_names_a_calendar_takes_the_dates_that_hold(store: Store) -> None:
    await office(store, TODAY)
    id = await put(store, timing="daily 09:00", next_at=DUE)
    assert await store.schedules.edit_schedule(draft(timing=timing(), next_at=DUE), id, 1, NOW) == 2
    assert ((await get(store)).resolved_timing, await next_at(store)) == (timing(TODAY), DUE + DAY)


async def test_a_calendar_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="there is no calendar 'office'"):
        await using(store)
    with pytest.raises(InvalidInput, match="there is no calendar 'office'"):
        await store.schedules.insert_schedule(draft(timing=timing(), next_at=DUE), NOW)
    assert await store.schedules.list_schedules(ScheduleFilter()) == []


async def test_a_calendar_is_removed_once_no_schedule_uses_it(store: Store) -> None:
    assert await store.calendars.remove_calendar("office") is None
    await office(store)
    removed, edited = await using(store, "removed"), await using(store, "edited")
    assert await store.calendars.remove_calendar("office") == ["edited", "removed"]
    assert await store.schedules.remove_schedule(removed, NOW)
    assert await store.calendars.remove_calendar("office") == ["edited"]
    assert await store.schedules.edit_schedule(draft("edited", timing="daily 09:00", next_at=DUE), edited, 1, NOW)
    assert await store.calendars.remove_calendar("office") == []
    assert await store.calendars.list_calendars() == []


async def test_what_code_declares_is_not_changed_by_another_date(store: Store) -> None:
    await office(store)
    declared: dict[str, Any] = {"owner": "code", "origin": "app", "timing": timing(), "next_at": DUE}
    await put(store, **declared)
    await office(store, TODAY)
    await put(store, **declared)
    found = await get(store)
    assert (found.changes, found.version, found.resolved_timing) == ((), 2, timing(TODAY))


async def test_a_schedule_and_its_calendar_that_are_stored_at_once_agree(first: Store, second: Store) -> None:
    await office(first)
    for number in range(15):
        dates = f"2027-02-{number + 1:02}"
        await asyncio.gather(
            put_many(first, [draft(f"s{number}-{each}", timing=timing(), next_at=DUE) for each in range(4)]),
            office(second, dates),
        )
        listed = await first.schedules.list_schedules(ScheduleFilter())
        assert {one.resolved_timing for one in listed} == {timing(dates)}
    (found,) = await second.calendars.list_calendars()
    assert len(found.schedules) == 60


async def test_a_schedule_that_is_edited_and_its_calendar_at_once_agree(first: Store, second: Store) -> None:
    await office(first)
    id = await using(first)
    for number in range(15):
        dates, before = f"2027-02-{number + 1:02}", await get(first)
        edited = draft(timing=timing(base=f"daily 09:{number + 1:02}"), next_at=DUE)
        version, moved = await asyncio.gather(
            first.schedules.edit_schedule(edited, id, before.version, NOW), office(second, dates)
        )
        base = (before if version is None else edited).timing.partition(" except")[0]
        assert (await get(first)).resolved_timing == timing(dates, base)
        assert moved == ["report"]


async def test_a_calendar_that_is_removed_while_a_schedule_is_stored_is_there_or_the_schedule_is_not(
    first: Store, second: Store
) -> None:
    for number in range(15):
        await office(first)
        stored, removed = await asyncio.gather(
            using(first, f"s{number}"), second.calendars.remove_calendar("office"), return_exceptions=True
        )
        there = bool(await first.calendars.list_calendars())
        assert there == (not isinstance(stored, BaseException)) == bool(removed)
        if not isinstance(stored, BaseException):
            assert await first.schedules.remove_schedule(ScheduleId(stored), NOW)


async def test_a_fire_and_a_change_at_once_leave_one_row_or_none_for_a_due_time(first: Store, second: Store) -> None:
    await office(first)
    ids = await put_many(first, [draft(f"s{number}", timing=timing(), next_at=DUE) for number in range(8)])
    for day in range(12):
        due = DUE + day * DAY
        found = (await first.schedules.due_schedules(due, 100)).schedules
        assert {one.next_at for one in found} == {due}
        plans = [
            plan(one.id, read_next_at=due, version=one.version, runs=(scheduled_run(one.id, due),), next_at=due + DAY)
            for one in found
        ]
        off = str(from_micros(due).date())
        async with asyncio.timeout(10):
            fired, moved = await asyncio.gather(
                first.schedules.record_fires(plans[::-1], due - SECOND), office(second, off, now=due - SECOND)
            )
        # All of it before the change, or none: what was recorded is taken back, what was not is not written.
        assert len(moved or ()) == len(ids)
        assert {one.next_at for one in (await first.schedules.due_schedules(due + 9 * DAY, 100)).schedules} == {
            due + DAY
        }
        assert len(fired.moved) in (0, len(ids))
    assert await all_runs(first) == []


async def test_changes_of_two_calendars_that_the_same_schedules_use_do_not_hold_each_other_up(
    first: Store, second: Store
) -> None:
    for name in ("a", "b"):
        await first.calendars.put_calendar(name, Dates("12-24"), None, "ada", NOW)
    both = "daily 09:00 except calendar(a: 12-24) except calendar(b: 12-24)"
    await put_many(first, [draft(f"s{number}", timing=both, next_at=DUE) for number in range(10)])
    for number in range(1, 11):
        dates = Dates(f"2027-02-{number:02}")
        async with asyncio.timeout(10):
            await asyncio.gather(
                first.calendars.put_calendar("a", dates, None, "ada", NOW),
                second.calendars.put_calendar("b", dates, None, "ada", NOW),
            )
        listed = await first.schedules.list_schedules(ScheduleFilter())
        wanted = both.replace("12-24", dates.text)
        assert {one.resolved_timing for one in listed} == {wanted}
