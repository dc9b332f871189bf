"""/api/tasks: what can be called by name."""

from __future__ import annotations

from ostinato.api.access import Container, Served, Viewer
from ostinato.api.segments import routes_of
from ostinato.models.task import TaskInfo
from ostinato.service.answers import Listed

__all__ = ["router"]

router = routes_of("tasks")


@router.get("/api/tasks")
async def list_tasks(services: Served, container: Container, _: Viewer) -> Listed[TaskInfo]:
    """Every task that a running node knows or a schedule calls, by name: who knows it, its schedules, whether it runs
    now, and when next."""
    return Listed(list(await services.tasks.list()), container.settings.tz)
