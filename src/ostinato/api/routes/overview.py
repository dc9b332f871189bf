"""/api/overview: all at a glance."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import House, Viewer
from ostinato.api.answers import json_answer
from ostinato.api.segments import routes_of
from ostinato.api.shapes.overview import Overview
from ostinato.api.shown import overview_shape

__all__ = ["router"]

router = routes_of("overview")


@router.get("/api/overview", response_model=None, responses={200: {"model": Overview}})
async def get_overview(house: House, _: Viewer) -> Response:
    """What runs, what is late, what is broken, what comes, and how the last day went."""
    found = await house.services.overview.look()
    return json_answer(overview_shape(found, is_here=house.has_engine))
