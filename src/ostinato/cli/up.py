"""`ostinato up` (engine, API and page) and `ostinato worker` (the engine alone) in the foreground.

A signal drains the engine, a second one forces it.

`serving.py` is the engine's life; this file is how the two commands tell it.
"""

from __future__ import annotations

import logging
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from ostinato.cli.console import clean, emit_json_line, keep_streams, rich_console, stdout
from ostinato.cli.log_setup import chosen_log, start_log
from ostinato.cli.open_database import load_app
from ostinato.cli.options import (
    NO_COMMON,
    NO_ENGINE,
    NO_LOG,
    NO_TLS,
    Common,
    EngineFlags,
    ListenHost,
    ListenPort,
    LogFlags,
    MetricsAddress,
    TlsFlags,
)
from ostinato.cli.policy import lane_limits, lane_rates
from ostinato.cli.restart import Launch
from ostinato.cli.run_view import state_style
from ostinato.cli.times import brief, took
from ostinato.cli.work_view import name_of
from ostinato.errors import Conflict
from ostinato.logs import RUN_LOGGER, get_logger
from ostinato.plurals import errors_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ostinato.app import Ostinato
    from ostinato.cli.feed import Event
    from ostinato.cli.systemd import ServiceManager

__all__ = ["up", "worker"]


def up(
    *,
    host: ListenHost = None,
    port: ListenPort = None,
    tls: TlsFlags = NO_TLS,
    engine: EngineFlags = NO_ENGINE,
    log: LogFlags = NO_LOG,
    common: Common = NO_COMMON,
) -> int:
    """Start the engine, the API and the page, and show each run.

    Ctrl-C drains the engine, a second Ctrl-C forces it; SIGUSR1 drains it and starts this process anew. Where the
    engine is switched off (the setting 'enabled'), it serves the API and the page alone.
    """
    launch = Launch.of_this_process()
    keep_streams()
    log = chosen_log(log)
    talk = start_log(log, brief=True)
    manager = _service_manager()
    shows_runs = log.log_format == "auto"
    if shows_runs and log.log_level is None:
        runs = get_logger(RUN_LOGGER)
        runs.setLevel(logging.WARNING)
        runs.addFilter(_is_not_in_the_list)
    app = _load(engine, common, log, host=host, port=port, tls=tls)
    if launch.is_trial:
        launch.end_trial(app.settings, page=True)
    if (why := _switched_off(app)) is not None:
        return _serve_page(app, common, talk, why, manager, launch)
    return _serve(app, common, _tell_line if shows_runs else None, talk, manager, launch, page=True)


def _service_manager() -> ServiceManager:
    """Before the user's code is loaded: what that starts is not told of it."""
    from ostinato.cli.systemd import ServiceManager  # here: a help needs no sockets

    return ServiceManager.take()


def _switched_off(app: Ostinato) -> str | None:
    from ostinato.config import switched_off  # here: a help needs no settings

    return switched_off(app.settings)


def _is_not_in_the_list(record: logging.LogRecord) -> bool:
    """Whether the list of runs leaves it out: a traceback, or a schedule that is late without any run."""
    from ostinato.models.incident import LATE  # here: a help needs no models

    is_late = getattr(record, "cause", None) == LATE and getattr(record, "run", None) is None
    return is_late or (record.levelno >= logging.ERROR and bool(record.exc_text))


def worker(
    *,
    metrics: MetricsAddress = None,
    engine: EngineFlags = NO_ENGINE,
    log: LogFlags = NO_LOG,
    common: Common = NO_COMMON,
) -> int:
    """Start only the engine, for a service manager. It logs what happens, a line for each start and end of a run.

    SIGTERM drains the engine, a second one forces it; SIGUSR1 drains it and starts this process anew, with new code.
    """
    launch = Launch.of_this_process()
    keep_streams()
    log = chosen_log(log)
    talk = start_log(log, brief=False)
    manager = _service_manager()
    app = _load(engine, common, log, metrics=metrics)
    if (why := _switched_off(app)) is not None:
        raise Conflict(f"{why}; a worker without an engine has nothing to do")
    if launch.is_trial:
        launch.end_trial(app.settings)
    return _serve(app, common, None, talk, manager, launch, metrics=app.settings.metrics)


def _load(
    engine: EngineFlags,
    common: Common,
    log: LogFlags,
    *,
    host: str | None = None,
    port: int | None = None,
    tls: TlsFlags = NO_TLS,
    metrics: str | None = None,
) -> Ostinato:
    lanes, rates = lane_limits(engine.lane), lane_rates(engine.rate)
    return load_app(
        common,
        slots=engine.slots,
        lanes=lanes,
        rates=rates,
        tz=engine.tz,
        host=host,
        port=port,
        tls=tls,
        log=log,
        metrics=metrics,
    )


def _serve(
    app: Ostinato,
    common: Common,
    tell: Callable[[str, Event], None] | None,
    talk: Callable[[str], None],
    manager: ServiceManager,
    launch: Launch,
    *,
    page: bool = False,
    metrics: str | None = None,
) -> int:
    """`tell` is told of each run; None where the log says all."""
    # The app is loaded before there is a loop: what the user's module does at import may want one of its own.
    import asyncio

    from ostinato.cli.limits import raise_descriptor_limit
    from ostinato.cli.serving import serve

    raise_descriptor_limit()
    zone = app.settings.tz
    chosen = _tell_json if common.json else tell
    told = None if chosen is None else partial(chosen, zone)
    with closing(manager):
        return asyncio.run(serve(app, told, talk, manager, launch=launch, page=page, metrics=metrics))


def _serve_page(
    app: Ostinato, common: Common, talk: Callable[[str], None], why: str, manager: ServiceManager, launch: Launch
) -> int:
    import asyncio

    from ostinato.cli.limits import raise_descriptor_limit
    from ostinato.cli.web import serve_page

    raise_descriptor_limit()
    with closing(manager):
        return asyncio.run(serve_page(app, talk, manager, launch, why=why, as_json=common.json))


def _describe(event: Event) -> str:
    """`name, run 12: what became of it`."""
    run = event.run
    if run is None:
        return event.text
    name = name_of(run)
    parts = [f"{name}, run {run.id}"]
    if event.kind == "started":
        parts.append(f"attempt {run.attempt}" if run.attempt > 1 else "")
    elif event.kind == "succeeded":
        parts.append(f"in {took(run.started_at, run.finished_at)}")
        parts.append(errors_text(run.reason, run.totals) if run.cause == "errors" else "")
    elif event.kind == "broken":
        parts = [name, event.text]
    else:
        parts += [f"{run.count} due times" if run.count > 1 else "", run.reason or ""]
    return ": ".join(part for part in parts if part)


def _moment(event: Event) -> datetime | None:
    run = event.run
    if run is None:
        return None
    if event.kind == "retrying" and run.attempts:
        return run.attempts[-1].finished_at
    return (run.started_at if event.kind == "started" else run.finished_at) or run.due_at


def _has_errors(event: Event) -> bool:
    """Whether it is a run that succeeded with errors."""
    return event.kind == "succeeded" and event.run is not None and event.run.cause == "errors"


def _style(event: Event) -> str:
    return state_style("errors" if _has_errors(event) else event.kind)


def _tell_line(zone: str, event: Event) -> None:
    from rich.text import Text

    moment = _moment(event)
    clock = "" if moment is None else brief(moment, zone, moment)
    line = Text.assemble((f"{clock:8}  ", "dim"), (f"{event.kind:10}", _style(event)), " ", clean(_describe(event)))
    rich_console(stdout()).print(line)
    stdout().flush()


def _tell_json(_: str, event: Event) -> None:
    from ostinato.service.answers import run_answer

    shape = None if event.run is None else run_answer(event.run)
    emit_json_line({"event": event.kind, "run": shape, "text": event.text or None})
