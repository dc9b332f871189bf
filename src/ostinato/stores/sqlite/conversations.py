"""Conversations of agents in SQLite, as their attempts leave them behind, inside the caller's transaction."""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.models.project import Conversation
from ostinato.stores.sqlite.query import Connection

__all__ = ["keep_conversation"]

_CONVERSE = """
INSERT OR REPLACE INTO conversations (key, id, updated_at, project)
SELECT ?1, ?2, ?3, ?4 WHERE ?4 IS NULL OR EXISTS (SELECT 1 FROM projects WHERE name = ?4)
"""


def keep_conversation(connection: Connection, left: Conversation, now: Micros) -> None:
    """Remember the conversation that an attempt leaves behind."""
    connection.execute(_CONVERSE, (left.key, left.id, now, left.project))
