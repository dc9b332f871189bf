"""/api/nodes: who is alive; drain and resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from ostinato.api.access import House, Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems, zoned
from ostinato.api.house import ApiHouse
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import NodeAnswer, NodeList
from ostinato.models.access import Role
from ostinato.models.node import Node
from ostinato.service.shapes import node_shape

__all__ = ["router"]

router = routes_of("nodes")


@router.get("/api/nodes", response_model=None, responses={200: {"model": NodeList}})
async def list_nodes(services: Served, house: House, login: Viewer) -> Response:
    """Every node, alive or lately lost, the oldest first. Why a service failed is told to operators."""
    items = [node_shape(node) for node in await services.nodes.list()]
    if not login.role.covers(Role.OPERATOR):
        # What the database said may name hosts and users.
        items = [item | {"services": _without_errors(item["services"])} for item in items]
    return json_answer(zoned({"items": items}, house.settings.tz))


@router.post("/api/nodes/{id}/drain", response_model=None, responses={200: {"model": NodeAnswer}, **problems(404)})
async def drain_node(id: Name, services: Served, house: House, _: Operator) -> Response:
    """Ask it to take no new work; what runs there ends, and its process stays."""
    return _answer(await services.nodes.drain(id), house)


@router.post("/api/nodes/{id}/resume", response_model=None, responses={200: {"model": NodeAnswer}, **problems(404)})
async def resume_node(id: Name, services: Served, house: House, _: Operator) -> Response:
    """Let it take work again."""
    return _answer(await services.nodes.resume(id), house)


def _answer(node: Node, house: ApiHouse) -> Response:
    return json_answer(zoned(node_shape(node), house.settings.tz))


def _without_errors(services: Mapping[str, Any]) -> dict[str, Any]:
    told = "the log of the node says why"
    return {name: service | {"error": told if service.get("error") else None} for name, service in services.items()}
