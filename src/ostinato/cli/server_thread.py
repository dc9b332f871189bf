"""The server beside an engine: on a thread, a loop and a house of its own, so that no request holds up a start.

`serving.py` starts it before the engine and ends it after, so that the page tells how a drain ends. Checks are the
application's, and are carried out on its loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ostinato.cli.server import lasting, serving
from ostinato.errors import WaitTimeout
from ostinato.wiring import House, open_house

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.models.ids import RunId

__all__ = ["serving_apart"]

SWITCH_SECONDS = 0.001
"""How long the server's thread may keep the interpreter while the engine waits for it; Python's own are 5 ms."""

CHECKS_SECONDS = 60.0
"""How long a request waits for checks: a task may hold the application's loop."""


@asynccontextmanager
async def serving_apart(app: Ostinato, talk: Callable[[str], None]) -> AsyncIterator[House]:
    """Serve API and page from another thread; yields its house. What hinders its start is raised here."""
    server = _ServerThread(app, talk)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        house = await server.start()
        with lasting(server.ended()):
            yield house
    finally:
        await server.stop()
        sys.setswitchinterval(usual)


class _ServerThread:
    """One thread, from the opening of its house to its end."""

    def __init__(self, app: Ostinato, talk: Callable[[str], None]) -> None:
        self._app = app
        self._talk = talk
        self._code = _CodeElsewhere(app, asyncio.get_running_loop())
        self._opened: Future[tuple[House, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="ostinato-server", daemon=True)

    async def start(self) -> House:
        self._thread.start()
        # Shielded: whoever no longer waits must not take the future from the thread.
        house, _, _ = await asyncio.shield(asyncio.wrap_future(self._opened))
        return house

    def ended(self) -> asyncio.Future[None]:
        """Done when it has ended."""
        return asyncio.wrap_future(self._ended)

    async def stop(self) -> None:
        """End it; it may still be about to start."""
        self._opened.add_done_callback(_tell_to_stop)
        await asyncio.shield(self.ended())

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # whoever waits for the start or the end raises it
            if self._opened.done():
                self._ended.set_exception(error)
                return
            self._opened.set_exception(error)
        self._ended.set_result(None)

    async def _serve(self) -> None:
        app, stopping = self._app, asyncio.Event()
        house = await open_house(app.settings, app.clock, app.registry, self._code)
        try:
            async with serving(house, self._talk):
                self._opened.set_result((house, asyncio.get_running_loop(), stopping))
                await stopping.wait()
        finally:
            await house.close()


def _tell_to_stop(opened: Future[tuple[House, asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    if opened.cancelled() or opened.exception() is not None:
        return
    _, loop, stopping = opened.result()
    loop.call_soon_threadsafe(stopping.set)


class _CodeElsewhere:
    """What the application's code knows, for a loop that is not the application's."""

    def __init__(self, app: Ostinato, loop: asyncio.AbstractEventLoop) -> None:
        self._registry = app.registry
        self._loop = loop

    def options_of(self, task: str) -> Mapping[str, Any]:
        return self._registry.options_of(task)

    def takes_payloads(self, task: str) -> bool | None:
        return self._registry.takes_payloads(task)

    def throttled(self, session: str) -> bool | None:
        return self._registry.throttled(session)

    def own_run(self) -> RunId | None:
        return None  # no work runs on the server's thread

    async def failed_checks(self, names: Iterable[str]) -> dict[str, str]:
        """On the application's loop: what its checks hold (a pool, a client) may belong to that."""
        asked = asyncio.run_coroutine_threadsafe(self._registry.failed_checks(tuple(names)), self._loop)
        try:
            async with asyncio.timeout(CHECKS_SECONDS):
                return await asyncio.wrap_future(asked)
        except TimeoutError:
            words = "checks could not be carried out: the event loop of the application is blocked; try again later"
            raise WaitTimeout(words) from None
