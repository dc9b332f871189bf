"""Nodes: who is alive, and which tasks somebody knows."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Clock
from ostinato.models.node import Node
from ostinato.stores.base import Store

__all__ = ["NodeService"]


class NodeService:
    """What can be asked of nodes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list(self) -> Sequence[Node]:
        """Every node, alive or lately lost, the oldest first."""
        return await self._store.nodes.list_nodes(self._clock.now())
