"""Projects, and what work must know and be granted before it starts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ostinato.clock import Micros
from ostinato.models.budget import Grant, Reservation
from ostinato.models.project import Project, ProjectContext
from ostinato.stores.rows import PROJECT_COLUMNS, load_all, load_project, load_project_context
from ostinato.stores.sql import budgets
from ostinato.stores.sql.connection import Connection, Database, reading

__all__ = ["Projects"]

_INSERT = """
INSERT INTO projects (name, folder, env, created_at) VALUES (:name, :folder, :env, :now)
ON CONFLICT (name) DO NOTHING RETURNING name
"""
_UPDATE = "UPDATE projects SET folder = :folder, env = :env WHERE name = :name RETURNING name"
_REMOVE = """
DELETE FROM projects WHERE name = :name AND NOT EXISTS (SELECT 1 FROM schedules WHERE project = :name) RETURNING name
"""
_LIST = f"SELECT {PROJECT_COLUMNS} FROM projects p WHERE :name::text IS NULL OR p.name = :name ORDER BY p.name"
_CONTEXT = """
SELECT p.folder, p.env, (SELECT id FROM conversations WHERE key = :key)
FROM (SELECT 1) always LEFT JOIN projects p ON p.name = :project
WHERE :project::text IS NULL OR p.name IS NOT NULL
"""


class Projects:
    """Answers stores.base.ProjectStore."""

    def __init__(self, database: Database[Connection]) -> None:
        self._database = database

    async def put_project(self, name: str, folder: str, env: Mapping[str, str], now: Micros) -> bool:
        values = {"name": name, "folder": folder, "env": msgspec.json.encode(env).decode(), "now": now}

        async def put(db: Connection) -> bool:
            while not await db.fetch(_INSERT, values):
                if await db.fetch(_UPDATE, values):
                    return False
                # Somebody removed it between the two.
            return True

        return await self._database.write(put)

    async def remove_project(self, name: str) -> bool:
        async def remove(db: Connection) -> bool:
            if not await db.fetch(_REMOVE, {"name": name}):
                return False
            await db.run("DELETE FROM conversations WHERE project = :name", {"name": name})
            return True

        return await self._database.write(remove)

    async def list_projects(self, name: str | None = None) -> list[Project]:
        return load_all(load_project, await self._database.read(lambda db: db.fetch(_LIST, {"name": name})))

    async def find_context(self, project: str | None, conversation: str | None) -> ProjectContext | None:
        wanted = {"project": project, "key": conversation}
        rows = await self._database.read(lambda db: db.fetch(_CONTEXT, wanted, exact=True))
        return load_project_context(rows[0]) if rows else None

    async def reserve(self, wanted: Reservation) -> Grant:
        locks = (budgets.budget_lock(wanted.owner),)
        return await self._database.write(lambda db: budgets.reserve_now(db, wanted), once=False, sessions=locks)

    read_spending = reading(budgets.read_spending)
