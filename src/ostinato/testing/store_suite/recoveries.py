"""What people are told of what fails again and recovers: cool-downs, and the order of failures and recoveries."""

from __future__ import annotations

from dataclasses import replace

from ostinato.clock import SECOND, from_micros
from ostinato.models.ids import NodeId
from ostinato.models.incident import LATE, REOPENS_WITHIN, IncidentState, Notice
from ostinato.models.notification import (
    COOL_DOWN,
    RULE_KINDS,
    DeliveryState,
    NoticeKind,
    RuleDraft,
)
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Settled, Store
from ostinato.testing.store_suite.builders import HOUR, NOW, beat, claim, draft, new_run, plan, put_many
from ostinato.testing.store_suite.telling import PHONE, add_channels, end, ended, incidents, owed, send, try_once


async def test_what_fails_again_soon_is_the_same_incident_told_after_its_cool_down(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    await send(store, NOW + SECOND)
    again = await end(store, at=NOW + 2 * SECOND)
    assert [change.opened for change in again.told.incidents] == [True]
    (incident,) = await incidents(store)
    assert (incident.count, incident.reopened, incident.state) == (2, 1, "open")
    (waiting,) = await owed(store)
    assert (waiting.kind, waiting.ready_at) == (NoticeKind.FAILED, from_micros(NOW + SECOND + COOL_DOWN))


async def test_what_recovers_within_its_cool_down_is_told_to_nobody(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    for step in range(4):
        await end(store, at=NOW + 2 * step * SECOND)
        await end(store, RunState.SUCCEEDED, at=NOW + (2 * step + 1) * SECOND)
    assert [one.kind for one in await owed(store)] == ["failed", "recovered"]
    dropped = await owed(store, DeliveryState.DROPPED)
    assert [one.error for one in dropped] == ["it had recovered before it was told again"] * 3
    (incident,) = await incidents(store)
    assert (incident.count, incident.reopened) == (4, 3)


async def test_a_recovery_counts_all_the_incidents_that_it_closes(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store, reason="no such host")
    await store.notifications.put_rule(RuleDraft("mail", RULE_KINDS), NOW)
    for second in (1, 2):
        await end(store, cause=Cause.TIMED_OUT, at=NOW + second * SECOND, reason="took longer than 5m")
    late = Notice(NoticeKind.LATE, "report", NOW, cause=LATE, reason="has not succeeded since yesterday")
    (id,) = await put_many(store, [draft("report")])
    await store.schedules.record_fires([plan(id, notices=(late,))], NOW + 2 * SECOND)
    await end(store, RunState.SUCCEEDED, at=NOW + 3 * SECOND)
    recovered = {one.channel: one for one in await owed(store) if one.kind is NoticeKind.RECOVERED}
    first = min(one.id for one in await incidents(store, IncidentState.CLOSED))
    assert (recovered["phone"].data["count"], recovered["phone"].incident) == (3, first), "what is late failed before"
    assert recovered["phone"].data["reason"] == "no such host; took longer than 5m; has not succeeded since yesterday"
    assert recovered["mail"].data["count"] == 2, "those that it was told of"


async def test_what_fails_again_after_a_long_time_is_a_new_incident(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    await end(store, at=NOW + SECOND + REOPENS_WITHIN)
    assert [(incident.state, incident.count) for incident in await incidents(store)] == [("open", 1), ("closed", 1)]
    assert [one.kind for one in await owed(store)] == ["failed", "recovered", "failed"]


async def test_a_cool_down_holds_for_as_long_as_it_says_though_the_incident_is_a_new_one(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await store.notifications.put_rule(RuleDraft("mail", RULE_KINDS), NOW)
    await store.notifications.put_channel(replace(PHONE, cool_down=6 * HOUR), NOW)
    await end(store)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    await send(store, NOW + SECOND)
    await end(store, at=NOW + 2 * HOUR)
    assert len(await incidents(store)) == 2
    ready = {one.channel: one.ready_at for one in await owed(store)}
    assert ready == {"mail": from_micros(NOW + 2 * HOUR), "phone": from_micros(NOW + SECOND + 6 * HOUR)}
    await end(store, RunState.SUCCEEDED, at=NOW + 3 * HOUR)
    dropped = await owed(store, DeliveryState.DROPPED)
    assert [(one.channel, one.error) for one in dropped] == [("phone", "it had recovered before it was told again")]
    await send(store, NOW + 3 * HOUR)
    await end(store, at=NOW + 9 * HOUR)
    assert {one.channel: one.ready_at for one in await owed(store)} == dict.fromkeys(ready, from_micros(NOW + 9 * HOUR))


async def test_what_comes_and_goes_within_one_batch_is_told_once(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await store.runs.insert_runs([new_run() for _ in range(7)])
    runs = (await store.runs.claim_runs(claim())).runs
    ends = [RunState.FAILED, RunState.SUCCEEDED] * 3 + [RunState.FAILED]
    await store.runs.finish_runs([ended(run, state) for run, state in zip(runs, ends, strict=True)])
    assert [(one.kind, one.run, one.ready_at == one.at) for one in await owed(store)] == [
        ("failed", runs[0].id, True),
        ("recovered", runs[1].id, True),
        ("failed", runs[6].id, False),
    ]


async def test_a_cool_down_counts_from_when_the_channel_was_told(store: Store) -> None:
    """And not from when there was something to tell: its server was away, or it had its quiet hours."""
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    sent_at = NOW + 10 * COOL_DOWN
    await store.notifications.close_incidents("report", NOW, "seen to")
    await send(store, sent_at)
    await end(store, at=sent_at)
    assert [one.ready_at for one in await owed(store)] == [from_micros(sent_at + COOL_DOWN)]


async def test_whom_no_message_reached_is_told_at_once_of_what_comes_back(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await send(store, NOW, error="no such host")
    await store.notifications.close_incidents("report", NOW, "seen to")
    await end(store, at=NOW + SECOND)
    assert [one.ready_at for one in await owed(store)] == [from_micros(NOW + SECOND)]


async def test_a_failure_that_could_not_be_sent_is_told_by_its_recovery(store: Store) -> None:
    """What was tried less goes first: the last that a person heard would be that it fails."""
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, at=NOW + SECOND)
    await try_once(store, NOW + SECOND, error="no such host")
    await end(store, RunState.SUCCEEDED, at=NOW + 2 * SECOND)
    (recovered,) = await owed(store)
    assert (recovered.kind, recovered.data["count"]) == (NoticeKind.RECOVERED, 2)
    (dropped,) = await owed(store, DeliveryState.DROPPED)
    assert (dropped.kind, dropped.error) == (NoticeKind.FAILED, "it had recovered before it could be sent")


async def test_a_failure_whose_try_ends_after_its_recovery_is_told_by_that(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await end(store, cause=Cause.TIMED_OUT)
    await store.nodes.renew(beat("n"))
    (parcel,) = await store.notifications.claim_deliveries(NodeId("n"), NOW, [], 10)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    assert [one.kind for one in await owed(store, DeliveryState.SENDING)] == ["failed"], "it may have arrived"
    ids = [one.id for one in parcel.deliveries]
    lost = Settled("phone", parcel.key, ids, NOW + SECOND, "no answer", NOW + SECOND)
    assert await store.notifications.settle_delivery(NodeId("n"), lost)
    assert [one.id for one in await owed(store, DeliveryState.DROPPED)] == ids
    assert [one.kind for one in await owed(store)] == ["failed", "recovered"]
    await try_once(store, NOW + SECOND, error="no answer")  # that of the other cause
    assert [one.kind for one in await owed(store)] == ["recovered"]


async def test_what_was_tried_as_one_message_keeps_its_failures(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    for name in ("a", "b"):
        await end(store, name=name)
        await end(store, RunState.SUCCEEDED, name=name, at=NOW + SECOND)
    said = [("a", "failed"), ("a", "recovered"), ("b", "failed"), ("b", "recovered")]
    assert await try_once(store, NOW + SECOND, error="no such host") == said
    assert await try_once(store, NOW + SECOND) == said


async def test_a_failure_that_could_not_be_sent_stays_owed_to_whoever_does_not_hear_of_recoveries(store: Store) -> None:
    await add_channels(store, rule=frozenset({NoticeKind.FAILED}))
    await end(store)
    await try_once(store, NOW, error="no such host")
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    assert [one.kind for one in await owed(store)] == ["failed"]


async def test_a_recovery_waits_for_the_failure_that_it_is_about(store: Store) -> None:
    """A failure that waits for the end of quiet hours, though these were taken away meanwhile."""
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await store.nodes.renew(beat("n"))
    (parcel,) = await store.notifications.claim_deliveries(NodeId("n"), NOW, [], 10)
    assert await store.notifications.postpone_deliveries(NodeId("n"), parcel, NOW + HOUR)
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    assert [(one.kind, one.ready_at) for one in await owed(store)] == [
        ("failed", from_micros(NOW + HOUR)),
        ("recovered", from_micros(NOW + HOUR)),
    ]


async def test_whom_no_message_reached_is_not_told_that_it_is_over(store: Store) -> None:
    await add_channels(store, rule=RULE_KINDS)
    await end(store)
    await send(store, NOW, error="no such host")
    await end(store, RunState.SUCCEEDED, at=NOW + SECOND)
    assert await owed(store) == []


async def test_whoever_wants_every_run_is_told_of_one_that_fails_again_within_its_cool_down(store: Store) -> None:
    await add_channels(store, rule=frozenset({NoticeKind.RUN, NoticeKind.FAILED}))
    for step, state in enumerate([RunState.FAILED, RunState.SUCCEEDED] * 2):
        await end(store, state, at=NOW + 10 * step * SECOND)
    assert [one.kind for one in await owed(store)] == ["failed", "succeeded"] * 2
    assert await owed(store, DeliveryState.DROPPED) == []
