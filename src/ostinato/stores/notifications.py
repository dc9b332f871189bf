"""Channels, rules, incidents and deliveries, as the other layers ask for them: a part of base.py, answered in
sql/notifications.py.

Incidents and most deliveries are not written by calls of this page, but with what they tell: see `finish_runs` and
`record_fires`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ostinato.clock import Micros
from ostinato.models.ids import DeliveryId, IncidentId, NodeId, RuleId, RunId
from ostinato.models.incident import Incident, IncidentChange, IncidentFilter, Interests, RepeatedRun
from ostinato.models.notification import (
    Channel,
    ChannelDraft,
    Delivery,
    DeliveryFilter,
    NotificationCounts,
    Rule,
    RuleDraft,
)

__all__ = ["NotificationStore", "Parcel", "Settled"]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Deliveries that go to one channel as one message, claimed by a node."""

    channel: Channel | None
    """None if it was removed meanwhile."""
    name: str
    key: str
    """The same in every try of these: the key of the first of them."""
    deliveries: Sequence[Delivery]
    resent: bool = False
    """Whether a node that is gone may have sent it."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a parcel."""

    channel: str
    key: str
    deliveries: Sequence[DeliveryId]
    at: Micros
    error: str | None = None
    """None if it was sent."""
    retry_at: Micros | None = None
    """When it is tried again, and not before that anything else of its channel; None if it is not."""
    dropped: bool = False
    """There was nothing to tell any more, or nobody who may be told: neither sent nor failed, and `error` says why."""


class NotificationStore(Protocol):
    """Who is told, and what became of it."""

    async def put_channel(self, draft: ChannelDraft, now: Micros) -> bool:
        """Add a channel, or change the one of this name; says whether it is new. A changed one is tried at once."""
        ...

    async def remove_channel(self, name: str) -> bool:
        """Delete it with its rules; what was still to be sent there is dropped. False if there is none."""
        ...

    async def list_channels(self, names: Sequence[str] | None = None) -> list[Channel]:
        """All of them by name, or those of these names."""
        ...

    async def channel_users(self, name: str, limit: int) -> list[str]:
        """The first schedules, by name, whose policy names this channel."""
        ...

    async def put_rule(self, draft: RuleDraft, now: Micros) -> tuple[RuleId, bool]:
        """Add a rule, or replace the one of the same channel and project; and whether it is new."""
        ...

    async def remove_rule(self, id: RuleId) -> bool: ...

    async def list_rules(self, channel: str | None = None) -> list[Rule]: ...

    async def interests(self) -> Interests:
        """One cheap look: what rules want, which subjects have an open incident, and when there is something to do."""
        ...

    async def list_incidents(self, wanted: IncidentFilter) -> list[Incident]: ...

    async def get_incident(self, id: IncidentId) -> Incident | None: ...

    async def ack_incident(self, id: IncidentId, who: str, note: str | None, now: Micros) -> bool:
        """Somebody sees to it. False if there is no such open incident."""
        ...

    async def close_incidents(
        self, subject: str, now: Micros, reason: str, causes: Sequence[str] | None = None
    ) -> list[IncidentChange]:
        """Close what is open of a subject without telling anybody; of these causes, if they are given."""
        ...

    async def incident_runs(self, id: IncidentId, limit: int) -> list[RunId]:
        """The ended runs that it stands for, the newest first; those that a person ran only if there are no others."""
        ...

    async def repeated_runs(self, ids: Sequence[RunId]) -> list[RepeatedRun]:
        """The runs that repeat one of these, the newest first."""
        ...

    async def list_deliveries(self, wanted: DeliveryFilter) -> list[Delivery]: ...

    async def first_deliveries(self, channel: str) -> list[Delivery]:
        """Of what is pending for a channel, those of each kind that can go first: the one that is ready first, and the
        oldest. The oldest first."""
        ...

    async def recent_messages(self, channel: str, since: Micros) -> list[Micros]:
        """When each message was sent to a channel since then; those that count towards no limit are left out."""
        ...

    async def add_delivery(
        self, channel: str, kind: str, subject: str, data: Mapping[str, Any], now: Micros
    ) -> Delivery:
        """Owe a channel a message that nothing recorded asks for: a test."""
        ...

    async def claim_deliveries(self, node: NodeId, now: Micros, busy: Sequence[str], most: int) -> list[Parcel]:
        """Take what is ready to be sent, at most one parcel of each channel and of none that is `busy`, and `most`
        deliveries each; what a node that is gone had taken comes first, as it was."""
        ...

    async def settle_delivery(self, node: NodeId, settled: Settled) -> bool:
        """Write what became of a parcel, if this node still has it."""
        ...

    async def postpone_deliveries(self, node: NodeId, parcel: Parcel, until: Micros) -> bool:
        """Give a parcel back, untried, and hold back what is pending for its channel until then: its quiet hours, or
        its digest. Whether this node still had it."""
        ...

    async def owe_digest(self, rule: Rule, next_at: Micros | None, now: Micros) -> bool:
        """Owe a channel the summary that is due by a rule, and move the rule on to its next one; False if it was
        moved on already, or is gone."""
        ...

    async def counts(self) -> NotificationCounts: ...

    async def take_lease(self, name: str, node: NodeId, now: Micros, until: Micros) -> bool:
        """Have, or keep, what only one node does; False while another one has it that lives."""
        ...

    async def drop_lease(self, name: str, node: NodeId) -> None: ...
