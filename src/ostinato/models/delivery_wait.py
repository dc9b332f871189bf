"""Why a delivery waits and until when, pure: the same rules by which the store claims and the sender holds back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ostinato.clock import Micros, from_micros
from ostinato.errors import OstinatoError
from ostinato.models.notification import (
    MESSAGES_A_MINUTE,
    UNJOINED,
    Channel,
    Delivery,
    DeliveryState,
    NoticeKind,
    Wait,
    WaitReason,
)
from ostinato.models.quiet import held_until, parse_quiet

__all__ = ["AGAIN", "MINUTE", "ChannelNow", "wait_of"]

AGAIN = "again"
"""Marks a delivery that waits for the end of a cool-down: if its incident closes before, nobody is told."""
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ChannelNow:
    """A channel, and what else decides when it gets its next message."""

    channel: Channel | None
    """None: it was removed, and the delivery is about to be dropped."""
    is_served: bool = True
    """Whether a node runs that sends."""
    is_busy: bool = False
    """Whether a message is on its way."""
    sent: Sequence[Micros] = ()
    """When it got each message of the last minute."""


def wait_of(delivery: Delivery, now_of: ChannelNow, now: datetime) -> Wait | None:
    """Why it is not sent now; None if it is about to be, or is through."""
    channel = now_of.channel
    if delivery.state is not DeliveryState.PENDING or channel is None:
        return None
    if not now_of.is_served:
        return Wait(WaitReason.NO_NODE)
    retry_at = from_micros(channel.retry_at)
    if retry_at > now and delivery.kind is not NoticeKind.TEST:
        return Wait(WaitReason.FAILURE, retry_at)
    if delivery.ready_at > now and AGAIN in delivery.data:
        return Wait(WaitReason.COOL_DOWN, delivery.ready_at)
    until = max(delivery.ready_at, _held(channel, delivery, now) or now)
    if until > now:
        return Wait(_why_held(channel, until), until)
    if now_of.is_busy:
        return Wait(WaitReason.BUSY)
    if len(now_of.sent) >= MESSAGES_A_MINUTE and delivery.kind not in UNJOINED:
        return Wait(WaitReason.LIMIT, from_micros(sorted(now_of.sent)[-MESSAGES_A_MINUTE]) + MINUTE)
    return None


def _held(channel: Channel, delivery: Delivery, now: datetime) -> datetime | None:
    try:
        return held_until(channel, delivery.kind, delivery.at, now)
    except OstinatoError:  # hours that cannot be read hold nothing back
        return None


def _why_held(channel: Channel, until: datetime) -> WaitReason:
    """Quiet hours, if it is their end; else the time of the digest."""
    before = until - timedelta(microseconds=1)
    try:
        ends = None if channel.quiet is None else parse_quiet(channel.quiet).until(channel.zone, before)
    except OstinatoError:
        ends = None
    return WaitReason.DIGEST if channel.digest is not None and ends != until else WaitReason.QUIET_HOURS
