"""What is spoken on a connection: HTTP by h11, whose size of headers is bounded, and WebSocket by `websockets`.

Both are uvicorn's, named here so that what else is installed changes nothing. They tell `connections.py` what the
connection is doing, which keeps its time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from enum import Enum, auto
from functools import partial
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from ostinato.cli.connections import Connection, Connections

__all__ = ["LARGEST_HEAD", "HttpProtocol", "LiveProtocol", "LogThrottle"]

LARGEST_HEAD = 32_768
"""Bytes of a request's first line and headers."""
_PIECE = 4_096
_LAST_WORDS = 3
"""Seconds in which a client that is told to go has to read that."""
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_NO_MORE = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class _Phase(Enum):
    """What is awaited on a connection."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    NEXT = auto()
    """A request after the first, of which nothing has come yet: uvicorn's own timer looks after it."""


class HttpProtocol(H11Protocol):
    """HTTP with deadlines: for the head, for the body, and for whoever does not read."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        connection: Connection,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._connection = connection
        self._all = connections
        self._phase = _Phase.HEAD
        self._has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._connection.transport = transport
        self._connection.opening = None
        self._connection.expire = self._time_out

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._all.leave(self._connection)

    def data_received(self, data: bytes) -> None:
        # In pieces: h11 bounds what is not complete, and not what comes complete at once.
        for start in range(0, len(data), _PIECE):
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return
            self._has_begun = True
            super().data_received(data[start : start + _PIECE])

    def handle_events(self) -> None:
        super().handle_events()
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        if not self._all.upgrade(self._connection):
            self.transport.write(_NO_MORE)
            self.transport.close()
            return
        self.ws_protocol_class = partial(LiveProtocol, connection=self._connection, connections=self._all)  # type: ignore[assignment]
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._connection.writes_until = self.loop.time() + self._all.limits.write_seconds

    def resume_writing(self) -> None:
        super().resume_writing()
        self._connection.writes_until = None

    def _note(self) -> None:
        """Tell when the connection begins to wait for something else."""
        phase = self._awaited()
        if phase is self._phase or self._connection.is_websocket:
            return
        self._phase = phase
        limits = self._all.limits
        seconds = {_Phase.HEAD: limits.head_seconds, _Phase.BODY: limits.body_seconds}.get(phase)
        self._all.turn(self._connection, is_idle=phase in (_Phase.HEAD, _Phase.NEXT), seconds=seconds)

    def _awaited(self) -> _Phase:
        if self.conn.their_state is h11.SEND_BODY:
            return _Phase.BODY  # also when the answer is sent: nobody may go on for ever
        if self.conn.their_state is not h11.IDLE:
            return _Phase.ANSWER
        is_first = self.cycle is None
        return _Phase.HEAD if is_first or self.conn.trailing_data[0] else _Phase.NEXT

    def _time_out(self) -> None:
        if self._has_begun and (self.cycle is None or not self.cycle.response_started):
            self.transport.write(_TIMED_OUT)
        self.transport.close()


class LiveProtocol(WebSocketsSansIOProtocol):
    """Lets go of a client that does not read: to close waits until it has read all, which may be never."""

    def __init__(self, *arguments: Any, connection: Connection, connections: Connections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._connection = connection
        self._all = connections

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._all.leave(self._connection)

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self.loop.call_later(_LAST_WORDS, self.transport.abort)


class LogThrottle(logging.Filter):
    """Lets each kind of message through a few times in a minute: whoever sends nonsense must not fill the disk."""

    MOST = 10

    def __init__(self, seconds: float = 60.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._since = time.monotonic()
        self._seen: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._since >= self._seconds:
            self._since, self._seen = now, {}
        # What is logged as one text without parts may be a new one each time: it counts by where it is logged.
        kind = f"{record.pathname}:{record.lineno}"
        self._seen[kind] = count = self._seen.get(kind, 0) + 1
        return count <= self.MOST
