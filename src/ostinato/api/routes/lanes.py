"""/api/lanes: how full they are; set, pause, resume, clear."""

from __future__ import annotations

from ostinato.api.access import House, Operator, Served, Viewer
from ostinato.api.answers import Zoned
from ostinato.api.house import ApiHouse
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import LaneChanges, PauseLane
from ostinato.models.lane import Lane as LaneModel
from ostinato.service.answers import Cleared, Lane, Listed

__all__ = ["router"]

router = routes_of("lanes")


@router.get("/api/lanes")
async def list_lanes(services: Served, house: House, _: Viewer) -> Listed[Lane]:
    """Every lane and how full it is."""
    return Listed([Lane.of(lane) for lane in await services.lanes.list()], house.settings.tz)


@router.get("/api/lanes/{name}")
async def get_lane(name: Name, services: Served, house: House, _: Viewer) -> Zoned[Lane]:
    """The lane of this name."""
    return _answer(await services.lanes.get(name), house)


@router.put("/api/lanes/{name}")
async def set_lane(name: Name, body: LaneChanges, services: Served, house: House, _: Operator) -> Zoned[Lane]:
    """Change its limit or its rate, on all nodes at once; one that does not exist is made with its limit."""
    return _answer(await services.lanes.set(name, body.limit, rate=body.rate), house)


@router.post("/api/lanes/{name}/pause")
async def pause_lane(
    name: Name, services: Served, house: House, _: Operator, body: PauseLane | None = None
) -> Zoned[Lane]:
    """Start nothing more in this lane, on any node; what runs goes on."""
    return _answer(await services.lanes.pause(name, note=None if body is None else body.note), house)


@router.post("/api/lanes/{name}/resume")
async def resume_lane(name: Name, services: Served, house: House, _: Operator) -> Zoned[Lane]:
    """Start its runs again."""
    return _answer(await services.lanes.resume(name), house)


@router.post("/api/lanes/{name}/clear")
async def clear_lane(name: Name, services: Served, _: Operator) -> Cleared:
    """End everything that is queued in it as cancelled; what runs goes on."""
    return Cleared(await services.lanes.clear(name))


def _answer(lane: LaneModel, house: ApiHouse) -> Zoned[Lane]:
    return Zoned(Lane.of(lane), house.settings.tz)
