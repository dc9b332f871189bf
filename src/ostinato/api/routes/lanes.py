"""/api/lanes: how full they are; set, pause, resume, clear."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import House, Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems, zoned
from ostinato.api.house import ApiHouse
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import Cleared, LaneAnswer, LaneChanges, LaneList, PauseLane
from ostinato.models.lane import Lane
from ostinato.service.shapes import lane_shape

__all__ = ["router"]

router = routes_of("lanes")


@router.get("/api/lanes", response_model=None, responses={200: {"model": LaneList}})
async def list_lanes(services: Served, house: House, _: Viewer) -> Response:
    """Every lane and how full it is."""
    items = [lane_shape(lane) for lane in await services.lanes.list()]
    return json_answer(zoned({"items": items}, house.settings.tz))


@router.get("/api/lanes/{name}", response_model=None, responses={200: {"model": LaneAnswer}, **problems(404)})
async def get_lane(name: Name, services: Served, house: House, _: Viewer) -> Response:
    """The lane of this name."""
    return _answer(await services.lanes.get(name), house)


@router.put("/api/lanes/{name}", response_model=None, responses={200: {"model": LaneAnswer}, **problems(404)})
async def set_lane(name: Name, body: LaneChanges, services: Served, house: House, _: Operator) -> Response:
    """Change its limit or its rate, on all nodes at once; one that does not exist is made with its limit."""
    return _answer(await services.lanes.set(name, body.limit, rate=body.rate), house)


@router.post("/api/lanes/{name}/pause", response_model=None, responses={200: {"model": LaneAnswer}, **problems(404)})
async def pause_lane(
    name: Name, services: Served, house: House, _: Operator, body: PauseLane | None = None
) -> Response:
    """Start nothing more in this lane, on any node; what runs goes on."""
    return _answer(await services.lanes.pause(name, note=None if body is None else body.note), house)


@router.post("/api/lanes/{name}/resume", response_model=None, responses={200: {"model": LaneAnswer}, **problems(404)})
async def resume_lane(name: Name, services: Served, house: House, _: Operator) -> Response:
    """Start its runs again."""
    return _answer(await services.lanes.resume(name), house)


@router.post("/api/lanes/{name}/clear", response_model=None, responses={200: {"model": Cleared}, **problems(404)})
async def clear_lane(name: Name, services: Served, _: Operator) -> Response:
    """End everything that is queued in it as cancelled; what runs goes on."""
    return json_answer({"cleared": await services.lanes.clear(name)})


def _answer(lane: Lane, house: ApiHouse) -> Response:
    return json_answer(zoned(lane_shape(lane), house.settings.tz))
