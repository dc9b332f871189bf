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
import queue
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

import ostinato
from ostinato import errors
from ostinato.cli.console import stderr
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
from ostinato.errors import InvalidInput, OstinatoError
from ostinato.logs import get_logger
from ostinato.models.policy import make_policy, policy_json
from ostinato.wiring import NO_ENGINE, interpreter

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.models.ids import NodeId

__all__ = ["ServerProcess", "serving_apart"]

log = get_logger(__name__)

_LAST_SECONDS, _LOOK_SECONDS = 1.0, 0.02
"""How long one that has closed its link may take to end, and between two looks whether it has."""
_BLOCKED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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

    def tell_page(self, address: Callable[[], str | None]) -> None: ...


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
        self._serves_at: str | None = None
        """Its address, while it serves."""
        self._stopped = threading.Event()
        self._ended = asyncio.Event()
        self._lock = threading.Lock()
        """Held for moments, and never while anything is waited for: the engine's loop takes it too."""
        self._outbox: queue.SimpleQueue[ToServer | None] | None = None
        """What its server is to be told; None while there is none."""
        self._link: Link[ToServer, FromServer] | None = None
        self.process: int | None = None
        """Its process id; None while there is none."""
        self._thread = threading.Thread(target=self._run, name="ostinato-server", daemon=True)

    async def start(self) -> None:
        """Return when it serves."""
        self._app.registry.on_new_task = self._learn
        self._thread.start()
        serving = asyncio.wrap_future(self._serving)
        serving.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it any more
        # Shielded: whoever no longer waits must not take the future from the thread.
        await asyncio.shield(serving)

    def tell_engine(self, engine: Engine | None, *, is_draining: bool = False) -> None:
        """The engine whose health the page tells, and whether it takes more work."""
        with self._lock:
            self._engine = engine
            self._state = EngineState(engine is not None, is_draining)
            if self._outbox is not None:
                self._outbox.put(self._state)
        if engine is not None:
            engine.tell_page(lambda: self._serves_at)

    async def stop(self) -> None:
        """End it; it may still be about to start."""
        self._app.registry.on_new_task = None
        if self._thread.ident is None:
            return
        self._stopped.set()
        self._hang_up()
        ended = asyncio.ensure_future(self._ended.wait())
        if not (await asyncio.wait({ended}, timeout=self._settings.tuning.server_end_seconds))[0]:
            self._kill()
        await asyncio.shield(ended)

    def _run(self) -> None:
        """On a thread of its own: it answers how the engine is while the engine's loop is blocked."""
        try:
            self._serve_again_and_again()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._ended.set)

    def _serve_again_and_again(self) -> None:
        tuning = self._settings.tuning
        first, longest = tuning.server_restart_seconds, tuning.server_longest_restart_seconds
        pause = first
        while True:
            begun = time.monotonic()
            try:
                ending = self._serve_once()
            except Exception as error:  # whatever it is, whoever waits for the start learns it, and else the next try
                ending = f"could not be started: {type(error).__name__}: {error}"
            if not self._serving.done():
                self._serving.set_exception(OstinatoError(f"the server did not start: it {ending}"))
            if self._stopped.is_set() or self._serving.exception() is not None:
                return
            if time.monotonic() - begun > longest:
                pause = first
            log.error("the server has ended unexpectedly: it %s; it will be started again in %g s", ending, pause)
            if self._stopped.wait(pause):
                return
            pause = min(pause * 2, longest)

    def _serve_once(self) -> str:
        """Start it and answer it until it ends; answers how it ended."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self.process = _spawn(theirs)
            try:
                link = engines_link(ours)
                outbox = self._begin(link)
                threading.Thread(
                    target=_deliver, args=(link, outbox), name="ostinato-server-words", daemon=True
                ).start()
                if self._stopped.is_set():
                    self._hang_up()
                failure = self._attend(link)
            finally:
                self._serves_at = None
                with self._lock:
                    self._link, outbox_here, self._outbox = None, self._outbox, None
                    if outbox_here is not None:
                        outbox_here.put(None)
                status = self._reap()
        return failure or status

    def _begin(self, link: Link[ToServer, FromServer]) -> queue.SimpleQueue[ToServer | None]:
        """What it is told first: what is registered or begins meanwhile comes after that."""
        registry = self._app.registry
        outbox: queue.SimpleQueue[ToServer | None] = queue.SimpleQueue()
        with self._lock:
            outbox.put(Begin(self._settings, self._known(list(registry.tasks))))
            outbox.put(self._state)
            self._link, self._outbox = link, outbox
        return outbox

    def _attend(self, link: Link[ToServer, FromServer]) -> str | None:
        """Hear it until it is gone; why it did not start, if it said so."""
        while (message := link.receive()) is not None:
            match message:
                case Said(text):
                    if not self._serving.done():  # one that is started again has nothing new to say
                        self._loop.call_soon_threadsafe(self._talk, text)
                case Serving(port, address):
                    self._settings = replace(self._settings, port=port)
                    self._serves_at = address
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

            case "arguments":
                task, *calls = ask.names
                self._answer_later(ask, _refusal(self._app, task, calls))

    def _answer_later(self, ask: Ask, work: Coroutine[Any, Any, Any]) -> None:
        """On the application's loop: what its code holds (a pool, a client) may belong to that."""

        def reply(asked: Future[Any]) -> None:
            try:
                self._reply(ask, asked.result())
            except (Exception, CancelledError) as error:
                self._send(Answer(ask.number, error=f"{type(error).__name__}: {error}"))

        asyncio.run_coroutine_threadsafe(work, self._loop).add_done_callback(reply)

    def _reply(self, ask: Ask, value: Any) -> None:
        self._send(Answer(ask.number, value))

    def _learn(self, name: str) -> None:
        """A task was registered: its door shall know it too."""
        self._send(Learn(self._known((name,))))

    def _known(self, names: Iterable[str]) -> dict[str, KnownTask]:
        registry = self._app.registry
        return {
            name: KnownTask(
                _plain(registry.options_of(name)),
                registry.takes_payloads(name),
                registry.session_options_of(name),
                registry.task(name).description,
            )
            for name in names
        }

    def _send(self, message: ToServer) -> None:
        """Have it sent, by a thread that may wait for a server that is stuck."""
        with self._lock:
            if self._outbox is not None:
                self._outbox.put(message)

    def _hang_up(self) -> None:
        with self._lock:
            if self._link is not None:
                with contextlib.suppress(OSError):
                    self._link.hang_up()

    def _kill(self) -> None:
        with self._lock:
            if self.process is not None:
                os.kill(self.process, signal.SIGKILL)

    def _reap(self) -> str:
        """How it ended. Without its link it is of no use: it has a moment, and more only where it was told to end."""
        assert self.process is not None
        last = time.monotonic() + _LAST_SECONDS
        try:
            while os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                if time.monotonic() > last and not self._stopped.is_set():
                    self._kill()
                time.sleep(_LOOK_SECONDS)
            with self._lock:  # its number may be another's from here on
                _, status = os.waitpid(self.process, 0)
                self.process = None
        except ChildProcessError:  # somebody else reaped it
            self.process = None
            return "ended for an unknown reason"
        code = os.waitstatus_to_exitcode(status)
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"


async def _refusal(app: Ostinato, task: str, calls: Sequence[str]) -> dict[str, str] | None:
    """Why these calls of a task cannot be stored; None if they can."""
    try:
        await app.registry.stored_calls(task, [_decode_call(call) for call in calls])
    except InvalidInput as error:
        return {"text": str(error), "field": error.field}
    return None


_decode_call = msgspec.json.Decoder(tuple[list[Any], dict[str, Any]]).decode


def _deliver(link: Link[ToServer, FromServer], outbox: queue.SimpleQueue[ToServer | None]) -> None:
    """Send what is in the outbox, until its end or the link's."""
    while (message := outbox.get()) is not None:
        try:
            link.send(message)
        except OSError:  # it is gone, or hung up
            return


def _spawn(link: socket.socket) -> int:
    """The process; its end of the link is its standard input."""
    program = interpreter()
    root = str(Path(ostinato.__file__).parents[1])
    # Not a low number, as where somebody closed ours: a DUP2 to its own number would leave it to be closed.
    end = fcntl.fcntl(link.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    errors_to = _stderr()
    try:
        return os.posix_spawn(
            program,
            # Not from the current folder: what lies there may be a stranger's.
            [program, "-P", "-c", _START, str(os.getpid()), root],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, end, 0),
                (os.POSIX_SPAWN_DUP2, errors_to, 2),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            ],
            setsigmask=_BLOCKED_SIGNALS,  # from its first moment, and for good
        )
    finally:
        os.close(end)
        os.close(errors_to)


def _stderr() -> int:
    """Where its log goes: ours, and not what work may have put in the place of 2 by now."""
    try:
        return fcntl.fcntl(stderr().fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    except (AttributeError, OSError, ValueError):  # it is closed, or what tests put there
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)


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
