"""The line to the other side: a look-up, a connection to an address that may be called, TLS, and bytes.

One thread works in it; stop() may come from any other and makes it return at once. Neighbours: addresses.py says
which addresses may be called, exchange.py speaks through it.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.executors.http.request import Refusal, Target, Trouble
from ostinato.tuning import Tuning

__all__ = ["Line", "Stopped"]

MOST_ADDRESSES = 8
"""How many addresses of one host are tried."""
_RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: let the other side know at once, whatever is on its way."""


class Stopped(Exception):
    """Somebody told it to stop."""


class Line:
    """At most one connection at a time."""

    def __init__(self, allowed: AllowedHosts, make_tls: Callable[[], ssl.SSLContext], tuning: Tuning) -> None:
        self._allowed = allowed
        self._tuning = tuning
        self._make_tls = make_tls
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._allowance = 0
        self._reader = _Reader(_Raw(self))
        self.is_stopped = False
        self.was_open = False
        """Whether somebody may have heard something."""
        self.is_at_end = False
        """Whether the other side has hung up."""

    def open(self, target: Target) -> None:
        """Connect, instead of what was connected before. Refusal, Trouble or Stopped say why not."""
        self.close()
        addresses = self._look_up(target)
        for position, (family, address) in enumerate(addresses, start=1):
            try:
                self._connect(family, address)
                break
            except OSError as error:
                self.close()
                if position == len(addresses):
                    where = f" at {address[0]}" if address[0] != target.host else ""
                    raise Trouble(f"{target.shown} cannot be reached{where}: {_words(error)}") from error
        self.was_open = True
        if target.scheme == "https":
            self._secure(target)
        assert self._socket is not None
        self._socket.settimeout(self._tuning.http_idle_seconds)
        self._reader = _Reader(_Raw(self))

    def allow(self, amount: int) -> None:
        """How many bytes may be received until the next call."""
        self._allowance = amount

    def sendall(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What http.client asks of a socket."""
        assert mode == "rb"
        return self._reader

    def receive_into(self, buffer: memoryview) -> int:
        assert self._socket is not None
        received = self._socket.recv_into(buffer)
        if self.is_stopped:
            raise Stopped  # what was shut looks like an end
        self.is_at_end = not received
        self._allowance -= received
        if self._allowance < 0:
            raise Trouble("it sends more than belongs there, without an end")
        return received

    def stop(self) -> None:
        """End whatever it waits for. A look-up cannot be ended, but nothing comes after it."""
        with self._lock:
            self.is_stopped = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # The plain one: that of TLS takes the encryption away from under the thread that reads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            held, self._socket = self._socket, None
        if held is not None:
            if self.is_stopped:
                # Broken off, not ended: else who still sends may wait a minute for room that nobody makes.
                with contextlib.suppress(OSError):
                    held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            held.close()

    def _hold(self, held: socket.socket) -> None:
        """From now on stop() reaches it."""
        with self._lock:
            self._socket = held
            if self.is_stopped:
                raise Stopped

    def _look_up(self, target: Target) -> Sequence[tuple[int, Any]]:
        """The addresses that may be called. Only these are: nobody asks for the name again."""
        if self.is_stopped:
            raise Stopped
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise Trouble(
                f"{target.shown} cannot be reached: {target.host} has no address ({error.strerror})"
            ) from error
        except (UnicodeError, ValueError) as error:
            raise Refusal(f"{target.shown} cannot be called: {target.host!r} is no host") from error
        if self.is_stopped:
            raise Stopped
        internet = [entry for entry in found if entry[0] in (socket.AF_INET, socket.AF_INET6)]
        refusals = [self._allowed.refusal(target.host, str(address[0])) for *_, address in internet]
        good = [(entry[0], entry[4]) for entry, refusal in zip(internet, refusals, strict=True) if refusal is None]
        if not good:
            refusal = next((refusal for refusal in refusals if refusal is not None), "no address")
            raise Refusal(f"{target.shown} resolves to {refusal}")
        return good[:MOST_ADDRESSES]

    def _connect(self, family: int, address: Any) -> None:
        held = socket.socket(family, socket.SOCK_STREAM)
        self._hold(held)
        held.settimeout(self._tuning.http_connect_seconds)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        held.connect(address)
        if self.is_stopped:  # a moment before: what is not connected yet cannot be shut
            raise Stopped

    def _secure(self, target: Target) -> None:
        plain = self._socket
        assert plain is not None
        try:
            # The handshake comes when stop() can reach it.
            secure = self._make_tls().wrap_socket(plain, server_hostname=target.host, do_handshake_on_connect=False)
            self._hold(secure)
            secure.settimeout(self._tuning.http_connect_seconds)
            secure.do_handshake()
        except ssl.SSLCertVerificationError as error:
            raise Refusal(f"the certificate of {target.shown} is not to be trusted: {error.verify_message}") from error
        except ValueError as error:
            raise Refusal(f"{target.shown} cannot be called: {target.host!r} is no host") from error
        except OSError as error:
            raise Trouble(f"{target.shown} cannot be reached: TLS failed: {_words(error)}") from error


class _Raw(io.RawIOBase):
    def __init__(self, line: Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.receive_into(memoryview(buffer))


class _Reader(io.BufferedReader):
    def close(self) -> None:
        """The line is closed by who opened it, not by an answer that was read."""


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return error.strerror or str(error) or type(error).__name__
