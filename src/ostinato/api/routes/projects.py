"""/api/projects: names and folders."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import Admin, Served, Viewer
from ostinato.api.answers import empty_answer, json_answer, problems
from ostinato.api.segments import Name, path_of, routes_of
from ostinato.api.shapes.places import NewProject, Project, ProjectList
from ostinato.api.shown import project_shape

__all__ = ["router"]

router = routes_of("projects")


@router.get("/api/projects", response_model=None, responses={200: {"model": ProjectList}})
async def list_projects(services: Served, _: Viewer) -> Response:
    """All projects, by name."""
    return json_answer({"items": [project_shape(project) for project in await services.projects.list()]})


@router.get("/api/projects/{name}", response_model=None, responses={200: {"model": Project}, **problems(404)})
async def get_project(name: Name, services: Served, _: Viewer) -> Response:
    """The project of this name."""
    return json_answer(project_shape(await services.projects.get(name)))


@router.post(
    "/api/projects",
    status_code=201,
    response_model=None,
    responses={200: {"model": Project, "description": "It was there already"}, 201: {"model": Project}},
)
async def add_project(body: NewProject, services: Served, _: Admin) -> Response:
    """Make the project of this name be so; doing it twice changes nothing."""
    project, is_new = await services.projects.put(body.name, body.folder, env=body.env)
    headers = {"Location": path_of("projects", project.name)} if is_new else None
    return json_answer(project_shape(project), 201 if is_new else 200, headers)


@router.delete("/api/projects/{name}", status_code=204, response_model=None, responses=problems(404, 409))
async def remove_project(name: Name, services: Served, _: Admin) -> Response:
    """Remove a project that no schedule belongs to."""
    await services.projects.remove(name)
    return empty_answer()
