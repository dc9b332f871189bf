"""Accepts connections: so many in all and from one address, each with a deadline. Who is idle gives way to who comes.

`protocols.py` tells what each connection is doing; `limits.py` says how much of it may be. A process that has no
descriptor left rests before it accepts again, and says so once a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable

from ostinato.cli.limits import Limits
from ostinato.logs import get_logger

__all__ = ["Connection", "Connections", "Listener"]

log = get_logger("ostinato.api")

_IN_A_TURN = 32
"""How many are accepted before the loop looks after others."""
_TELL_SECONDS = 60.0
_TURNED_AWAY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Connection:
    """One accepted connection: whose it is, whether it can be missed, and until when it must do what it is about."""

    __slots__ = ("address", "expire", "is_idle", "is_websocket", "opening", "reads_until", "transport", "writes_until")

    def __init__(self, address: str, reads_until: float) -> None:
        self.address = address
        self.opening: asyncio.Task[None] | None = None
        """While TLS is agreed upon."""
        self.transport: asyncio.Transport | None = None
        self.is_idle = True
        """No request of it is under way."""
        self.is_websocket = False
        self.reads_until: float | None = reads_until
        self.writes_until: float | None = None
        self.expire: Callable[[], None] = self.abort
        """What happens when it does not send in time."""

    def abort(self) -> None:
        """End it, whatever it is doing."""
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class Connections:
    """All connections of a server."""

    def __init__(self, limits: Limits, is_trusted: Callable[[str], bool] = lambda _: False) -> None:
        self.limits = limits
        self._is_trusted = is_trusted
        self._open: dict[Connection, None] = {}
        """In the order in which they became idle, or busy."""
        self._of_address: Counter[str] = Counter()
        self._websockets = 0
        self.refused = 0
        """How many were turned away, or gave way to others."""
        self._told_at: float | None = None

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, address: str) -> Connection | None:
        """A new one, for which an idle one may have to go; None if there is no room."""
        is_full = len(self._open) >= self.limits.connections
        is_greedy = self._of_address[address] >= self.limits.per_address and not self._is_trusted(address)
        if is_full or is_greedy:
            self.refused += 1
            self._tell(address)
            if not self._make_room(address if is_greedy else None):
                return None
        made = Connection(address, _now() + self.limits.head_seconds)
        self._open[made] = None
        self._of_address[address] += 1
        return made

    def leave(self, connection: Connection) -> None:
        """It has ended, or its end has begun."""
        if connection not in self._open:
            return
        del self._open[connection]
        self._websockets -= connection.is_websocket
        self._of_address[connection.address] -= 1
        if not self._of_address[connection.address]:
            del self._of_address[connection.address]

    def turn(self, connection: Connection, *, is_idle: bool, seconds: float | None) -> None:
        """It does something else from now on, which may take so long."""
        connection.reads_until = None if seconds is None else _now() + seconds
        connection.is_idle = is_idle
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def upgrade(self, connection: Connection) -> bool:
        """Whether it may become a WebSocket."""
        if self._websockets >= self.limits.websockets or connection not in self._open:
            self.refused += 1
            return False
        self._websockets += 1
        connection.is_websocket = True
        self.turn(connection, is_idle=False, seconds=None)
        return True

    def sweep(self) -> None:
        """End what did not keep its time."""
        now = _now()
        for connection in list(self._open):
            transport = connection.transport
            if transport is not None and transport.is_closing() and connection.writes_until is None:
                # What is closed still waits until all is read, which may be never.
                connection.writes_until = now + self.limits.write_seconds
            if connection.writes_until is not None and connection.writes_until <= now:
                connection.abort()
            elif connection.reads_until is not None and connection.reads_until <= now:
                connection.reads_until = None
                connection.expire()

    def _make_room(self, address: str | None) -> bool:
        """End what has been idle longest, of this address or of all."""
        for connection in self._open:
            if connection.is_idle and address in (None, connection.address):
                connection.abort()
                self.leave(connection)
                return True
        return False

    def _tell(self, address: str) -> None:
        now = _now()
        if self._told_at is None or now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            log.warning(
                "%d connections are open, %d of them from %s: idle ones are closed, or new ones refused",
                len(self._open),
                self._of_address[address],
                address,
            )


class Listener:
    """Accepts at one socket; to uvicorn it is one of its servers."""

    def __init__(
        self,
        listening: socket.socket,
        connections: Connections,
        make_protocol: Callable[[Connection], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        rest_seconds: float = 1.0,
    ) -> None:
        self._socket = listening
        self._rest_seconds = rest_seconds
        self._connections = connections
        self._make_protocol = make_protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None
        self._told_at: float | None = None
        self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Accept nothing more."""
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._socket)
        for task in self._opening:
            task.cancel()

    async def wait_closed(self) -> None:
        """Return when nothing is on its way in any more."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_IN_A_TURN):
            try:
                accepted, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor or no memory is left: to try again at once would only spin
                self._rest(error)
                return
            accepted.setblocking(False)
            connection = self._connections.admit(str(peer[0]))
            if connection is None:
                self._turn_away(accepted)
                continue
            connection.opening = task = self._loop.create_task(self._open(connection, accepted))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, connection: Connection, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(connection),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else self._connections.limits.head_seconds,
            )
        except OSError:  # TLS was not agreed upon, or not in time
            self._connections.leave(connection)
            accepted.close()
        except BaseException:
            self._connections.leave(connection)
            accepted.close()
            raise

    def _turn_away(self, accepted: socket.socket) -> None:
        with accepted, contextlib.suppress(OSError):
            if self._tls is None:
                accepted.send(_TURNED_AWAY)

    def _rest(self, error: OSError) -> None:
        self._loop.remove_reader(self._socket)
        self._resting = self._loop.call_later(self._rest_seconds, self._wake)
        now = _now()
        if self._told_at is None or now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            log.error("no connection can be accepted right now: %s", error)

    def _wake(self) -> None:
        self._resting = None
        self._loop.add_reader(self._socket, self._accept)


def _now() -> float:
    return asyncio.get_running_loop().time()
