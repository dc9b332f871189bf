"""Ostinato: the façade that users hold. Tasks and checks are declared on it; schedules and runs are reached through it.

Every verb is defined once, as a coroutine of a service; here it gets its sync form (`app.schedules.add`) and its
async form (`app.aio.schedules.add`).
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, overload

from ostinato.clock import Clock, SystemClock
from ostinato.config import Settings, load_settings
from ostinato.durations import Duration, parse_duration
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput
from ostinato.execution.registry import Check, Isolation, Registry
from ostinato.home import Face, Home, awaiting, blocking
from ostinato.models.policy import make_policy
from ostinato.service.drafts import ScheduleSpec
from ostinato.service.nodes import NodeService
from ostinato.service.runs import RunService
from ostinato.service.schedules import ScheduleService
from ostinato.service.why import Why
from ostinato.tasks import Task
from ostinato.timing import Timing
from ostinato.wiring import House, open_house

__all__ = ["Ostinato"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


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


class Ostinato:
    """A scheduler on one database. Making it touches nothing; the first call opens and migrates the database."""

    def __init__(
        self,
        db: str | None = None,
        *,
        tz: str | None = None,
        name: str = "default",
        slots: int | None = None,
        lanes: dict[str, int] | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.settings = settings or load_settings(db=db, tz=tz, slots=slots, lanes=lanes)
        self.clock: Clock = clock or SystemClock()
        self.registry = Registry()
        self._declared: dict[str, ScheduleSpec] = {}
        self._home: Home[House] = Home(lambda: open_house(self.settings, self.clock, self.registry))
        self.schedules = Schedules(self._home, lambda house: house.services.schedules)
        self.runs = Runs(self._home, lambda house: house.services.runs)
        self.nodes = Nodes(self._home, lambda house: house.services.nodes)
        self.aio = Aio(self)

    # Declaring

    @overload
    def task(self, name: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        name: str | None = None,
        *,
        schedule: Timing | str | None = None,
        enabled: bool = True,
        tz: str | None = None,
        isolation: Isolation = "none",
        **policy: Any,
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(
        self,
        name: str | Callable[P, R] | None = None,
        *,
        schedule: Timing | str | None = None,
        enabled: bool = True,
        tz: str | None = None,
        isolation: Isolation = "none",
        **policy: Any,
    ) -> Task[P, R] | Callable[[Callable[P, R]], Task[P, R]]:
        """Register a function as a task, with its policy and, if it has one, its schedule."""
        if callable(name):
            return self._register(name.__name__, schedule, enabled, tz, isolation, policy, name)

        def decorate(function: Callable[P, R]) -> Task[P, R]:
            return self._register(name or function.__name__, schedule, enabled, tz, isolation, policy, function)

        return decorate

    def _register(
        self,
        name: str,
        schedule: Timing | str | None,
        enabled: bool,
        tz: str | None,
        isolation: Isolation,
        options: dict[str, Any],
        function: Callable[P, R],
    ) -> Task[P, R]:
        self.registry.add_task(name, function, make_policy(options), isolation)
        task: Task[P, R] = Task(name, function, options, self.runs, self.aio.runs)
        if schedule is not None:
            self._declared[name] = ScheduleSpec(
                name, schedule, task, tz, enabled=enabled, owner="code", origin=self.name, policy={}
            )
        # An engine that is started already learns of it.
        self._home.call_soon(_learn)
        return task

    def check(self, name: str) -> Callable[[Check], Check]:
        """Register a check: it must pass before a schedule that names it is enabled, and before each of its runs."""
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"a check cannot be called {name!r}", field="name", hint="@app.check('disk')")

        def decorate(function: Check) -> Check:
            self.registry.add_check(name, function)
            return function

        return decorate

    # Starting and stopping

    def start(self) -> Ostinato:
        """Start the engine in the background; safe to call twice."""
        self._home.run(self._start)
        atexit.register(self._drain_at_exit)
        return self

    def stop(self, grace: Duration | None = None) -> None:
        """Drain and stop the engine and close the database; safe to call twice, or without a start."""
        atexit.unregister(self._drain_at_exit)
        self._home.leave(partial(_close, grace=_seconds(grace)))

    async def __aenter__(self) -> Ostinato:
        self._home.adopt()
        await self._home.arun(self._start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aio.stop()

    async def _start(self, house: House) -> None:
        if house.engine is None:
            await self._declare(house)
            house.engine = house.make_engine()
            await house.engine.start()

    def with_engine(self, use: Callable[[Engine], Awaitable[T]]) -> T:
        """Run `use` with the engine, on its loop: the started one, or one that only does what it is told.

        For `ostinato.testing` and tools: what the engine of another version offers may differ.
        """
        return self._home.run(lambda house: self._with_engine(house, use))

    async def _with_engine(self, house: House, use: Callable[[Engine], Awaitable[T]]) -> T:
        if house.engine is not None:
            return await use(house.engine)
        await self._declare(house)
        engine = house.make_engine()
        await engine.prepare()
        try:
            return await use(engine)
        finally:
            await engine.stop(grace=0)

    async def _declare(self, house: House) -> None:
        """Make the schedules that the code declares be so, and mark those that it no longer does."""
        await house.services.schedules.add_many(self._declared.values())
        await house.store.schedules.mark_orphans(self.name, list(self._declared), self.clock.now())

    def _drain_at_exit(self) -> None:
        with contextlib.suppress(Exception):  # the process ends: what cannot be drained is rescued by others
            self._home.run(_stop_engine)

    # Asking

    def health(self) -> dict[str, Any]:
        """How the engine of this process is; `ok` is False when none is started."""
        return self._home.run(_health)

    def wait_idle(self, timeout: Duration | None = None) -> None:
        """Wait until nothing is queued and ready, or running."""
        self._home.run(lambda house: house.services.runs.wait_idle(timeout=timeout))

    def why(self, name: str, at: datetime | None = None) -> Why:
        """Why a schedule did or did not run, at a time or lately."""
        return self._home.run(lambda house: house.services.why.why(name, at))

    def __repr__(self) -> str:
        return f"<Ostinato {self.settings.db}>"


class Aio:
    """The same verbs for coroutines, on any loop."""

    def __init__(self, app: Ostinato) -> None:
        self._app = app
        home = app._home
        self.schedules = AioSchedules(home, lambda house: house.services.schedules)
        self.runs = AioRuns(home, lambda house: house.services.runs)
        self.nodes = AioNodes(home, lambda house: house.services.nodes)

    async def start(self) -> None:
        """Start the engine in the background; `async with app` starts it on the running loop instead."""
        await self._app._home.arun(self._app._start)

    async def stop(self, grace: Duration | None = None) -> None:
        """Drain and stop the engine and close the database."""
        await self._app._home.aleave(partial(_close, grace=_seconds(grace)))

    async def with_engine(self, use: Callable[[Engine], Awaitable[T]]) -> T:
        """Run `use` with the engine, on its loop; see Ostinato.with_engine."""
        return await self._app._home.arun(lambda house: self._app._with_engine(house, use))

    async def health(self) -> dict[str, Any]:
        """How the engine of this process is."""
        return await self._app._home.arun(_health)

    async def wait_idle(self, timeout: Duration | None = None) -> None:
        """Wait until nothing is queued and ready, or running."""
        await self._app._home.arun(lambda house: house.services.runs.wait_idle(timeout=timeout))

    async def why(self, name: str, at: datetime | None = None) -> Why:
        """Why a schedule did or did not run, at a time or lately."""
        return await self._app._home.arun(lambda house: house.services.why.why(name, at))


def _seconds(grace: Duration | None) -> float | None:
    return None if grace is None else parse_duration(grace, field="grace").total_seconds()


def _learn(house: House) -> None:
    if house.engine is not None:
        house.engine.learn()


async def _stop_engine(house: House, grace: float | None = None) -> None:
    engine, house.engine = house.engine, None
    if engine is not None:
        await engine.stop(grace)


async def _close(house: House, grace: float | None) -> None:
    await _stop_engine(house, grace)
    await house.close()


async def _health(house: House) -> dict[str, Any]:
    engine = house.engine
    if engine is None:
        return {"ok": False, "node": None, "reason": "no engine is started in this process"}
    return engine.health()
