"""/api/projects: names and folders."""

from __future__ import annotations

from typing import Annotated

from starlette.responses import Response

from ostinato.api.access import Admin, Container, Served, Viewer
from ostinato.api.answers import Zoned, json_answer, problems
from ostinato.api.segments import Name, path_of, routes_of
from ostinato.api.shapes.places import NewProject
from ostinato.models.project import Project
from ostinato.service.answers import Listed

__all__ = ["router"]

router = routes_of("projects")


@router.get("/api/projects")
async def list_projects(services: Served, container: Container, _: Viewer) -> Listed[Project]:
    """All projects, by name."""
    return Listed([*await services.projects.list()], container.settings.tz)


@router.get("/api/projects/{name}")
async def get_project(name: Name, services: Served, container: Container, _: Viewer) -> Zoned[Project]:
    """The project of this name."""
    return Zoned(await services.projects.get(name), container.settings.tz)


@router.post("/api/projects", status_code=201, responses={200: {"description": "It already existed"}})
async def add_project(
    body: NewProject, services: Served, container: Container, _: Admin
) -> Annotated[Response, Zoned[Project]]:
    """Add a project, or update the one of this name; doing it twice changes nothing."""
    project, is_new = await services.projects.put(body.name, body.folder, env=body.env)
    headers = {"Location": path_of("projects", project.name)} if is_new else None
    return json_answer(Zoned(project, container.settings.tz), 201 if is_new else 200, headers)


@router.delete("/api/projects/{name}", status_code=204, responses=problems(409))
async def remove_project(name: Name, services: Served, _: Admin) -> None:
    """Remove a project that has no schedules."""
    await services.projects.remove(name)
