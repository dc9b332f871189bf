"""/api/kinds: the kinds of work that can be asked for here, with their fields, for forms."""

from __future__ import annotations

from ostinato.api.access import Viewer
from ostinato.api.segments import routes_of
from ostinato.service.kind_answers import KindList, kind_answers

__all__ = ["router"]

router = routes_of("kinds")


@router.get("/api/kinds")
async def list_kinds(_: Viewer) -> KindList:
    """Every kind of work that this server knows, those of installed packages last."""
    return kind_answers()
