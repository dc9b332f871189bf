"""/api/timings/preview: what a timing means, for whoever is typing one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import Served, Viewer
from ostinato.api.answers import json_answer
from ostinato.api.fields import at
from ostinato.api.segments import routes_of
from ostinato.api.shapes.overview import Preview, PreviewQuery, TimingToPreview
from ostinato.service.services import Services
from ostinato.service.view_shapes import preview_shape

__all__ = ["router"]

router = routes_of("timings")


@router.get("/api/timings/preview", response_model=None, responses={200: {"model": Preview}})
async def preview_timing(query: Annotated[PreviewQuery, Query()], services: Served, _: Viewer) -> Response:
    """The sentence of a timing, its next times and what the clock changes do to them; 422 says where it is wrong."""
    return await _answer(services, query)


@router.post("/api/timings/preview", response_model=None, responses={200: {"model": Preview}})
async def preview_timing_in_json(body: TimingToPreview, services: Served, _: Viewer) -> Response:
    """The same, for a text of any length."""
    return await _answer(services, body)


async def _answer(services: Services, asked: PreviewQuery | TimingToPreview) -> Response:
    with at("text"):
        found = await services.timings.preview_aside(asked.text, zone=asked.zone, n=asked.n, after=asked.after)
    return json_answer(preview_shape(found))
