"""Where the core lives: one event loop, whoever calls. Sync callers wait for it, other loops await it.

The core is async only. Its home is the loop of `async with app`, or else a thread of its own, made at first use. A
fork leaves the home behind in the parent; the child makes its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ostinato.errors import OstinatoError

__all__ = ["Face", "Home", "awaiting", "blocking"]

H = TypeVar("H")
S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")

_left_behind: list[object] = []
"""What a forked child inherited and must neither use nor close."""


class Home(Generic[H]):
    """Opens a house once, on one loop, and runs coroutines in it."""

    def __init__(self, build: Callable[[], Awaitable[H]]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._house: H | None = None
        self._opening: asyncio.Lock | None = None

    @property
    def house(self) -> H | None:
        """The house, if it is open in this process."""
        return self._house if self._pid == os.getpid() else None

    def run(self, use: Callable[[H], Awaitable[T]]) -> T:
        """From sync code: run it at home and wait."""
        loop = self._home_loop()
        if loop is _running_loop():
            raise OstinatoError(
                "this would block the event loop that Ostinato runs on: inside coroutines use 'await app.aio…'"
            )
        return asyncio.run_coroutine_threadsafe(self._use(use), loop).result()

    async def arun(self, use: Callable[[H], Awaitable[T]]) -> T:
        """From a coroutine on any loop: run it at home and await it."""
        loop = self._home_loop()
        if loop is asyncio.get_running_loop():
            return await self._use(use)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._use(use), loop))

    def adopt(self) -> None:
        """Make the running loop the home, if there is none yet."""
        with self._lock:
            self._check_fork()
            if self._loop is None or self._loop.is_closed():
                self._forget()
                self._loop = asyncio.get_running_loop()

    def leave(self, close: Callable[[H], Awaitable[None]]) -> None:
        """From sync code: close the house and end the home; it opens anew at the next use."""
        loop, thread = self._open_loop(), self._thread
        if loop is None:
            return
        if loop is _running_loop():
            raise OstinatoError("this would block the event loop that Ostinato runs on: use 'await app.aio.stop()'")
        asyncio.run_coroutine_threadsafe(self._shut(close), loop).result()
        self._end(loop, thread)

    async def aleave(self, close: Callable[[H], Awaitable[None]]) -> None:
        """The same from a coroutine on any loop."""
        loop, thread = self._open_loop(), self._thread
        if loop is None:
            return
        if loop is asyncio.get_running_loop():
            await self._shut(close)
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._shut(close), loop))
        self._end(loop, thread)

    def _open_loop(self) -> asyncio.AbstractEventLoop | None:
        if self._pid != os.getpid() or self._loop is None or self._loop.is_closed():
            return None
        return self._loop

    async def _shut(self, close: Callable[[H], Awaitable[None]]) -> None:
        house, self._house = self._house, None
        if house is not None:
            await close(house)

    def _end(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread | None) -> None:
        with self._lock:
            if self._loop is loop:
                self._forget()
        if thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def call_soon(self, callback: Callable[[H], object]) -> None:
        """Run a callback at home soon, if the house is open."""
        house, loop = self.house, self._loop
        if house is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(callback, house)

    async def _use(self, use: Callable[[H], Awaitable[T]]) -> T:
        if self._opening is None:
            self._opening = asyncio.Lock()
        if self._house is None:
            async with self._opening:
                if self._house is None:
                    self._house = await self._build()
        return await use(self._house)

    def _home_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            self._check_fork()
            if self._loop is None or self._loop.is_closed():
                self._forget()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="ostinato-home", daemon=True)
                self._thread.start()
            return self._loop

    def _check_fork(self) -> None:
        if self._pid != os.getpid():
            _left_behind.append((self._house, self._loop))
            self._forget()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Face(Generic[H, S]):
    """A service as callers see it: which home it is in, and which of the house's services it is."""

    def __init__(self, home: Home[H], pick: Callable[[H], S]) -> None:
        self._home = home
        self._pick = pick


def blocking(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Face[Any, S], P], T]:
    """The sync form of a service's coroutine: same arguments, same answer."""

    @wraps(method)
    def call(self: Face[Any, S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._home.run(lambda house: method(self._pick(house), *args, **kwargs))

    return call


def awaiting(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Face[Any, S], P], Coroutine[Any, Any, T]]:
    """The async form, for coroutines on any loop."""

    @wraps(method)
    async def call(self: Face[Any, S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._home.arun(lambda house: method(self._pick(house), *args, **kwargs))

    return call
