"""/api/lanes: how full they are; set, pause, resume, clear."""

from __future__ import annotations

from ostinato.api.access import Container, Operator, Served, Viewer
from ostinato.api.answers import Zoned
from ostinato.api.container import ApiContainer
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import LaneChanges, PauseLane
from ostinato.models.lane import Lane as LaneModel
from ostinato.service.answers import Cleared, Lane, Listed

__all__ = ["router"]

router = routes_of("lanes")


@router.get("/api/lanes")
async def list_lanes(services: Served, container: Container, _: Viewer) -> Listed[Lane]:
    """Every lane and how full it is."""
    return Listed([Lane.of(lane) for lane in await services.lanes.list()], container.settings.tz)


@router.get("/api/lanes/{name}")
async def get_lane(name: Name, services: Served, container: Container, _: Viewer) -> Zoned[Lane]:
    """The lane of this name."""
    return _answer(await services.lanes.get(name), container)


@router.put("/api/lanes/{name}")
async def set_lane(name: Name, body: LaneChanges, services: Served, container: Container, _: Operator) -> Zoned[Lane]:
    """Change its limit or its rate, on all nodes at once; a lane that does not exist is made with its limit."""
    return _answer(await services.lanes.set(name, body.limit, rate=body.rate), container)


@router.post("/api/lanes/{name}/pause")
async def pause_lane(
    name: Name, services: Served, container: Container, _: Operator, body: PauseLane | None = None
) -> Zoned[Lane]:
    """Start nothing more in this lane, on any node; active runs go on."""
    return _answer(await services.lanes.pause(name, note=None if body is None else body.note), container)


@router.post("/api/lanes/{name}/resume")
async def resume_lane(name: Name, services: Served, container: Container, _: Operator) -> Zoned[Lane]:
    """Start its runs again."""
    return _answer(await services.lanes.resume(name), container)


@router.post("/api/lanes/{name}/clear")
async def clear_lane(name: Name, services: Served, _: Operator) -> Cleared:
    """End everything that is queued in it as cancelled; active runs go on."""
    return Cleared(await services.lanes.clear(name))


def _answer(lane: LaneModel, container: ApiContainer) -> Zoned[Lane]:
    return Zoned(Lane.of(lane), container.settings.tz)
