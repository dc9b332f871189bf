"""Why a message waits, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ostinato.clock import to_micros
from ostinato.models.delivery_wait import ChannelNow, wait_of
from ostinato.models.ids import DeliveryId
from ostinato.models.notification import Channel, Delivery, DeliveryState, NoticeKind, Wait, WaitReason

NOW = datetime(2026, 11, 18, 23, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DELIVERY = Delivery(
    DeliveryId(1),
    "4f2a9c77",
    NOW,
    "phone",
    NoticeKind.FAILED,
    "nightly",
    DeliveryState.PENDING,
    ready_at=NOW,
    attempts=0,
)
PHONE = Channel("phone", "json://example.org")
FREE = ChannelNow(PHONE)


def waits(now: ChannelNow, **fields: object) -> tuple[str, datetime | None] | None:
    found = wait_of(replace(DELIVERY, **fields), now, NOW)  # type: ignore[arg-type]
    return None if found is None else (found.reason, found.until)


def on(**fields: object) -> ChannelNow:
    return replace(FREE, channel=replace(PHONE, **fields))  # type: ignore[arg-type]


def test_what_is_about_to_be_sent_or_is_through_waits_for_nothing() -> None:
    assert waits(FREE) is None
    for state in set(DeliveryState) - {DeliveryState.PENDING}:
        assert waits(replace(FREE, is_served=False), state=state) is None
    assert waits(replace(FREE, channel=None)) is None


def test_without_a_node_it_waits_for_one_whatever_else_there_is() -> None:
    assert waits(replace(on(quiet="22:00-07:00"), is_served=False)) == ("no_node", None)


def test_a_channel_that_failed_rests_but_for_a_test() -> None:
    resting = on(retry_at=to_micros(NOW + HOUR), failures=2, error="refused")
    assert waits(resting) == ("failure", NOW + HOUR)
    assert waits(resting, kind=NoticeKind.TEST) is None
    assert waits(on(retry_at=to_micros(NOW - HOUR))) is None


def test_a_cool_down_is_told_by_its_mark() -> None:
    assert waits(FREE, ready_at=NOW + HOUR, data={"again": True}) == ("cool_down", NOW + HOUR)


@pytest.mark.parametrize("is_held", [True, False])
def test_quiet_hours_and_digests_are_told_before_and_after_they_hold_it_back(is_held: bool) -> None:
    morning = datetime(2026, 11, 19, 7, 0, tzinfo=UTC)
    ready = {"ready_at": morning} if is_held else {}
    assert waits(on(quiet="22:00-07:00"), **ready) == ("quiet_hours", morning)
    assert waits(on(quiet="22:00-07:00", digest="daily 06:00"), **ready) == ("quiet_hours", morning)
    ready = {"ready_at": morning + HOUR} if is_held else {}
    assert waits(on(digest="daily 08:00"), **ready) == ("digest", morning + HOUR)
    assert waits(on(quiet="22:00-07:00", digest="daily 08:00"), **ready) == ("digest", morning + HOUR)
    assert waits(on(quiet="22:00-07:00"), kind=NoticeKind.ANSWER) is None


def test_ten_messages_a_minute_are_the_most() -> None:
    sent = [to_micros(NOW - timedelta(seconds=seconds)) for seconds in range(40, 50)]
    assert waits(replace(FREE, sent=sent)) == ("limit", NOW + timedelta(seconds=11))
    assert waits(replace(FREE, sent=sent[1:])) is None
    assert waits(replace(FREE, sent=sent), kind=NoticeKind.TEST) is None


def test_one_message_goes_after_the_other() -> None:
    assert waits(replace(FREE, is_busy=True)) == ("busy", None)


def test_every_reason_has_a_sentence() -> None:
    assert {Wait(reason).text for reason in WaitReason} >= {"quiet hours"}
