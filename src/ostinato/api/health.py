"""/livez, /healthz and /readyz, for load balancers and supervisors: nobody logs in, and they say yes, or why not."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from ostinato.api.access import Container
from ostinato.errors import OstinatoError, WaitTimeout

__all__ = ["router"]

router = APIRouter()


@router.get("/livez", include_in_schema=False)
async def livez(container: Container) -> Response:
    """200 unless a restart of this process would help: not while the database is away."""
    try:
        health = await container.health()
    except WaitTimeout as error:
        return _answer(str(error))
    if health["node"] is None:
        return _answer(None)
    return _answer(health["restart"] or ("the event loop is blocked" if health["loop"]["blocked_for"] else None))


@router.get("/healthz", include_in_schema=False)
async def healthz(container: Container) -> Response:
    """200 while this process serves; 503 if an engine was started here and is not well."""
    try:
        return _answer(_why_not_healthy(await container.health()))
    except WaitTimeout as error:
        return _answer(str(error))


@router.get("/readyz", include_in_schema=False)
async def readyz(container: Container) -> Response:
    """200 when work can be sent here: the database answers, and an engine of this process has its lease."""
    try:
        health = await container.health()
    except WaitTimeout as error:
        return _answer(str(error))
    if health.get("starting"):
        return _answer("the engine has not started yet")
    if health["node"] is not None and health["draining"]:
        return _answer("this node is draining")
    seconds = container.settings.tuning.readiness_seconds
    try:
        async with asyncio.timeout(seconds):
            nodes = await container.services.nodes.list()
    except TimeoutError:
        return _answer(f"the database did not answer within {seconds:g} s")
    except OstinatoError:
        # What the database says may name hosts and users: the log has it.
        return _answer("the database does not answer")
    states = {node.id: node.state for node in nodes}
    if health["node"] is not None and states.get(health["node"]) != "alive":
        return _answer("this node is draining" if states.get(health["node"]) == "draining" else "its lease was lost")
    return _answer(_why_not_healthy(health))


def _why_not_healthy(health: dict[str, Any]) -> str | None:
    if health["node"] is None or health["ok"] or health["draining"]:
        # Without an engine it only serves, and one that drains ends its services on purpose.
        return None
    if health["database"] is not None:
        return "its database file was deleted or replaced: restart this process"
    down = sorted(name for name, service in health["services"].items() if not service["up"])
    if down:
        return f"engine service {', '.join(down)} is down"
    if not health["lease"]["holds"]:
        return f"its lease has not been renewed since {health['lease']['unrenewed_since']}"
    return "the event loop is blocked"


def _answer(reason: str | None) -> Response:
    shape: dict[str, Any] = {"ok": True} if reason is None else {"ok": False, "reason": reason}
    return Response(
        msgspec.json.encode(shape),
        200 if reason is None else 503,
        {"Cache-Control": "no-store"},
        media_type="application/json",
    )
