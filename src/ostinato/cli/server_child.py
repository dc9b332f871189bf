"""The server's process in `ostinato up`: it serves API and page until the engine hangs up or is gone.

It has a database connection of its own, and nothing of the user's code: what that knows, it asks over the link
(server_link.py). It is deaf to the signals of a terminal, so that the page tells how a drain ends. server_process.py
starts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import msgspec

from ostinato.cli.limits import raise_descriptor_limit
from ostinato.cli.log_setup import start_log
from ostinato.cli.options import LogFlags
from ostinato.cli.server import serving
from ostinato.cli.server_link import (
    Answer,
    Ask,
    Begin,
    EngineState,
    Failed,
    FromServer,
    Learn,
    Link,
    Question,
    Said,
    Serving,
    ToServer,
    servers_link,
)
from ostinato.cli.serving import settle
from ostinato.clock import SystemClock
from ostinato.errors import InvalidInput, OstinatoError, WaitTimeout
from ostinato.logs import get_logger
from ostinato.models.ids import NodeId, RunId
from ostinato.models.session_options import NO_OPTIONS, SessionOptions
from ostinato.models.task import TaskDescription
from ostinato.models.work_values import Function, GivenCall
from ostinato.wiring import NO_ENGINE, open_container_with_remote_engine

__all__ = ["main"]

log = get_logger(__name__)

_ANSWER_SECONDS = 3.0
"""How long a process that lives may take to say how it is; a blocked loop does not count."""
_END_SECONDS = 8.0
"""How long a server that has lost its engine may take to end."""


def main(engine: int) -> None:
    """Serve for the engine in the process of this number, to which standard input leads."""
    end = socket.socket(fileno=fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3))
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    link = servers_link(end, _watch(engine))
    begin = link.receive()
    if os.getppid() != engine or not isinstance(begin, Begin):
        return
    start_log(LogFlags(begin.settings.log_level, begin.settings.log_format), brief=True)
    get_logger("ostinato.stores.identity").setLevel(logging.CRITICAL)  # the engine tells it, and ends
    raise_descriptor_limit()
    sys.exit(asyncio.run(_serve(link, begin)))


def _watch(process: int) -> int | None:
    """A descriptor that has something when this process is gone: a fork of it may hold the link open."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None


async def _serve(link: Link[FromServer, ToServer], begin: Begin) -> int:
    engine = _EngineClient(link, begin)
    engine.listen(_end_soon)
    try:
        container = await open_container_with_remote_engine(begin.settings, SystemClock(), engine)
        try:
            async with serving(container, engine.say) as address:
                engine.send(Serving(int(address.rpartition(":")[2]), address))
                settle()
                await engine.hung_up.wait()
        finally:
            await container.close()
    except OstinatoError as error:
        engine.send(Failed(type(error).__name__, str(error)))
        return 1
    except Exception as error:
        log.exception("the server has ended by an error")
        engine.send(Failed(OstinatoError.__name__, f"{type(error).__name__}: {error}"))
        return 1
    return 0


class _EngineClient:
    """The engine and the application's code, as this process knows them. Answers wiring.RemoteEngine."""

    def __init__(self, link: Link[FromServer, ToServer], begin: Begin) -> None:
        self.hung_up = asyncio.Event()
        self._state = EngineState(is_started=False)
        self._link = link
        self._tasks = begin.tasks
        self._code_seconds = begin.settings.tuning.server_code_seconds
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        self._loop = asyncio.get_running_loop()

    def listen(self, lost: Callable[[], None]) -> None:
        """Hear it from now on, on a thread of its own; that calls `lost` when it is gone."""
        threading.Thread(target=self._hear, args=(lost,), name="ostinato-link", daemon=True).start()

    def say(self, text: str) -> None:
        """A line for whoever started `up`."""
        self.send(Said(text))

    def send(self, message: FromServer) -> None:
        with contextlib.suppress(OSError):  # it is gone, which is heard soon
            self._link.send(message)

    async def ask(self, what: Question, names: Iterable[str], seconds: float, otherwise: str) -> Any:
        """What it answers; WaitTimeout, in these words, if it does not."""
        number = next(self._numbers)
        answer = self._asked[number] = self._loop.create_future()
        try:
            self.send(Ask(number, what, list(names)))
            async with asyncio.timeout(seconds):
                found = await answer
        except TimeoutError:
            raise WaitTimeout(otherwise) from None
        finally:
            del self._asked[number]
        if found.error is not None:
            raise OstinatoError(found.error)
        return found.value

    @property
    def is_started(self) -> bool:
        return self._state.is_started

    @property
    def is_draining(self) -> bool:
        return self._state.is_draining

    async def health(self) -> dict[str, Any]:
        if not self.is_started:
            return NO_ENGINE
        found: dict[str, Any] = await self.ask("health", (), _ANSWER_SECONDS, "the engine does not answer")
        return found

    async def statistics(self) -> dict[NodeId, dict[str, Any]]:
        if not self.is_started:
            return {}
        try:
            found: dict[NodeId, dict[str, Any]] = await self.ask("statistics", (), _ANSWER_SECONDS, "")
        except WaitTimeout:
            return {}  # what its last beat told is in the database
        return found

    def options_of(self, task: str) -> Mapping[str, Any]:
        known = self._tasks.get(task)
        return {} if known is None else known.options

    def session_options_of(self, task: str) -> SessionOptions:
        known = self._tasks.get(task)
        return NO_OPTIONS if known is None else known.session_options

    def takes_payloads(self, task: str) -> bool | None:
        known = self._tasks.get(task)
        return None if known is None else known.takes_payloads

    def described_tasks(self) -> Mapping[str, TaskDescription]:
        return {name: known.description for name, known in self._tasks.items()}

    async def stored_calls(self, task: str, calls: Iterable[GivenCall], *, from_json: bool = True) -> list[Function]:
        given = [Function(task, list(args), dict(kwargs)) for args, kwargs in calls]
        if task in self._tasks:
            asked = [task, *(msgspec.json.encode((one.args, one.kwargs)).decode() for one in given)]
            with contextlib.suppress(WaitTimeout):  # then it is looked at when it runs
                refused = await self.ask("arguments", asked, self._code_seconds, "")
                if refused is not None:
                    raise InvalidInput(refused["text"], field=refused["field"])
        return given

    def own_run(self) -> RunId | None:
        return None  # no work runs here

    def waiting(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def failed_checks(self, names: Iterable[str]) -> dict[str, str]:
        asked = tuple(names)
        if not asked:
            return {}
        words = "the code of the application does not answer: its event loop is blocked; try again later"
        found: dict[str, str] = await self.ask("checks", asked, self._code_seconds, words)
        return found

    def _hear(self, lost: Callable[[], None]) -> None:
        while (message := self._link.receive()) is not None:
            self._call(self._take, message)
        lost()
        self._call(self.hung_up.set)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended already
            self._loop.call_soon_threadsafe(function, *arguments)

    def _take(self, message: ToServer) -> None:
        match message:
            case EngineState():
                self._state = message
            case Learn(tasks):
                self._tasks.update(tasks)
            case Answer(number):
                waiting = self._asked.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)


def _end_soon() -> None:
    """Without its engine, also a server that is stuck ends."""
    timer = threading.Timer(_END_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()
