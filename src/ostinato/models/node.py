"""Nodes: processes whose engine is started. A node that does not renew its lease is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ostinato.clock import Micros
from ostinato.models.ids import NodeId

__all__ = ["Node", "NodeBeat"]


@dataclass(frozen=True, slots=True)
class NodeBeat:
    """What a node writes to keep its lease."""

    id: NodeId
    host: str
    pid: int
    slots: int
    """0 for a process that takes no work, as `ostinato exec`: it is no engine, and only its lease counts."""
    running: int
    draining: bool
    tasks: tuple[str, ...]
    started_at: Micros
    now: Micros
    lease_until: Micros
    services: str
    """JSON: each engine service and how it is."""
    statistics: str = "{}"
    """JSON: what this node has counted since its start. It is large, and read for itself."""
    drain: bool = False
    """Under its last name it was asked to take no more work. Only the first beat of a name says so."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node as people see it."""

    id: NodeId
    host: str
    pid: int
    state: str
    """alive, draining or lost."""
    slots: int
    running: int
    tasks: tuple[str, ...]
    started_at: datetime
    seen_at: datetime
    services: dict[str, Any] = field(default_factory=dict)
    drain: bool = False
    """Somebody asked it to take no more work."""
