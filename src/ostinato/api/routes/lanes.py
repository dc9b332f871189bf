"""/api/lanes: how full they are; set, pause, resume, clear."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import Cleared, Lane, LaneChanges, LaneList, PauseLane
from ostinato.service.shapes import lane_shape

__all__ = ["router"]

router = routes_of("lanes")


@router.get("/api/lanes", response_model=None, responses={200: {"model": LaneList}})
async def list_lanes(services: Served, _: Viewer) -> Response:
    """Every lane and how full it is."""
    return json_answer({"items": [lane_shape(lane) for lane in await services.lanes.list()]})


@router.get("/api/lanes/{name}", response_model=None, responses={200: {"model": Lane}, **problems(404)})
async def get_lane(name: Name, services: Served, _: Viewer) -> Response:
    """The lane of this name."""
    return json_answer(lane_shape(await services.lanes.get(name)))


@router.put("/api/lanes/{name}", response_model=None, responses={200: {"model": Lane}, **problems(404)})
async def set_lane(name: Name, body: LaneChanges, services: Served, _: Operator) -> Response:
    """Change its limit or its rate, on all nodes at once; one that does not exist is made with its limit."""
    return json_answer(lane_shape(await services.lanes.set(name, body.limit, rate=body.rate)))


@router.post("/api/lanes/{name}/pause", response_model=None, responses={200: {"model": Lane}, **problems(404)})
async def pause_lane(name: Name, services: Served, _: Operator, body: PauseLane | None = None) -> Response:
    """Start nothing more in this lane, on any node; what runs goes on."""
    return json_answer(lane_shape(await services.lanes.pause(name, note=None if body is None else body.note)))


@router.post("/api/lanes/{name}/resume", response_model=None, responses={200: {"model": Lane}, **problems(404)})
async def resume_lane(name: Name, services: Served, _: Operator) -> Response:
    """Start its runs again."""
    return json_answer(lane_shape(await services.lanes.resume(name)))


@router.post("/api/lanes/{name}/clear", response_model=None, responses={200: {"model": Cleared}, **problems(404)})
async def clear_lane(name: Name, services: Served, _: Operator) -> Response:
    """End everything that is queued in it as cancelled; what runs goes on."""
    return json_answer({"cleared": await services.lanes.clear(name)})
