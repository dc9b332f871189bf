"""Tasks: which there are, who knows them, which schedules call them, whether they run now, and when next.

`app.tasks`, `ostinato task ls` and `/api/tasks` give the same answer; `health()` has a part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ostinato.clock import Clock, from_micros
from ostinato.errors import NotFound
from ostinato.models.task import TaskDescription, TaskInfo, TaskSchedule
from ostinato.models.work_kinds import is_task
from ostinato.service.schedules.drafts import Code
from ostinato.stores.base import Store

__all__ = ["TaskService"]

MOST_SCHEDULES = 100
"""So many of each task are listed; the others are counted."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Who knows which tasks."""

    here: Mapping[str, TaskDescription]
    nodes: Mapping[str, Sequence[str]]
    scheduled: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        return sorted({*self.here, *self.nodes, *self.scheduled})


class TaskService:
    """What can be asked of tasks."""

    def __init__(self, store: Store, clock: Clock, code: Code) -> None:
        self._store = store
        self._clock = clock
        self._code = code

    async def list(self) -> Sequence[TaskInfo]:
        """Every task that this process or a running node knows, or a schedule calls, by name."""
        known = await self._known()
        return await self._found(known, known.names)

    async def get(self, name: str) -> TaskInfo:
        """The task of this name."""
        known = await self._known()
        if name not in known.names:
            raise NotFound(
                f"there is no task {name!r}: neither this process nor a running node knows it, and no schedule calls it"
            )
        (found,) = await self._found(known, [name])
        return found

    async def health(self) -> dict[str, dict[str, Any]]:
        """For each task of this process: how many of its runs are under way on all nodes, since when the oldest is,
        and when its next schedule is due."""
        names = sorted(filter(is_task, self._code.described_tasks()))
        running = await self._store.runs.running_tasks()
        due = await self._store.schedules.next_of_tasks(names)
        return {
            name: {
                "running": running[name].count if name in running else 0,
                "running_since": _text(running[name].since if name in running else None),
                "next_run_at": _text(from_micros(due[name]) if name in due else None),
            }
            for name in names
        }

    async def _known(self) -> _Known:
        nodes: dict[str, list[str]] = {}
        for node in await self._store.nodes.list_nodes(self._clock.now()):
            for task in filter(is_task, node.tasks) if node.state != "lost" else ():
                nodes.setdefault(task, []).append(node.id)
        counted = await self._store.schedules.count_tasks()
        here = {name: task for name, task in self._code.described_tasks().items() if is_task(name)}
        return _Known(here, nodes, {name: count for name, count in counted.items() if is_task(name)})

    async def _found(self, known: _Known, names: Collection[str]) -> Sequence[TaskInfo]:
        scheduled = [name for name in names if name in known.scheduled]
        running = await self._store.runs.running_tasks()
        schedules = await self._store.schedules.task_schedules(scheduled, MOST_SCHEDULES)
        due = await self._store.schedules.next_of_tasks(scheduled)
        found = []
        for name in names:
            here, under_way = known.here.get(name), running.get(name)
            calling = _with_declared(schedules.get(name, ()), here)
            found.append(
                TaskInfo(
                    name,
                    kind=None if here is None else here.kind,
                    description=None if here is None else here.description,
                    app=here is not None,
                    nodes=known.nodes.get(name, ()),
                    schedules=calling,
                    schedule_count=max(known.scheduled.get(name, 0), len(calling)),
                    running=0 if under_way is None else under_way.count,
                    running_since=None if under_way is None else under_way.since,
                    next_run_at=from_micros(due[name]) if name in due else None,
                )
            )
        return found


def _with_declared(stored: Sequence[TaskSchedule], here: TaskDescription | None) -> Sequence[TaskSchedule]:
    """Those of the database, and the one that the code declares if no engine has created it yet."""
    declared = None if here is None else here.declared
    if declared is None or len(stored) >= MOST_SCHEDULES or any(one.name == declared.name for one in stored):
        return stored
    return [*stored, declared]


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
