"""Nodes: who is alive, and who shall take no more work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.clock import Clock
from ostinato.errors import Conflict, NotFound
from ostinato.models.ids import NodeId
from ostinato.models.node import Node
from ostinato.plurals import counted
from ostinato.service.audit import audited
from ostinato.stores.base import Store

__all__ = ["NodeService"]


class NodeService:
    """What can be asked of nodes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list(self) -> Sequence[Node]:
        """Every node, alive or recently lost, the oldest first."""
        return await self._store.nodes.list_nodes(self._clock.now())

    async def statistics(self) -> Mapping[NodeId, Mapping[str, Any]]:
        """What each node that is not lost has counted since its start, as of its last beat: runs by task and state,
        durations, lateness, batches."""
        return await self._store.nodes.read_statistics()

    async def get(self, id: str) -> Node:
        """The node of this name."""
        for node in await self.list():
            if node.id == id:
                return node
        raise NotFound(f"there is no node {id!r}; 'ostinato node ls' lists them")

    @audited("node.drain")
    async def drain(self, id: str) -> Node:
        """Ask a node to take no more work: what runs there ends, others go on, and its process stays. It hears of it
        at once, or with its next beat. A restart forgets it."""
        return await self._ask(id, drain=True)

    @audited("node.resume")
    async def resume(self, id: str) -> Node:
        """Ask a node to take work again."""
        return await self._ask(id, drain=False)

    async def _ask(self, id: str, *, drain: bool) -> Node:
        node = await self.get(id)
        if node.state == "lost":
            taken = f", and other nodes take over its {counted(node.running, 'run')}" if node.running else ""
            raise Conflict(f"node {id!r} was lost: it takes no work{taken}")
        if not await self._store.nodes.ask_drain(NodeId(id), drain):
            raise NotFound(f"node {id!r} has stopped in the meantime; 'ostinato node ls' lists the others")
        return await self.get(id)
