"""Machines that check in: one row for each due time, which a ping starts and ends, and which is late without one."""

from __future__ import annotations

import asyncio
from typing import Any

from ostinato.clock import Micros
from ostinato.models.check_in import LANE, KeyPurpose, Ping, PingSignal, awaiting
from ostinato.models.ids import NodeId, ScheduleId
from ostinato.models.incident import IncidentFilter
from ostinato.models.notification import NoticeKind
from ostinato.models.output import output_text
from ostinato.models.run import CANCELLED, Run
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import CheckedIn, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    all_runs,
    beat,
    change,
    claim,
    draft,
    plan,
    put,
    put_many,
    scheduled_run,
)

CHECK_IN: dict[str, Any] = {"kind": "check_in", "task": None, "work": '{"kind":"check_in"}'}
DUE = NOW + 5 * MINUTE
LATE_AT = DUE + 10 * MINUTE
SUCCESS, START, FAIL = (Ping(signal) for signal in (PingSignal.SUCCESS, PingSignal.START, PingSignal.FAIL))


async def put_check_in(store: Store, **fields: Any) -> ScheduleId:
    """A check-in that is due in five minutes, with the key `key`."""
    id = await put(store, **{**CHECK_IN, **fields})
    assert await store.check_ins.put_key(id, KeyPurpose.PING, "key", NOW, replace=False)
    return id


async def fire(store: Store, id: ScheduleId, due_at: Micros = DUE) -> None:
    run = awaiting(scheduled_run(id, due_at, **CHECK_IN))
    await store.schedules.record_fires([plan(id, runs=(run,), next_at=DUE + HOUR)], due_at)


async def ping(store: Store, said: Ping = SUCCESS, at: Micros = DUE + MINUTE) -> CheckedIn:
    found = await store.check_ins.check_in("key", said, at)
    assert found is not None
    return found


async def only_run(store: Store) -> Run:
    (run,) = await all_runs(store)
    return run


async def test_what_is_due_waits_for_its_machine_and_no_node_takes_it(store: Store) -> None:
    await store.nodes.renew(beat())
    await fire(store, await put_check_in(store))
    assert (await store.runs.claim_runs(claim(now=DUE + MINUTE))).runs == []
    assert await store.runs.unclaimable_runs(DUE + HOUR) == []
    run = await only_run(store)
    assert (run.state, run.trigger, run.lane, run.waiting) == ("queued", "schedule", LANE, True)


async def test_a_ping_completes_the_due_time_that_waits(store: Store) -> None:
    await fire(store, await put_check_in(store))
    said = Ping(PingSignal.SUCCESS, 0, "köpt 3\nfiles\n\x00".encode() + b"\xff")
    answer = await ping(store, said)
    run = await only_run(store)
    assert (answer.run, answer.schedule) == (run.id, "report")
    assert (run.state, run.trigger, run.attempt, run.cause) == (RunState.SUCCEEDED, Trigger.SCHEDULE, 1, None)
    assert output_text(await store.runs.read_output(run.id)) == "köpt 3\nfiles\n\\x00\\xff\n"


async def test_a_start_is_shown_and_its_end_comes_later(store: Store) -> None:
    await fire(store, await put_check_in(store))
    answer = await ping(store, START)
    assert answer.finish is None
    assert (await only_run(store)).state is RunState.RUNNING
    await ping(store, SUCCESS, DUE + 3 * MINUTE)
    run = await only_run(store)
    assert run.state is RunState.SUCCEEDED
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (run.finished_at - run.started_at).total_seconds() == 120


async def test_a_failure_says_its_status_and_opens_an_incident(store: Store) -> None:
    await fire(store, await put_check_in(store))
    answer = await ping(store, Ping(PingSignal.FAIL, 3))
    run = await only_run(store)
    assert (run.state, run.cause, run.reason) == (RunState.FAILED, Cause.EXIT_STATUS, "it ended with status 3")
    (opened,) = answer.told.incidents
    assert (opened.opened, opened.subject, opened.cause) == (True, "report", "exit_status")
    closed = (await ping(store, SUCCESS, DUE + 2 * MINUTE)).told.incidents
    assert [(change.id, change.opened) for change in closed] == [(opened.id, False)]


async def test_failures_never_switch_off_the_watching(store: Store) -> None:
    await put_check_in(store, policy='{"break_after":1}')
    await ping(store, FAIL)
    schedule = await store.schedules.get_schedule("report")
    assert schedule is not None
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 0)


async def test_a_ping_that_nothing_waits_for_makes_its_own_row(store: Store) -> None:
    await put_check_in(store)
    await ping(store, START, NOW + MINUTE)
    await ping(store, SUCCESS, NOW + 2 * MINUTE)
    run = await only_run(store)
    assert (run.state, run.trigger) == (RunState.SUCCEEDED, Trigger.CHECK_IN)
    assert run.started_at == run.due_at


async def test_a_ping_shortly_before_the_due_time_is_for_it(store: Store) -> None:
    """The clock of the machine is ahead of ours: it must not be late for that."""
    id = await put_check_in(store)
    await ping(store, SUCCESS, DUE - 5_000_000)
    await fire(store, id)
    run = await only_run(store)
    assert (run.state, run.trigger) == (RunState.SUCCEEDED, Trigger.SCHEDULE)
    assert (await store.check_ins.end_late(LATE_AT)).late.notices == ()


async def test_a_machine_that_checks_in_again_before_the_due_time_that_it_answered_gets_rows_of_its_own(
    store: Store,
) -> None:
    await put_check_in(store)
    await ping(store, at=DUE - 5)
    assert (await ping(store, FAIL, at=DUE - 3)).finish is not None
    assert [(run.trigger, run.state) for run in await all_runs(store)] == [
        (Trigger.SCHEDULE, RunState.SUCCEEDED),
        (Trigger.CHECK_IN, RunState.FAILED),
    ]


async def test_one_that_cannot_be_read_is_in_no_others_way(store: Store) -> None:
    await fire(store, await put_check_in(store))
    bad, _ = await put_many(store, [draft("bad", **{**CHECK_IN, "work": "{}"}), draft("other")])
    run = awaiting(scheduled_run(bad, DUE, **{**CHECK_IN, "work": '{"kind":"check_in","late_after":"soon"}'}))
    await store.schedules.record_fires([plan(bad, runs=(run,))], DUE)
    late = await store.check_ins.end_late(LATE_AT)
    assert [notice.subject for notice in late.late.notices] == ["report"]


async def test_without_a_check_in_it_is_missed_and_told(store: Store) -> None:
    await fire(store, await put_check_in(store))
    waiting = await store.check_ins.end_late(LATE_AT - 1)
    assert (waiting.late.notices, waiting.next_at) == ((), LATE_AT)
    ended = await store.check_ins.end_late(LATE_AT)
    run = await only_run(store)
    assert (run.state, run.cause) == (RunState.MISSED, Cause.LATE)
    assert run.reason is not None
    assert run.reason.startswith("did not check in within 10m of its due time, ")
    (notice,) = ended.late.notices
    assert (notice.kind, notice.run, notice.reason) == (NoticeKind.LATE, run.id, run.reason)
    (opened,) = ended.late.told.incidents
    assert (opened.kind, opened.cause) == ("late", "late")
    assert (await store.check_ins.end_late(LATE_AT + HOUR)).late.notices == ()


async def test_its_own_late_after_counts(store: Store) -> None:
    id = await put_check_in(store)
    work = {**CHECK_IN, "work": '{"kind":"check_in","late_after":"1h"}'}
    await store.schedules.record_fires([plan(id, runs=(awaiting(scheduled_run(id, DUE, **work)),))], DUE)
    assert (await store.check_ins.end_late(LATE_AT)).next_at == DUE + HOUR


async def test_a_start_without_an_end_fails_after_its_timeout(store: Store) -> None:
    await fire(store, await put_check_in(store))
    await ping(store, START)
    begun = DUE + MINUTE
    assert (await store.check_ins.end_late(begun)).next_at == begun + 10 * MINUTE
    ended = await store.check_ins.end_late(begun + 10 * MINUTE)
    run = await only_run(store)
    assert (run.state, run.cause) == (RunState.FAILED, Cause.TIMED_OUT)
    assert [change.cause for change in ended.late.told.incidents] == ["timed_out"]


async def test_a_late_ping_is_recorded_and_ends_the_incident(store: Store) -> None:
    await fire(store, await put_check_in(store))
    await store.check_ins.end_late(LATE_AT)
    await ping(store, SUCCESS, LATE_AT + MINUTE)
    missed, last = await all_runs(store)
    assert (last.trigger, last.state, missed.state) == (Trigger.CHECK_IN, RunState.SUCCEEDED, RunState.MISSED)
    (incident,) = await store.notifications.list_incidents(IncidentFilter())
    assert incident.state == "closed"


async def test_nobody_rescues_what_runs_on_a_machine_of_its_own(store: Store) -> None:
    await store.nodes.renew(beat())
    await fire(store, await put_check_in(store))
    await ping(store, START)
    assert (await store.runs.stale_runs([(NodeId("node"), NOW)], LATE_AT)).runs == []
    assert (await only_run(store)).state is RunState.RUNNING


async def test_what_waits_or_has_started_can_be_cancelled(store: Store) -> None:
    await fire(store, await put_check_in(store))
    await ping(store, START)
    run = await only_run(store)
    cancelled = await store.runs.cancel_runs([run.id], CANCELLED, DUE + 2 * MINUTE)
    assert list(cancelled.ended) == [run.id]
    assert (await only_run(store)).state is RunState.CANCELLED


async def test_a_schedule_that_gets_other_work_awaits_nothing_more(store: Store) -> None:
    await fire(store, await put_check_in(store))
    await ping(store, START)
    await put_many(store, [draft()], DUE + 2 * MINUTE)
    assert (await only_run(store)).state is RunState.CANCELLED
    assert await store.check_ins.check_in("key", SUCCESS, DUE + 3 * MINUTE) is None


async def test_a_check_in_frees_the_time_that_its_schedule_has_to_succeed(store: Store) -> None:
    id = await put_check_in(store, policy='{"fresh":"2h"}', fresh_at=NOW + 2 * HOUR)
    run = awaiting(scheduled_run(id, DUE, **CHECK_IN, policy='{"fresh":"2h"}'))
    await store.schedules.record_fires([plan(id, runs=(run,))], DUE)
    await ping(store)
    assert await store.schedules.next_fresh_at() == DUE + MINUTE + 2 * HOUR


async def test_a_key_belongs_to_one_schedule_and_one_purpose(store: Store) -> None:
    id = await put_check_in(store)
    keys = store.check_ins
    assert await keys.check_in("other", SUCCESS, NOW) is None
    assert not await keys.put_key(id, KeyPurpose.PING, "second", NOW, replace=False)
    assert await keys.put_key(id, KeyPurpose.BADGE, "shown", NOW, replace=False)
    assert await keys.check_in("shown", SUCCESS, NOW) is None
    assert await keys.schedule_of_key("key", KeyPurpose.PING) == "report"
    assert await keys.schedule_of_key("key", KeyPurpose.BADGE) is None
    assert await keys.put_key(id, KeyPurpose.PING, "second", NOW, replace=True)
    assert await keys.check_in("key", SUCCESS, NOW) is None
    assert await keys.check_in("second", SUCCESS, NOW) is not None


async def test_keys_go_with_their_schedule(store: Store) -> None:
    id = await put_check_in(store)
    assert await store.schedules.remove_schedule(id, NOW)
    assert await store.check_ins.schedule_of_key("key", KeyPurpose.PING) is None
    assert await store.check_ins.check_in("key", SUCCESS, NOW) is None
    assert not await store.check_ins.put_key(id, KeyPurpose.PING, "late", NOW, replace=True)


async def test_a_ping_is_taken_while_its_schedule_is_off(store: Store) -> None:
    id = await put_check_in(store)
    assert await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    await ping(store)
    assert (await only_run(store)).trigger is Trigger.CHECK_IN


async def test_two_pings_at_once_make_no_second_row(first: Store, second: Store) -> None:
    await fire(first, await put_check_in(first))
    await asyncio.gather(*(ping(store, START) for store in (first, second)))
    run = await only_run(first)
    assert run.state is RunState.RUNNING


async def test_whoever_checks_in_while_it_is_declared_late_has_one_end(first: Store, second: Store) -> None:
    await fire(first, await put_check_in(first))
    await asyncio.gather(ping(first, SUCCESS, LATE_AT), second.check_ins.end_late(LATE_AT))
    runs = await all_runs(first)
    of_due_time = [run for run in runs if run.trigger is Trigger.SCHEDULE]
    assert len(of_due_time) == 1
    assert of_due_time[0].ended
    assert len(runs) == (1 if of_due_time[0].state is RunState.SUCCEEDED else 2)
