"""/api/overview: everything at a glance."""

from __future__ import annotations

from ostinato.api.access import Container, Viewer
from ostinato.api.segments import routes_of
from ostinato.service.overview import Overview

__all__ = ["router"]

router = routes_of("overview")


@router.get("/api/overview")
async def get_overview(container: Container, _: Viewer) -> Overview:
    """What is running, late, broken and due next, and how the last day went."""
    return await container.services.overview.look(is_here=container.has_engine)
