"""Where the core lives: one event loop, whoever calls. Sync callers wait for it, other loops await it.

The core is async only. It lives on the loop of `async with app`, or else a thread of its own, made at first use. From
the first use to the end of `leave` is one lifetime: calls are served while the container is drained, wait while it
is closed, and then begin a new one. A fork leaves it behind in the parent; the child makes its own. One that is idle
can be closed before the fork.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

from ostinato.errors import OstinatoError, StoreError
from ostinato.forks import close_before_forks

__all__ = ["EventLoopHost"]

H = TypeVar("H")
T = TypeVar("T")
P = ParamSpec("P")


class _Moved(Exception):
    """The lifetime is ending: wait until it has, and call again."""


class _Lifetime(Generic[H]):
    """A container on a loop, from its opening to its end. Only that loop touches what is not set here."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread | None) -> None:
        self.loop = loop
        self.thread = thread
        self.container: H | None = None
        self.opening = asyncio.Lock()
        self.turn = asyncio.Lock()
        """Held by whoever starts or ends something in the container."""
        self.calls: dict[asyncio.Future[None], asyncio.Task[Any] | None] = {}
        """Calls under way, with the task if it is ours to cancel."""
        self.leaving: asyncio.Task[None] | None = None
        self.is_closing = False
        self.gone: Future[None] = Future()
        self.failure: Exception | None = None
        """Why it could not be drained or closed."""

    def is_over(self) -> bool:
        return self.gone.done() or self.loop.is_closed()


class EventLoopHost(Generic[H]):
    """Opens a container once, on one loop, and runs coroutines in it."""

    def __init__(self, build: Callable[[], Awaitable[H]], last_calls: float = 1.0) -> None:
        self._build = build
        self._last_calls = last_calls
        """Seconds that calls under way have to end before the container is closed under them."""
        self._lock = threading.RLock()  # a signal may interrupt the thread that holds it, and stop the app
        self._lifetime: _Lifetime[H] | None = None
        self.before_fork: Callable[[], None] | None = None
        """Called before this process forks, if nothing is being done in the container."""
        _hosts.add(self)

    @property
    def container(self) -> H | None:
        """The container, if it is open in this process."""
        lifetime = self._lifetime
        return None if lifetime is None or lifetime.is_over() else lifetime.container

    @property
    def is_here(self) -> bool:
        """Whether the container is open on the running loop, and ends with it."""
        lifetime = self._lifetime
        return lifetime is not None and not lifetime.is_over() and lifetime.loop is _running_loop()

    def run(self, use: Callable[[H], Awaitable[T]], *, alone: bool = False) -> T:
        """From sync code: run it on that loop and wait. `alone` is for what starts or ends something there."""
        while True:
            lifetime, future = self._submit(use, alone)
            try:
                return future.result()
            except _Moved:
                lifetime.gone.result()

    async def arun(self, use: Callable[[H], Awaitable[T]], *, alone: bool = False) -> T:
        """From a coroutine on any loop: run it on that loop and await it."""
        while True:
            with self._lock:
                lifetime = self._begun()
            try:
                if lifetime.loop is asyncio.get_running_loop():
                    return await self._use(lifetime, use, alone)
                lifetime, future = self._submit(use, alone)
                return await asyncio.wrap_future(future)
            except _Moved:
                await _until_gone(lifetime)

    async def adopt(self) -> None:
        """Make the running loop the one, if there is none yet."""
        lifetime = self._lifetime
        if lifetime is not None and lifetime.leaving is not None and not lifetime.is_over():
            await _until_gone(lifetime)
        with self._lock:
            if self._lifetime is None or self._lifetime.is_over():
                self._lifetime = _Lifetime(asyncio.get_running_loop(), None)

    def leave(self, drain: Callable[[H], Awaitable[None]], close: Callable[[H], Awaitable[None]]) -> None:
        """From sync code: drain the container, close it and end the loop; whoever comes second waits for the first."""
        lifetime = self._lifetime
        if lifetime is None or lifetime.is_over():
            return
        if lifetime.loop is _running_loop():
            raise OstinatoError("this would block the event loop that Ostinato runs on: use 'await app.aio.stop()'")
        self._ask_to_leave(lifetime, drain, close)
        lifetime.gone.result()
        if lifetime.thread is not None:
            lifetime.thread.join()
        if lifetime.failure is not None:
            raise lifetime.failure

    async def aleave(self, drain: Callable[[H], Awaitable[None]], close: Callable[[H], Awaitable[None]]) -> None:
        """The same from a coroutine on any loop. Once begun it goes on, even if its caller is cancelled."""
        lifetime = self._lifetime
        if lifetime is None or lifetime.is_over():
            return
        if lifetime.loop is asyncio.get_running_loop():
            await asyncio.shield(self._leaving(lifetime, drain, close))
        else:
            self._ask_to_leave(lifetime, drain, close)
            await _until_gone(lifetime)
            if lifetime.thread is not None:
                await asyncio.to_thread(lifetime.thread.join)
        if lifetime.failure is not None:
            raise lifetime.failure

    def check_may_block(self) -> None:
        """OstinatoError for who would wait here for the loop that he is on."""
        lifetime = self._lifetime
        if lifetime is not None and not lifetime.is_over() and lifetime.loop is _running_loop():
            raise OstinatoError(
                "this would block the event loop that Ostinato runs on: inside coroutines await the same verb "
                "under 'app.aio', or 'task.aio.enqueue'"
            )

    def call_soon(self, callback: Callable[[H], object]) -> None:
        """Run a callback on the host's loop soon, if the container is open."""
        lifetime = self._lifetime
        if lifetime is not None and lifetime.container is not None:
            with suppress(RuntimeError):  # the loop was closed just now
                lifetime.loop.call_soon_threadsafe(callback, lifetime.container)

    # In the caller's thread

    def _submit(self, use: Callable[[H], Awaitable[T]], alone: bool) -> tuple[_Lifetime[H], Future[T]]:
        # Under the lock, so that nothing is handed to a loop after it was told to stop.
        with self._lock:
            self.check_may_block()
            lifetime = self._begun()
            return lifetime, asyncio.run_coroutine_threadsafe(self._call(lifetime, use, alone), lifetime.loop)

    def _begun(self) -> _Lifetime[H]:
        if self._lifetime is None or self._lifetime.is_over():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=_run_loop, args=(loop, self._last_calls), name="ostinato-home", daemon=True
            )
            thread.start()
            self._lifetime = _Lifetime(loop, thread)
        return self._lifetime

    def _ask_to_leave(
        self, lifetime: _Lifetime[H], drain: Callable[[H], Awaitable[None]], close: Callable[[H], Awaitable[None]]
    ) -> None:
        with self._lock:
            if not lifetime.is_over():
                lifetime.loop.call_soon_threadsafe(self._leaving, lifetime, drain, close)

    # On its loop

    async def _call(self, lifetime: _Lifetime[H], use: Callable[[H], Awaitable[T]], alone: bool) -> T:
        try:
            return await self._use(lifetime, use, alone, asyncio.current_task())
        except asyncio.CancelledError:
            if not lifetime.is_closing:
                raise
            raise StoreError("the app was stopped while this call was under way") from None

    async def _use(
        self,
        lifetime: _Lifetime[H],
        use: Callable[[H], Awaitable[T]],
        alone: bool,
        task: asyncio.Task[Any] | None = None,
    ) -> T:
        if lifetime.is_closing or (alone and lifetime.leaving is not None):
            raise _Moved
        call: asyncio.Future[None] = lifetime.loop.create_future()
        lifetime.calls[call] = task
        try:
            container = lifetime.container or await self._open(lifetime)
            if not alone:
                return await use(container)
            async with lifetime.turn:
                return await use(container)
        finally:
            del lifetime.calls[call]
            if not call.done():
                call.set_result(None)

    async def _open(self, lifetime: _Lifetime[H]) -> H:
        async with lifetime.opening:
            if lifetime.container is None:
                lifetime.container = await self._build()
            return lifetime.container

    def _leaving(
        self, lifetime: _Lifetime[H], drain: Callable[[H], Awaitable[None]], close: Callable[[H], Awaitable[None]]
    ) -> asyncio.Task[None]:
        if lifetime.leaving is None:
            lifetime.leaving = lifetime.loop.create_task(self._shut(lifetime, drain, close))
        return lifetime.leaving

    async def _shut(
        self, lifetime: _Lifetime[H], drain: Callable[[H], Awaitable[None]], close: Callable[[H], Awaitable[None]]
    ) -> None:
        try:
            async with lifetime.turn:
                await self._drain_and_close(lifetime, drain, close)
        except Exception as error:  # whoever asked raises it
            lifetime.failure = error
        finally:
            self._end(lifetime)

    async def _drain_and_close(
        self, lifetime: _Lifetime[H], drain: Callable[[H], Awaitable[None]], close: Callable[[H], Awaitable[None]]
    ) -> None:
        try:
            if lifetime.container is not None:
                await drain(lifetime.container)
        finally:
            lifetime.is_closing = True
            await _end_calls(lifetime, self._last_calls)
            container, lifetime.container = lifetime.container, None
            if container is not None:
                await close(container)

    def _end(self, lifetime: _Lifetime[H]) -> None:
        lifetime.is_closing = True
        with self._lock:
            if self._lifetime is lifetime:
                self._lifetime = None
            if lifetime.thread is not None:
                lifetime.loop.stop()
            lifetime.gone.set_result(None)

    def _forks(self) -> None:
        lifetime = self._lifetime
        if self.before_fork is None or lifetime is None or lifetime.container is None or lifetime.calls:
            return
        if lifetime.thread in (None, threading.current_thread()):
            return  # it cannot be closed from where it lives
        self.before_fork()

    def _forked(self) -> None:
        """In a forked child: what the parent has open is neither to be used nor to be closed here."""
        if self._lifetime is not None:
            _left_behind.append(self._lifetime)
        self._lifetime = None
        self._lock = threading.RLock()  # another thread of the parent may have held it


_hosts: WeakSet[EventLoopHost[Any]] = WeakSet()
_left_behind: list[object] = []
"""What a forked child inherited."""


def _before_fork() -> None:
    for host in list(_hosts):
        host._forks()


def _after_fork() -> None:
    for host in list(_hosts):
        host._forked()


close_before_forks(_before_fork)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def _until_gone(lifetime: _Lifetime[Any]) -> None:
    # Shielded: one who no longer waits must not take the future from the others.
    await asyncio.shield(asyncio.wrap_future(lifetime.gone))


async def _end_calls(lifetime: _Lifetime[Any], seconds: float) -> None:
    """Let short calls end, and end the long ones."""
    if lifetime.calls:
        await asyncio.wait(list(lifetime.calls), timeout=seconds)
    ours = [task for task in lifetime.calls.values() if task is not None]
    for task in ours:
        task.cancel()
    if ours:
        await asyncio.wait(ours)


class _ThreadPool(ThreadPoolExecutor):
    """Where `asyncio.to_thread` runs things on that loop.

    Python's own pools take nothing more once the main thread has ended; the loop may live on by other threads. From
    then on each call has a thread of its own.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError as error:
            if "shutdown" not in str(error):  # no thread could be started: the pool has the call all the same
                raise
            future: Future[T] = Future()
            call = partial(fn, *args, **kwargs)
            threading.Thread(target=_settle, args=(future, call), name="ostinato-thread", daemon=True).start()
            return future


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:  # whatever it is, its caller learns it
            future.set_exception(error)


def _run_loop(loop: asyncio.AbstractEventLoop, last_calls: float) -> None:
    asyncio.set_event_loop(loop)
    loop.set_default_executor(_ThreadPool())
    try:
        loop.run_forever()
        # Nobody may be left waiting for an answer: who came last is told to call again.
        loop.run_until_complete(_turn_over(last_calls))
    finally:
        loop.close()


async def _turn_over(seconds: float) -> None:
    """Let what was handed over already run, and end the rest."""
    for _ in range(5):
        await asyncio.sleep(0)
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        _, stubborn = await asyncio.wait(rest, timeout=seconds)
        for task in stubborn:  # work may swallow its cancellation: the ledger says so, and asyncio need not
            task._log_destroy_pending = False  # type: ignore[attr-defined]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
