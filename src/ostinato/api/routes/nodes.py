"""/api/nodes: who is alive; drain and resume."""

from __future__ import annotations

from ostinato.api.access import Container, Operator, Served, Viewer
from ostinato.api.answers import Zoned
from ostinato.api.container import ApiContainer
from ostinato.api.segments import Name, routes_of
from ostinato.models.node import Node as NodeModel
from ostinato.service.answers import Listed, Node, node_answer

__all__ = ["router"]

router = routes_of("nodes")


@router.get("/api/nodes")
async def list_nodes(services: Served, container: Container, _: Viewer) -> Listed[Node]:
    """Every node, alive or recently lost, oldest first. Only operators see why a service failed."""
    return Listed([node_answer(node) for node in await services.nodes.list()], container.settings.tz)


@router.post("/api/nodes/{id}/drain")
async def drain_node(id: Name, services: Served, container: Container, _: Operator) -> Zoned[Node]:
    """Ask it to take no new work; its active runs end, and its process stays."""
    return _answer(await services.nodes.drain(id), container)


@router.post("/api/nodes/{id}/resume")
async def resume_node(id: Name, services: Served, container: Container, _: Operator) -> Zoned[Node]:
    """Let it take work again."""
    return _answer(await services.nodes.resume(id), container)


def _answer(node: NodeModel, container: ApiContainer) -> Zoned[Node]:
    return Zoned(node_answer(node), container.settings.tz)
