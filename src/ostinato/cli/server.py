"""The server, alone (`web`), in a process beside an engine (`up`) or with metrics in a worker's: bind, refuse what is
unsafe, serve, end.

It lives on the loop of its container; who called it looks after signals. `connections.py` says who gets in.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import shlex
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from ostinato.api.app import create_app
from ostinato.api.proxies import Proxies
from ostinato.api.security import is_loopback
from ostinato.cli.connections import Connection, Connections, Listener
from ostinato.cli.console import stderr
from ostinato.cli.limits import Limits, limits_here
from ostinato.cli.open_database import os_user
from ostinato.cli.protocols import LARGEST_HEAD, HttpProtocol, LiveProtocol, LogThrottle
from ostinato.cli.tls import tls_context
from ostinato.config import Settings, load_settings, without_password
from ostinato.errors import Conflict, InvalidInput, OstinatoError
from ostinato.logs import get_logger
from ostinato.models.access import Actor
from ostinato.service.audit import acting

if TYPE_CHECKING:
    from ostinato.api.container import ApiContainer

__all__ = ["Flags", "address_text", "check_listening", "lasting", "login_link", "serving"]

_log = get_logger(__name__)

_LARGEST_MESSAGE = 65_536
_LAST_REQUESTS = 3
"""Seconds that requests under way have to end."""
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_GLANCE = 0.005
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""An address that the name has and the machine has not: ::1 of localhost, where IPv6 is off."""


@dataclass(frozen=True, slots=True)
class Flags:
    """How an error tells a person to listen elsewhere, and otherwise."""

    elsewhere: str = "--port"
    tls: str = "give --tls-cert FILE and --tls-key FILE"
    here: str = "leave out --host"


_FLAGS = Flags()


@asynccontextmanager
async def serving(
    container: ApiContainer,
    talk: Callable[[str], None],
    limits: Limits | None = None,
    *,
    create: Callable[[ApiContainer, Connections], ASGIApp] = create_app,
    flags: Flags = _FLAGS,
) -> AsyncIterator[str]:
    """Serve API and page, or what else is to be created, at the host and port of the settings; yields the address that
    a browser takes.

    A taken port, or an open host without a token or without TLS, is an error before anything is served.
    """
    settings = container.settings
    tls = tls_context(settings)
    sockets = await _listen(settings.host, settings.port, flags)
    try:
        await _check_open(container, flags)
        address = address_text(settings, sockets[0].getsockname()[1])
        server = _Server(container, limits or limits_here(), tls, create)
        task = asyncio.create_task(server.serve(sockets))
        try:
            await _started(server, task)
            if create is create_app:
                await _introduce(container, address, talk)
            with lasting(task):
                yield address
        finally:
            server.should_exit = True
            if not task.done():  # else it was raised already
                await task
    finally:
        for one in sockets:
            one.close()


@contextlib.contextmanager
def lasting(server: asyncio.Future[None]) -> Iterator[None]:
    """Leave the body when the server ends by itself, with what ended it: nobody would be served, and nobody know."""
    body = asyncio.current_task()
    assert body is not None

    def leave(_: asyncio.Future[None]) -> None:
        body.cancel()

    server.add_done_callback(leave)
    try:
        yield
    except asyncio.CancelledError:
        if not server.done() or server.cancelled():
            raise
        body.uncancel()
        error = server.exception()
        if isinstance(error, OstinatoError):
            raise error from None
        _log.error("the server has ended unexpectedly", exc_info=error)
        raise OstinatoError(f"the server has ended unexpectedly: {error or 'there was no error'}") from error
    finally:
        server.remove_done_callback(leave)


def address_text(settings: Settings, port: int, *, https: bool = False) -> str:
    """The address as a browser on this machine takes it."""
    name = _EVERYWHERE.get(settings.host, settings.host)
    scheme = "https" if https or settings.tls_cert is not None else "http"
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"


def login_link(address: str, code: str) -> str:
    """What logs a browser in, once."""
    return f"{address}/login?code={code}"


class _Server(uvicorn.Server):
    """Leaves signals to its caller, and lets in whom `Connections` admits."""

    def __init__(
        self,
        container: ApiContainer,
        limits: Limits,
        tls: ssl.SSLContext | None,
        create: Callable[[ApiContainer, Connections], ASGIApp],
    ) -> None:
        self._all = Connections(limits, Proxies(container.settings.trusted_proxies).are_trusted)
        self._tls = tls
        super().__init__(_configured(create(container, self._all), self._all))

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        throttle = LogThrottle()
        loud = logging.getLogger("uvicorn.error")
        loud.addFilter(throttle)
        sweeping = asyncio.create_task(self._sweep())
        try:
            await super().serve(sockets)
        finally:
            sweeping.cancel()
            loud.removeFilter(throttle)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self.servers = [Listener(one, self._all, self._protocol, self._tls) for one in sockets or ()]  # type: ignore[misc]
        self.started = True

    def _protocol(self, connection: Connection) -> HttpProtocol:
        return HttpProtocol(self.config, self.server_state, self.lifespan.state, connection, self._all)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._all.limits.head_seconds / 4))
            self._all.sweep()


def _configured(app: ASGIApp, connections: Connections) -> uvicorn.Config:
    # Parser, WebSockets and loop are named: what else is installed must change nothing.
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        loop="none",
        http=HttpProtocol,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        ws=LiveProtocol,
        ws_max_size=_LARGEST_MESSAGE,
        timeout_keep_alive=connections.limits.keep_alive_seconds,
        timeout_graceful_shutdown=_LAST_REQUESTS,
    )


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    while not server.started:
        if task.done():
            await task
            raise OstinatoError("the server did not start; the log says more")
        await asyncio.sleep(_GLANCE)


async def _listen(host: str, port: int, flags: Flags = _FLAGS) -> list[socket.socket]:
    """Every address of this host, bound; so that a taken port is known before anything else is begun."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise InvalidInput(
            f"cannot listen at {host!r}: {error.strerror}", field="host", hint="give an address of this machine"
        ) from None
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    for family, address in dict.fromkeys((one[0], one[4]) for one in found):
        # The first one may have been given a free port: the others get the same.
        bound = port if not sockets else sockets[0].getsockname()[1]
        try:
            sockets.append(_bound(family, (address[0], bound, *address[2:]), only_six=len(found) > 1))
        except OSError as error:
            if error.errno not in _NOT_HERE:
                for one in sockets:
                    one.close()
                raise _refused(error, host, port, flags) from None
            absent = error
    if not sockets and absent is not None:
        raise _refused(absent, host, port, flags)
    return sockets


def _bound(family: int, address: tuple[str | int, ...], *, only_six: bool) -> socket.socket:
    # The loop lets small answers go at once (TCP_NODELAY) only where it is told that this is TCP.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(only_six))
        made.bind(address)
        made.listen(128)  # two may bind a port that nobody listens at: only this says that it is free
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _refused(error: OSError, host: str, port: int, flags: Flags) -> OstinatoError:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"port {port} of {host} is taken: another 'ostinato up' or 'ostinato web' may listen there; end it, or "
            f"give another with {flags.elsewhere}"
        )
    if error.errno == errno.EACCES:
        return Conflict(f"you may not use port {port} of {host}: give one above 1023 with {flags.elsewhere}")
    if error.errno in _NOT_HERE:
        return InvalidInput(f"this machine has no address {host}", field="host", hint="127.0.0.1 is always there")
    return OstinatoError(f"cannot listen at {host}, port {port}: {error.strerror}")


async def check_listening(settings: Settings, flags: Flags = _FLAGS) -> None:
    """Refuse what `serving` would refuse, as far as it can be told beside a process that listens there, and without its
    database."""
    tls_context(settings)
    for one in await _listen(settings.host, 0, flags):  # another port: that one is taken
        one.close()
    _refuse(settings, flags, _in_the_clear(settings, flags))


async def _check_open(container: ApiContainer, flags: Flags) -> None:
    """Beyond this machine, nothing crosses in the clear, and nobody comes in without a token. All is told at once."""
    settings = container.settings
    if is_loopback(settings.host):
        return
    missing = _in_the_clear(settings, flags)
    if not await container.services.access.has_tokens():
        missing.append(
            "there is no token yet that others on the network could log in with: make one with 'ostinato token add "
            "NAME --role admin'"
        )
    _refuse(settings, flags, missing)


def _in_the_clear(settings: Settings, flags: Flags) -> list[str]:
    if is_loopback(settings.host) or settings.tls_cert or settings.trusted_proxies:
        return []
    return [
        f"without TLS, anybody on the network can read tokens and logins: {flags.tls}; or, if a proxy in front of "
        "it speaks TLS, put the proxy's address into the setting trusted_proxies "
        '(trusted_proxies = ["10.0.0.5"])'
    ]


def _refuse(settings: Settings, flags: Flags, missing: Sequence[str]) -> None:
    if missing:
        told = "; and ".join(missing)
        raise InvalidInput(
            f"cannot listen at {settings.host}: {told}. Or {flags.here} to listen on this machine only", field="host"
        )


def _login_command(settings: Settings, port: int) -> str:
    """What prints another link, as it is typed in this folder: with whatever it would not find by itself."""
    found = load_settings()
    words = ["ostinato", "login"]
    if found.app is None and found.db != settings.db:
        words += ["--db", without_password(settings.db)]
    if found.port != port:
        words += ["--port", str(port)]
    if settings.tls_cert is not None and found.tls_cert is None:
        words.append("--https")
    return shlex.join(words)


async def _introduce(container: ApiContainer, address: str, talk: Callable[[str], None]) -> None:
    access = container.services.access
    everywhere = ", and every other address of this machine" if container.settings.host in _EVERYWHERE else ""
    talk(f"page       {address}{everywhere}")
    command = _login_command(container.settings, int(address.rpartition(":")[2]))
    # A log is kept and read by others: what lets its reader in is no part of it.
    is_log = container.settings.log_format != "auto" and not stderr().isatty()
    if is_log or await access.has_tokens() or await access.has_logins():
        talk(f"log in     '{command}' prints a link")
        return
    with acting(Actor(os_user(), "cli")):
        code = await access.make_code(who=os_user())
    talk(f"log in     {login_link(address, code)}")
    talk(f"           (works once, for 15 minutes; '{command}' makes another)")
