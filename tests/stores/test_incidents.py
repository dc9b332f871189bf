"""Incidents as people read them and as they end with their schedule, and who names a channel."""

from __future__ import annotations

from dataclasses import replace

from ostinato.clock import Micros
from ostinato.models.ids import IncidentId
from ostinato.models.incident import Incident, IncidentFilter, IncidentState
from ostinato.models.notification import ChannelDraft
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    change,
    claim_one,
    draft,
    finish,
    new_run,
    put,
    put_many,
)
from tests.stores.places import raw


async def opened(
    store: Store, subject: str = "report", cause: str = "raised", at: Micros = NOW, *, is_task: bool = False
) -> None:
    """An incident as something recorded would open it."""
    schedule = "NULL" if is_task else f"'{subject}'"
    await raw(
        store,
        "INSERT INTO incidents (subject, cause, kind, opened_at, last_at, count, schedule) "
        f"VALUES ('{subject}', '{cause}', 'failed', {at}, {at}, 1, {schedule})",
    )


async def incidents(store: Store, **wanted: object) -> list[Incident]:
    return await store.notifications.list_incidents(replace(IncidentFilter(), **wanted))  # type: ignore[arg-type]


async def states(store: Store, subject: str = "report") -> dict[str, str | None]:
    """Cause and why it was closed of each."""
    return {one.cause: one.closed_reason for one in await incidents(store, subject=subject)}


async def test_open_incidents_come_first_on_every_page(store: Store) -> None:
    for number in range(6):
        await opened(store, f"s{number}")
    for number in (1, 4, 5):
        await store.notifications.close_incidents(f"s{number}", NOW + 1, "over")
    seen: list[Incident] = []
    while page := await incidents(
        store,
        limit=2,
        before_id=seen[-1].id if seen else None,
        before_open=not seen or seen[-1].state is IncidentState.OPEN,
    ):
        seen += page
    assert [one.subject for one in seen] == ["s3", "s2", "s0", "s5", "s4", "s1"]
    assert [one.subject for one in await incidents(store, state=IncidentState.CLOSED)] == ["s5", "s4", "s1"]


async def test_enabling_a_broken_schedule_closes_the_incident_of_that_alone(store: Store) -> None:
    id = await put(store)
    await opened(store, cause="broken")
    await opened(store, cause="raised")
    await opened(store, "other", cause="broken")
    await raw(store, "UPDATE schedules SET enabled = false, broken = '3 failures'")
    assert await states(store) == {"broken": None, "raised": None}
    assert await store.schedules.change_schedule(id, 1, change(enabled=True), NOW + 1)
    assert await states(store) == {"broken": "the schedule was enabled", "raised": None}
    assert await states(store, "other") == {"broken": None}


async def test_another_timing_of_a_broken_schedule_closes_the_incident_of_that(store: Store) -> None:
    await put(store)
    await opened(store, cause="broken")
    await put(store, note="the same timing")
    assert await states(store) == {"broken": None}
    await raw(store, "UPDATE schedules SET enabled = false, broken = '3 failures'")
    assert await states(store) == {"broken": None}
    await put(store, timing="every 9m")
    assert await states(store) == {"broken": "its timing was changed"}


async def test_the_incidents_of_a_removed_schedule_are_closed(store: Store) -> None:
    id = await put(store)
    await opened(store, cause="raised")
    await opened(store, cause="late")
    await opened(store, "other")
    assert not await store.schedules.remove_schedule(id, NOW, 7)
    assert await states(store) == {"raised": None, "late": None}
    assert await store.schedules.remove_schedule(id, NOW)
    assert set((await states(store)).values()) == {"its schedule was removed"}
    assert await states(store, "other") == {"raised": None}


async def test_an_incident_stands_for_runs_of_its_cause_but_not_for_what_was_run_again(store: Store) -> None:
    made = []
    for cause in (Cause.RAISED, Cause.TIMED_OUT, Cause.RAISED):
        await store.runs.insert_runs([new_run()])
        run = await claim_one(store)
        made.append(run.id)
        await store.runs.finish_runs([finish(run, RunState.FAILED, cause=cause, reason="no good")])
    assert await store.runs.repeat_run(made[0], NOW) is not None
    again = await claim_one(store)
    await store.runs.finish_runs([finish(again, RunState.FAILED, cause=Cause.RAISED, reason="no good")])
    await raw(store, "DELETE FROM incidents")
    await opened(store, again.task or "", "raised", NOW - HOUR, is_task=True)
    await raw(store, f"UPDATE incidents SET last_at = {NOW + HOUR}, first_run = {made[0]}")
    (incident,) = await incidents(store)
    assert await store.notifications.incident_runs(incident.id, 10) == [made[2], made[0]]
    assert await store.notifications.incident_runs(incident.id, 1) == [made[2]]
    assert await store.notifications.incident_runs(IncidentId(99), 10) == []


async def test_schedules_that_name_a_channel_are_found_by_its_whole_name(store: Store) -> None:
    await store.notifications.put_channel(ChannelDraft("phone", "json://example.org"), NOW)
    given = {
        "a": '["phone"]',
        "b": '["ops","phone=failed+missed"]',
        "c": '["phone2"]',
        "d": '["my.phone"]',
        "e": '["ops=failed"]',
    }
    await put_many(store, [draft(name, policy=f'{{"notify":{notify}}}') for name, notify in given.items()])
    await put(store, "f", policy='{"session":"phone"}')
    assert await store.notifications.channel_users("phone", 5) == ["a", "b"]
    assert await store.notifications.channel_users("phone", 1) == ["a"]
    assert await store.notifications.channel_users("p_one", 5) == []
