"""Projects in SQLite, and what work must know and be granted before it starts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ostinato.clock import Micros
from ostinato.models.budget import Grant, Reservation, Spending
from ostinato.models.ids import ScheduleId
from ostinato.models.project import Conversation, Ground, Project
from ostinato.stores.rows import PROJECT_COLUMNS, load_all, load_ground, load_project
from ostinato.stores.sqlite.budgets import read_spending, reserve_now
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.query import Connection, fetch

__all__ = ["SqliteProjects", "keep_conversation"]

_PUT = """
INSERT INTO projects (name, folder, env, created_at) VALUES (?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET folder = excluded.folder, env = excluded.env
"""
_REMOVE = "DELETE FROM projects WHERE name = ?1 AND NOT EXISTS (SELECT 1 FROM schedules WHERE project = ?1)"
_GROUND = """
SELECT p.folder, p.env, (SELECT id FROM conversations WHERE key = ?2)
FROM (SELECT 1) LEFT JOIN projects p ON p.name = ?1 WHERE ?1 IS NULL OR p.name IS NOT NULL
"""
_CONVERSE = """
INSERT OR REPLACE INTO conversations (key, id, updated_at, project)
SELECT ?1, ?2, ?3, ?4 WHERE ?4 IS NULL OR EXISTS (SELECT 1 FROM projects WHERE name = ?4)
"""


class SqliteProjects:
    """Answers stores.base.ProjectStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_project(self, name: str, folder: str, env: Mapping[str, str], now: Micros) -> bool:
        row = (name, folder, msgspec.json.encode(env).decode(), now)

        def put(connection: Connection) -> bool:
            is_known = bool(fetch(connection, "SELECT 1 FROM projects WHERE name = ?", (name,)))
            connection.execute(_PUT, row)
            return not is_known

        return await self._database.submit(put)

    async def remove_project(self, name: str) -> bool:
        def remove(connection: Connection) -> bool:
            connection.execute(_REMOVE, (name,))
            if not connection.changes():
                return False
            connection.execute("DELETE FROM conversations WHERE project = ?", (name,))
            return True

        return await self._database.submit(remove)

    async def list_projects(self, name: str | None = None) -> list[Project]:
        query = f"SELECT {PROJECT_COLUMNS} FROM projects p WHERE ?1 IS NULL OR p.name = ?1 ORDER BY p.name"
        rows = await self._database.query(lambda connection: fetch(connection, query, (name,)))
        return load_all(load_project, rows)

    async def find_ground(self, project: str | None, conversation: str | None) -> Ground | None:
        asked = (project, conversation)
        rows = await self._database.query(lambda connection: fetch(connection, _GROUND, asked, exact=True))
        return load_ground(rows[0]) if rows else None

    async def reserve(self, wanted: Reservation) -> Grant:
        return await self._database.submit(lambda connection: reserve_now(connection, wanted))

    async def read_spending(self, schedule_id: ScheduleId, now: Micros) -> Spending:
        return await self._database.query(lambda connection: read_spending(connection, schedule_id, now))


def keep_conversation(connection: Connection, left: Conversation, now: Micros) -> None:
    """Remember the conversation that an attempt leaves behind."""
    connection.execute(_CONVERSE, (left.key, left.id, now, left.project))
