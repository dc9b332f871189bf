"""Channels and rules, and the leases of what one node of all does. Called by notifications.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ostinato.clock import Micros
from ostinato.models.ids import NodeId, RuleId
from ostinato.models.notification import Channel, ChannelDraft, Rule, RuleDraft, known_kinds
from ostinato.stores.sql.connection import Connection

__all__ = [
    "drop_lease",
    "list_channels",
    "list_rules",
    "put_channel",
    "put_rule",
    "remove_channel",
    "remove_rule",
    "take_lease",
]

_COLUMNS = "name, url, note, quiet, digest, zone, cool_down, created_at, retry_at, failures, error, sent_at"
_INSERT = """
INSERT INTO channels (name, url, note, quiet, digest, zone, cool_down, created_at)
VALUES (:name, :url, :note, :quiet, :digest, :zone, :cool_down, :now)
ON CONFLICT (name) DO NOTHING RETURNING name
"""
_UPDATE = """
UPDATE channels SET url = :url, note = :note, quiet = :quiet, digest = :digest, zone = :zone, cool_down = :cool_down,
                    retry_at = 0, failures = 0, error = NULL
WHERE name = :name RETURNING name
"""
_LIST = f"SELECT {_COLUMNS} FROM channels ORDER BY name"
_NAMED = f"SELECT {_COLUMNS} FROM channels WHERE name = ANY (:names::text[]) ORDER BY name"
_REMOVE = "DELETE FROM channels WHERE name = :name RETURNING name"
_DROP = """
UPDATE deliveries SET state = 'dropped', error = 'its channel was removed'
WHERE channel = :name AND state = 'pending'
"""
_RULE_COLUMNS = "id, channel, kinds, project, digest, zone, digest_at, created_at, told_at"
_REPLACE_RULE = """
UPDATE rules SET kinds = :kinds, digest = :digest, zone = :zone, digest_at = :digest_at
WHERE channel = :channel AND coalesce(project, '') = coalesce(:project::text, '') RETURNING id
"""
_INSERT_RULE = """
INSERT INTO rules (channel, kinds, project, digest, zone, digest_at, created_at, told_at)
VALUES (:channel, :kinds, :project, :digest, :zone, :digest_at, :now, :now)
ON CONFLICT DO NOTHING RETURNING id
"""
_RULES = f"SELECT {_RULE_COLUMNS} FROM rules WHERE :channel::text IS NULL OR channel = :channel ORDER BY id"
# Taken over from a node that is gone, or that has not said for too long that it goes on.
_TAKE = """
INSERT INTO leases (name, node, until) VALUES (:name, :node, :until)
ON CONFLICT (name) DO UPDATE SET node = excluded.node, until = excluded.until
WHERE leases.node = excluded.node OR leases.until <= :now
   OR NOT EXISTS (SELECT 1 FROM nodes WHERE id = leases.node AND lost_at IS NULL)
RETURNING name
"""


async def put_channel(db: Connection, draft: ChannelDraft, now: Micros) -> bool:
    """Add or change it; whether it is new."""
    values = {**asdict(draft), "now": now}
    while not await db.fetch(_INSERT, values):
        if await db.fetch(_UPDATE, values):
            return False
        # Somebody removed it between the two.
    return True


async def remove_channel(db: Connection, name: str) -> bool:
    """With its rules; whether there was one."""
    if not await db.fetch(_REMOVE, {"name": name}):
        return False
    await db.run(_DROP, {"name": name})
    return True


async def list_channels(db: Connection, names: Sequence[str] | None = None) -> list[Channel]:
    """All, or those of these names."""
    rows = await db.fetch(_LIST) if names is None else await db.fetch(_NAMED, {"names": names})
    return [Channel(*row) for row in rows]


async def put_rule(db: Connection, draft: RuleDraft, now: Micros) -> tuple[RuleId, bool]:
    """Add or replace it; its number, and whether it is new."""
    values = {**asdict(draft), "kinds": ",".join(sorted(draft.kinds)), "now": now}
    while True:
        if replaced := await db.fetch(_REPLACE_RULE, values):
            return RuleId(replaced[0][0]), False
        if added := await db.fetch(_INSERT_RULE, values):
            return RuleId(added[0][0]), True


async def remove_rule(db: Connection, id: RuleId) -> bool:
    """Whether there was one."""
    return bool(await db.fetch("DELETE FROM rules WHERE id = :id RETURNING id", {"id": id}))


async def list_rules(db: Connection, channel: str | None = None) -> list[Rule]:
    """All, or those of a channel."""
    return [_load_rule(row) for row in await db.fetch(_RULES, {"channel": channel})]


def _load_rule(row: Sequence[Any]) -> Rule:
    """From _RULE_COLUMNS."""
    id, channel, kinds, *rest = row
    return Rule(RuleId(id), channel, known_kinds(kinds.split(",")), *rest)


async def take_lease(db: Connection, name: str, node: NodeId, now: Micros, until: Micros) -> bool:
    """Whether this node has it now."""
    return bool(await db.fetch(_TAKE, {"name": name, "node": node, "now": now, "until": until}))


async def drop_lease(db: Connection, name: str, node: NodeId) -> None:
    """Let others have it."""
    await db.run("DELETE FROM leases WHERE name = :name AND node = :node", {"name": name, "node": node})
