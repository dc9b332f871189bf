"""/api/projects: names and folders."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import Admin, House, Served, Viewer
from ostinato.api.answers import empty_answer, json_answer, problems, zoned
from ostinato.api.segments import Name, path_of, routes_of
from ostinato.api.shapes.places import NewProject, ProjectAnswer, ProjectList
from ostinato.api.shown import project_shape

__all__ = ["router"]

router = routes_of("projects")


@router.get("/api/projects", response_model=None, responses={200: {"model": ProjectList}})
async def list_projects(services: Served, house: House, _: Viewer) -> Response:
    """All projects, by name."""
    items = [project_shape(project) for project in await services.projects.list()]
    return json_answer(zoned({"items": items}, house.settings.tz))


@router.get("/api/projects/{name}", response_model=None, responses={200: {"model": ProjectAnswer}, **problems(404)})
async def get_project(name: Name, services: Served, house: House, _: Viewer) -> Response:
    """The project of this name."""
    return json_answer(zoned(project_shape(await services.projects.get(name)), house.settings.tz))


@router.post(
    "/api/projects",
    status_code=201,
    response_model=None,
    responses={200: {"model": ProjectAnswer, "description": "It was there already"}, 201: {"model": ProjectAnswer}},
)
async def add_project(body: NewProject, services: Served, house: House, _: Admin) -> Response:
    """Make the project of this name be so; doing it twice changes nothing."""
    project, is_new = await services.projects.put(body.name, body.folder, env=body.env)
    headers = {"Location": path_of("projects", project.name)} if is_new else None
    return json_answer(zoned(project_shape(project), house.settings.tz), 201 if is_new else 200, headers)


@router.delete("/api/projects/{name}", status_code=204, response_model=None, responses=problems(404, 409))
async def remove_project(name: Name, services: Served, _: Admin) -> Response:
    """Remove a project that no schedule belongs to."""
    await services.projects.remove(name)
    return empty_answer()
