"""/api/audit: what people and agents did."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api.access import Admin, Container, Served
from ostinato.api.segments import routes_of
from ostinato.api.shapes.access import AuditQuery
from ostinato.service.answers import AuditPage

__all__ = ["router"]

router = routes_of("audit")


@router.get("/api/audit")
async def list_audit(
    query: Annotated[AuditQuery, Query()], services: Served, container: Container, _: Admin
) -> AuditPage:
    """Every write of people and agents, newest first, page by page."""
    found = await services.audit.page(
        who=query.who,
        door=query.door,
        verb=query.verb,
        object=query.object,
        since=query.from_,
        until=query.until,
        cursor=query.cursor,
        limit=query.reach,
    )
    return AuditPage.of(query.of(found), zone=container.settings.tz)
