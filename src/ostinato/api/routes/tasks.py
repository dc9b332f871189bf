"""/api/tasks: what can be called by name."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import Served, Viewer
from ostinato.api.answers import json_answer
from ostinato.api.segments import routes_of
from ostinato.api.shapes.places import TaskList

__all__ = ["router"]

router = routes_of("tasks")


@router.get("/api/tasks", response_model=None, responses={200: {"model": TaskList}})
async def list_tasks(services: Served, _: Viewer) -> Response:
    """Every task that a running node knows or a schedule calls, by name."""
    found = await services.tasks.list()
    return json_answer(
        {"items": [{"name": task.name, "nodes": list(task.nodes), "schedules": task.schedules} for task in found]}
    )
