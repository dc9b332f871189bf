"""Tasks: which there are, who knows them, and how many schedules call them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ostinato.clock import Clock
from ostinato.models.work_kinds import is_task
from ostinato.stores.base import Store

__all__ = ["TaskService", "TaskUse"]


@dataclass(frozen=True, slots=True)
class TaskUse:
    """A task that a running node knows, or that a schedule calls."""

    name: str
    nodes: Sequence[str]
    """The running nodes that know it."""
    schedules: int
    """How many schedules call it."""


class TaskService:
    """What can be asked of tasks."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list(self) -> Sequence[TaskUse]:
        """Every task that a running node knows or a schedule calls, by name."""
        counted = await self._store.schedules.count_tasks()
        schedules = {name: many for name, many in counted.items() if is_task(name)}
        knowing: dict[str, list[str]] = {name: [] for name in schedules}
        for node in await self._store.nodes.list_nodes(self._clock.now()):
            for task in filter(is_task, node.tasks) if node.state != "lost" else ():
                knowing.setdefault(task, []).append(node.id)
        return [TaskUse(name, knowing[name], schedules.get(name, 0)) for name in sorted(knowing)]
