"""/api/audit: what people and agents did."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import Admin, House, Served
from ostinato.api.answers import json_answer, zoned
from ostinato.api.segments import routes_of
from ostinato.api.shapes.access import AuditPage, AuditQuery
from ostinato.service.shapes import audit_shape

__all__ = ["router"]

router = routes_of("audit")


@router.get("/api/audit", response_model=None, responses={200: {"model": AuditPage}})
async def list_audit(query: Annotated[AuditQuery, Query()], services: Served, house: House, _: Admin) -> Response:
    """Every write of people and agents, the newest first, page by page."""
    found = await services.audit.page(
        who=query.who,
        door=query.door,
        verb=query.verb,
        object=query.object,
        since=query.from_,
        until=query.until,
        cursor=query.cursor,
        limit=query.limit,
    )
    items = [audit_shape(entry) for entry in found.items]
    return json_answer(zoned({"items": items, "next": found.next}, house.settings.tz))
