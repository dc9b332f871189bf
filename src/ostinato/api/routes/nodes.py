"""/api/nodes: who is alive; drain and resume."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import Node, NodeList
from ostinato.service.shapes import node_shape

__all__ = ["router"]

router = routes_of("nodes")


@router.get("/api/nodes", response_model=None, responses={200: {"model": NodeList}})
async def list_nodes(services: Served, _: Viewer) -> Response:
    """Every node, alive or lately lost, the oldest first."""
    return json_answer({"items": [node_shape(node) for node in await services.nodes.list()]})


@router.post("/api/nodes/{id}/drain", response_model=None, responses={200: {"model": Node}, **problems(404)})
async def drain_node(id: Name, services: Served, _: Operator) -> Response:
    """Ask it to take no new work; what runs there ends, and its process stays."""
    return json_answer(node_shape(await services.nodes.drain(id)))


@router.post("/api/nodes/{id}/resume", response_model=None, responses={200: {"model": Node}, **problems(404)})
async def resume_node(id: Name, services: Served, _: Operator) -> Response:
    """Let it take work again."""
    return json_answer(node_shape(await services.nodes.resume(id)))
