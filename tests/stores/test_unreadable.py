"""Rows that this program cannot read are shown as broken with the reason, and never deleted or skipped."""

from __future__ import annotations

import pytest

from ostinato.models.run import RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import Trigger
from ostinato.models.work import Unreadable
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import NOW, new_run, put
from tests.stores.places import raw


@pytest.mark.parametrize(
    ("column", "text", "reason"),
    [
        ("work", '{"kind":"teleport","to":"Mars"}', "teleport"),
        ("work", "not JSON", "work is not readable"),
        ("work", '{"kind":"function","task":7}', "function work is not readable"),
        ("policy", '{"overlap":"sideways"}', "sideways"),
        ("policy", '{"from the future":1}', "from the future"),
        ("policy", "[]", "policy is not readable"),
        ("timing", "every blue moon", "every blue moon"),
        ("zone", "Mars/Olympus", "Mars/Olympus"),
    ],
)
async def test_a_schedule_with_an_unreadable_part_is_listed_as_broken(
    store: Store, column: str, text: str, reason: str
) -> None:
    await put(store, "fine")
    await put(store)
    await raw(store, f"UPDATE schedules SET {column} = '{text}' WHERE name = 'report'")
    listed = {schedule.name: schedule for schedule in await store.schedules.list_schedules(ScheduleFilter())}
    assert listed["fine"].broken is None
    broken = listed["report"]
    assert broken.broken is not None
    assert reason in broken.broken
    assert broken.next_run_at is None
    assert broken.next_run_reason is not None
    assert broken.next_run_reason.startswith("broken")
    assert await raw(store, f"SELECT {column} FROM schedules WHERE name = 'report'") == [(text,)]


async def test_a_run_with_unreadable_work_is_listed_with_the_reason(store: Store) -> None:
    id = await put(store)
    text = '{"kind":"teleport"}'
    await store.runs.insert_runs([new_run(), new_run(work=text, schedule_id=id, trigger=Trigger.MANUAL)])
    odd, fine = await store.runs.list_runs(RunFilter())
    assert isinstance(odd.work, Unreadable)
    assert "teleport" in odd.work.reason
    assert odd.work.text == text
    assert not isinstance(fine.work, Unreadable)
    schedule = await store.schedules.get_schedule("report")
    assert schedule is not None
    assert schedule.last_run == odd


async def test_an_unreadable_schedule_still_comes_due_so_that_the_planner_can_say_so(store: Store) -> None:
    await put(store, next_at=NOW)
    await raw(store, "UPDATE schedules SET timing = 'every blue moon', policy = 'x', work = 'y'")
    (due,) = (await store.schedules.due_schedules(NOW, 10)).schedules
    assert (due.timing, due.policy, due.work) == ("every blue moon", "x", "y")


async def test_a_report_that_cannot_be_read_does_not_hide_its_run(store: Store) -> None:
    (id,) = await store.runs.insert_runs([new_run()])
    await raw(store, "UPDATE runs SET totals = '{\"rows\":NaN}', progress = '7', result = 'garbage'")
    (shown,) = await store.runs.list_runs(RunFilter())
    assert shown.id == id
    assert (shown.totals, shown.progress, shown.result) == ({}, None, None)
