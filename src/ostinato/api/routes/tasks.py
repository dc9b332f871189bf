"""/api/tasks: what can be called by name."""

from __future__ import annotations

from ostinato.api.access import Served, Viewer
from ostinato.api.segments import routes_of
from ostinato.service.answers import TaskList

__all__ = ["router"]

router = routes_of("tasks")


@router.get("/api/tasks")
async def list_tasks(services: Served, _: Viewer) -> TaskList:
    """Every task that a running node knows or a schedule calls, by name."""
    return TaskList(await services.tasks.list())
