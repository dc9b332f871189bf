"""/api/timings/preview: what a timing means, for whoever is typing one."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api.access import Served, Viewer
from ostinato.api.fields import at
from ostinato.api.segments import routes_of
from ostinato.api.shapes.overview import PreviewQuery, TimingToPreview
from ostinato.service.answers import Preview
from ostinato.service.services import Services

__all__ = ["router"]

router = routes_of("timings")


@router.get("/api/timings/preview")
async def preview_timing(query: Annotated[PreviewQuery, Query()], services: Served, _: Viewer) -> Preview:
    """Explain a timing: its sentence, its next times and how clock changes affect them; 422 says where it is wrong."""
    return await _answer(services, query)


@router.post("/api/timings/preview")
async def preview_timing_in_json(body: TimingToPreview, services: Served, _: Viewer) -> Preview:
    """The same, for a text of any length."""
    return await _answer(services, body)


async def _answer(services: Services, asked: PreviewQuery | TimingToPreview) -> Preview:
    with at("text"):
        found = await services.timings.preview_aside(
            asked.text, zone=asked.zone, name=asked.name, n=asked.n, after=asked.after
        )
    return Preview.of(found)
