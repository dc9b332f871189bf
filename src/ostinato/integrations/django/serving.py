"""Starts the engine in the processes that serve, each once, and in no other.

Which those are is told by what happens, not by names of commands: an ASGI server runs the lifespan; runserver and the
workers of gunicorn make a WSGI handler while they load the project; and with `gunicorn --preload` the master makes it,
and its forked workers serve. Whatever else serves is found by its first request. Nothing of it happens in `migrate`,
`shell`, the parent of the reloader, a test, or a command that calls a handler itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from types import FrameType
from typing import Any

from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.management.base import BaseCommand
from django.core.management.commands.runserver import Command as RunserverCommand
from django.core.signals import request_started

from ostinato.app import Ostinato
from ostinato.config import switched_off, without_password
from ostinato.integrations.django.configuration import is_testing
from ostinato.logs import get_logger
from ostinato.plurals import counted
from ostinato.signal_reader import say_last
from ostinato.termination import another_interrupt_forces, drain_on_sigterm

__all__ = ["Starter", "watch"]

log = get_logger("ostinato")

_POLL_SECONDS = 0.05
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts to start."""


class Starter:
    """Starts the engine of this process in the background, and tries again until it is started."""

    def __init__(self, app: Ostinato) -> None:
        self._app = app
        self._process: int | None = None
        """Where it was started, or is about to be."""
        self._thread: threading.Thread | None = None
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self.waits_for_fork = False
        """Whether this process has made a handler that it may have made for the workers that it will fork."""

    @property
    def is_started(self) -> bool:
        return self._process == os.getpid()

    def start(self, may_start: Callable[[], bool] | None = None) -> None:
        """Start it, unless it is; not before this says so. Nobody waits for it."""
        if is_testing() or not self._is_first():
            return
        if (why := switched_off(self._app.settings)) is not None:
            _tell(f"{why}; none is started in this process")
            return
        self._is_over = threading.Event()  # that of a parent may have been in use when it forked
        drain_on_sigterm(self._app)
        self._thread = threading.Thread(target=self._run, args=(may_start,), name="ostinato-start", daemon=True)
        self._thread.start()

    def _is_first(self) -> bool:
        """Whether nobody has started it in this process: two requests may come first."""
        with self._lock:
            if self.is_started:
                return False
            self._process = os.getpid()
            return True

    def forked(self) -> None:
        """In a forked child: a thread that is not here may hold the lock."""
        self._lock = threading.Lock()

    async def stop(self) -> None:
        """Drain it, on the loop of a server that ends."""
        self._is_over.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        with another_interrupt_forces(self._app, self._app._under_way, of_server=True):
            await self._app.aio.stop()
        self._process = None

    def _run(self, may_start: Callable[[], bool] | None) -> None:
        while may_start is not None and not may_start():
            if self._is_over.wait(_POLL_SECONDS):
                return
        pause = _FIRST_PAUSE
        while not self._is_over.is_set():
            try:
                self._app.start()
            except Exception:
                log.exception("the engine could not be started; the next attempt is in %g s", pause)
            else:
                tasks, db = counted(len(self._app.registry.tasks), "task"), without_password(self._app.settings.db)
                _tell(f"the engine runs in process {os.getpid()}: {tasks}, ledger {db}")
                return
            self._is_over.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


@cache  # django.setup() loads the apps once, and a test that overrides INSTALLED_APPS once more
def watch(app: Ostinato) -> Starter:
    """Start the engine of this app when this process turns out to serve."""
    starter = Starter(app)
    _on_wsgi_handler(starter)
    _on_lifespan(starter)
    _on_fork(starter)

    def on_request(sender: type, **_: Any) -> None:
        # Not the client of tests, and no command that asks for a page of its own.
        if issubclass(sender, WSGIHandler | ASGIHandler) and not _is_in_command():
            starter.start()
            request_started.disconnect(dispatch_uid="ostinato.serving")

    request_started.connect(on_request, weak=False, dispatch_uid="ostinato.serving")
    return starter


def _on_wsgi_handler(starter: Starter) -> None:
    """get_wsgi_application() makes one, after the apps are ready."""
    make = WSGIHandler.__init__

    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if any(isinstance(frame.f_locals.get("self"), RunserverCommand) for frame in _stack()):
            if is_testing():
                _tell("this server has test databases, and runs no engine; its ledger is in memory")
            starter.start(_is_listening(threading.get_ident()))
        elif any(name.startswith("gunicorn.workers.") for name in _modules_on_stack()):
            starter.start()
        elif not starter.is_started:
            # By the arbiter of gunicorn, or by a script that gives it to one afterwards.
            starter.waits_for_fork = True

    WSGIHandler.__init__ = made


def _on_lifespan(starter: Starter) -> None:
    """Django itself refuses the lifespan, and servers go on without it."""
    serve = ASGIHandler.__call__

    async def called(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(starter, receive, send)
        else:
            await serve(self, scope, receive, send)

    ASGIHandler.__call__ = called


async def _lifespan(
    starter: Starter, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    await receive()
    starter.start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await starter.stop()
    await send({"type": "lifespan.shutdown.complete"})


def _on_fork(starter: Starter) -> None:
    """A worker of gunicorn that was forked after the project was loaded starts its engine when it has booted: by then
    it has given up the rights of its master."""

    def in_child() -> None:
        starter.forked()
        if not starter.waits_for_fork:
            return
        starter.waits_for_fork = False
        arbiters = (frame for frame in _stack() if frame.f_globals.get("__name__") == "gunicorn.arbiter")
        worker = next((found for frame in arbiters if (found := frame.f_locals.get("worker")) is not None), None)
        if worker is not None:
            starter.start(lambda: bool(worker.booted))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def _tell(text: str) -> None:
    """Log it, so that people see whether tasks are run here. Where nobody has set logging up, Python would drop what is
    no warning: then it is on stderr, where warnings are."""
    if log.hasHandlers():
        log.info("%s", text)
    else:
        say_last(f"ostinato: {text}", sys.stderr)  # which may be closed


def _is_listening(thread: int) -> Callable[[], bool]:
    """Whether runserver has got its port, and its thread serves. Without one it ends at once, and drains nothing."""

    def is_listening() -> bool:
        frame = sys._current_frames().get(thread)
        while frame is not None and frame.f_code.co_name != "serve_forever":
            frame = frame.f_back
        return frame is not None

    return is_listening


def _is_in_command() -> bool:
    """Whether a command of manage.py waits for what is called here. Runserver is none: what it runs are servers."""
    commands = [
        found
        for frame in _stack()
        if frame.f_code is BaseCommand.execute.__code__ and (found := frame.f_locals.get("self")) is not None
    ]
    return bool(commands) and not any(isinstance(command, RunserverCommand) for command in commands)


def _stack() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _modules_on_stack() -> Iterator[str]:
    return (str(frame.f_globals.get("__name__")) for frame in _stack())
