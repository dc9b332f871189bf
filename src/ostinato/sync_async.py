"""The services as users hold them. A verb is a coroutine of a service, named here once, and appears in both forms:
`app.runs.list(…)` waits for the answer, `app.aio.runs.list(…)` is awaited. Where both are run is `event_loop_host.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from datetime import datetime
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from ostinato.durations import Duration
from ostinato.errors import InvalidInput, StoreError
from ostinato.event_loop_host import EventLoopHost
from ostinato.execution.throttle import Throttle, Usage
from ostinato.models.ids import RunId
from ostinato.models.output import OutputLine
from ostinato.models.policy import PolicyOptions
from ostinato.models.run import Run
from ostinato.models.task import TaskInfo
from ostinato.run_handles import MessageHandle, RunHandle
from ostinato.service.calendars import CalendarService
from ostinato.service.chains import ChainService
from ostinato.service.incidents import IncidentService
from ostinato.service.lanes import LaneService
from ostinato.service.nodes import NodeService
from ostinato.service.notifications import NotificationService
from ostinato.service.projects import ProjectService
from ostinato.service.runs import Enqueued, RunService
from ostinato.service.schedules.drafts import WorkLike
from ostinato.service.schedules.service import ScheduleService
from ostinato.service.sessions import SessionService
from ostinato.service.tasks import TaskService
from ostinato.service.transactions import TransactionService
from ostinato.service.why import Why
from ostinato.wiring import Container, ExecutionCallbacks

__all__ = [
    "Async",
    "Calendars",
    "Chains",
    "Incidents",
    "Lanes",
    "Nodes",
    "Notifications",
    "Projects",
    "Resources",
    "Runs",
    "Schedules",
    "Sessions",
    "Sync",
    "SyncAsync",
    "Tasks",
    "Transactions",
]

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")


class Sync:
    """The form for sync code: a verb blocks until it has the answer."""


class Async:
    """The form for coroutines on any loop: a verb is awaited."""


F = TypeVar("F", bound=Sync | Async)


class SyncAsync(Generic[S, F]):
    """A service in one of the two forms: on whose loop it runs, and which of the container's services it is."""

    def __init__(self, form: type[F], host: EventLoopHost[Container], pick: Callable[[Container], S]) -> None:
        self._form = form
        self._host = host
        self._pick = pick


class _Verb(Generic[S, P, T, R, A]):
    """A service's coroutine as a method of either form: the same arguments, and what each form answers."""

    def __init__(
        self,
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
        answered: Callable[[Any, T], R],
        awaited: Callable[[T], A],
    ) -> None:
        @wraps(method)
        def blocking(holder: SyncAsync[S, Sync], /, *args: P.args, **kwargs: P.kwargs) -> R:
            return answered(
                holder, holder._host.run(lambda container: method(holder._pick(container), *args, **kwargs))
            )

        @wraps(method)
        async def awaiting(holder: SyncAsync[S, Async], /, *args: P.args, **kwargs: P.kwargs) -> A:
            return awaited(await holder._host.arun(lambda container: method(holder._pick(container), *args, **kwargs)))

        self._forms: dict[type[Any], Callable[..., Any]] = {Sync: blocking, Async: awaiting}

    @overload
    def __get__(self, holder: None, owner: type[Any]) -> Callable[..., Any]: ...

    @overload
    def __get__(self, holder: SyncAsync[S, Sync], owner: type[Any]) -> Callable[P, R]: ...

    @overload
    def __get__(self, holder: SyncAsync[S, Async], owner: type[Any]) -> Callable[P, Coroutine[Any, Any, A]]: ...

    def __get__(self, holder: SyncAsync[S, Any] | None, owner: type[Any]) -> Callable[..., Any]:
        if holder is None:
            return self._forms[Sync]  # for who reads the class: its signature and its words
        return MethodType(self._forms[holder._form], holder)


def _verb(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> _Verb[S, P, T, T, T]:
    return _Verb(method, lambda _, answer: answer, lambda answer: answer)


def _sending(
    method: Callable[Concatenate[SessionService, P], Coroutine[Any, Any, RunId]],
) -> _Verb[SessionService, P, RunId, MessageHandle, RunId]:
    return _Verb(method, lambda sessions, id: MessageHandle(id, sessions._runs, _sessions=sessions), lambda id: id)


class Schedules(SyncAsync[ScheduleService, F]):
    """Schedules."""

    add = _verb(ScheduleService.add)
    add_many = _verb(ScheduleService.add_many)
    get = _verb(ScheduleService.get)
    relations = _verb(ScheduleService.relations)
    list = _verb(ScheduleService.list)
    edit = _verb(ScheduleService.edit)
    enable = _verb(ScheduleService.enable)
    disable = _verb(ScheduleService.disable)
    revert = _verb(ScheduleService.revert)
    trigger = _verb(ScheduleService.trigger)
    backfill = _verb(ScheduleService.backfill)
    ping_key = _verb(ScheduleService.ping_key)
    badge_key = _verb(ScheduleService.badge_key)
    remove = _verb(ScheduleService.remove)
    next = _verb(ScheduleService.next)
    history = _verb(ScheduleService.history)


class Runs(SyncAsync[RunService, F]):
    """Runs."""

    enqueue = _verb(RunService.enqueue)
    enqueue_work = _verb(RunService.enqueue_work)
    get = _verb(RunService.get)
    blocked_by = _verb(RunService.blocked_by)
    relations = _verb(RunService.relations)
    list = _verb(RunService.list)
    output = _verb(RunService.output)
    lines = _verb(RunService.lines)
    cancel = _verb(RunService.cancel)
    retry = _verb(RunService.retry)
    wait = _verb(RunService.wait)


class Chains(SyncAsync[ChainService, F]):
    """Chains of runs, as a whole."""

    enqueue = _verb(ChainService.enqueue)
    get = _verb(ChainService.get)
    wait = _verb(ChainService.wait)
    cancel = _verb(ChainService.cancel)


class Transactions(SyncAsync[TransactionService, F]):
    """What a run needs that is enqueued in a transaction of its caller."""

    prepare = _verb(TransactionService.prepare)
    find = _verb(TransactionService.find)
    arrive = _verb(TransactionService.arrive)


class Projects(SyncAsync[ProjectService, F]):
    """Projects."""

    add = _verb(ProjectService.add)
    get = _verb(ProjectService.get)
    list = _verb(ProjectService.list)
    remove = _verb(ProjectService.remove)


class Calendars(SyncAsync[CalendarService, F]):
    """Calendars: named sets of dates."""

    list = _verb(CalendarService.list)
    get = _verb(CalendarService.get)
    set = _verb(CalendarService.set)
    add = _verb(CalendarService.add)
    remove = _verb(CalendarService.remove)


class Lanes(SyncAsync[LaneService, F]):
    """Lanes."""

    list = _verb(LaneService.list)
    get = _verb(LaneService.get)
    get_or_create = _verb(LaneService.get_or_create)
    set = _verb(LaneService.set)
    pause = _verb(LaneService.pause)
    resume = _verb(LaneService.resume)
    clear = _verb(LaneService.clear)


class Nodes(SyncAsync[NodeService, F]):
    """Nodes."""

    list = _verb(NodeService.list)
    get = _verb(NodeService.get)
    drain = _verb(NodeService.drain)
    resume = _verb(NodeService.resume)


class Tasks(SyncAsync[TaskService, F]):
    """Tasks, with their schedules, whether they run now, and when next. Sync code may iterate over them."""

    list = _verb(TaskService.list)
    get = _verb(TaskService.get)

    def __iter__(self: Tasks[Sync]) -> Iterator[TaskInfo]:
        return iter(self.list())


class Notifications(SyncAsync[NotificationService, F]):
    """Channels, the rules of what they are told, and what became of each delivery."""

    add = _verb(NotificationService.add)
    get = _verb(NotificationService.get)
    list = _verb(NotificationService.list)
    test = _verb(NotificationService.test)
    remove = _verb(NotificationService.remove)
    add_rule = _verb(NotificationService.add_rule)
    rules = _verb(NotificationService.rules)
    remove_rule = _verb(NotificationService.remove_rule)
    log = _verb(NotificationService.log)


class Incidents(SyncAsync[IncidentService, F]):
    """Incidents."""

    list = _verb(IncidentService.list)
    get = _verb(IncidentService.get)
    look = _verb(IncidentService.look)
    ack = _verb(IncidentService.ack)
    rerun = _verb(IncidentService.rerun)


class Sessions(SyncAsync[SessionService, F]):
    """Sessions. `send` gives sync code a handle on the run, and coroutines its number."""

    def __init__(self, form: type[F], host: EventLoopHost[Container], throttle: Throttle) -> None:
        super().__init__(form, host, lambda container: container.services.sessions)
        self._runs = Runs(Sync, host, lambda container: container.services.runs)
        self._throttle = throttle

    send = _sending(SessionService.send)
    wait = _verb(SessionService.wait)
    stop = _verb(SessionService.stop)
    stop_all = _verb(SessionService.stop_all)
    get = _verb(SessionService.get)
    list = _verb(SessionService.list)
    events = _verb(SessionService.events)

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


async def _enqueue(
    container: Container,
    work: WorkLike,
    *,
    project: str | None = None,
    key: str | None = None,
    scope: str | None = None,
    delay: Duration | None = None,
    at: datetime | None = None,
    **policy: Unpack[PolicyOptions],
) -> Enqueued:
    """Run a Shell, an Agent, an Http or a task soon, on any node. The run is durable when this returns."""
    if asked := [name for name in ("connection", "on_commit") if name in policy]:
        raise InvalidInput(
            "only a task is enqueued in a transaction of its caller: task.using(connection=…).enqueue(…)",
            field=asked[0],
            hint="for other work, enqueue a task that enqueues it",
        )
    runs = container.services.runs
    return await runs.enqueue_work(work, project=project, key=key, scope=scope, delay=delay, at=at, **policy)


def _handle(resources: Resources[Sync], run: Enqueued) -> RunHandle[Any]:
    return RunHandle(run.id, resources.runs, is_new=run.is_new)


async def _execute(
    container: Container,
    work: WorkLike,
    *,
    project: str | None = None,
    printed: Callable[[OutputLine], None] = lambda _: None,
    wait: bool = True,
    **policy: Unpack[PolicyOptions],
) -> Run:
    """Run this work right here, recorded like every run, and wait for its end. There is one attempt.

    If it belongs to a session, it waits for its turn there; with `wait=False`, a session that is busy is a Conflict.
    Inside of a run, it ends with that run. `printed` gets its lines as they come, on the engine's event loop.
    """
    draft = await container.services.runs.draft(work, project=project, **policy)
    return await container.execute(draft, ExecutionCallbacks(printed=printed), wait=wait)


async def _wait_idle(container: Container, timeout: Duration | None = None) -> None:
    """Wait until nothing is queued and ready, or running."""
    await container.services.runs.wait_idle(timeout=timeout)


async def _health(container: Container) -> dict[str, Any]:
    """How the engine of this process is, and for each of its tasks how many runs are under way on all nodes
    (`running`), since when, and when it is due next. `tasks` is None while the database does not answer."""
    tasks: dict[str, dict[str, Any]] | None = None
    with suppress(StoreError, TimeoutError):
        async with asyncio.timeout(container.settings.tuning.readiness_seconds):
            tasks = await container.services.tasks.health()
    return {**await container.health(), "tasks": tasks}


async def _metrics(container: Container) -> str:
    """All metrics in Prometheus' text format, for a `/metrics` of your own; its type is METRICS_CONTENT_TYPE.

    They are those of the whole database, whichever process is asked: scrape one of them.
    """
    return await container.metrics()


async def _why(container: Container, name: str, at: datetime | None = None) -> Why:
    """Why a schedule did or did not run, at a time or lately."""
    return await container.services.why.why(name, at)


class Resources(SyncAsync[Container, F]):
    """All of these in one form, and what is asked of the whole: those of an app, or of its `aio`.

    `enqueue` gives sync code a handle on the run, and coroutines its number.
    """

    def __init__(self, form: type[F], host: EventLoopHost[Container], throttle: Throttle) -> None:
        super().__init__(form, host, lambda container: container)
        self.schedules = Schedules(form, host, lambda container: container.services.schedules)
        self.runs = Runs(form, host, lambda container: container.services.runs)
        self._chains = Chains(form, host, lambda container: container.services.chains)
        self._transactions = Transactions(form, host, lambda container: container.services.transactions)
        self.projects = Projects(form, host, lambda container: container.services.projects)
        self.calendars = Calendars(form, host, lambda container: container.services.calendars)
        self.lanes = Lanes(form, host, lambda container: container.services.lanes)
        self.sessions = Sessions(form, host, throttle)
        self.tasks = Tasks(form, host, lambda container: container.services.tasks)
        self.nodes = Nodes(form, host, lambda container: container.services.nodes)
        self.notifications = Notifications(form, host, lambda container: container.services.notifications)
        self.incidents = Incidents(form, host, lambda container: container.services.incidents)

    enqueue = _Verb(_enqueue, _handle, lambda run: run.id)
    execute = _verb(_execute)
    health = _verb(_health)
    metrics = _verb(_metrics)
    wait_idle = _verb(_wait_idle)
    why = _verb(_why)
