"""What people are told of what was recorded: incidents and deliveries, written in the same transaction."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.ids import NodeId
from ostinato.models.incident import SWITCHED_OFF, Incident, IncidentFilter, IncidentState, Notice
from ostinato.models.live import Position
from ostinato.models.notification import (
    RULE_KINDS,
    ChannelDraft,
    Delivery,
    DeliveryFilter,
    DeliveryState,
    NoticeKind,
    RuleDraft,
)
from ostinato.models.run import WAITED_TOO_LONG, ClaimedRun, Finish
from ostinato.models.states import Cause, RunState
from ostinato.models.work import Shell, work_text
from ostinato.models.work_kinds import subject_of
from ostinato.stores.base import Finished, Settled, Store
from ostinato.stores.retention import DELIVERIES_KEPT, INCIDENTS_KEPT
from ostinato.stores.upkeep import PruneCursor
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    beat,
    claim,
    draft,
    finish,
    new_run,
    plan,
    put,
    put_many,
    scheduled_run,
)

PHONE = ChannelDraft("phone", "json://phone.example")
MAIL = ChannelDraft("mail", "json://mail.example")


async def add_channels(store: Store, *, rule: frozenset[NoticeKind] | None = None, project: str | None = None) -> None:
    """Two channels; with `rule`, the first is told of these kinds."""
    await store.notifications.put_channel(PHONE, NOW)
    await store.notifications.put_channel(MAIL, NOW)
    if rule is not None:
        await store.notifications.put_rule(RuleDraft("phone", rule, project), NOW)


async def end(
    store: Store,
    state: RunState = RunState.FAILED,
    cause: Cause | None = Cause.RAISED,
    at: Micros = NOW,
    **fields: Any,
) -> Finished:
    """A run of the task `report` ends like this."""
    run = await start(store)
    return await store.runs.finish_runs([ended(run, state, cause, at, **fields)])


async def start(store: Store) -> ClaimedRun:
    await store.runs.insert_runs([new_run()])
    (run,) = (await store.runs.claim_runs(claim(room=1))).runs
    return run


def ended(
    run: ClaimedRun,
    state: RunState = RunState.FAILED,
    cause: Cause | None = Cause.RAISED,
    at: Micros = NOW,
    **fields: Any,
) -> Finish:
    if state is RunState.SUCCEEDED:
        cause, fields = None, {"tells": True, **fields}
    return finish(run, state, cause=cause, finished_at=at, **{"name": "report", **fields})


async def incidents(store: Store, state: IncidentState | None = None) -> list[Incident]:
    return await store.notifications.list_incidents(IncidentFilter(state=state))


async def owed(store: Store, state: DeliveryState | None = DeliveryState.PENDING) -> list[Delivery]:
    """The deliveries, oldest first."""
    return (await store.notifications.list_deliveries(DeliveryFilter(state=state)))[::-1]


async def try_once(store: Store, at: Micros, error: str | None = None) -> list[tuple[str, str]]:
    """What a channel gets next is sent, or with an `error` to be tried again at once; subject and kind of each."""
    node = NodeId("n")
    await store.nodes.renew(beat(node))
    (parcel,) = await store.notifications.claim_deliveries(node, at, [], 10)
    ids, retry_at = [one.id for one in parcel.deliveries], None if error is None else at
    await store.notifications.settle_delivery(node, Settled(parcel.name, parcel.key, ids, at, error, retry_at))
    return [(one.subject, one.kind) for one in parcel.deliveries]


async def send(store: Store, at: Micros, error: str | None = None) -> None:
    """All that is ready is sent; with an `error`, it is given up."""
    node = NodeId("n")
    await store.nodes.renew(beat(node))
    while parcels := await store.notifications.claim_deliveries(node, at, [], 10):
        for parcel in parcels:
            ids = [one.id for one in parcel.deliveries]
            await store.notifications.settle_delivery(node, Settled(parcel.name, parcel.key, ids, at, error))


async def test_a_failure_opens_an_incident_whoever_is_told(store: Store) -> None:
    finished = await end(store, reason="boom")
    (change,) = finished.told.incidents
    (incident,) = await incidents(store)
    assert (change.opened, change.id, change.subject, change.cause) == (True, incident.id, "report", "raised")
    assert (incident.state, incident.count, incident.reason, incident.kind) == ("open", 1, "boom", "failed")
    assert not finished.told.owed
    assert await owed(store) == []
    assert (await store.notifications.interests()).open == {"report"}


async def test_the_same_cause_again_is_counted_and_not_told(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    again = await end(store, at=NOW + SECOND, reason="the second")
    assert again.told == ((), False)
    (incident,) = await incidents(store)
    assert (incident.count, incident.reason) == (2, "the second")
    assert [(one.channel, one.kind) for one in await owed(store)] == [("phone", "failed")]


async def test_another_cause_is_another_incident_and_told(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, cause=Cause.TIMED_OUT)
    assert {incident.cause for incident in await incidents(store)} == {"raised", "timed_out"}
    assert [one.data["cause"] for one in await owed(store)] == ["raised", "timed_out"]


async def test_many_failures_of_one_batch_are_one_incident(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await store.runs.insert_runs([new_run() for _ in range(20)])
    runs = (await store.runs.claim_runs(claim(room=20))).runs
    at = [NOW + (place * 7) % 20 * SECOND for place in range(20)]  # they are written in another order than they ended
    await store.runs.finish_runs([ended(run, at=at[place]) for place, run in enumerate(runs)])
    (incident,) = await incidents(store)
    assert (incident.count, incident.opened_at) == (20, from_micros(NOW))
    assert (incident.last_at, incident.first_run) == (from_micros(NOW + 19 * SECOND), runs[0].id)
    assert len(await owed(store)) == 1
    assert len(await store.notifications.incident_runs(incident.id, 100)) == 20
    await end(store, at=NOW - HOUR)  # it was written late
    (incident,) = await incidents(store)
    assert (incident.opened_at, incident.last_at) == (from_micros(NOW - HOUR), from_micros(NOW + 19 * SECOND))
    assert len(await store.notifications.incident_runs(incident.id, 100)) == 21


async def test_an_incident_has_the_runs_of_its_own_subject(store: Store) -> None:
    """Without a schedule: a task, a command, and the commands of sessions are three."""
    work = work_text(Shell("false"))
    new = [
        *(new_run(), new_run(kind="shell", task=None, work=work), new_run(kind="shell", task=None, work=work)),
        new_run(kind="shell", task=None, work=work, session="dm:1"),
    ]
    await store.runs.insert_runs(new)
    found = (await store.runs.claim_runs(claim(room=9))).runs
    task, *commands = sorted(found, key=lambda run: run.id)
    ends = [ended(task), *(_of_command(run) for run in commands)]
    await store.runs.finish_runs(ends)
    (id,) = await put_many(store, [draft("report")])
    await store.runs.insert_runs([scheduled_run(id, NOW)])
    (fired,) = (await store.runs.claim_runs(claim(room=9))).runs
    await store.runs.finish_runs([ended(fired, schedule="report", schedule_id=id)])
    by_subject = {
        one.subject.partition(" ")[::2]: await store.notifications.incident_runs(one.id, 100)
        for one in await incidents(store)
    }
    letters = subject_of(None, "shell", work, None).partition(" ")[2]
    assert by_subject == {
        ("report", ""): [fired.id, task.id],
        ("shell", letters): [commands[1].id, commands[0].id],
        ("shell", ""): [commands[2].id],
    }


def _of_command(run: ClaimedRun) -> Finish:
    subject = subject_of(run.task, run.kind, run.work, run.session)
    return ended(run, name="shell", subject=subject, session=run.session)


async def test_a_success_closes_all_incidents_of_its_subject_and_says_how_many_there_were(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store)
    await end(store, cause=Cause.TIMED_OUT)
    recovered = await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    assert [(one.opened, one.cause) for one in recovered.told.incidents] == [(False, "raised"), (False, "timed_out")]
    assert await incidents(store, IncidentState.OPEN) == []
    (told,) = [one for one in await owed(store) if one.kind is NoticeKind.RECOVERED]  # one message about one run
    assert told.channel == "phone"
    assert (await store.notifications.interests()).open == frozenset()


async def test_a_failure_and_a_success_of_one_batch_count_in_their_order(store: Store) -> None:
    await store.runs.insert_runs([new_run() for _ in range(3)])
    one, two, three = (await store.runs.claim_runs(claim())).runs
    done = await store.runs.finish_runs(
        [ended(one), ended(two, RunState.SUCCEEDED), ended(three, cause=Cause.TIMED_OUT)]
    )
    assert [(change.opened, change.cause) for change in done.told.incidents] == [
        (True, "raised"),
        (False, "raised"),
        (True, "timed_out"),
    ]
    assert [incident.cause for incident in await incidents(store, IncidentState.OPEN)] == ["timed_out"]


async def test_nobody_is_told_again_of_what_somebody_sees_to(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    await end(store, at=NOW + 2 * SECOND)
    (incident,) = await incidents(store)
    assert await store.notifications.ack_incident(incident.id, "ada", None, NOW + 3 * SECOND)
    assert [one.kind for one in await owed(store)] == ["failed", "recovered"]
    assert [one.error for one in await owed(store, DeliveryState.DROPPED)] == ["somebody sees to it"]


async def test_of_a_removed_schedule_nobody_is_told_again(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    id = await put(store, "report")
    await end(store)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    await end(store, at=NOW + 2 * SECOND)
    assert await store.schedules.remove_schedule(id, NOW)
    assert [one.kind for one in await owed(store)] == ["failed", "recovered"]


async def test_what_is_late_and_was_missed_is_told_as_both(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    id = await put(store, "report")
    notices = (
        Notice(NoticeKind.MISSED, "report", NOW, cause="downtime", schedule="report"),
        Notice(NoticeKind.LATE, "report", NOW, cause="late", schedule="report"),
    )
    await store.schedules.record_fires([plan(id, notices=notices)], NOW)
    assert sorted(one.kind for one in await owed(store)) == ["late", "missed"]


async def test_what_was_missed_in_two_rows_is_told_since_the_first(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    id = await put(store, "report")
    due_at = NOW - 9 * SECOND
    first = Notice(NoticeKind.MISSED, "report", NOW, cause="downtime", schedule="report", count=3, due_at=due_at)
    second = replace(first, count=2, due_at=NOW - 2 * SECOND)
    await store.schedules.record_fires([plan(id, notices=(first, second))], NOW)
    assert [(one.data["count"], one.data["due_at"]) for one in await owed(store)] == [(5, due_at)]


async def test_an_engine_knows_of_which_projects_every_run_is_told(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    assert (await store.notifications.interests()).each_run_of == frozenset()
    await store.notifications.put_rule(RuleDraft("mail", frozenset({NoticeKind.RUN}), "blog"), NOW)
    assert (await store.notifications.interests()).each_run_of == {"blog"}
    await store.notifications.put_rule(RuleDraft("mail", frozenset({NoticeKind.SUCCEEDED})), NOW)
    assert (await store.notifications.interests()).each_run_of == {"blog", None}


async def test_a_claim_whose_answer_was_lost_is_sent_all_the_same(store: Store) -> None:
    await store.nodes.renew(beat("n"))
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    (lost,) = await store.notifications.claim_deliveries(NodeId("n"), NOW + SECOND, [], 10)
    assert await store.notifications.claim_deliveries(NodeId("n"), NOW + SECOND, ["phone"], 10) == []
    (again,) = await store.notifications.claim_deliveries(NodeId("n"), NOW + SECOND, [], 10)
    assert (again.key, again.resent) == (lost.key, True)


async def test_a_rule_of_a_project_tells_only_of_that(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS, project="blog")
    await end(store, name="one", project="shop")
    await end(store, name="two")
    await end(store, name="three", project="blog")
    assert [one.subject for one in await owed(store)] == ["three"]


async def test_a_policy_that_only_names_a_channel_tells_it_of_success_and_failure(store: Store) -> None:
    await add_channels(store)
    await end(store, RunState.SUCCEEDED, tells=False, notify=("phone",))
    await end(store, notify=("phone", "mail=missed"))
    assert [(one.channel, one.kind) for one in await owed(store)] == [("phone", "succeeded"), ("phone", "failed")]


async def test_a_channel_that_is_not_there_is_told_nothing(store: Store) -> None:
    await add_channels(store)
    assert not (await end(store, notify=("nobody", "no name!", "phone=nonsense"))).told.owed


async def test_whoever_wants_every_run_gets_one_message_for_each(store: Store) -> None:
    await add_channels(store, rule=frozenset({NoticeKind.RUN, NoticeKind.FAILED}))
    await end(store)
    await end(store)
    await end(store, RunState.SUCCEEDED)
    await end(store, RunState.CANCELLED, Cause.CANCELLED, tells=True)
    assert [one.kind for one in await owed(store)] == ["failed", "failed", "succeeded", "run"]
    assert [one.incident is not None for one in await owed(store)] == [True, False, False, False]


async def test_an_answer_goes_to_whoever_asked_for_it(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await store.notifications.put_channel(ChannelDraft("telegram:42", "telegram://42"), NOW)
    await end(store, RunState.SUCCEEDED, notify=("telegram:42=answer",))
    await end(store, notify=("telegram:42=answer", "mail=answer"))
    assert [(one.channel, one.kind) for one in await owed(store)] == [
        ("telegram:42", "answer"),
        ("telegram:42", "answer"),
        ("phone", "failed"),
    ]


async def test_a_schedule_that_breaks_is_told_once(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    id = await put(store, "report")
    await store.schedules.record_fires([plan(id)], NOW)
    (run,) = (await store.runs.claim_runs(claim(now=NOW + HOUR))).runs
    broken = finish(
        run, RunState.FAILED, cause=Cause.RAISED, schedule="report", breaks=True, break_after=1, broken="it failed"
    )
    done = await store.runs.finish_runs([broken])
    assert {change.cause for change in done.told.incidents} == {"raised", SWITCHED_OFF}
    assert [(one.kind, one.data["reason"]) for one in await owed(store)] == [("broken", "it failed")]


async def test_a_run_by_hand_does_not_switch_a_broken_schedule_on(store: Store) -> None:
    id = await put(store, "report")
    notice = Notice(NoticeKind.BROKEN, "report", NOW, cause=SWITCHED_OFF, schedule="report")
    await store.schedules.record_fires([plan(id, next_at=None, enabled=False, broken="no", notices=(notice,))], NOW)
    (run,) = (await store.runs.claim_runs(claim(now=NOW + HOUR))).runs
    await store.runs.finish_runs([finish(run, schedule="report", tells=True)])
    assert [incident.cause for incident in await incidents(store, IncidentState.OPEN)] == [SWITCHED_OFF]


async def test_missed_due_times_are_told_with_the_fire_that_records_them(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    id = await put(store, "report")
    notice = Notice(NoticeKind.MISSED, "report", NOW, cause="downtime", reason="nobody", schedule="report", count=7)
    fired = await store.schedules.record_fires([plan(id, notices=(notice,))], NOW)
    assert [(change.opened, change.count) for change in fired.told.incidents] == [(True, 7)]
    assert fired.told.owed
    assert [(one.kind, one.data["count"]) for one in await owed(store)] == [("missed", 7)]
    lost = await store.schedules.record_fires([plan(id, notices=(notice,))], NOW)
    assert lost.told == ((), False)


async def test_what_waited_too_long_is_told_as_missed(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    (id,) = await store.runs.insert_runs([new_run(expires_at=NOW - 1)])
    assert (await store.runs.claim_runs(claim())).runs == []
    assert [(one.kind, one.run, one.data["cause"]) for one in await owed(store)] == [
        ("missed", id, WAITED_TOO_LONG.cause)
    ]


async def test_a_finish_that_came_too_late_tells_nothing(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    run = await start(store)
    await store.runs.finish_runs([ended(run)])
    assert (await store.runs.finish_runs([ended(run, at=NOW + 5)])).told == ((), False)
    (incident,) = await incidents(store)
    assert incident.count == 1


async def test_two_nodes_that_fail_at_once_open_one_incident(first: Store, second: Store) -> None:
    await add_channels(first, rule=RULE_KINDS)
    for number in range(10):
        await first.runs.insert_runs([new_run(), new_run()])
        one, other = (await first.runs.claim_runs(claim(room=2))).runs
        ends = [[ended(run, name=f"task{number}")] for run in (one, other)]
        done = await asyncio.gather(first.runs.finish_runs(ends[0]), second.runs.finish_runs(ends[1]))
        assert sum(len(each.told.incidents) for each in done) == 1
    assert [incident.count for incident in await incidents(first)] == [2] * 10
    assert len(await owed(first)) == 10


async def test_nodes_that_fail_and_recover_the_same_subjects_do_not_deadlock(first: Store, second: Store) -> None:
    names = [f"task{number}" for number in range(10)]
    for _ in range(5):
        await first.runs.insert_runs([new_run() for _ in range(40)])
        runs = (await first.runs.claim_runs(claim(room=40))).runs
        ends = [
            ended(run, RunState.FAILED if place % 3 else RunState.SUCCEEDED, name=names[place % 10])
            for place, run in enumerate(runs)
        ]
        async with asyncio.timeout(20):
            await asyncio.gather(first.runs.finish_runs(ends[::2]), second.runs.finish_runs(ends[1::2][::-1]))
    assert {incident.subject for incident in await incidents(first)} <= set(names)


async def test_a_removed_schedule_leaves_no_open_incident(store: Store) -> None:
    (id,) = await put_many(store, [draft("report")])
    notice = Notice(NoticeKind.MISSED, "report", NOW, cause="downtime", schedule="report")
    await store.schedules.record_fires([plan(id, notices=(notice,))], NOW)
    assert await store.schedules.remove_schedule(id, NOW + HOUR)
    (incident,) = await incidents(store)
    assert (incident.state, incident.closed_at) == ("closed", from_micros(NOW + HOUR))
    position = Position(run=0, event=0, audit=0, changed_at=NOW + HOUR, finished_at=NOW)
    (changed,) = (await store.runs.changes_since(position, 10)).incidents
    assert (changed.incident, changed.turned_at) == (incident, from_micros(NOW + HOUR)), "whoever watches sees it"


async def test_what_was_told_goes_after_a_while_and_open_incidents_stay(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    await end(store, cause=Cause.TIMED_OUT, at=NOW + SECOND)
    for one in await owed(store):
        (parcel,) = await store.notifications.claim_deliveries(NodeId("n"), NOW + HOUR, [], 1)
        assert await store.notifications.settle_delivery(
            NodeId("n"), Settled("phone", parcel.key, [each.id for each in parcel.deliveries], NOW + HOUR)
        ), one
    through = PruneCursor(runs_done=True, schedules_done=True)
    await store.upkeep.prune(NOW + DELIVERIES_KEPT + HOUR, through, 100)
    assert await owed(store, None) == []
    await store.upkeep.prune(NOW + INCIDENTS_KEPT + HOUR, through, 100)
    assert [incident.cause for incident in await incidents(store)] == ["timed_out"]
