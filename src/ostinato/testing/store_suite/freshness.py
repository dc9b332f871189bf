"""Schedules that must succeed in time: moved by each success, told once when they are late."""

from __future__ import annotations

import asyncio
from typing import Any

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.incident import IncidentFilter
from ostinato.models.schedule import Schedule
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    draft,
    finish,
    put,
    put_many,
    scheduled_run,
)

FRESH = '{"fresh":"2h"}'
LATE_AT = NOW + 2 * HOUR


async def put_fresh(store: Store, name: str = "report", **fields: Any) -> ScheduleId:
    return await put(store, name, **{"policy": FRESH, "fresh_at": LATE_AT, **fields})


async def found(store: Store, name: str = "report") -> Schedule:
    schedule = await store.schedules.get_schedule(name)
    assert schedule is not None
    return schedule


async def succeed(store: Store, id: ScheduleId, at: Micros, **fields: Any) -> None:
    """A scheduled run of it ends."""
    await store.runs.insert_runs([scheduled_run(id, at)])
    (run,) = (await store.runs.claim_runs(claim(now=at))).runs
    ended = finish(run, finished_at=at, **{"fresh": 2 * HOUR, "schedule": "report", "tells": True, **fields})
    await store.runs.finish_runs([ended])


async def test_a_schedule_that_asks_for_nothing_is_never_late(store: Store) -> None:
    await put(store)
    assert await store.schedules.next_fresh_at() is None
    assert (await store.schedules.tell_late(LATE_AT, 100)).notices == []
    assert not (await found(store)).late


async def test_a_schedule_that_never_succeeded_is_late_once(store: Store) -> None:
    id = await put_fresh(store, enabled=False)
    assert await store.schedules.next_fresh_at() == LATE_AT
    assert (await store.schedules.tell_late(LATE_AT - 1, 100)).notices == []
    late = await store.schedules.tell_late(LATE_AT, 100)
    (notice,) = late.notices
    assert (notice.kind, notice.subject, notice.schedule_id, notice.cause) == ("late", "report", id, "late")
    assert notice.reason is not None
    assert notice.reason.startswith("has never succeeded since it was added at ")
    assert notice.reason.endswith("(fresh is 2h)")
    (change,) = late.told.incidents
    assert (change.opened, change.kind, change.reason) == (True, "late", notice.reason)
    schedule = await found(store)
    assert (schedule.late, schedule.fresh_until) == (True, None)
    assert await store.schedules.next_fresh_at() is None
    assert (await store.schedules.tell_late(LATE_AT + HOUR, 100)).notices == []


async def test_a_success_moves_it_and_ends_the_incident(store: Store) -> None:
    id = await put_fresh(store)
    await succeed(store, id, NOW + HOUR)
    assert await store.schedules.next_fresh_at() == NOW + 3 * HOUR
    (notice,) = (await store.schedules.tell_late(NOW + 3 * HOUR, 100)).notices
    assert notice.reason is not None
    assert notice.reason.startswith("has not succeeded since ")
    await succeed(store, id, NOW + 4 * HOUR)
    assert await store.schedules.next_fresh_at() == NOW + 6 * HOUR
    assert not (await found(store)).late
    (incident,) = await store.notifications.list_incidents(IncidentFilter())
    assert incident.state == "closed"


async def test_failures_and_successes_with_errors_do_not_move_it(store: Store) -> None:
    id = await put_fresh(store)
    await succeed(store, id, NOW + HOUR, state=RunState.FAILED, cause=Cause.RAISED, fresh=None)
    assert await store.schedules.next_fresh_at() == LATE_AT
    (notice,) = (await store.schedules.tell_late(LATE_AT, 100)).notices
    assert notice.reason is not None
    assert "never succeeded" in notice.reason


async def test_the_ledger_decides_where_the_policy_of_a_run_was_an_older_one(store: Store) -> None:
    """The run was queued before the schedule was to be fresh: its end did not move the time."""
    id = await put_fresh(store)
    await succeed(store, id, NOW + HOUR, fresh=None)
    assert await store.schedules.next_fresh_at() == LATE_AT
    assert (await store.schedules.tell_late(LATE_AT, 100)).notices == []
    assert await store.schedules.next_fresh_at() == NOW + 3 * HOUR


async def test_only_another_fresh_begins_the_time_anew(store: Store) -> None:
    await put_fresh(store)
    later = NOW + HOUR
    again = draft(policy=FRESH, fresh_at=later + 2 * HOUR, note="another note")
    await put_many(store, [again], later)
    assert await store.schedules.next_fresh_at() == LATE_AT
    await put_many(store, [draft(policy='{"fresh":"3h"}', fresh_at=later + 3 * HOUR)], later)
    assert await store.schedules.next_fresh_at() == later + 3 * HOUR
    await put_many(store, [draft(policy="{}", fresh_at=None)], later)
    assert await store.schedules.next_fresh_at() is None
    assert not (await found(store)).late


async def test_many_late_schedules_are_told_in_portions(store: Store) -> None:
    drafts = [draft(f"s{number}", policy=FRESH, fresh_at=LATE_AT + number) for number in range(5)]
    await put_many(store, drafts)
    told = [await store.schedules.tell_late(LATE_AT + MINUTE, 2) for _ in range(3)]
    assert [len(late.notices) for late in told] == [2, 2, 1]
    assert sorted(notice.subject for late in told for notice in late.notices) == [f"s{n}" for n in range(5)]


async def test_two_nodes_tell_it_once(first: Store, second: Store) -> None:
    await put_fresh(first)
    told = await asyncio.gather(*(store.schedules.tell_late(LATE_AT, 100) for store in (first, second)))
    assert sum(len(late.notices) for late in told) == 1
    (incident,) = await first.notifications.list_incidents(IncidentFilter())
    assert incident.count == 1
