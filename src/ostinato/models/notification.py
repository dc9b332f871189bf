"""Who is told of what: channels, rules, and deliveries, one for each message that a channel is owed.

A notice (`models/incident.py`) is made where something is recorded, matched with rules and with the `notify` of
policies, and becomes deliveries in the same transaction. `notifications/` sends them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ostinato.clock import SECOND, Micros
from ostinato.errors import InvalidInput
from ostinato.models.ids import DeliveryId, IncidentId, RuleId, RunId

__all__ = [
    "COOL_DOWN",
    "JOINED_FROM",
    "MESSAGES_A_MINUTE",
    "NOTIFY_KINDS",
    "RULE_KINDS",
    "SELECTABLE",
    "UNJOINED",
    "URGENT",
    "Channel",
    "ChannelDraft",
    "Delivery",
    "DeliveryFilter",
    "DeliveryState",
    "NoticeKind",
    "NotificationCounts",
    "Rule",
    "RuleDraft",
    "Subscription",
    "Wait",
    "WaitReason",
    "check_channel",
    "known_kind",
    "known_kinds",
    "parse_kinds",
    "parse_subscription",
]

COOL_DOWN: Micros = 15 * 60 * SECOND
"""How long a channel hears nothing more of trouble that ends and comes back."""


class NoticeKind(StrEnum):
    """What a message is about."""

    FAILED = "failed"
    """A run failed, after its last attempt, or succeeded with errors."""
    BROKEN = "broken"
    """A schedule was switched off: its breaker tripped, or its timing cannot be computed."""
    RECOVERED = "recovered"
    """An incident is over."""
    MISSED = "missed"
    """Due times that nobody ran, or that waited too long."""
    LATE = "late"
    """It has not succeeded, or not checked in, when it should have."""
    SUCCEEDED = "succeeded"
    RUN = "run"
    """Any end of a run."""
    ANSWER = "answer"
    """What a run says, back to the chat that asked for it."""
    DIGEST = "digest"
    """What became of everything since the last one."""
    TEST = "test"


SELECTABLE = (
    NoticeKind.FAILED,
    NoticeKind.BROKEN,
    NoticeKind.RECOVERED,
    NoticeKind.MISSED,
    NoticeKind.LATE,
    NoticeKind.SUCCEEDED,
    NoticeKind.RUN,
)
"""What people choose from."""
NOTIFY_KINDS = frozenset({NoticeKind.SUCCEEDED, NoticeKind.FAILED, NoticeKind.BROKEN})
"""What a channel is told that a schedule names without saying of what."""
RULE_KINDS = frozenset({NoticeKind.FAILED, NoticeKind.BROKEN, NoticeKind.RECOVERED, NoticeKind.MISSED, NoticeKind.LATE})
"""What a rule tells that does not say of what."""

JOINED_FROM = 4
"""So many notices that wait for a channel become one message."""
MESSAGES_A_MINUTE = 10
"""More than these a channel does not get: what there is besides waits, and is joined."""
UNJOINED = frozenset({NoticeKind.ANSWER, NoticeKind.TEST, NoticeKind.DIGEST})
"""Each is a message of its own, and counts towards no limit."""
URGENT = frozenset({NoticeKind.ANSWER, NoticeKind.TEST})
"""Somebody waits for these: neither quiet hours nor a digest holds them back."""

_CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}|telegram:-?\d{1,20}")


@dataclass(frozen=True, slots=True)
class ChannelDraft:
    """A channel to add, or to change: a named way to reach people."""

    name: str
    url: str
    """As it was given: an apprise URL, `telegram://CHAT`, or a reference, `env:NAME` or `file:PATH`. A secret."""
    note: str | None = None
    quiet: str | None = None
    """Hours in which nothing is sent: `22:00-07:00`, in its zone."""
    digest: str | None = None
    """The text of a timing: what there is to tell is kept until then, and sent as one message."""
    zone: str = "UTC"
    cool_down: Micros = COOL_DOWN


@dataclass(frozen=True, slots=True)
class Channel(ChannelDraft):
    """A channel, and how it fares."""

    created_at: Micros = 0
    retry_at: Micros = 0
    """Nothing is sent before: the last try failed."""
    failures: int = 0
    """How many tries in a row failed."""
    error: str | None = None
    """Why the last one did."""
    sent_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """What a channel is told, of one project or of all."""

    id: RuleId
    channel: str
    kinds: frozenset[NoticeKind]
    project: str | None
    """None: of all."""
    digest: str | None = None
    """The text of a timing: a summary of all runs in its scope is sent at these times."""
    zone: str = "UTC"
    digest_at: Micros | None = None
    """When the next summary is due."""
    created_at: Micros = 0
    told_at: Micros = 0
    """Up to when it was told: there the next summary begins."""


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A rule to add; the one of the same channel and project is replaced."""

    channel: str
    kinds: frozenset[NoticeKind]
    project: str | None = None
    digest: str | None = None
    zone: str = "UTC"
    digest_at: Micros | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A channel, and of what it is told: an entry of a policy's `notify`."""

    channel: str
    kinds: frozenset[NoticeKind]

    @property
    def text(self) -> str:
        """As it is written."""
        if self.kinds == NOTIFY_KINDS:
            return self.channel
        return f"{self.channel}={'+'.join(kind for kind in NoticeKind if kind in self.kinds)}"


class DeliveryState(StrEnum):
    """What has become of a delivery."""

    PENDING = "pending"
    SENDING = "sending"
    """A node has it: sent, or about to be."""
    SENT = "sent"
    FAILED = "failed"
    """Tried as often as it is worth."""
    DROPPED = "dropped"
    """Not sent: there was nothing to tell any more, or nobody who may be told."""


class WaitReason(StrEnum):
    """Why a delivery is not sent yet."""

    NO_NODE = "no_node"
    FAILURE = "failure"
    COOL_DOWN = "cool_down"
    QUIET_HOURS = "quiet_hours"
    DIGEST = "digest"
    LIMIT = "limit"
    BUSY = "busy"


_WAITS = {
    WaitReason.NO_NODE: "no engine is running",
    WaitReason.FAILURE: "the last try failed",
    WaitReason.COOL_DOWN: "cool-down of its incident",
    WaitReason.QUIET_HOURS: "quiet hours",
    WaitReason.DIGEST: "digest of the channel",
    WaitReason.LIMIT: f"{MESSAGES_A_MINUTE} messages a minute",
    WaitReason.BUSY: "another message is on its way",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a delivery is not sent yet, and until when."""

    reason: WaitReason
    until: datetime | None = None
    """null: nobody knows."""
    text: str = ""
    """The reason for people."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _WAITS[self.reason])


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notice for one channel."""

    id: DeliveryId
    key: str
    """In the message, the same in every try: whoever gets one twice can tell."""
    at: datetime
    channel: str
    kind: NoticeKind
    subject: str
    state: DeliveryState
    ready_at: datetime
    attempts: int
    incident: IncidentId | None = None
    run: RunId | None = None
    schedule: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """What is told besides, as it was then: cause, reason, count, due time."""
    message: str | None = None
    """The key of the message that it went with: the first delivery's of those that were sent together."""
    node: str | None = None
    sent_at: datetime | None = None
    error: str | None = None
    tried_at: datetime | None = None
    """When it was tried for the first time."""
    waits: Wait | None = None
    """Why it is not sent yet, and until when; null if it is about to be, or is through."""


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries to list, newest first."""

    channel: str | None = None
    state: DeliveryState | None = None
    incident: IncidentId | None = None
    before_id: DeliveryId | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class NotificationCounts:
    """For metrics: open incidents by kind, and deliveries that are not through, by channel and state."""

    incidents: Mapping[str, int]
    deliveries: Mapping[tuple[str, str], int]


def known_kind(name: str) -> NoticeKind:
    """A stored kind; one of a newer version is about some run."""
    return _BY_NAME.get(name, NoticeKind.RUN)


def known_kinds(names: Iterable[str]) -> frozenset[NoticeKind]:
    """Stored kinds; one that this version does not know is nobody's business here."""
    return frozenset(_BY_NAME[name] for name in names if name in _BY_NAME)


_BY_NAME = {str(kind): kind for kind in NoticeKind}


def check_channel(name: Any) -> str:
    """The name of a channel; InvalidInput if it cannot be one."""
    if not isinstance(name, str) or not _CHANNEL.fullmatch(name):
        raise InvalidInput(
            f"a channel cannot be called {name!r}",
            field="name",
            hint="give letters, digits, dots, dashes and underscores, such as phone or ops-mail",
        )
    return name


def parse_kinds(given: str | Iterable[str], field: str = "on") -> frozenset[NoticeKind]:
    """Kinds by their names, separated by commas or plus signs; InvalidInput for one that there is not."""
    names = [part.strip() for part in re.split(r"[,+]", given)] if isinstance(given, str) else list(given)
    kinds = set()
    for name in names:
        if name not in (*SELECTABLE, NoticeKind.ANSWER):
            raise InvalidInput(f"there is no kind of notice {name!r}", field=field, hint=f"use {', '.join(SELECTABLE)}")
        kinds.add(NoticeKind(name))
    return frozenset(kinds)


def parse_subscription(entry: str) -> Subscription:
    """`phone`, or `phone=failed+missed`."""
    channel, separator, kinds = entry.partition("=")
    try:
        given = parse_kinds(kinds, "notify") if separator else NOTIFY_KINDS
        if NoticeKind.ANSWER in given and not channel.startswith("telegram:"):
            raise InvalidInput("only a chat gets answers", field="notify")  # which no limit holds back
        return Subscription(check_channel(channel), given)
    except InvalidInput as error:
        hint = f"write phone, or phone=failed+missed, of {', '.join(SELECTABLE)}"
        raise InvalidInput(f"notify cannot have {entry!r}: {error}", field="notify", hint=hint) from None
