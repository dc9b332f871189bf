"""The services as users hold them. Every verb is defined once, as a coroutine of a service; here it gets its sync form
(`app.schedules.add`) and its async form (`app.aio.schedules.add`).
"""

from __future__ import annotations

from ostinato.home import Face, awaiting, blocking
from ostinato.service.nodes import NodeService
from ostinato.service.runs import RunService
from ostinato.service.schedules import ScheduleService
from ostinato.wiring import House

__all__ = ["AioNodes", "AioRuns", "AioSchedules", "Nodes", "Runs", "Schedules"]


class Schedules(Face[House, ScheduleService]):
    """Schedules, for sync code."""

    add = blocking(ScheduleService.add)
    add_many = blocking(ScheduleService.add_many)
    get = blocking(ScheduleService.get)
    list = blocking(ScheduleService.list)
    edit = blocking(ScheduleService.edit)
    enable = blocking(ScheduleService.enable)
    disable = blocking(ScheduleService.disable)
    trigger = blocking(ScheduleService.trigger)
    remove = blocking(ScheduleService.remove)
    next = blocking(ScheduleService.next)


class AioSchedules(Face[House, ScheduleService]):
    """Schedules, for coroutines."""

    add = awaiting(ScheduleService.add)
    add_many = awaiting(ScheduleService.add_many)
    get = awaiting(ScheduleService.get)
    list = awaiting(ScheduleService.list)
    edit = awaiting(ScheduleService.edit)
    enable = awaiting(ScheduleService.enable)
    disable = awaiting(ScheduleService.disable)
    trigger = awaiting(ScheduleService.trigger)
    remove = awaiting(ScheduleService.remove)
    next = awaiting(ScheduleService.next)


class Runs(Face[House, RunService]):
    """Runs, for sync code."""

    enqueue = blocking(RunService.enqueue)
    get = blocking(RunService.get)
    list = blocking(RunService.list)
    output = blocking(RunService.output)
    cancel = blocking(RunService.cancel)
    retry = blocking(RunService.retry)
    wait = blocking(RunService.wait)


class AioRuns(Face[House, RunService]):
    """Runs, for coroutines."""

    enqueue = awaiting(RunService.enqueue)
    get = awaiting(RunService.get)
    list = awaiting(RunService.list)
    output = awaiting(RunService.output)
    cancel = awaiting(RunService.cancel)
    retry = awaiting(RunService.retry)
    wait = awaiting(RunService.wait)


class Nodes(Face[House, NodeService]):
    """Nodes, for sync code."""

    list = blocking(NodeService.list)


class AioNodes(Face[House, NodeService]):
    """Nodes, for coroutines."""

    list = awaiting(NodeService.list)
