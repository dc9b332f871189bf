"""The line to the other side: the network backend and stream that httpcore2 is given, and that it cannot go past.

The name is looked up and judged by network.py, the connection goes to one of the addresses that were judged, and TLS is
spoken with the name. exchange.py sends requests through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, TypeVar

from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream, RemoteProtocolError

from ostinato.execution.executors.http.network import Network
from ostinato.execution.executors.http.request import Refusal, Target, Trouble
from ostinato.tuning import Tuning

__all__ = ["Line", "words"]

PIECE = 64 * 1024
"""How many bytes are received, or encrypted, at once."""
_LATE = "it did not answer in time"
_RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: let the other side know at once, whatever is on its way."""

T = TypeVar("T")


class Endless(RemoteProtocolError):
    """The other side sends more than it was allowed to."""


class Line(AsyncNetworkBackend, AsyncNetworkStream):
    """At most one connection at a time. Who made it closes it, not httpcore2."""

    def __init__(self, network: Network, tuning: Tuning) -> None:
        self._network = network
        self._tuning = tuning
        self._target: Target
        self._socket: socket.socket | None = None
        self._tls: ssl.SSLObject | None = None
        self._encrypted_in: ssl.MemoryBIO
        self._encrypted_out: ssl.MemoryBIO
        self.allowance = 0
        """How many bytes may still be received, until somebody sets it anew."""
        self._unsent: OSError | None = None
        """Why the other side did not get all."""
        self.was_open = False
        """Whether somebody may have heard something."""
        self.has_received = False
        """Whether a byte came through this connection."""
        self.is_at_end = False
        """Whether the other side has hung up."""

    async def aim(self, target: Target) -> ssl.SSLContext | None:
        """The next connection goes there, instead of the one before; answers what TLS it needs."""
        self.close()
        self._target, self._tls, self._unsent = target, None, None
        self.has_received = self.is_at_end = False
        return await self._network.tls() if target.scheme == "https" else None

    def close(self, *, reset: bool = False) -> None:
        """Let go of the connection; `reset`: broken off, not ended.

        Else who still sends may wait a minute for room that nobody makes.
        """
        held, self._socket = self._socket, None
        if held is not None:
            if reset:
                with contextlib.suppress(OSError):
                    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            held.close()

    # What httpcore2 asks of a network backend. Where to and how long is not its to say.

    async def connect_tcp(self, *_: Any, **__: Any) -> AsyncNetworkStream:
        """Connect to a judged address of the target. Refusal and Trouble say why not."""
        target = self._target
        addresses = await self._network.addresses(target)
        for position, (family, address) in enumerate(addresses, start=1):
            try:
                await self._connect(family, address)
                break
            except OSError as error:
                self.close()
                if position == len(addresses):
                    where = f" at {address[0]}" if address[0] != target.host else ""
                    raise Trouble(f"{target.shown} cannot be reached{where}: {words(error, _LATE)}") from error
        self.was_open = True
        return self

    async def _connect(self, family: int, address: Any) -> None:
        held = self._socket = socket.socket(family, socket.SOCK_STREAM)
        held.setblocking(False)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(self._tuning.http_connect_seconds):
            await asyncio.get_running_loop().sock_connect(held, address)

    # What it asks of a stream.

    async def start_tls(self, ssl_context: ssl.SSLContext, *_: Any, **__: Any) -> AsyncNetworkStream:
        """Speak TLS with the host, not with the address."""
        target = self._target
        self._encrypted_in, self._encrypted_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            tls = ssl_context.wrap_bio(self._encrypted_in, self._encrypted_out, server_hostname=target.host)
            async with asyncio.timeout(self._tuning.http_connect_seconds):
                await self._through_tls(tls.do_handshake)
        except ssl.SSLCertVerificationError as error:
            raise Refusal(f"the certificate of {target.shown} is not trusted: {error.verify_message}") from error
        except ValueError as error:
            raise Refusal(f"{target.shown} cannot be called: {target.host!r} is not a valid host") from error
        except (OSError, Endless) as error:
            raise Trouble(f"{target.shown} cannot be reached: TLS failed: {words(error, _LATE)}") from error
        self._tls = tls
        return self

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        """What came, at most so much; nothing at the end."""
        async with asyncio.timeout(self._tuning.http_idle_seconds):
            if self._tls is None:
                data = await self._receive()
            else:
                try:
                    data = await self._through_tls(self._tls.read, max_bytes)
                except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                    data = b""
        if not self.has_received and not b"HTTP/".startswith(data[:5]):
            raise RemoteProtocolError(f"it begins with {data[:40]!r}")  # and may never end
        self.has_received = self.has_received or bool(data)
        self.is_at_end = not data
        return data

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        """Send all of it."""
        async with asyncio.timeout(self._tuning.http_idle_seconds):
            if self._tls is None:
                await self._send(buffer)
                return
            left = memoryview(buffer)
            while left:
                left = left[await self._through_tls(self._tls.write, left[:PIECE]) :]

    async def aclose(self) -> None:
        """Not yet: close() does it."""

    async def _through_tls(self, operation: Callable[..., T], *given: Any) -> T:
        while True:
            try:
                return operation(*given)
            except ssl.SSLWantReadError:
                pass
            finally:  # also when it raises: the other side learns why
                await self._send(self._encrypted_out.read())
            if data := await self._receive():
                self._encrypted_in.write(data)
            else:
                self._encrypted_in.write_eof()

    async def _receive(self) -> bytes:
        assert self._socket is not None
        if self.allowance <= 0:
            raise Endless("it sends too much data before the response body")
        data = await asyncio.get_running_loop().sock_recv(self._socket, min(PIECE, self.allowance))
        self.allowance -= len(data)
        if not data and self._unsent is not None:
            raise self._unsent
        return data

    async def _send(self, data: bytes) -> None:
        assert self._socket is not None
        try:
            if data:
                await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except (BrokenPipeError, ConnectionResetError) as error:
            self._unsent = error  # who answers before it has read all says why: 413, say


def words(error: Exception, late: str) -> str:
    """What went wrong on the way; `late`, if a time limit was reached."""
    match error:
        case TimeoutError():
            return late
        case ssl.SSLError():
            return (error.reason or str(error)).replace("_", " ").lower()
        case OSError():
            return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
        case Endless():
            return str(error)
    text = " ".join(str(error).split())
    return f"what came is not HTTP: {text if len(text) <= 100 else text[:99] + '…'}"
