"""Deliveries: what is owed to channels, claimed by one node each, and what became of it. Called by notifications.py."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.models.ids import NodeId
from ostinato.models.notification import (
    JOINED_FROM,
    MESSAGES_A_MINUTE,
    UNJOINED,
    URGENT,
    Delivery,
    DeliveryFilter,
    DeliveryState,
    NotificationCounts,
    known_kind,
)
from ostinato.stores.notifications import Parcel, Settled
from ostinato.stores.sql.channels import list_channels
from ostinato.stores.sql.connection import Connection, Values, given, where

__all__ = [
    "ALONE",
    "PENDING_CHANNELS",
    "RECOVERED_UNSENT",
    "add_delivery",
    "claim_deliveries",
    "counts",
    "first_deliveries",
    "list_deliveries",
    "load_delivery",
    "new_key",
    "next_deliveries",
    "postpone_deliveries",
    "ready_channels",
    "recent_messages",
    "settle_delivery",
]

COLUMNS = """
d.id, d.key, d.at, d.channel, d.kind, d.subject, d.state, d.ready_at, d.attempts, d.incident_id, d.run_id, d.schedule,
d.data, d.message, d.node, d.sent_at, d.error, d.tried_at
"""
_CONDITIONS = {
    "channel": "d.channel = :channel",
    "state": "d.state = :state",
    "incident": "d.incident_id = :incident",
    "before_id": "d.id < :before_id",
}
# Of one kind, one of these is held back least: the digest of a channel counts from the age of a notice.
_FIRST = f"""
SELECT {COLUMNS} FROM deliveries d JOIN (
    SELECT id, row_number() OVER (PARTITION BY kind ORDER BY ready_at, id) AS by_time,
               row_number() OVER (PARTITION BY kind ORDER BY id) AS by_age
    FROM deliveries WHERE channel = :channel AND state = 'pending') f ON f.id = d.id
WHERE f.by_time = 1 OR f.by_age = 1 ORDER BY d.id
"""
_ADD = """
INSERT INTO deliveries (key, at, channel, kind, subject, ready_at, data)
VALUES (:key, :now, :channel, :kind, :subject, :now, :data) RETURNING id
"""
_PUT_BACK = """
UPDATE deliveries SET state = 'pending', node = NULL, message = NULL, ready_at = :until
WHERE id = ANY (:ids::bigint[]) AND state = 'sending' AND node = :node RETURNING id
"""
# With it all that would only be claimed to be put back as well.
_POSTPONE = """
UPDATE deliveries SET ready_at = :until
WHERE channel = :channel AND state = 'pending' AND message IS NULL AND ready_at < :until
  AND kind <> ALL (:urgent::text[])
"""
_COUNT_INCIDENTS = "SELECT kind, count(*) FROM incidents WHERE closed_at IS NULL GROUP BY kind"
_COUNT_DELIVERIES = """
SELECT channel, state, count(*) FROM deliveries WHERE state = 'pending' GROUP BY channel, state
UNION ALL SELECT channel, state, count(*) FROM deliveries WHERE state = 'sending' GROUP BY channel, state
"""
# A process that is gone may have sent what it had: it is sent again, as it was. So is what this node has and does not
# send, because the answer to its claim was lost.
_TAKE_OVER = """
UPDATE deliveries SET node = :node
WHERE state = 'sending' AND channel <> ALL (:busy::text[])
  AND (node = :node OR NOT EXISTS (SELECT 1 FROM nodes WHERE id = deliveries.node AND lost_at IS NULL))
RETURNING message
"""
# One step for each channel, however much is pending for it.
PENDING_CHANNELS = """
owed (channel) AS (
    SELECT min(channel) FROM deliveries WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT min(channel) FROM deliveries WHERE state = 'pending' AND channel > owed.channel)
    FROM owed WHERE channel IS NOT NULL)
"""
# As an index has it, word for word.
ALONE = "kind IN ({})".format(", ".join(f"'{kind}'" for kind in sorted(UNJOINED)))
_READY = f"""
WITH RECURSIVE {PENDING_CHANNELS}
SELECT o.channel FROM owed o LEFT JOIN channels c ON c.name = o.channel
WHERE o.channel IS NOT NULL AND o.channel <> ALL (:busy::text[])
  AND (coalesce(c.retry_at, 0) <= :now AND EXISTS (
           SELECT 1 FROM deliveries WHERE channel = o.channel AND state = 'pending' AND ready_at <= :now)
       OR EXISTS (
           SELECT 1 FROM deliveries
           WHERE channel = o.channel AND state = 'pending' AND {ALONE} AND kind = 'test' AND ready_at <= :now))
ORDER BY o.channel
"""
# Whoever comes second to a channel waits here, and then sees what the first one took.
_LOCK = "SELECT digest IS NOT NULL, retry_at FROM channels WHERE name = :channel FOR NO KEY UPDATE"
_TAKEN = "SELECT 1 FROM deliveries WHERE channel = :channel AND state = 'sending' LIMIT 1"
# What was tried least goes first: one that its server never takes is in nobody's way. Whoever sends a test has mended
# the channel, or wants to know: it does not wait until the channel is tried again. All that is pending is in this order
# in an index; the one by `ready_at` must not be preferred to it.
_NEXT = """
SELECT id, key, kind, message, attempts FROM deliveries
WHERE channel = :channel AND state = 'pending' AND {which} AND ready_at + 0 <= :now
ORDER BY attempts, id LIMIT {most}
"""
_NEXT_ALONE = _NEXT.format(which=f"{ALONE} AND (:is_open::boolean OR kind = 'test')", most=1)
_NEXT_OTHERS = _NEXT.format(which=f"NOT {ALONE}", most=":most")
_SENT = """
SELECT count(DISTINCT message) FROM deliveries
WHERE channel = :channel AND state = 'sent' AND sent_at > :since AND kind <> ALL (:unjoined::text[])
"""
_RECENT = """
SELECT max(sent_at) FROM deliveries
WHERE channel = :channel AND state = 'sent' AND sent_at > :since AND kind <> ALL (:unjoined::text[]) GROUP BY message
"""
# What was tried together goes together again, however many there are: the key stands for all of them.
_TAKE = """
UPDATE deliveries SET state = 'sending', node = :node, message = :message
WHERE channel = :channel AND state = 'pending' AND (id = ANY (:ids::bigint[]) OR message = :message)
"""
# Not in the order of their ids: SQLite would go through all deliveries there are.
_OF_MESSAGES = f"SELECT {COLUMNS} FROM deliveries d WHERE d.message = ANY (:keys::text[]) AND d.state = 'sending'"
_SETTLE = """
UPDATE deliveries SET state = :state, attempts = attempts + :tried, sent_at = :sent_at, error = :error, node = NULL,
                      tried_at = CASE WHEN :tried = 1 THEN coalesce(tried_at, :at) ELSE tried_at END
WHERE id = ANY (:ids::bigint[]) AND state = 'sending' AND node = :node RETURNING id
"""
# What would come behind its recovery, which says how often it failed; one message tells it of all that it closed.
_DROP_STALE = """
UPDATE deliveries SET state = 'dropped', error = :why
WHERE id = ANY (:ids::bigint[]) AND state = 'pending' AND kind <> 'recovered' AND EXISTS (
    SELECT 1 FROM incidents i JOIN incidents o ON o.subject = i.subject AND o.closed_at = i.closed_at
    JOIN deliveries r ON r.incident_id = o.id
    WHERE i.id = deliveries.incident_id AND r.channel = deliveries.channel AND r.kind = 'recovered'
      AND r.id > deliveries.id AND r.id <> ALL (:ids::bigint[]) AND r.state IN ('pending', 'sending', 'sent'))
"""
# In the order in which telling.py goes through them, and before their deliveries.
_LOCK_INCIDENTS = """
SELECT id FROM incidents
WHERE id IN (SELECT incident_id FROM deliveries WHERE id = ANY (:ids::bigint[]) AND incident_id IS NOT NULL)
ORDER BY subject, cause FOR NO KEY UPDATE
"""
# Whoever looks at an incident sees what was told of it.
_TOUCH = "UPDATE incidents SET changed_at = :at WHERE id = ANY (:ids::bigint[])"
_CHANNEL_SENT = "UPDATE channels SET retry_at = 0, failures = 0, error = NULL, sent_at = :at WHERE name = :channel"
_CHANNEL_FAILED = """
UPDATE channels SET retry_at = coalesce(:retry_at::bigint, retry_at), failures = failures + 1, error = :error
WHERE name = :channel
"""
_MINUTE: Micros = 60 * SECOND
RECOVERED_UNSENT = "it had recovered before it could be sent"
"""Why a failure is not told any more: the message that it recovered tells it."""


def new_key() -> str:
    """What a message is known by, in every try."""
    return secrets.token_hex(6)


async def list_deliveries(db: Connection, wanted: DeliveryFilter) -> list[Delivery]:
    """The newest of a filter."""
    clauses, values = given(wanted, _CONDITIONS)
    query = f"SELECT {COLUMNS} FROM deliveries d {where(clauses)} ORDER BY d.id DESC LIMIT {int(wanted.limit)}"
    return [load_delivery(row) for row in await db.fetch(query, values)]


async def first_deliveries(db: Connection, channel: str) -> list[Delivery]:
    """Of each kind, what can go to a channel first."""
    return [load_delivery(row) for row in await db.fetch(_FIRST, {"channel": channel})]


async def recent_messages(db: Connection, channel: str, since: Micros) -> list[Micros]:
    """When each message was sent that counts towards the limit of its channel."""
    values = {"channel": channel, "since": since, "unjoined": [*UNJOINED]}
    return [at for (at,) in await db.fetch(_RECENT, values)]


async def add_delivery(
    db: Connection, channel: str, kind: str, subject: str, data: Mapping[str, Any], now: Micros
) -> Delivery:
    """One that nothing recorded asks for."""
    said = msgspec.json.encode(data).decode()
    values = {"key": new_key(), "now": now, "channel": channel, "kind": kind, "subject": subject, "data": said}
    id = await db.fetch_value(_ADD, values)
    return load_delivery((await db.fetch(f"SELECT {COLUMNS} FROM deliveries d WHERE d.id = :id", {"id": id}))[0])


async def claim_deliveries(db: Connection, node: NodeId, now: Micros, busy: Sequence[str], most: int) -> list[Parcel]:
    """One parcel of each channel that has something to be sent and is not busy."""
    taken_over = {key for (key,) in await db.fetch(_TAKE_OVER, {"node": node, "busy": busy})}
    keys = set(taken_over)
    for channel in await ready_channels(db, now, busy):
        if (key := await _take(db, node, channel, now, most)) is not None:
            keys.add(key)
    if not keys:
        return []
    rows = sorted(await db.fetch(_OF_MESSAGES, {"keys": sorted(keys)}))
    parcels: dict[str, list[Delivery]] = {}
    for delivery in map(load_delivery, rows):
        parcels.setdefault(delivery.message or delivery.key, []).append(delivery)
    names = sorted({found[0].channel for found in parcels.values()})
    channels = {channel.name: channel for channel in await list_channels(db, names)}
    return [
        Parcel(channels.get(found[0].channel), found[0].channel, key, found, resent=key in taken_over)
        for key, found in parcels.items()
    ]


async def ready_channels(db: Connection, now: Micros, busy: Sequence[str]) -> list[str]:
    """Those that have something to be sent and are not busy, by name."""
    return [channel for (channel,) in await db.fetch(_READY, {"now": now, "busy": busy})]


async def _take(db: Connection, node: NodeId, channel: str, now: Micros, most: int) -> str | None:
    """Mark what goes to a channel as one message; answers its key, None if nothing does now."""
    found = await db.fetch(_LOCK, {"channel": channel})
    in_digest, retry_at = found[0] if found else (False, 0)
    if await db.fetch(_TAKEN, {"channel": channel}):
        return None
    found = await next_deliveries(db, channel, now, most, is_open=retry_at <= now)
    if not found:
        return None
    key, ids = _together(found, 1 if in_digest else JOINED_FROM)
    await db.run(_TAKE, {"node": node, "channel": channel, "message": key, "ids": ids})
    return key


async def next_deliveries(
    db: Connection, channel: str, now: Micros, most: int, *, is_open: bool
) -> list[tuple[Any, ...]]:
    """What goes to a channel next: one that is a message of its own before the others, unless it was tried more often.
    Only a test goes to a channel that is not open."""
    wanted: Values = {"channel": channel, "now": now, "most": most, "since": now - _MINUTE, "unjoined": [*UNJOINED]}
    alone = await db.fetch(_NEXT_ALONE, {**wanted, "is_open": is_open})
    if not is_open or (alone and not alone[0][-1]) or await db.fetch_value(_SENT, wanted) >= MESSAGES_A_MINUTE:
        return alone
    others = await db.fetch(_NEXT_OTHERS, wanted)
    return alone if alone and (not others or alone[0][-1] <= others[0][-1]) else others


def _together(found: Sequence[Sequence[Any]], joined_from: int) -> tuple[str, list[int]]:
    """Which of these, by the order of _NEXT, go as one message, and its key."""
    first, key, kind, message, _ = found[0]
    if message is not None or kind in UNJOINED:
        return message or key, [first]
    new = [id for id, _, _, message, _ in found if message is None]
    return key, new if len(new) >= joined_from else [first]


async def settle_delivery(db: Connection, node: NodeId, settled: Settled) -> bool:
    """What became of a parcel, if this node still has it."""
    state = DeliveryState.SENT if settled.error is None else DeliveryState.FAILED
    if settled.dropped:
        state = DeliveryState.DROPPED
    elif settled.retry_at is not None:
        state = DeliveryState.PENDING
    values = {
        "ids": settled.deliveries,
        "node": node,
        "state": state,
        "tried": 0 if settled.dropped else 1,
        "at": settled.at,
        "sent_at": settled.at if state is DeliveryState.SENT else None,
        "error": settled.error,
    }
    incidents = [id for (id,) in await db.fetch(_LOCK_INCIDENTS, values)]
    if not await db.fetch(_SETTLE, values):
        return False
    if state is DeliveryState.PENDING:
        await db.run(_DROP_STALE, {"ids": settled.deliveries, "why": RECOVERED_UNSENT})
    if incidents:
        await db.run(_TOUCH, {"ids": incidents, "at": settled.at})
    told = {"channel": settled.channel, "at": settled.at, "error": settled.error, "retry_at": settled.retry_at}
    if state is DeliveryState.SENT:
        await db.run(_CHANNEL_SENT, told)
    elif not settled.dropped:
        await db.run(_CHANNEL_FAILED, told)
    return True


async def postpone_deliveries(db: Connection, node: NodeId, parcel: Parcel, until: Micros) -> bool:
    """Put a parcel back, untried, and hold back with it what is pending."""
    ids = [delivery.id for delivery in parcel.deliveries]
    if not await db.fetch(_PUT_BACK, {"ids": ids, "node": node, "until": until}):
        return False
    await db.run(_POSTPONE, {"channel": parcel.name, "until": until, "urgent": [*URGENT]})
    return True


async def counts(db: Connection) -> NotificationCounts:
    """For metrics."""
    open: list[Any] = await db.fetch(_COUNT_INCIDENTS)
    owed = {(channel, state): count for channel, state, count in await db.fetch(_COUNT_DELIVERIES)}
    return NotificationCounts(dict(open), owed)


def load_delivery(row: Sequence[Any]) -> Delivery:
    """From COLUMNS."""
    id, key, at, channel, kind, subject, state, ready_at, attempts, incident, run, schedule, data, *rest = row
    message, node, sent_at, error, tried_at = rest
    return Delivery(
        id=id,
        key=key,
        at=from_micros(at),
        channel=channel,
        kind=known_kind(kind),
        subject=subject,
        state=DeliveryState(state),
        ready_at=from_micros(ready_at),
        attempts=attempts,
        incident=incident,
        run=run,
        schedule=schedule,
        data=msgspec.json.decode(data),
        message=message,
        node=node,
        sent_at=None if sent_at is None else from_micros(sent_at),
        error=error,
        tried_at=None if tried_at is None else from_micros(tried_at),
    )
