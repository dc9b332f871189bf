"""Ostinato: the façade that users hold. Tasks and checks are declared on it; schedules and runs are reached through it.

Schedules, runs, lanes and the like have their verbs in `sync_async.py`; where all of it lives is `event_loop_host.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from ostinato.app_engine import force, give_up, leave_open, start_bot, stop_engine
from ostinato.chains import ChainDoors
from ostinato.clock import Clock, SystemClock
from ostinato.config import Settings, check_names, database_file, load_settings, switched_off, without_password
from ostinato.durations import Duration, parse_duration
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput
from ostinato.event_loop_host import EventLoopHost
from ostinato.execution.context import RunContext
from ostinato.execution.registry import Check, Isolation, Registry, TaskDefinition, name_of_task
from ostinato.integrations.transactions.enqueueing import TransactionEnqueuer
from ostinato.integrations.transactions.outbox import Outbox, open_outbox
from ostinato.integrations.transactions.outboxes import Outboxes
from ostinato.listeners import Callback, Listeners, check_event_kind
from ostinato.logs import get_logger
from ostinato.models.app_event import AppEventKind, AppEventName
from ostinato.models.policy import PolicyOptions, check_key
from ostinato.models.session import Drop, DropName, Mode, ModeName
from ostinato.models.session_options import read_session_options
from ostinato.models.setting_options import SettingOptions
from ostinato.models.task import TaskSchedule
from ostinato.service.schedules.declarations import Declarations
from ostinato.service.schedules.drafts import ScheduleSpec, task_schedule
from ostinato.sync_async import Async, Resources, Sync
from ostinato.tasks import Task
from ostinato.termination import (
    another_interrupt_forces,
    drain_at_exit,
    drain_on_sigterm,
    interrupts_force,
    leave_exit,
    leave_sigterm,
)
from ostinato.timing import After, Timing
from ostinato.timing.zones import Zone
from ostinato.wiring import Container, open_container

if TYPE_CHECKING:
    from flask import Flask

    from ostinato.api.host_login import Who
    from ostinato.api.mount import MountedApp
    from ostinato.integrations.lifespan import Lifespan

__all__ = ["Ostinato"]

log = get_logger("ostinato")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
C = TypeVar("C", bound=Callback)


class TaskDecorator(Protocol):
    """What `@app.task(…)` returns: it takes a function, with or without a RunContext in front."""

    @overload
    def __call__(self, function: Callable[Concatenate[RunContext, P], R], /) -> Task[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class Ostinato(Resources[Sync]):
    """A scheduler on one database. Creating it opens nothing; the first call opens and migrates the database."""

    def __init__(
        self,
        db: str | None = None,
        *,
        tz: Zone | None = None,
        name: str = "default",
        slots: int | None = None,
        lanes: dict[str, int] | None = None,
        rates: dict[str, str] | None = None,
        enabled: bool | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        **more: Unpack[SettingOptions],
    ) -> None:
        check_names(more, "Ostinato(…)")
        named = {"db": db, "tz": tz, "slots": slots, "lanes": lanes, "rates": rates, "enabled": enabled}
        given: dict[str, Any] = {**named, **more}
        both = [name for name, value in given.items() if value is not None]
        if settings is not None and both:
            hint = f"put {', '.join(both)} into the Settings, or leave settings out"
            raise InvalidInput("give either settings or single ones, not both", field="settings", hint=hint)
        self.name = check_key(name, "name", "give the app a name such as shop")
        self.settings = settings or load_settings(**given)
        self.clock: Clock = clock or SystemClock()
        tuning = self.settings.tuning
        self.registry = Registry(check_seconds=tuning.check_seconds, listeners=Listeners(tuning))
        self._declarations = Declarations(self.name)
        self._declaring: asyncio.Task[None] | None = None
        """What was declared after the start is on its way into the database."""
        self._outboxes = Outboxes()
        host = EventLoopHost(self._open)
        host.before_fork = self._close_before_fork
        super().__init__(Sync, host, self.registry.throttle)
        self.aio = Aio(self)
        self._chain_doors = ChainDoors(self._chains, self.aio._chains, self.runs)
        self._enqueuer = TransactionEnqueuer(
            lambda: self.clock,
            (self.runs, self.aio.runs),
            (self._transactions, self.aio._transactions),
            encode=self.registry.encode_calls,
            in_postgres=lambda: self.settings.db.startswith(("postgresql:", "postgres:")),
            outboxes=self._outboxes,
            poke=self._poke_outboxes,
        )

    # Declaring

    @overload
    def task(self, name: Callable[Concatenate[RunContext, P], R], /) -> Task[P, R]: ...

    @overload
    def task(self, name: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        name: str | None = None,
        *,
        schedule: Timing | str | None = None,
        after: str | Sequence[str] | After | None = None,
        enabled: bool = True,
        tz: Zone | None = None,
        isolation: Isolation = "none",
        requeue_on_drain: bool = False,
        session_mode: Mode | ModeName | None = None,
        max_concurrent: int | None = None,
        cap: int | None = None,
        drop: Drop | DropName | None = None,
        debounce: Duration | None = None,
        debounce_max: Duration | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> TaskDecorator: ...

    def task(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        schedule: Timing | str | None = None,
        after: str | Sequence[str] | After | None = None,
        enabled: bool = True,
        tz: Zone | None = None,
        isolation: Isolation = "none",
        requeue_on_drain: bool = False,
        session_mode: Mode | ModeName | None = None,
        max_concurrent: int | None = None,
        cap: int | None = None,
        drop: Drop | DropName | None = None,
        debounce: Duration | None = None,
        debounce_max: Duration | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Any:
        """Register a function as a task, with its policy and, if it has one, its schedule.

        A parameter annotated RunContext is filled in for each run; callers leave it out. With
        `requeue_on_drain`, a run that a stopping node cuts off goes back to the queue as if it had not been started.
        `session_mode`, `max_concurrent`, `cap`, `drop`, `debounce` and `debounce_max` are for messages that are sent
        to it, if their sender does not say otherwise. `after` names the schedules it runs after, instead of a timing.
        """
        said = {"mode": session_mode, "max_concurrent": max_concurrent, "cap": cap, "drop": drop}
        options = read_session_options({**said, "debounce": debounce, "debounce_max": debounce_max})

        def register(name: str, function: Callable[..., Any]) -> Task[..., Any]:
            zone, now = tz or self.settings.tz, self.clock.now()
            declared = task_schedule(name, schedule, after, enabled, zone, policy, now)
            definition = self.registry.add_task(
                name,
                function,
                policy,
                isolation,
                requeue_on_drain=requeue_on_drain,
                session_options=options,
                scheduled=declared is not None,
            )
            return self._register(definition, declared, tz)

        if callable(name):
            return register(name_of_task(name), name)

        def decorate(function: Callable[..., Any]) -> Task[..., Any]:
            return register(name or name_of_task(function), function)

        return decorate

    def _register(
        self,
        definition: TaskDefinition,
        declared: tuple[Timing | str, TaskSchedule] | None,
        tz: Zone | None,
    ) -> Task[..., Any]:
        task: Task[..., Any] = Task(definition, self.runs, self.aio.runs, self._enqueuer, self._chain_doors)
        if declared is not None:
            schedule, self.registry.declared[definition.name] = declared
            self._declarations.add(
                ScheduleSpec(
                    definition.name,
                    schedule,
                    task,
                    tz,
                    enabled=declared[1].enabled,
                    owner="code",
                    origin=self.name,
                    policy={},
                )
            )
        # An engine that is started already learns of it.
        self._host.call_soon(self._learn)
        return task

    @property
    def declared(self) -> Mapping[str, ScheduleSpec]:
        """The schedules that the code declares, by name: as it says, and not as people may have changed them."""
        return self._declarations.specs

    def _learn(self, container: Container) -> None:
        if container.engine is not None:
            container.engine.learn()
            self._declaring = asyncio.get_running_loop().create_task(self._declare(container))
            self._declaring.add_done_callback(_log_failure)

    def check(self, name: str) -> Callable[[Check], Check]:
        """Register a check: it must pass before a schedule that names it is enabled, and before each of its runs."""
        check_key(name, "name", "give the check a name: @app.check('disk')")

        def decorate(function: Check) -> Check:
            self.registry.add_check(name, function)
            return function

        return decorate

    @overload
    def on(self, event: AppEventName | AppEventKind, callback: C) -> C: ...

    @overload
    def on(self, event: AppEventName | AppEventKind) -> Callable[[C], C]: ...

    def on(self, event: AppEventName | AppEventKind, callback: Any = None) -> Any:
        """Call a function with an AppEvent whenever this event happens in this process; can be a decorator.

        Callbacks are called one after the other on a separate thread; coroutine functions are awaited on the app's
        event loop. An exception in a callback is logged, and does not affect the run.
        """
        kind = check_event_kind(event)

        def register(callback: Any) -> Any:
            self.registry.listeners.add(kind, callback)
            return callback

        return register if callback is None else register(callback)

    # Outboxes

    def outbox(self, database: object) -> Outbox:
        """The outbox in another database: of a SQLAlchemy engine, a URL, or a database alias of Django."""
        return open_outbox(database)

    def add_outbox(self, database: object) -> Outbox:
        """Let the engines of this app take what is in this outbox into the ledger; twice is as once."""
        outbox = self._outboxes.add(database)
        self._host.call_soon(self._drain_outboxes)
        return outbox

    @property
    def outboxes(self) -> Sequence[Outbox]:
        """Those that the engines of this app drain."""
        return list(self._outboxes)

    def _drain_outboxes(self, container: Container) -> None:
        if container.engine is not None:
            self._outboxes.drain(container.engine.watchdog, container.services.transactions.take, container.clock)

    def _poke_outboxes(self, *_: object) -> None:
        if self._outboxes.are_drained:
            self._host.call_soon(lambda _: self._outboxes.poke())

    # Starting and stopping

    def start(self) -> Ostinato:
        """Start the engine in the background; safe to call twice. SIGTERM drains it, unless it has a handler.

        Where the engine is switched off (`enabled`), it only opens the database, and the log says so.
        """
        self._host.run(self._start, alone=True)
        drain_on_sigterm(self)
        return self

    def stop(self, grace: Duration | None = None) -> None:
        """Drain and stop the engine and close the database; safe to call twice, or without a start.

        Calls work while it drains; calls that come while the database is being closed wait, and open it again. If a
        Ctrl-C led to this call, a line on stderr says which runs it waits for, and another Ctrl-C forces the stop.
        """
        drain = partial(stop_engine, grace=_seconds(grace))
        leave_exit(self._drain_at_exit)
        is_interrupted = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        try:
            with interrupts_force(self, self._under_way, at_exit=False) if is_interrupted else contextlib.nullcontext():
                self._host.leave(drain, Container.close)
        finally:
            leave_sigterm(self)

    def force(self) -> None:
        """While a stop drains: stop waiting for running work. Being cut off counts as an attempt."""
        self._host.call_soon(force)

    @property
    def _under_way(self) -> Sequence[str]:
        """The runs that the engine of this process executes just now, in words."""
        return [] if self._engine is None else self._engine.runner.under_way

    async def __aenter__(self) -> Ostinato:
        await self._enter(engine=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_interrupted = isinstance(error, (asyncio.CancelledError, KeyboardInterrupt))
        with self._forced_by_interrupts(of_server=False) if is_interrupted else contextlib.nullcontext():
            await self._leave()

    def _forced_by_interrupts(self, *, of_server: bool) -> contextlib.AbstractContextManager[None]:
        return another_interrupt_forces(self, self._under_way, of_server=of_server)

    async def _enter(self, *, engine: bool) -> None:
        """Open the database on the running loop, and start the engine there."""
        await self._host.adopt()
        try:
            await (self.aio.start() if engine else self._host.arun(leave_open))
        except BaseException:
            await self._leave()  # nobody else will: without an enter there is no exit
            raise

    async def _enter_lifespan(self, *, engine: bool) -> Callable[[], Awaitable[None]]:
        """The same for a server; answers how to leave. An engine that somebody else has started is theirs to stop."""
        before = self._engine
        await self._enter(engine=engine)
        ours = self._engine if self._engine is not before else None

        async def leave() -> None:
            if self._engine is None or self._engine is ours or self._host.is_here:
                with self._forced_by_interrupts(of_server=True):
                    await self._leave()

        return leave

    @property
    def _engine(self) -> Engine | None:
        """The one that is started in this process."""
        container = self._host.container
        return None if container is None else container.engine

    async def _leave(self) -> None:
        """Drain the engine and close the database."""
        await self.aio.stop()

    # In a web app

    def init_flask(self, flask_app: Flask) -> None:
        """Make this the scheduler of a Flask app: tasks run in its app context, and each process that serves it runs an
        engine from its first request on.

        Its config may say `OSTINATO_ENGINE = False`; there is no engine either while it is `TESTING`. Of several Flask
        apps, tasks run in the context of the last one.
        """
        from ostinato.integrations.flask import init_flask

        init_flask(self, self.registry.contexts, flask_app)

    def lifespan(self, other: Lifespan | None = None, *, engine: bool = True) -> Lifespan:
        """The lifespan of a FastAPI, Starlette or Litestar app: the engine runs on the server's loop and drains at its
        end.

        `other` is a lifespan of your own: the engine runs inside it, and its state is passed on. With `engine=False`
        only the database is opened: other nodes run the work. A server never calls the lifespan of a mounted app.
        """
        from ostinato.integrations.lifespan import lifespan_of

        return lifespan_of(partial(self._enter_lifespan, engine=engine), other)

    def asgi(self, who: Who | None = None, *, login_url: str | None = None) -> MountedApp:
        """An ASGI app with the page, the API and the stream, to be mounted at any path of another app.

        `who(request)` says who is logged in there: an Identity, or None. Without it, people log in with a link or a
        token. Who is not logged in there is sent to `login_url`, in which `{next}` becomes the address of the page. It
        starts no engine: `lifespan()` or `start()` does.
        """
        from ostinato.api.mount import MountedApp

        return MountedApp(self._host, self._leave, who, login_url, self.settings.tuning.host_login_seconds)

    async def _open(self) -> Container:
        container = await open_container(self.settings, self.clock, self.registry)
        drain_at_exit(self._drain_at_exit)
        return container

    async def _start(self, container: Container) -> None:
        if container.engine is not None:
            return
        if (why := switched_off(self.settings)) is not None:
            log.info("%s; none is started in this process", why)
            return
        self._declarations.begin()
        await self._declare(container)
        engine = container.make_engine()
        try:
            await engine.start()
        except BaseException:
            await give_up(engine)
            raise
        container.engine = engine
        start_bot(container, engine)
        self._outboxes.begin()
        self._drain_outboxes(container)

    def with_engine(self, use: Callable[[Engine], Awaitable[T]]) -> T:
        """Run `use` with the engine, on its loop: the started one, or one that only does what it is told.

        For `ostinato.testing` and tools: what the engine of another version offers may differ.
        """
        return self._host.run(lambda container: self._with_engine(container, use))

    async def _with_engine(self, container: Container, use: Callable[[Engine], Awaitable[T]]) -> T:
        if container.engine is not None:
            if self._declaring is not None:
                await self._declaring
            return await use(container.engine)
        await self._declare(container)
        async with container.temporary_engine() as engine:
            return await use(engine)

    async def _declare(self, container: Container) -> None:
        if self.registry.tasks:  # without code it is a plain engine, which must not speak for an app of the same name
            schedules, zone = container.services.schedules, container.settings.tz
            await self._declarations.declare(schedules, container.store, container.clock, zone)

    def _close_before_fork(self) -> None:
        """A child could not open a SQLite file that its parent has open; without an engine, nobody needs it to be."""
        container = self._host.container
        if container is None or not container.is_idle or database_file(self.settings.db) is None:
            return
        try:
            self._host.leave(stop_engine, Container.close)
        except Exception:
            log.exception("the database could not be closed before a fork: a child cannot use it")

    def _drain_at_exit(self) -> None:
        if self._host.container is None:
            return  # a forked child inherits this call, but not the engine
        # The process ends: what cannot be drained is rescued by others.
        with contextlib.suppress(Exception), interrupts_force(self, self._under_way, at_exit=True):
            self._host.leave(stop_engine, leave_open)

    def __repr__(self) -> str:
        return f"<Ostinato {without_password(self.settings.db)}>"


class Aio(Resources[Async]):
    """The same verbs for coroutines, on any loop."""

    def __init__(self, app: Ostinato) -> None:
        self._app = app
        super().__init__(Async, app._host, app.registry.throttle)

    async def start(self) -> None:
        """Start the engine in the background; `async with app` starts it on the running loop instead."""
        await self._app._host.arun(self._app._start, alone=True)

    async def stop(self, grace: Duration | None = None) -> None:
        """Drain and stop the engine and close the database."""
        await self._app._host.aleave(partial(stop_engine, grace=_seconds(grace)), Container.close)

    async def force(self) -> None:
        """While a stop drains: stop waiting for running work."""
        self._app.force()

    async def with_engine(self, use: Callable[[Engine], Awaitable[T]]) -> T:
        """Run `use` with the engine, on its loop; see Ostinato.with_engine."""
        return await self._app._host.arun(lambda container: self._app._with_engine(container, use))


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("the schedules that the code declares could not be stored", exc_info=task.exception())


def _seconds(grace: Duration | None) -> float | None:
    return None if grace is None else parse_duration(grace, field="grace").total_seconds()
