"""/api/timeline: past runs and future due times together."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api.access import Served, Viewer
from ostinato.api.answers import problems
from ostinato.api.segments import routes_of
from ostinato.api.shapes.overview import TimelineQuery
from ostinato.service.timeline import Timeline

__all__ = ["router"]

router = routes_of("timeline")


@router.get("/api/timeline", responses=problems(404))
async def get_timeline(query: Annotated[TimelineQuery, Query()], services: Served, _: Viewer) -> Timeline:
    """Runs that touch a span of at most 31 days, and its future due times."""
    return await services.timeline.between(
        query.from_, query.to, schedule=query.schedule, project=query.project, limit=query.limit
    )
