"""Channels, rules, incidents and deliveries: the methods of the store, each a transaction.

Neighbours: channels.py, incidents.py, deliveries.py and digests.py have the SQL; telling.py writes what finishes and
fires tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.ids import IncidentId, NodeId, RuleId
from ostinato.models.incident import IncidentChange
from ostinato.models.notification import ChannelDraft, Delivery, Rule, RuleDraft
from ostinato.stores.notifications import Parcel, Settled
from ostinato.stores.sql import channels, deliveries, digests, incidents
from ostinato.stores.sql.connection import Connection, Database, reading

__all__ = ["Notifications"]


class Notifications:
    """Answers stores.notifications.NotificationStore."""

    def __init__(self, database: Database[Connection]) -> None:
        self._database = database

    list_channels = reading(channels.list_channels)
    channel_users = reading(channels.channel_users)
    list_rules = reading(channels.list_rules)
    interests = reading(incidents.interests)
    list_incidents = reading(incidents.list_incidents)
    get_incident = reading(incidents.get_incident)
    incident_runs = reading(incidents.incident_runs)
    repeated_runs = reading(incidents.repeated_runs)
    list_deliveries = reading(deliveries.list_deliveries)
    first_deliveries = reading(deliveries.first_deliveries)
    recent_messages = reading(deliveries.recent_messages)
    counts = reading(deliveries.counts)

    async def put_channel(self, draft: ChannelDraft, now: Micros) -> bool:
        return await self._database.write(lambda db: channels.put_channel(db, draft, now), wakes=True)

    async def remove_channel(self, name: str) -> bool:
        return await self._database.write(lambda db: channels.remove_channel(db, name), wakes=True)

    async def put_rule(self, draft: RuleDraft, now: Micros) -> tuple[RuleId, bool]:
        return await self._database.write(lambda db: channels.put_rule(db, draft, now), wakes=True)

    async def remove_rule(self, id: RuleId) -> bool:
        return await self._database.write(lambda db: channels.remove_rule(db, id), wakes=True)

    async def ack_incident(self, id: IncidentId, who: str, note: str | None, now: Micros) -> bool:
        return await self._database.write(lambda db: incidents.ack_incident(db, id, who, note, now), once=False)

    async def close_incidents(
        self, subject: str, now: Micros, reason: str, causes: Sequence[str] | None = None
    ) -> list[IncidentChange]:
        return await self._database.write(
            lambda db: incidents.close_incidents(db, subject, now, reason, causes), wakes=True
        )

    async def add_delivery(
        self, channel: str, kind: str, subject: str, data: Mapping[str, Any], now: Micros
    ) -> Delivery:
        return await self._database.write(
            lambda db: deliveries.add_delivery(db, channel, kind, subject, data, now), wakes=True
        )

    async def claim_deliveries(self, node: NodeId, now: Micros, busy: Sequence[str], most: int) -> list[Parcel]:
        return await self._database.write(lambda db: deliveries.claim_deliveries(db, node, now, busy, most))

    async def settle_delivery(self, node: NodeId, settled: Settled) -> bool:
        return await self._database.write(lambda db: deliveries.settle_delivery(db, node, settled))

    async def postpone_deliveries(self, node: NodeId, parcel: Parcel, until: Micros) -> bool:
        return await self._database.write(lambda db: deliveries.postpone_deliveries(db, node, parcel, until))

    async def owe_digest(self, rule: Rule, next_at: Micros | None, now: Micros) -> bool:
        return await self._database.write(lambda db: digests.owe_digest(db, rule, next_at, now), wakes=True)

    async def take_lease(self, name: str, node: NodeId, now: Micros, until: Micros) -> bool:
        return await self._database.write(lambda db: channels.take_lease(db, name, node, now, until), once=False)

    async def drop_lease(self, name: str, node: NodeId) -> None:
        await self._database.write(lambda db: channels.drop_lease(db, name, node), once=False)
