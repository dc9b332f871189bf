"""/api/incidents: what is wrong, and whom that was told."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api.access import Container, Operator, Served, Viewer
from ostinato.api.answers import Zoned, problems
from ostinato.api.segments import Number, routes_of
from ostinato.api.shapes.notifications import Ack, IncidentQuery
from ostinato.models.incident import Incident
from ostinato.service.answers import IncidentDetail, IncidentPage, incident_answer
from ostinato.service.incidents import Rerun

__all__ = ["router"]

router = routes_of("incidents")


@router.get("/api/incidents", responses=problems(404))
async def list_incidents(
    query: Annotated[IncidentQuery, Query()], services: Served, container: Container, _: Viewer
) -> IncidentPage:
    """Incidents: those that are open first, then the newest, page by page."""
    found = await services.incidents.page(
        state=query.state, subject=query.subject, project=query.project, cursor=query.cursor, limit=query.reach
    )
    return IncidentPage.of(query.of(found), open=await services.incidents.count_open(), zone=container.settings.tz)


@router.get("/api/incidents/{id}")
async def get_incident(id: Number, services: Served, container: Container, _: Viewer) -> Zoned[IncidentDetail]:
    """The incident of this number, what was told of it to whom, and the runs that it stands for."""
    return Zoned(incident_answer(await services.incidents.look(id)), container.settings.tz)


@router.post("/api/incidents/{id}/ack", responses=problems(409))
async def ack_incident(
    id: Number, services: Served, container: Container, login: Operator, body: Ack | None = None
) -> Zoned[Incident]:
    """Say that somebody sees to it: nothing more is told of it until it recovers."""
    acked = await services.incidents.ack(id, who=login.who, note=None if body is None else body.note)
    return Zoned(acked, container.settings.tz)


@router.post("/api/incidents/{id}/rerun", status_code=201)
async def rerun_incident(id: Number, services: Served, _: Operator) -> Rerun:
    """Run all its failed runs again, 1,000 at most, as new runs."""
    return await services.incidents.rerun(id)
