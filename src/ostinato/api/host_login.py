"""The login of the app that this server is mounted in: its callback `who` says who asks.

It is called on the host's own event loop, as often as somebody has to be known, and sees the request as the host does.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Scope

from ostinato.errors import LoginUnavailable
from ostinato.logs import get_logger
from ostinato.models.access import Identity

__all__ = ["HOST_LOGIN", "HostLogin", "Who", "host_login_of"]

log = get_logger("ostinato.api")

Who: TypeAlias = Callable[[HTTPConnection], Identity | Awaitable[Identity | None] | None]

HOST_LOGIN = "ostinato.host_login"
"""Where a request carries it."""
_NOT_LOGGED_IN = "You are not logged in. Log in to this site, then open this page again.\n"


class HostLogin:
    """Who one request or socket is of, by the host's word."""

    def __init__(self, who: Who, scope: Scope, login_url: str | None, seconds: float) -> None:
        """`login_url` is where people log in there, this page's address put into it; `seconds` is how long `who` may
        take."""
        self._who = who
        self._seconds = seconds
        self._connection = HTTPConnection(scope)
        self._login_url = login_url
        self._loop = asyncio.get_running_loop()

    async def identity(self) -> Identity | None:
        """Who it is now; None if the host knows nobody."""
        if asyncio.get_running_loop() is self._loop:
            return await self._ask()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._ask(), self._loop))

    def refusal(self) -> Response:
        """What somebody who is not logged in gets instead of the page."""
        if self._login_url is None:
            return PlainTextResponse(_NOT_LOGGED_IN, 401)
        return RedirectResponse(self._login_url, 303)

    async def _ask(self) -> Identity | None:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._answer()
        except TimeoutError:
            if not limit.expired():
                raise  # it is its own: of a database, say
            log.error("who() has not answered within %g s: nobody is let in", self._seconds)
            raise LoginUnavailable("this site cannot say right now who you are: try again later") from None

    async def _answer(self) -> Identity | None:
        # A plain function may ask a database: not on the loop.
        is_async = inspect.iscoroutinefunction(self._who)
        answer: object = self._who(self._connection) if is_async else await asyncio.to_thread(self._call)
        found = await answer if inspect.isawaitable(answer) else answer
        if found is not None and not isinstance(found, Identity):
            raise TypeError(f"who() returned {type(found).__name__}: it must return an Identity or None")
        return found

    def _call(self) -> object:
        return self._who(self._connection)


def host_login_of(scope: Scope) -> HostLogin | None:
    """The host's login; None if people log in here."""
    found = scope.get(HOST_LOGIN)
    return found if isinstance(found, HostLogin) else None
