"""Projects in PostgreSQL, and what work must know and be granted before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ostinato.clock import Micros
from ostinato.models.budget import Grant, Reservation, Spending
from ostinato.models.ids import ScheduleId
from ostinato.models.project import Ground, Project
from ostinato.models.run import Finish
from ostinato.stores.postgres.budgets import budget_lock, read_spending, reserve_now
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.query import Connection, fetch, fetch_value, numbers, texts
from ostinato.stores.rows import PROJECT_COLUMNS, load_all, load_ground, load_project

__all__ = ["PostgresProjects", "keep_conversations"]

_PUT = """
INSERT INTO projects (name, folder, env, created_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (name) DO UPDATE SET folder = excluded.folder, env = excluded.env
RETURNING xmax = 0  -- only a row that was inserted has none
"""
_REMOVE = """
DELETE FROM projects WHERE name = %s AND NOT EXISTS (SELECT 1 FROM schedules WHERE project = %s) RETURNING 1
"""
_LIST = f"SELECT {PROJECT_COLUMNS} FROM projects p WHERE %(name)s::text IS NULL OR p.name = %(name)s ORDER BY p.name"
_GROUND = """
SELECT p.folder, p.env, (SELECT id FROM conversations WHERE key = %(key)s)
FROM (VALUES (1)) always LEFT JOIN projects p ON p.name = %(project)s
WHERE %(project)s::text IS NULL OR p.name IS NOT NULL
"""
_CONVERSE = """
INSERT INTO conversations (key, id, updated_at, project)
SELECT c.key, c.id, c.updated_at, c.project
FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::text[]) c (key, id, updated_at, project)
WHERE c.project IS NULL OR EXISTS (SELECT 1 FROM projects WHERE name = c.project)
ORDER BY c.key
ON CONFLICT (key) DO UPDATE SET id = excluded.id, updated_at = excluded.updated_at, project = excluded.project
"""


class PostgresProjects:
    """Answers stores.base.ProjectStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_project(self, name: str, folder: str, env: Mapping[str, str], now: Micros) -> bool:
        row = (name, folder, msgspec.json.encode(env).decode(), now)
        return bool(await self._database.write(lambda connection: fetch_value(connection, _PUT, row)))

    async def remove_project(self, name: str) -> bool:
        async def remove(connection: Connection) -> bool:
            if not await fetch(connection, _REMOVE, (name, name)):
                return False
            await connection.execute("DELETE FROM conversations WHERE project = %s", (name,))
            return True

        return await self._database.write(remove)

    async def list_projects(self, name: str | None = None) -> list[Project]:
        rows = await self._database.read(lambda connection: fetch(connection, _LIST, {"name": name}))
        return load_all(load_project, rows)

    async def find_ground(self, project: str | None, conversation: str | None) -> Ground | None:
        wanted = {"project": project, "key": conversation}
        rows = await self._database.read(lambda connection: fetch(connection, _GROUND, wanted))
        return load_ground(rows[0]) if rows else None

    async def reserve(self, wanted: Reservation) -> Grant:
        return await self._database.write(
            lambda connection: reserve_now(connection, wanted),
            once=False,
            sessions=(budget_lock(wanted.schedule_id),),
        )

    async def read_spending(self, schedule_id: ScheduleId, now: Micros) -> Spending:
        return await self._database.read(lambda connection: read_spending(connection, schedule_id, now))


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
