"""Conversations of agents in PostgreSQL, as their attempts leave them behind, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.run import Finish
from ostinato.stores.postgres.query import Connection, numbers, texts

__all__ = ["keep_conversations"]

_CONVERSE = """
INSERT INTO conversations (key, id, updated_at, project)
SELECT c.key, c.id, c.updated_at, c.project
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[]) c (key, id, updated_at, project)
WHERE c.project IS NULL OR EXISTS (SELECT 1 FROM projects WHERE name = c.project)
ORDER BY c.key
ON CONFLICT (key) DO UPDATE SET id = excluded.id, updated_at = excluded.updated_at, project = excluded.project
"""


async def keep_conversations(connection: Connection, ended: Sequence[Finish]) -> None:
    """Remember the conversations that attempts leave behind; of several of one key the last counts."""
    left = {each.conversation.key: (each.conversation, each.finished_at) for each in ended if each.conversation}
    if left:
        values = (
            texts(list(left)),
            texts([conversation.id for conversation, _ in left.values()]),
            numbers([finished_at for _, finished_at in left.values()]),
            texts([conversation.project for conversation, _ in left.values()]),
        )
        await connection.execute(_CONVERSE, values)
