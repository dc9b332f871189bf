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
    running: int
    draining: bool
    tasks: tuple[str, ...]
    started_at: Micros
    now: Micros
    lease_until: Micros
    services: str
    """JSON: each engine service and how it is."""
    statistics: str = "{}"
    """JSON: what this node has counted since its start."""
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
    statistics: dict[str, Any] = field(default_factory=dict)
    """What it has counted since its start: runs by task and state, durations, lateness, batches."""
    drain: bool = False
    """Somebody asked it to take no more work."""
