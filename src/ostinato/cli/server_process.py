"""The server beside an engine: a process of its own, so that no request holds up a start or takes the engine along.

`serving.py` starts it before the engine and ends it after, so that the page tells how a drain ends. The user's code is
not loaded there: what the services want to know of it goes over the link (server_link.py). One that is killed is
started again at the same port; one that loses the engine ends itself. server_child.py is the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import ostinato
from ostinato import errors
from ostinato.cli.server_link import (
    Answer,
    Ask,
    Begin,
    EngineState,
    Failed,
    FromServer,
    KnownTask,
    Learn,
    Link,
    Said,
    Serving,
    ToServer,
    engines_link,
)
from ostinato.errors import OstinatoError
from ostinato.logs import get_logger
from ostinato.models.policy import make_policy, policy_json
from ostinato.wiring import NO_ENGINE, interpreter

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.models.ids import NodeId

__all__ = ["ServerProcess", "serving_apart"]

log = get_logger(__name__)

_RESTART_SECONDS = 1.0, 30.0
"""Before a server that was killed is started again, at first and at last."""
_END_SECONDS = 10.0
"""How long it has to end, of which requests under way have three."""
_DEAF_TO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a terminal or an init sends to all: the page tells how the drain ends."""
_START = "import sys; sys.path.append(sys.argv[2]); from ostinato.cli.server_child import main; main(int(sys.argv[1]))"


@asynccontextmanager
async def serving_apart(app: Ostinato, talk: Callable[[str], None]) -> AsyncIterator[ServerProcess]:
    """Serve API and page from another process. What hinders its start is raised here."""
    server = ServerProcess(app, talk)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


class Statistics(Protocol):
    """What an engine has counted."""

    def shape(self) -> dict[str, Any]: ...


class Engine(Protocol):
    """What the page tells of an engine; any thread may ask."""

    @property
    def id(self) -> NodeId: ...

    @property
    def statistics(self) -> Statistics: ...

    def health(self) -> dict[str, Any]: ...


class ServerProcess:
    """The server's process, and the next one if that is killed."""

    def __init__(self, app: Ostinato, talk: Callable[[str], None]) -> None:
        self._app = app
        self._talk = talk
        self._loop = asyncio.get_running_loop()
        self._settings = app.settings
        self._engine: Engine | None = None
        self._state = EngineState(is_started=False)
        self._serving: Future[None] = Future()
        self._stopped = threading.Event()
        self._sending = threading.Lock()
        self._link: Link[ToServer, FromServer] | None = None
        self._ending = threading.Lock()
        self.process: int | None = None
        """Its process id; None while there is none."""
        self._thread = threading.Thread(target=self._run, name="ostinato-server", daemon=True)

    async def start(self) -> None:
        """Return when it serves."""
        self._app.registry.on_new_task = self._learn
        self._thread.start()
        # Shielded: whoever no longer waits must not take the future from the thread.
        await asyncio.shield(asyncio.wrap_future(self._serving))

    def tell_engine(self, engine: Engine | None, *, is_draining: bool = False) -> None:
        """The engine whose health the page tells, and whether it takes more work."""
        self._engine = engine
        self._state = EngineState(engine is not None, is_draining)
        self._send(self._state)

    async def stop(self) -> None:
        """End it; it may still be about to start."""
        self._app.registry.on_new_task = None
        self._stopped.set()
        self._hang_up()
        await asyncio.shield(asyncio.to_thread(self._thread.join, _END_SECONDS))
        if self._thread.is_alive():
            self._kill()
            await asyncio.shield(asyncio.to_thread(self._thread.join))

    def _run(self) -> None:
        """On a thread of its own: it answers how the engine is while the engine's loop is blocked."""
        first, longest = _RESTART_SECONDS
        pause = first
        while True:
            begun = time.monotonic()
            try:
                ending = self._serve_once()
            except OSError as error:
                ending = f"could not be started: {error}"
            if not self._serving.done():
                self._serving.set_exception(OstinatoError(f"the server did not start: it {ending}"))
            if self._stopped.is_set() or self._serving.exception() is not None:
                return
            if time.monotonic() - begun > longest:
                pause = first
            log.error("the server has ended by itself: it %s; it is started again in %g s", ending, pause)
            if self._stopped.wait(pause):
                return
            pause = min(pause * 2, longest)

    def _serve_once(self) -> str:
        """Start it and answer it until it ends; answers how it ended."""
        registry = self._app.registry
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self.process = _spawn(theirs)
            try:
                link = self._link = engines_link(ours)
                if self._stopped.is_set():
                    self._hang_up()
                self._send(Begin(self._settings, self._known(registry.tasks), registry.has_throttle))
                self._send(self._state)
                failure = self._attend(link)
            finally:
                with self._sending:
                    self._link = None
                status = self._bury()
        return failure or status

    def _attend(self, link: Link[ToServer, FromServer]) -> str | None:
        """Hear it until it is gone; why it did not start, if it said so."""
        while (message := link.receive()) is not None:
            match message:
                case Said(text):
                    if not self._serving.done():  # one that is started again has nothing new to say
                        self._loop.call_soon_threadsafe(self._talk, text)
                case Serving(port):
                    self._settings = replace(self._settings, port=port)
                    if not self._serving.done():
                        self._serving.set_result(None)
                case Failed(kind, text):
                    if not self._serving.done():
                        self._serving.set_exception(_error(kind, text))
                    return f"does not start: {text}"
                case Ask(number):
                    try:
                        self._answer(message)
                    except Exception as error:  # whatever it is, who asked learns it, and the link lives on
                        self._send(Answer(number, error=f"{type(error).__name__}: {error}"))
        return None

    def _answer(self, ask: Ask) -> None:
        engine = self._engine
        match ask.what:
            case "health":
                self._reply(ask, NO_ENGINE if engine is None else engine.health())
            case "statistics":
                self._reply(ask, {} if engine is None else {engine.id: engine.statistics.shape()})
            case "checks":
                self._answer_later(ask, self._app.registry.failed_checks(ask.names))
            case "throttled":
                self._answer_later(ask, self._app.registry.throttled(ask.names[0]))

    def _answer_later(self, ask: Ask, work: Coroutine[Any, Any, Any]) -> None:
        """On the application's loop: what its code holds (a pool, a client) may belong to that. Its end is waited for
        on another thread, since a task may hold the loop."""
        asked = asyncio.run_coroutine_threadsafe(work, self._loop)

        def wait() -> None:
            try:
                self._reply(ask, asked.result())
            except Exception as error:
                self._send(Answer(ask.number, error=f"{type(error).__name__}: {error}"))

        threading.Thread(target=wait, name="ostinato-server-answer", daemon=True).start()

    def _reply(self, ask: Ask, value: Any) -> None:
        self._send(Answer(ask.number, value))

    def _learn(self, name: str) -> None:
        """A task was registered: its door shall know it too."""
        self._send(Learn(self._known((name,))))

    def _known(self, names: Iterable[str]) -> dict[str, KnownTask]:
        registry = self._app.registry
        return {name: KnownTask(_plain(registry.options_of(name)), registry.takes_payloads(name)) for name in names}

    def _send(self, message: ToServer) -> None:
        with self._sending:
            if self._link is not None:
                with contextlib.suppress(OSError):  # it is gone, which is heard soon
                    self._link.send(message)

    def _hang_up(self) -> None:
        with self._sending:
            if self._link is not None:
                with contextlib.suppress(OSError):
                    self._link.hang_up()

    def _kill(self) -> None:
        with self._ending:
            if self.process is not None:
                os.kill(self.process, signal.SIGKILL)

    def _bury(self) -> str:
        """How it ended. Without its link it is of no use, unless it is about to end anyway."""
        assert self.process is not None
        if not self._stopped.is_set():
            self._kill()
        try:
            os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOWAIT)
            with self._ending:  # its number may be another's from here on
                _, status = os.waitpid(self.process, 0)
                self.process = None
        except ChildProcessError:  # somebody else buried it
            self.process = None
            return "ended, and nobody knows how"
        code = os.waitstatus_to_exitcode(status)
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"


def _spawn(link: socket.socket) -> int:
    """The process; its end of the link is its standard input."""
    program = interpreter()
    root = str(Path(ostinato.__file__).parents[1])
    # Not a low number, as where somebody closed ours: a DUP2 to its own number would leave it to be closed.
    end = fcntl.fcntl(link.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    try:
        return os.posix_spawn(
            program,
            # Not from the current folder: what lies there may be a stranger's.
            [program, "-P", "-c", _START, str(os.getpid()), root],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, end, 0)],
            setsigmask=_DEAF_TO,  # from its first moment, and for good
        )
    finally:
        os.close(end)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """A task's policy without objects of Python's own."""
    whole = policy_json(make_policy(options))
    given = {"remaining" if name == "run_once" else name for name in options}
    return {name: value for name, value in whole.items() if name in given}


def _error(kind: str, text: str) -> OstinatoError:
    """The error that kept it from starting, as if it had been raised here."""
    found = getattr(errors, kind, None)
    try:
        made = found(text) if isinstance(found, type) and issubclass(found, OstinatoError) else OstinatoError(text)
    except TypeError:  # one that wants more than a text
        made = OstinatoError(text)
    return made
