"""/api/timings/preview: what a timing means, for whoever is typing one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import Served, Viewer
from ostinato.api.answers import json_answer
from ostinato.api.fields import at
from ostinato.api.segments import routes_of
from ostinato.api.shapes.overview import Preview, PreviewQuery, TimingToPreview
from ostinato.errors import InvalidInput
from ostinato.service.services import Services
from ostinato.service.view_shapes import preview_shape

__all__ = ["router"]

router = routes_of("timings")


@router.get("/api/timings/preview", response_model=None, responses={200: {"model": Preview}})
async def preview_timing(query: Annotated[PreviewQuery, Query()], services: Served, _: Viewer) -> Response:
    """The sentence of a timing, its next times and what the clock changes do to them; 422 says where it is wrong."""
    return await _answer(services, query.text, query.zone, query.n, query.after, "text")


@router.post("/api/timings/preview", response_model=None, responses={200: {"model": Preview}})
async def preview_timing_in_json(body: TimingToPreview, services: Served, _: Viewer) -> Response:
    """The same, for a timing in its text or its JSON form."""
    if (body.text is None) == (body.timing is None):
        raise InvalidInput("give either text or timing", field="text", hint="such as every 5m")
    if body.text is not None:
        return await _answer(services, body.text, body.zone, body.n, body.after, "text")
    return await _answer(services, body.timing or {}, body.zone, body.n, body.after, "timing")


async def _answer(
    services: Services,
    timing: str | Mapping[str, Any],
    zone: str | None,
    n: int,
    after: datetime | None,
    field: str,
) -> Response:
    with at(field):
        found = await services.timings.preview_aside(timing, zone=zone, n=n, after=after)
    return json_answer(preview_shape(found))
