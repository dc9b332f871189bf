"""The engine in the foreground: start, introduce, follow, drain. `up.py` says how it talks, `feed.py` what it tells.

`server_process.py` serves the page beside it, `signals.py` says when to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

from ostinato.cli.console import warn
from ostinato.cli.ending import FORCED, LOST, end_now, end_strays
from ostinato.cli.feed import Event, Feed
from ostinato.cli.signals import Signals
from ostinato.cli.times import full, span
from ostinato.config import without_password
from ostinato.errors import StoreError
from ostinato.logs import get_logger
from ostinato.plurals import counted

if TYPE_CHECKING:
    from datetime import datetime

    from ostinato.app import Ostinato
    from ostinato.cli.metrics_server import MetricsServer
    from ostinato.cli.restart import Launch
    from ostinato.cli.server_process import ServerProcess
    from ostinato.cli.systemd import ServiceManager
    from ostinato.models.schedule import Schedule
    from ostinato.service.services import Services
    from ostinato.wiring import Container

__all__ = ["serve", "settle"]

log = get_logger("ostinato")

T = TypeVar("T")

_COUNTED = 1_000
_INTRODUCE_SECONDS = 2.0
"""How long the database may take to say what there is: meanwhile, a signal is heard and nothing is done."""
_LOOK_SECONDS = 1.0
"""How often it is looked whether the database is lost: an engine that has nothing to do beats seldom."""


async def serve(
    app: Ostinato,
    tell: Callable[[Event], None] | None,
    talk: Callable[[str], None],
    manager: ServiceManager,
    *,
    launch: Launch,
    page: bool = False,
    metrics: str | None = None,
) -> int:
    """Start, follow, drain: the exit code is 0, 130 if the drain was forced, 6 if the database is lost. After a SIGUSR1
    it does not return: the process is started anew, as the launch says.

    With the page, if it is wanted, or with metrics at an address. `tell` is told of every run, None where the log does
    that; `manager`, of the start, the drain, and of an engine that is well.
    """
    from ostinato.wiring import open_container

    # The feed reads through a container of its own: it sees how a drain ends, and holds up no read of the engine.
    view = await open_container(app.settings, app.clock, app.registry)
    feed = None if tell is None else Feed(view.services, tell, lambda: view.store.fault is not None)
    try:
        async with (
            _page(app, talk) if page else contextlib.nullcontext() as served,
            _metrics(view, metrics, talk) if metrics else contextlib.nullcontext() as measured,
            _following(feed),
            manager.watched(),
        ):
            grace = app.settings.grace.total_seconds()
            signals = Signals(app, talk, launch, lambda: manager.stopping(grace))
            async with app:
                engine = await app.aio.with_engine(_itself)
                if served is not None:
                    served.tell_engine(engine)  # so that the page tells how it is
                if measured is not None:
                    measured.engine = engine
                await _introduce(app, view.services, talk, is_log=not page or app.settings.log_format != "auto")
                settle()
                manager.ready(f"node {engine.id} on {without_password(app.settings.db)}", engine.why_restart)
                is_lost = await _until_told(signals, engine.is_database_lost)
                if signals.restarts and not is_lost:
                    manager.reloading()
                else:
                    manager.stopping(0 if is_lost else grace)
                if served is not None:
                    served.tell_engine(engine, is_draining=True)
                if is_lost:
                    app.force()  # nothing of what runs can be recorded any more
            is_forced = signals.forced or is_lost
            is_lost = is_lost or view.store.fault is not None  # in the grace, say
            if signals.restarts and not is_lost:
                manager.starting_anew()
            if served is not None:
                served.tell_engine(None)
    finally:
        await view.close()
    return await _end(signals, launch, talk, is_forced=is_forced, is_lost=is_lost)


async def _end(signals: Signals, launch: Launch, talk: Callable[[str], None], *, is_forced: bool, is_lost: bool) -> int:
    """Everything is closed: start anew, or say how it ended and answer the exit code."""
    is_alone = await end_strays()
    if not is_lost and signals.settle_restart():
        talk("drained: starting anew")
        launch.repeat()
    if is_lost:
        talk("stopped: the database file was lost, and what was under way is not recorded")
    else:
        talk("stopped by force: what was under way was cut off" if is_forced else "stopped")
    code = LOST if is_lost else FORCED if signals.forced else 0
    if is_forced or not is_alone:
        end_now(code)  # asyncio would wait for what does not end
    return code


@contextlib.asynccontextmanager
async def _following(feed: Feed | None) -> AsyncIterator[None]:
    """Tell of the runs that begin and end within the body."""
    if feed is None:
        yield
        return
    await feed.begin()
    following = asyncio.create_task(feed.follow())
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await feed.end()


async def _until_told(signals: Signals, is_lost: Callable[[], bool]) -> bool:
    """Wait for the first signal; True if the database is lost before it."""
    told = asyncio.ensure_future(signals.first.wait())
    while not (await asyncio.wait({told}, timeout=_LOOK_SECONDS))[0]:
        if is_lost():
            told.cancel()
            return True
    return False


def settle() -> None:
    """What is there now stays: a full collection that looks at it again would make runs and answers late."""
    gc.collect()
    gc.freeze()


def _page(app: Ostinato, talk: Callable[[str], None]) -> AbstractAsyncContextManager[ServerProcess]:
    from ostinato.cli.server_process import serving_apart

    return serving_apart(app, talk)


def _metrics(view: Container, address: str, talk: Callable[[str], None]) -> AbstractAsyncContextManager[MetricsServer]:
    from ostinato.cli.metrics_server import serving_metrics

    return serving_metrics(view, address, talk)


async def _itself(engine: T) -> T:
    return engine


async def _introduce(app: Ostinato, services: Services, talk: Callable[[str], None], *, is_log: bool) -> None:
    """What runs here, on which database, and what comes next: for a person, or as records of the log."""
    from ostinato.clock import from_micros
    from ostinato.models.work_kinds import is_task

    health = await app.aio.health()
    settings, tasks = app.settings, sorted(app.registry.tasks)
    database, node = without_password(settings.db), health["node"]
    if is_log:
        talk(f"database {database}, node {node}, tasks {', '.join(tasks) or 'none'}")
    found = await _schedules(services)
    schedules = found or ()
    on = sum(schedule.next_run_at is not None for schedule in schedules)
    many = f"{len(schedules)} or more" if len(schedules) == _COUNTED else str(len(schedules))
    due = _next_due(schedules[0].next_run_at if schedules else None, settings.tz, from_micros(app.clock.now()))
    what = "unknown" if found is None else f"{many}, {on} on{due}"
    needs_tasks = any(is_task(schedule.work.needs) for schedule in schedules)
    if is_log:
        talk(f"schedules {what}")
    else:
        hint = ": name your app with --app module:attr" if needs_tasks or not schedules else ""
        talk(f"database   {database}")
        talk(f"node       {node}, {counted(settings.slots, 'slot')}, zone {settings.tz}")
        talk(f"tasks      {', '.join(tasks) or f'none{hint}'}")
        talk(f"schedules  {what}")
        talk("Ctrl-C to stop")
    if not tasks and needs_tasks:
        alone = "this node knows no tasks: it records their due times, and other nodes must run them"
        log.warning(alone) if is_log else warn(alone)


async def _schedules(services: Services) -> Sequence[Schedule] | None:
    """The first of them. A database that is just away does not end what has started: the engine waits for it, too."""
    try:
        async with asyncio.timeout(_INTRODUCE_SECONDS):
            return await services.schedules.list(limit=_COUNTED)
    except (StoreError, TimeoutError) as error:
        reason = str(error) or f"no answer within {_INTRODUCE_SECONDS:g} s"
        log.warning("the schedules cannot be counted right now: %s", reason)
        return None


def _next_due(due: datetime | None, zone: str, now: datetime) -> str:
    if due is None:
        return ""
    return f"; next due {full(due, zone)}, in {span((due - now).total_seconds())}"
