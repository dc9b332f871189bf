"""The services as users hold them. Every verb is defined once, as a coroutine of a service; here it gets its sync form
(`app.schedules.add`) and its async form (`app.aio.schedules.add`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from ostinato.errors import InvalidInput
from ostinato.execution.throttle import Throttle, Usage
from ostinato.home import Face, Home, awaiting, blocking
from ostinato.models.ids import RunId
from ostinato.service.lanes import LaneService
from ostinato.service.nodes import NodeService
from ostinato.service.projects import ProjectService
from ostinato.service.runs import RunService
from ostinato.service.schedules import ScheduleService
from ostinato.service.sessions import SessionService
from ostinato.tasks import MessageHandle
from ostinato.wiring import House

__all__ = [
    "AioLanes",
    "AioNodes",
    "AioProjects",
    "AioRuns",
    "AioSchedules",
    "AioSessions",
    "Lanes",
    "Nodes",
    "Projects",
    "Runs",
    "Schedules",
    "Sessions",
]


P = ParamSpec("P")


def _handing(
    method: Callable[Concatenate[SessionService, P], Coroutine[Any, Any, RunId]],
) -> Callable[Concatenate[Sessions, P], MessageHandle]:
    """The sync form of a coroutine that answers a run: the caller gets a handle on it."""

    @wraps(method)
    def call(self: Sessions, /, *args: P.args, **kwargs: P.kwargs) -> MessageHandle:
        id = self._home.run(lambda house: method(self._pick(house), *args, **kwargs))
        return MessageHandle(id, self._runs, self)

    return call


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
    backfill = blocking(ScheduleService.backfill)
    remove = blocking(ScheduleService.remove)
    next = blocking(ScheduleService.next)
    history = blocking(ScheduleService.history)


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
    backfill = awaiting(ScheduleService.backfill)
    remove = awaiting(ScheduleService.remove)
    next = awaiting(ScheduleService.next)
    history = awaiting(ScheduleService.history)


class Runs(Face[House, RunService]):
    """Runs, for sync code."""

    enqueue = blocking(RunService.enqueue)
    enqueue_work = blocking(RunService.enqueue_work)
    get = blocking(RunService.get)
    list = blocking(RunService.list)
    output = blocking(RunService.output)
    lines = blocking(RunService.lines)
    cancel = blocking(RunService.cancel)
    retry = blocking(RunService.retry)
    wait = blocking(RunService.wait)


class AioRuns(Face[House, RunService]):
    """Runs, for coroutines."""

    enqueue = awaiting(RunService.enqueue)
    enqueue_work = awaiting(RunService.enqueue_work)
    get = awaiting(RunService.get)
    list = awaiting(RunService.list)
    output = awaiting(RunService.output)
    lines = awaiting(RunService.lines)
    cancel = awaiting(RunService.cancel)
    retry = awaiting(RunService.retry)
    wait = awaiting(RunService.wait)


class Projects(Face[House, ProjectService]):
    """Projects, for sync code."""

    add = blocking(ProjectService.add)
    get = blocking(ProjectService.get)
    list = blocking(ProjectService.list)
    remove = blocking(ProjectService.remove)


class AioProjects(Face[House, ProjectService]):
    """Projects, for coroutines."""

    add = awaiting(ProjectService.add)
    get = awaiting(ProjectService.get)
    list = awaiting(ProjectService.list)
    remove = awaiting(ProjectService.remove)


class Lanes(Face[House, LaneService]):
    """Lanes, for sync code."""

    list = blocking(LaneService.list)
    get = blocking(LaneService.get)
    get_or_create = blocking(LaneService.get_or_create)
    set = blocking(LaneService.set)
    pause = blocking(LaneService.pause)
    resume = blocking(LaneService.resume)
    clear = blocking(LaneService.clear)


class AioLanes(Face[House, LaneService]):
    """Lanes, for coroutines."""

    list = awaiting(LaneService.list)
    get = awaiting(LaneService.get)
    get_or_create = awaiting(LaneService.get_or_create)
    set = awaiting(LaneService.set)
    pause = awaiting(LaneService.pause)
    resume = awaiting(LaneService.resume)
    clear = awaiting(LaneService.clear)


class Sessions(Face[House, SessionService]):
    """Sessions, for sync code."""

    def __init__(
        self, home: Home[House], pick: Callable[[House], SessionService], throttle: Throttle, runs: Runs
    ) -> None:
        super().__init__(home, pick)
        self._throttle = throttle
        self._runs = runs

    send = _handing(SessionService.send)
    wait = blocking(SessionService.wait)
    stop = blocking(SessionService.stop)
    stop_all = blocking(SessionService.stop_all)
    get = blocking(SessionService.get)
    list = blocking(SessionService.list)
    events = blocking(SessionService.events)

    def throttle(self, usage: Usage) -> Usage:
        """Ask this callback how full a session's window is: `(tokens, window)`. Above 60 % it goes one at a time.

        It is called on the engine's loop before a turn is given, so it must answer from memory. Can be a decorator.
        """
        if not callable(usage):
            raise InvalidInput(
                f"a throttle cannot be {usage!r}", field="usage", hint="def usage(key): return tokens, window"
            )
        self._throttle.usage = usage
        return usage


class AioSessions(Face[House, SessionService]):
    """Sessions, for coroutines; `send` answers the number of the run."""

    send = awaiting(SessionService.send)
    wait = awaiting(SessionService.wait)
    stop = awaiting(SessionService.stop)
    stop_all = awaiting(SessionService.stop_all)
    get = awaiting(SessionService.get)
    list = awaiting(SessionService.list)
    events = awaiting(SessionService.events)


class Nodes(Face[House, NodeService]):
    """Nodes, for sync code."""

    list = blocking(NodeService.list)
    get = blocking(NodeService.get)
    drain = blocking(NodeService.drain)
    resume = blocking(NodeService.resume)


class AioNodes(Face[House, NodeService]):
    """Nodes, for coroutines."""

    list = awaiting(NodeService.list)
    get = awaiting(NodeService.get)
    drain = awaiting(NodeService.drain)
    resume = awaiting(NodeService.resume)
