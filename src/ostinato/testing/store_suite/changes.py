"""One look at the ledger for whoever watches: all that is behind a mark, of one state; and what counts as a change."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.access import Actor
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.incident import Incident, IncidentFilter
from ostinato.models.live import ChangedSchedule, Changes, Position
from ostinato.models.notification import RULE_KINDS, ChannelDraft, RuleDraft
from ostinato.models.run import Ending
from ostinato.models.schedule import Pause
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.service.answers import run_answer
from ostinato.stores.base import Settled, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
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
from ostinato.testing.store_suite.mailbox import message

NEVER: Micros = 1 << 60


def mark(**fields: Any) -> Position:
    return Position(**{"run": 0, "event": 0, "audit": 0, "changed_at": NEVER, "finished_at": NEVER, **fields})


def names(changes: Changes) -> list[str]:
    return [schedule.name for schedule in changes.schedules]


async def test_an_empty_ledger_has_nothing_to_show(store: Store) -> None:
    seen = await store.runs.changes_since(mark(changed_at=0, finished_at=0, runs=[RunId(1)]), 10)
    assert seen == Changes([], [], [], [], [], [], [], 0, incidents=[])


async def test_new_runs_are_those_behind_the_mark_oldest_first(store: Store) -> None:
    ids = await store.runs.insert_runs([new_run()] * 4)
    seen = await store.runs.changes_since(mark(run=ids[0]), 10)
    assert [run.id for run in seen.new] == ids[1:]
    assert seen.last_run == ids[3]
    assert (await store.runs.changes_since(mark(run=ids[3]), 10)).new == []


async def test_every_list_is_cut_at_the_limit_but_what_was_asked_for(store: Store) -> None:
    await put_many(store, [draft(f"s{number}") for number in range(3)])
    ids = await store.runs.insert_runs([new_run()] * 6)
    runs = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(run) for run in runs[:3]])
    await store.sessions.send([message(number) for number in range(3)], NOW)
    for _ in range(3):
        await store.access.note_audit(Actor("ada", "cli"), "schedule.remove", "old", "{}", NOW)
    seen = await store.runs.changes_since(mark(changed_at=0), 2)
    lists = (seen.new, seen.running, seen.schedules, seen.events, seen.audit)
    assert [len(one) for one in lists] == [2] * 5
    assert [run.id for run in (await store.runs.changes_since(mark(runs=ids), 2)).seen] == ids
    assert len((await store.runs.changes_since(mark(run=ids[-1], finished_at=0), 2)).ended) == 2
    assert [run.id for run in seen.new] == ids[:2]
    assert seen.last_run > ids[-1]


async def test_runs_that_are_asked_for_are_shown_as_they_are_now(store: Store) -> None:
    ids = await store.runs.insert_runs([new_run()] * 4)
    first, second = (await store.runs.claim_runs(claim(room=2))).runs
    await store.runs.finish_runs([finish(second, RunState.FAILED, error="boom")])
    await store.runs.cancel_runs([ids[3]], Ending(Cause.CANCELLED, "no more"), NOW)
    seen = await store.runs.changes_since(mark(run=ids[3], runs=[*reversed(ids), RunId(999)]), 10)
    assert [(run.id, run.state) for run in seen.seen] == [
        (first.id, RunState.RUNNING),
        (second.id, RunState.FAILED),
        (ids[2], RunState.QUEUED),
        (ids[3], RunState.CANCELLED),
    ]
    assert [run.id for run in seen.running] == [first.id]


async def test_what_ended_since_an_instant_is_shown_in_that_order(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 3)
    runs = (await store.runs.claim_runs(claim())).runs
    for run, at in zip(runs, (NOW + 3, NOW + 1, NOW + 2), strict=True):
        await store.runs.finish_runs([finish(run, finished_at=at)])
    ids = [run.id for run in runs]
    seen = await store.runs.changes_since(mark(run=ids[2], finished_at=NOW + 2), 10)
    assert [run.id for run in seen.ended] == [ids[2], ids[0]]
    assert seen.seen == []


async def test_ends_that_are_new_asked_for_or_told_are_not_shown_as_ends(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 4)
    runs = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(run) for run in runs])
    ids = [run.id for run in runs]
    seen = await store.runs.changes_since(mark(run=ids[2], runs=[ids[0]], told=[ids[1]], finished_at=0), 10)
    assert [run.id for run in seen.ended] == [ids[2]]
    assert [run.id for run in seen.seen] == [ids[0]]
    assert [run.id for run in seen.new] == [ids[3]]


async def test_what_may_be_large_and_is_not_told_is_not_read(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    await store.runs.finish_runs(
        [finish(await claim_one(store), result='"' + "x" * 1_000 + '"', progress='{"done":1}')]
    )
    (run,) = (await store.runs.changes_since(mark(), 10)).new
    assert not {"work", "result", "attempts"} & set(run.__struct_fields__)
    assert run.progress is not None
    assert run.state is RunState.SUCCEEDED


async def test_a_run_is_told_as_it_is_shown_but_for_what_may_be_large(store: Store) -> None:
    id = await put(store, zone="Asia/Tokyo")
    await store.runs.insert_runs([scheduled_run(id), new_run(), new_run(key="mine", session="s", priority=3)])
    first, second = (await store.runs.claim_runs(claim(room=2))).runs
    await store.runs.cancel_runs([first.id], Ending(Cause.CANCELLED, "enough"), NOW)
    progress = '{"done":1,"total":2,"text":"half"}'
    await store.runs.finish_runs([finish(second, RunState.FAILED, error="boom", progress=progress, totals='{"n":3}')])
    for run in (await store.runs.changes_since(mark(), 10)).new:
        known = await store.runs.get_run(run.id)
        assert known is not None
        shape = msgspec.to_builtins(run_answer(known))
        for large in ("work", "result", "attempts"):
            del shape[large]
        assert msgspec.to_builtins(run) == shape, "the same names and values"


async def test_a_run_is_shown_with_its_schedule(store: Store) -> None:
    id = await put(store, zone="Asia/Tokyo")
    await store.runs.insert_runs([scheduled_run(id)])
    (run,) = (await store.runs.changes_since(mark(), 10)).new
    assert (run.schedule, run.schedule_id, run.zone) == ("report", id, "Asia/Tokyo")


async def test_events_and_removed_schedules_behind_the_mark_are_shown(store: Store) -> None:
    await store.sessions.send([message()], NOW)
    for verb in ("schedule.remove", "schedule.add", "schedule.remove"):
        await store.access.note_audit(Actor("ada", "cli"), verb, "old", "{}", NOW)
    seen = await store.runs.changes_since(mark(), 10)
    assert [event.session for event in seen.events] == ["s"]
    assert [entry.verb for entry in seen.audit] == ["schedule.remove"] * 2
    again = await store.runs.changes_since(mark(event=seen.events[0].id, audit=seen.audit[0].id), 10)
    assert again.events == []
    assert list(again.audit) == [seen.audit[1]]


async def test_schedules_are_shown_in_the_order_of_their_change(store: Store) -> None:
    for name, at in (("a", NOW + 2), ("b", NOW), ("c", NOW + 1)):
        await put_many(store, [draft(name)], at)
    assert names(await store.runs.changes_since(mark(changed_at=NOW + 1), 10)) == ["c", "a"]
    schedule = await store.schedules.get_schedule("b")
    assert schedule is not None
    first = (await store.runs.changes_since(mark(changed_at=NOW), 10)).schedules[0]
    assert first == ChangedSchedule(schedule.id, "b", schedule.version, schedule.enabled, None, schedule.updated_at)


async def test_incidents_are_shown_in_the_order_of_their_change_whatever_changed(store: Store) -> None:
    async def fail(task: str, at: Micros) -> None:
        await store.runs.insert_runs([new_run(task=task, ready_at=NOW)])
        run = await claim_one(store, tasks=(task,))
        end = finish(run, RunState.FAILED, task=task, name=task, finished_at=at, cause=Cause.RAISED)
        assert (await store.runs.finish_runs([end])).lost == []

    async def changed(since: int) -> list[tuple[str, int]]:
        found = (await store.runs.changes_since(mark(changed_at=NOW + since * MINUTE), 10)).incidents
        return [(one.incident.subject, (to_micros(one.changed_at) - NOW) // MINUTE) for one in found]

    await fail("a", NOW + 1 * MINUTE)
    await fail("b", NOW + 2 * MINUTE)
    await fail("c", NOW + 3 * MINUTE)
    assert await changed(2) == [("b", 2), ("c", 3)]
    await fail("a", NOW + 4 * MINUTE)
    assert await changed(3) == [("c", 3), ("a", 4)]
    b = await open_incident(store, "b")
    assert await store.notifications.ack_incident(b.id, "ada", None, NOW + 5 * MINUTE)
    assert await changed(4) == [("a", 4), ("b", 5)]
    await store.notifications.close_incidents("c", NOW + 6 * MINUTE, "enough")
    assert await changed(5) == [("b", 5), ("c", 6)]
    (last,) = (await store.runs.changes_since(mark(changed_at=NOW + 6 * MINUTE), 10)).incidents
    assert (await store.notifications.get_incident(last.incident.id)) == last.incident


async def test_batches_that_are_counted_on_write_an_incidents_change_once_a_second(store: Store) -> None:
    """It is in an index, by which each of them would be one write more."""
    told = []
    for after in (0, SECOND // 2, SECOND - 1, SECOND, 2 * SECOND - 1):
        await store.runs.insert_runs([new_run(ready_at=NOW)])
        end = finish(await claim_one(store), RunState.FAILED, name="a", finished_at=NOW + after, cause=Cause.RAISED)
        assert (await store.runs.finish_runs([end])).lost == []
        (changed,) = (await store.runs.changes_since(mark(changed_at=NOW), 10)).incidents
        told.append((changed.incident.count, to_micros(changed.changed_at) - NOW, to_micros(changed.turned_at) - NOW))
        assert changed.incident.last_at == from_micros(NOW + after)
    assert told == [(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, SECOND, 0), (5, SECOND, 0)]


async def test_an_incident_changes_when_an_end_is_written_and_not_when_it_was(store: Store) -> None:
    for state, cause in ((RunState.FAILED, Cause.RAISED), (RunState.SUCCEEDED, None), (RunState.FAILED, Cause.RAISED)):
        await store.runs.insert_runs([new_run(ready_at=NOW)])
        ended = finish(await claim_one(store), state, name="a", finished_at=NOW, cause=cause, tells=True)
        assert (await store.runs.finish_runs([ended], None, NOW + HOUR)).lost == []
        (changed,) = (await store.runs.changes_since(mark(changed_at=NOW + HOUR), 10)).incidents
        assert (changed.changed_at, changed.turned_at) == (from_micros(NOW + HOUR),) * 2
        assert changed.incident.opened_at == from_micros(NOW)
    await store.notifications.close_incidents("a", NOW + 2 * HOUR, "enough")
    (changed,) = (await store.runs.changes_since(mark(changed_at=NOW + 2 * HOUR), 10)).incidents
    assert changed.turned_at == from_micros(NOW + 2 * HOUR)


async def test_what_became_of_a_message_changes_its_incident(store: Store) -> None:
    await store.notifications.put_channel(ChannelDraft("phone", "json://127.0.0.1:9"), NOW)
    await store.notifications.put_rule(RuleDraft("phone", RULE_KINDS), NOW)
    await store.runs.insert_runs([new_run(task="a", ready_at=NOW)])
    run = await claim_one(store, tasks=("a",))
    end = finish(run, RunState.FAILED, task="a", name="a", finished_at=NOW, cause=Cause.RAISED)
    await store.runs.finish_runs([end])
    (parcel,) = await store.notifications.claim_deliveries(NodeId("here"), NOW, [], 10)
    ids = [delivery.id for delivery in parcel.deliveries]
    await store.notifications.settle_delivery(NodeId("here"), Settled("phone", parcel.key, ids, NOW + 7))
    (changed,) = (await store.runs.changes_since(mark(changed_at=NOW + 7), 10)).incidents
    assert changed.incident.subject == "a"


async def open_incident(store: Store, subject: str) -> Incident:
    (incident,) = await store.notifications.list_incidents(IncidentFilter(subject=subject))
    return incident


async def test_a_look_is_of_one_state_while_others_write(first: Store, second: Store) -> None:
    writing = True
    await second.runs.insert_runs([new_run()])

    async def write() -> None:
        nonlocal writing
        for _ in range(60):
            run = await claim_one(second)
            await second.runs.finish_runs([finish(run)])
            await second.runs.insert_runs([new_run()])
        writing = False

    async def watch() -> int:
        looks = 0
        while writing:
            seen = await first.runs.changes_since(mark(), 1000)
            known = {run.id: run.state for run in seen.new}
            assert seen.last_run == max(known)
            assert {run.id for run in seen.running} == {id for id, state in known.items() if state == "running"}
            looks += 1
        return looks

    _, looks = await asyncio.gather(write(), watch())
    assert looks > 3


async def updated_at(store: Store, name: str = "report") -> Micros:
    schedule = await store.schedules.get_schedule(name)
    assert schedule is not None
    return to_micros(schedule.updated_at)


async def fired(store: Store, id: ScheduleId, **fields: Any) -> Micros:
    """When the schedule was last changed, after a fire at NOW + 6 minutes."""
    assert (await store.schedules.record_fires([plan(id, **fields)], NOW + 6 * MINUTE)).moved == [id]
    return await updated_at(store)


async def test_a_fire_is_no_change(store: Store) -> None:
    id = await put(store, remaining=5)
    assert await fired(store, id, remaining=4) == NOW
    await store.runs.finish_runs([finish(await claim_one(store, now=NOW + HOUR))])
    assert await updated_at(store) == NOW


async def test_a_fire_that_switches_breaks_or_ends_a_hold_is_a_change(store: Store) -> None:
    at = NOW + 6 * MINUTE
    id = await put(store)
    assert await fired(store, id, enabled=False, remaining=0, next_at=None) == at
    assert await store.schedules.remove_schedule(id, NOW)
    id = await put(store)
    assert await fired(store, id, broken="unreadable", enabled=False, runs=(), next_at=None) == at
    assert await store.schedules.remove_schedule(id, NOW)
    id = await put(store)
    hold = Pause(since=NOW + 5 * MINUTE, next_at=NOW + 5 * MINUTE, cause=Cause.BUDGET, reason="over budget")
    assert await store.schedules.pause_schedule(id, 1, hold, NOW + 1)
    assert await updated_at(store) == NOW + 1
    assert await fired(store, id) == at


async def test_what_people_see_change_moves_the_instant_of_change(store: Store) -> None:
    id = await put(store, owner="code", origin="app")
    await put_many(store, [draft(owner="code", origin="app")], NOW + 1)
    assert await updated_at(store) == NOW
    await put_many(store, [draft(owner="code", origin="app", note="new")], NOW + 2)
    assert await updated_at(store) == NOW + 2
    assert await store.schedules.change_schedule(id, 2, change(enabled=False, next_at=None), NOW + 3)
    assert await updated_at(store) == NOW + 3
    assert await store.schedules.change_schedule(id, 3, change(next_at=NOW + 5 * MINUTE), NOW + 4)
    assert await updated_at(store) == NOW + 4
    await store.schedules.mark_orphans("app", [], NOW + 5)
    assert await updated_at(store) == NOW + 5


async def test_a_breaker_that_trips_moves_the_instant_of_change_and_a_failure_before_does_not(store: Store) -> None:
    id = await put(store)
    for turn, expected in enumerate([NOW, NOW + 10 * SECOND]):
        await store.runs.insert_runs([scheduled_run(id, NOW + turn)])
        run = await claim_one(store, now=NOW + SECOND)
        failed = finish(
            run, RunState.FAILED, finished_at=NOW + 10 * SECOND, breaks=True, break_after=2, broken="failed twice"
        )
        await store.runs.finish_runs([failed])
        assert await updated_at(store) == expected
    assert names(await store.runs.changes_since(mark(changed_at=NOW + 10 * SECOND), 10)) == ["report"]


async def test_what_runs_on_a_node_is_shown_with_it(store: Store) -> None:
    await store.runs.start_run(new_run(trigger=Trigger.MANUAL), NodeId("here"), NOW)
    (run,) = (await store.runs.changes_since(mark(), 10)).running
    assert (run.node, run.state) == ("here", RunState.RUNNING)
