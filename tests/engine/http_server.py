"""A server for tests that says, byte for byte, what a test wants said: good answers, bad ones, and none at all."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ostinato.models.run import Run

CERTIFICATE = Path(__file__).parent / "data" / "test-certificate-and-key.pem"
"""For hooks.test, localhost and 127.0.0.1."""
PATIENCE = 60.0


@dataclass(frozen=True)
class Received:
    """A request as it came; the names of its headers in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Visit:
    """One connection, with the request that came through it."""

    def __init__(self, connection: socket.socket, *, reads_body: bool = True) -> None:
        self._connection = connection
        self.gone = threading.Event()
        """Set when the caller has hung up."""
        self.request = _read(connection, reads_body=reads_body)

    def send(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except OSError:
            self.gone.set()
            raise

    def answer(self, status: str = "200 OK", body: bytes = b"", **headers: str) -> None:
        """A whole answer; `Content_Type="text/plain"` is a header."""
        self.begin(status, Content_Length=str(len(body)), **headers)
        self.send(body)

    def begin(self, status: str = "200 OK", **headers: str) -> None:
        """The head of an answer."""
        lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def wait_until_gone(self) -> None:
        """Say nothing more, until the caller hangs up."""
        with contextlib.suppress(OSError):
            while self._connection.recv(1024):
                pass
        self.gone.set()

    def reset(self) -> None:
        """Break the connection off, without a good-bye."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connection.close()


Handler = Callable[[Visit], None]
Caller = Callable[..., Run]


@dataclass
class Server:
    """Listens on a free port of this machine. What it was asked is in `received`, who came in `visits`."""

    listener: socket.socket
    host: str
    scheme: str = "http"
    reads_body: bool = True
    handlers: dict[str, Handler] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"{self.scheme}://{host or self.host}:{self.port}{path}"

    def on(self, path: str, handler: Handler) -> str:
        """Answer requests for this path so; gives its URL."""
        self.handlers[path] = handler
        return self.url(path)

    def serve(self, tls: ssl.SSLContext | None) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._visit, args=(connection, tls), daemon=True).start()

    def _visit(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        self.connections.append(connection)
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what was said before a reset has left
        # The caller may hang up whenever it likes: that is what tests are about.
        with contextlib.suppress(OSError, _NothingCame):
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
                self.connections.append(connection)
            with connection:
                visit = Visit(connection, reads_body=self.reads_body)
                self.received.append(visit.request)
                self.visits.append(visit)
                handler = self.handlers.get(visit.request.path.partition("?")[0])
                if handler is None:
                    visit.answer("404 Not Found")
                else:
                    handler(visit)

    def close(self) -> None:
        for held in (self.listener, *self.connections):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(held, socket.SHUT_RDWR)
            held.close()


@contextmanager
def serving(address: str = "127.0.0.1", *, tls: bool = False, reads_body: bool = True) -> Iterator[Server]:
    """A server for as long as it is needed."""
    is_six = ":" in address
    listener = socket.create_server((address, 0), family=socket.AF_INET6 if is_six else socket.AF_INET)
    server = Server(listener, f"[{address}]" if is_six else address, "https" if tls else "http", reads_body)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
    if context is not None:
        context.load_cert_chain(CERTIFICATE)
    thread = threading.Thread(target=server.serve, args=(context,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(PATIENCE)


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> Handler:
    """Answers the same to everybody."""
    return lambda visit: visit.answer(status, body, **headers)


def truncated(visit: Visit) -> None:
    visit.begin(Content_Length="1000", Content_Type="text/plain")
    visit.send(b"only this")


class _NothingCame(Exception):
    """The caller hung up before it asked for anything."""


def _read(connection: socket.socket, *, reads_body: bool) -> Received:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        if not more:
            raise _NothingCame
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while reads_body and len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    return Received(method, path, headers, body)
