"""The server as a part of another ASGI app: `api.mount("/jobs", app.asgi())`.

It serves what `ostinato web` serves, at whatever place it is mounted, on the container of the app. No server runs the
lifespan of a mounted app, so this starts no engine: `app.lifespan()` or `app.start()` does. The first request opens
the database if nobody has yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato.api.app import create_app
from ostinato.api.container import ApiContainer
from ostinato.api.host_login import HOST_LOGIN, HostLogin, Who
from ostinato.api.prefix import PREFIX, below_prefix
from ostinato.api.problems import problem_answer, problem_of
from ostinato.errors import OstinatoError
from ostinato.tuning import DEFAULT_TUNING

__all__ = ["ContainerHost", "MountedApp"]

T = TypeVar("T")

_TRY_AGAIN = 1013


class ContainerHost(Protocol):
    """Where the container of an app lives, and on which loop."""

    async def arun(self, use: Callable[[Any], Awaitable[T]]) -> T:
        """Open it if need be, and use it on its loop."""
        ...


class MountedApp:
    """An ASGI app: the page, REST, the stream, health and metrics."""

    def __init__(
        self,
        host: ContainerHost,
        close: Callable[[], Awaitable[None]],
        who: Who | None = None,
        login_url: str | None = None,
        who_seconds: float = DEFAULT_TUNING.host_login_seconds,
    ) -> None:
        self._host = host
        self._close = close
        self._who = who
        self._login_url = login_url
        self._who_seconds = who_seconds
        self._served: tuple[ApiContainer, ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        below = below_prefix(scope)
        if self._who is not None:
            below[HOST_LOGIN] = HostLogin(self._who, scope, _login_url(self._login_url, below), self._who_seconds)
        loop, is_open = asyncio.get_running_loop(), False
        send = _with_prefix(send, below[PREFIX])

        async def serve(container: ApiContainer) -> None:
            nonlocal is_open
            is_open = True
            app = self._app_on(container)
            if asyncio.get_running_loop() is loop:
                await app(below, receive, send)
            else:  # the engine was started on a thread of its own
                await app(below, _on(loop, receive), _on(loop, send))

        try:
            await self._host.arun(serve)
        except OstinatoError as error:
            if is_open:
                raise
            await _refuse(error, scope, receive, send)

    def _app_on(self, container: ApiContainer) -> ASGIApp:
        """The server on this container; an app that was stopped and is used again has another one."""
        if self._served is None or self._served[0] is not container:
            self._served = container, create_app(container)
        return self._served[1]

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Served by itself, and not mounted: the database is closed at the end."""
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._close()
        await send({"type": "lifespan.shutdown.complete"})


def _on(loop: asyncio.AbstractEventLoop, call: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """The same from another loop: what belongs to the host's server is called on its loop."""

    async def called(*arguments: Any) -> T:
        return await call(*arguments)

    async def from_here(*arguments: Any) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(called(*arguments), loop))

    return from_here


def _login_url(given: str | None, below: Scope) -> str | None:
    """With the address that was asked for, to come back to."""
    if given is None:
        return None
    query = below.get("query_string", b"").decode("latin-1")
    place = below[PREFIX] + quote(below["path"]) + (f"?{query}" if query else "")
    return given.replace("{next}", quote(place, safe=""))


def _with_prefix(send: Send, prefix: str) -> Send:
    """Says where something was made as the client has to ask for it."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] < 300:
            headers = MutableHeaders(scope=message)
            if "location" in headers:
                headers["location"] = prefix + headers["location"]
        await send(message)

    return sending if prefix else send


async def _refuse(error: OstinatoError, scope: Scope, receive: Receive, send: Send) -> None:
    """The database cannot be opened."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": _TRY_AGAIN, "reason": "the database cannot be opened"})
    else:
        await problem_answer(problem_of(error))(scope, receive, send)
