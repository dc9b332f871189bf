"""Deliveries: claimed by one node, joined where there are many, settled once; and summaries that one node makes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.ids import NodeId
from ostinato.models.notification import (
    JOINED_FROM,
    MESSAGES_A_MINUTE,
    ChannelDraft,
    Delivery,
    DeliveryFilter,
    DeliveryState,
    NoticeKind,
    Rule,
    RuleDraft,
)
from ostinato.models.states import RunState
from ostinato.stores.base import Parcel, Settled, Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, beat, claim, finish, new_run

NODE, OTHER = NodeId("node-1"), NodeId("node-2")


async def channel(store: Store, name: str = "phone", digest: str | None = None) -> None:
    draft = ChannelDraft(name, "json://hooks.example.org", digest=digest)
    await store.notifications.put_channel(draft, NOW)


async def owe(
    store: Store, count: int = 1, to: str = "phone", kind: NoticeKind = NoticeKind.FAILED, now: Micros = NOW
) -> list[Delivery]:
    return [await store.notifications.add_delivery(to, kind, f"job-{n}", {}, now) for n in range(count)]


async def claimed(store: Store, node: NodeId = NODE, now: Micros = NOW, busy: Sequence[str] = ()) -> list[Parcel]:
    return await store.notifications.claim_deliveries(node, now, busy, 100)


async def claimed_one(store: Store, node: NodeId = NODE, now: Micros = NOW) -> Parcel:
    (parcel,) = await claimed(store, node, now)
    return parcel


def settled(parcel: Parcel, at: Micros = NOW, error: str | None = None, retry_at: Micros | None = None) -> Settled:
    return Settled(parcel.name, parcel.key, [one.id for one in parcel.deliveries], at, error, retry_at)


async def states(store: Store) -> list[DeliveryState]:
    return [one.state for one in await store.notifications.list_deliveries(DeliveryFilter())]


async def test_a_delivery_is_claimed_once_and_settled_once(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    (owed,) = await owe(store)
    assert (await store.notifications.interests()).next_at == NOW
    parcel = await claimed_one(store)
    assert (parcel.key, parcel.name, parcel.resent) == (owed.key, "phone", False)
    assert [one.id for one in parcel.deliveries] == [owed.id]
    assert await claimed(store, OTHER) == []
    assert (await store.notifications.interests()).next_at is None
    assert not await store.notifications.settle_delivery(OTHER, settled(parcel))
    assert await store.notifications.settle_delivery(NODE, settled(parcel, NOW + 1))
    assert not await store.notifications.settle_delivery(NODE, settled(parcel, NOW + 2))
    (listed,) = await store.notifications.list_deliveries(DeliveryFilter())
    assert (listed.state, listed.attempts, listed.node, listed.message) == (DeliveryState.SENT, 1, None, owed.key)
    (told,) = await store.notifications.list_channels()
    assert (told.sent_at, told.failures, told.error) == (NOW + 1, 0, None)


async def test_two_nodes_never_claim_the_same_delivery(first: Store, second: Store) -> None:
    await first.nodes.renew(beat(NODE))
    await first.nodes.renew(beat(OTHER))
    names = [f"channel-{n}" for n in range(8)]
    for name in names:
        await channel(first, name)
        await owe(first, 2, name)
    both = await asyncio.gather(claimed(first, NODE), claimed(second, OTHER))
    found = sorted(parcel.name for parcels in both for parcel in parcels)
    assert found == names


async def test_a_channel_gets_one_message_after_the_other(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    first, second = await owe(store, 2)
    parcel = await claimed_one(store)
    assert parcel.key == first.key
    assert await claimed(store, busy=["phone"]) == []
    await store.notifications.settle_delivery(NODE, settled(parcel))
    assert (await claimed_one(store)).key == second.key


async def test_what_goes_to_a_channel_first_is_found_however_much_waits(store: Store) -> None:
    await channel(store)
    (early,) = await owe(store)
    (answer,) = await owe(store, kind=NoticeKind.ANSWER, now=NOW + MINUTE)
    (late, *_, last) = await owe(store, 60, now=NOW + HOUR)
    await owe(store, to="mail")
    assert [one.id for one in await store.notifications.first_deliveries("phone")] == [early.id, answer.id]
    (parcel,) = await claimed(store, busy=["mail"])
    assert await store.notifications.settle_delivery(NODE, settled(parcel))
    first = await store.notifications.first_deliveries("phone")
    assert [(one.id, one.ready_at) for one in first] == [
        (answer.id, from_micros(NOW + MINUTE)),
        (late.id, from_micros(NOW + HOUR)),
    ]
    assert last.id not in {one.id for one in first}


async def test_many_that_wait_become_one_message(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    owed = await owe(store, JOINED_FROM)
    parcel = await claimed_one(store)
    assert parcel.key == owed[0].key
    assert [one.id for one in parcel.deliveries] == [one.id for one in owed]
    await store.notifications.settle_delivery(NODE, settled(parcel))
    assert await states(store) == [DeliveryState.SENT] * JOINED_FROM


async def test_an_answer_is_never_joined_and_goes_first(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store, JOINED_FROM)
    (answer,) = await owe(store, kind=NoticeKind.ANSWER)
    parcel = await claimed_one(store)
    assert [one.id for one in parcel.deliveries] == [answer.id]


async def test_what_is_a_message_of_its_own_goes_before_however_many_wait(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store, 101)
    wanted = [(await owe(store, kind=kind))[0].id for kind in (NoticeKind.ANSWER, NoticeKind.TEST, NoticeKind.DIGEST)]
    for id in wanted:
        parcel = await claimed_one(store)
        assert [one.id for one in parcel.deliveries] == [id]
        await store.notifications.settle_delivery(NODE, settled(parcel))
    assert len((await claimed_one(store)).deliveries) == 100


async def test_an_answer_that_its_server_never_takes_is_in_nobodys_way(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    (answer,) = await owe(store, kind=NoticeKind.ANSWER)
    refused = await claimed_one(store)
    await store.notifications.settle_delivery(NODE, settled(refused, NOW, "HTTP 400", NOW + SECOND))
    (failed,) = await owe(store)
    other = await claimed_one(store, now=NOW + SECOND)
    assert other.key == failed.key
    await store.notifications.settle_delivery(NODE, settled(other, NOW + SECOND))
    assert (await claimed_one(store, now=NOW + SECOND)).key == answer.key


async def test_it_is_known_when_a_message_was_tried_first(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store)
    first = await claimed_one(store, now=NOW + HOUR)
    assert [one.tried_at for one in first.deliveries] == [None]
    await store.notifications.settle_delivery(NODE, settled(first, NOW + HOUR, "HTTP 500", NOW + 2 * HOUR))
    second = await claimed_one(store, now=NOW + 2 * HOUR)
    assert [one.tried_at for one in second.deliveries] == [from_micros(NOW + HOUR)]
    await store.notifications.settle_delivery(NODE, settled(second, NOW + 2 * HOUR))
    (sent,) = await store.notifications.list_deliveries(DeliveryFilter())
    assert sent.tried_at == from_micros(NOW + HOUR)


async def test_what_was_tried_together_is_tried_together_again_under_the_same_key(store: Store) -> None:
    """Whoever got it, though the answer was lost, knows by its key that he has all of it."""
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store, JOINED_FROM)
    before = await claimed_one(store)
    await store.notifications.settle_delivery(NODE, settled(before, NOW, "no answer", NOW + SECOND))
    await owe(store, JOINED_FROM, now=NOW + SECOND)
    assert await claimed(store, now=NOW) == []
    newer = await claimed_one(store, now=NOW + SECOND)
    assert {one.attempts for one in newer.deliveries} == {0}
    await store.notifications.settle_delivery(NODE, settled(newer, NOW + SECOND))
    again = await claimed_one(store, now=NOW + SECOND)
    assert (again.key, again.resent) == (before.key, False)
    assert [one.id for one in again.deliveries] == [one.id for one in before.deliveries]


async def test_a_failed_try_holds_up_its_channel_and_no_other(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    for name in ("mail", "phone"):
        await channel(store, name)
        await owe(store, 1, name)
    mail, phone = sorted(await claimed(store), key=lambda parcel: parcel.name)
    await store.notifications.settle_delivery(NODE, settled(mail, NOW, "HTTP 500", NOW + 5 * SECOND))
    await store.notifications.settle_delivery(NODE, settled(phone))
    await owe(store, 1, "mail")
    await owe(store, 1, "phone")
    assert [parcel.name for parcel in await claimed(store)] == ["phone"]
    (told,) = await store.notifications.list_channels(["mail"])
    assert (told.failures, told.error, told.retry_at) == (1, "HTTP 500", NOW + 5 * SECOND)
    assert (await store.notifications.interests()).next_at == NOW + 5 * SECOND
    later = await claimed(store, now=NOW + 5 * SECOND, busy=["phone"])
    assert [parcel.name for parcel in later] == ["mail"]


async def test_a_test_does_not_wait_until_its_channel_is_tried_again(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store)
    await store.notifications.settle_delivery(NODE, settled(await claimed_one(store), NOW, "HTTP 500", NOW + HOUR))
    await owe(store, kind=NoticeKind.ANSWER)
    (test,) = await owe(store, kind=NoticeKind.TEST)
    assert (await store.notifications.interests()).next_at == NOW
    parcel = await claimed_one(store)
    assert parcel.key == test.key
    await store.notifications.settle_delivery(NODE, settled(parcel, NOW, "HTTP 500"))
    assert await claimed(store) == []
    assert (await store.notifications.interests()).next_at == NOW + HOUR


async def test_a_changed_channel_is_tried_at_once(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store)
    parcel = await claimed_one(store)
    await store.notifications.settle_delivery(NODE, settled(parcel, NOW, "no such host", NOW + HOUR))
    assert await claimed(store) == []
    await channel(store)
    assert (await claimed_one(store)).key == parcel.key


async def test_what_is_not_worth_another_try_has_failed(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store)
    await store.notifications.settle_delivery(NODE, settled(await claimed_one(store), NOW, "HTTP 410"))
    (listed,) = await store.notifications.list_deliveries(DeliveryFilter(state=DeliveryState.FAILED))
    assert (listed.error, listed.attempts, listed.sent_at) == ("HTTP 410", 1, None)
    assert (await store.notifications.interests()).next_at is None


async def test_what_a_lost_node_was_sending_is_taken_over_as_it_was(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await store.nodes.renew(beat(OTHER, now=NOW + MINUTE))
    await channel(store)
    owed = await owe(store, JOINED_FROM)
    before = await claimed_one(store)
    await owe(store, JOINED_FROM)
    assert await claimed(store, OTHER, NOW + MINUTE) == []
    assert (await store.notifications.interests()).next_at is None
    await store.runs.stale_runs([(NODE, NOW)], NOW + MINUTE)
    assert (await store.notifications.interests()).next_at == NOW
    assert await claimed(store, OTHER, NOW + MINUTE, busy=["phone"]) == []
    taken = await claimed_one(store, OTHER, NOW + MINUTE)
    assert (taken.key, taken.resent) == (before.key, True)
    assert [one.id for one in taken.deliveries] == [one.id for one in owed]
    assert not await store.notifications.settle_delivery(NODE, settled(before))
    assert await store.notifications.settle_delivery(OTHER, settled(taken))


async def test_a_node_that_left_has_its_parcels_taken_over(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await store.nodes.renew(beat(OTHER))
    await channel(store)
    await owe(store)
    await claimed_one(store)
    await store.nodes.leave(NODE)
    assert (await claimed_one(store, OTHER)).resent


async def test_no_channel_gets_more_than_its_messages_a_minute(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    for _ in range(MESSAGES_A_MINUTE):
        await owe(store)
        await store.notifications.settle_delivery(NODE, settled(await claimed_one(store)))
    await owe(store, 3)
    assert await claimed(store, now=NOW + MINUTE - 1) == []
    assert await store.notifications.recent_messages("phone", NOW - 1) == [NOW] * MESSAGES_A_MINUTE
    assert await store.notifications.recent_messages("phone", NOW) == []
    assert await store.notifications.recent_messages("mail", NOW - 1) == []
    (answer,) = await owe(store, kind=NoticeKind.ANSWER)
    urgent = await claimed_one(store)
    assert urgent.key == answer.key
    await store.notifications.settle_delivery(NODE, settled(urgent))
    assert len(await store.notifications.recent_messages("phone", NOW - 1)) == MESSAGES_A_MINUTE
    assert len((await claimed_one(store, now=NOW + MINUTE)).deliveries) == 1


async def test_a_parcel_that_is_postponed_comes_back_untried_with_all_that_may_wait(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store, digest="daily 08:00")
    await owe(store)
    parcel = await claimed_one(store)
    await owe(store)
    assert not await store.notifications.postpone_deliveries(OTHER, parcel, NOW + HOUR)
    assert await store.notifications.postpone_deliveries(NODE, parcel, NOW + HOUR)
    assert await claimed(store) == []
    assert (await store.notifications.interests()).next_at == NOW + HOUR
    (test,) = await owe(store, kind=NoticeKind.TEST)
    assert (await claimed_one(store)).key == test.key
    await store.notifications.settle_delivery(NODE, settled(await _sending(store)))
    later = await claimed_one(store, now=NOW + HOUR)
    assert [one.attempts for one in later.deliveries] == [0, 0], "a digest joins however few there are"


async def _sending(store: Store) -> Parcel:
    found = await store.notifications.list_deliveries(DeliveryFilter(state=DeliveryState.SENDING))
    return Parcel(None, found[0].channel, found[0].key, found)


async def test_what_is_owed_to_a_removed_channel_is_dropped(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store, 2)
    parcel = await claimed_one(store)
    assert await store.notifications.remove_channel("phone")
    assert await states(store) == [DeliveryState.DROPPED, DeliveryState.SENDING]
    dropped = Settled("phone", parcel.key, [parcel.deliveries[0].id], NOW, "its channel was removed", dropped=True)
    assert await store.notifications.settle_delivery(NODE, dropped)
    assert await states(store) == [DeliveryState.DROPPED] * 2


async def test_counts_say_what_is_owed_to_each_channel(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await channel(store)
    await owe(store, 3)
    await claimed_one(store)
    counts = await store.notifications.counts()
    assert counts.deliveries == {("phone", "pending"): 2, ("phone", "sending"): 1}


async def _digest_rule(store: Store, project: str | None = None) -> Rule:
    kinds = frozenset({NoticeKind.FAILED})
    await store.notifications.put_rule(RuleDraft("phone", kinds, project, "daily 08:00", "UTC", NOW + HOUR), NOW)
    (rule,) = await store.notifications.list_rules()
    return rule


async def test_a_summary_is_made_once_over_all_nodes(first: Store, second: Store) -> None:
    await channel(first)
    rule = await _digest_rule(first)
    assert rule.told_at == NOW
    assert (await first.notifications.interests()).next_at == NOW + HOUR
    made = await asyncio.gather(
        *(store.notifications.owe_digest(rule, NOW + 2 * HOUR, NOW + HOUR) for store in (first, second))
    )
    assert sorted(made) == [False, True]
    (owed,) = await first.notifications.list_deliveries(DeliveryFilter())
    assert (owed.kind, owed.channel, owed.data["since"]) == (NoticeKind.DIGEST, "phone", NOW)
    (moved,) = await first.notifications.list_rules()
    assert (moved.digest_at, moved.told_at) == (NOW + 2 * HOUR, NOW + HOUR)


async def test_a_summary_counts_what_ended_in_its_scope_since_the_last_one(store: Store) -> None:
    await store.nodes.renew(beat(NODE))
    await store.projects.put_project("shop", "/srv/shop", {}, NOW)
    await channel(store)
    rule = await _digest_rule(store, "shop")
    runs = [new_run(project=project) for project in ("shop", "shop", "shop", None)]
    await store.runs.insert_runs(runs)
    taken = (await store.runs.claim_runs(claim())).runs
    ends = [(RunState.SUCCEEDED, 1), (RunState.FAILED, 2), (RunState.FAILED, -1), (RunState.FAILED, 3)]
    await store.runs.finish_runs(
        [finish(run, state=state, finished_at=NOW + at) for run, (state, at) in zip(taken, ends, strict=True)]
    )
    assert await store.notifications.owe_digest(rule, None, NOW + HOUR)
    (owed,) = await store.notifications.list_deliveries(DeliveryFilter())
    assert owed.data["states"] == {"succeeded": 1, "failed": 1}
    assert owed.data["failed"] == [["report", 1]]
