"""How much somebody may send: a little before they are known, more when they may write. Counted while it is read.

It stands right behind the `AuthenticationMiddleware`, which knows who it is, and before anybody reads.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato.api.access import principal_of
from ostinato.api.problems import BodyTooLarge, body_too_large
from ostinato.errors import NotLoggedIn
from ostinato.models.access import Role

__all__ = ["LARGEST_BODY", "LARGEST_OF_PINGS", "LARGEST_OF_STRANGERS", "LARGEST_OF_VIEWERS", "BodyLimit"]

LARGEST_BODY = 1_000_000
LARGEST_OF_VIEWERS = 65_536
LARGEST_OF_STRANGERS = 4_096
"""Enough for a login."""
LARGEST_OF_PINGS = 10_000_000
"""What a machine printed: a ping must not be lost because that was much. Only its end is kept, and without its key
nothing of it is read."""


class BodyLimit:
    """Refuses a body that is too large for whoever sends it, by its length or as soon as it gets so."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = _most_of(scope)
        length = Headers(scope=scope).get("content-length", "0")
        # Its digits first: to read a number of thousands of them takes a while, too.
        if not length.isdecimal() or len(length) > 18 or int(length) > most:
            await body_too_large(most)(scope, receive, send)
        else:
            await self._app(scope, _bounded(receive, most), send)


def _most_of(scope: Scope) -> int:
    if scope["path"].startswith("/ping/"):
        return LARGEST_OF_PINGS
    try:
        login = principal_of(HTTPConnection(scope)).login
    except NotLoggedIn:
        return LARGEST_OF_STRANGERS
    return LARGEST_BODY if login.role.covers(Role.OPERATOR) else LARGEST_OF_VIEWERS


def _bounded(receive: Receive, most: int) -> Receive:
    """Stops a body that was sent without its length when it gets too large."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > most:
                raise BodyTooLarge(most)
        return message

    return bounded
