"""The server in the foreground, beside an engine (`up`) or alone (`web`): bind, refuse what is unsafe, serve, end.

It lives on the loop of its house; who called it looks after signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shlex
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ostinato.api.app import create_app
from ostinato.api.security import is_loopback
from ostinato.cli.opening import os_user
from ostinato.config import Settings, load_settings, without_password
from ostinato.errors import Conflict, InvalidInput, OstinatoError
from ostinato.models.access import Actor
from ostinato.service.audit import acting

if TYPE_CHECKING:
    from ostinato.api.house import ApiHouse

__all__ = ["address_text", "login_link", "serving"]

_LARGEST_MESSAGE = 65_536
_LAST_REQUESTS = 3
"""Seconds that requests under way have to end."""
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_GLANCE = 0.005
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""An address that the name has and the machine has not: ::1 of localhost, where IPv6 is off."""


@asynccontextmanager
async def serving(house: ApiHouse, talk: Callable[[str], None]) -> AsyncIterator[str]:
    """Serve API and page at the host and port of the settings; yields the address that a browser takes.

    A taken port, or an open host without a token, is an error before anything is served.
    """
    host, port = house.settings.host, house.settings.port
    sockets = await _listen(host, port)
    try:
        await _check_open(house, host)
        address = address_text(host, sockets[0].getsockname()[1])
        server = _Server(_configured(house))
        task = asyncio.create_task(server.serve(sockets))
        try:
            await _started(server, task)
            await _introduce(house, host, address, talk)
            yield address
        finally:
            server.should_exit = True
            await task
    finally:
        for one in sockets:
            one.close()


def address_text(host: str, port: int) -> str:
    """The address as a browser on this machine takes it."""
    name = _EVERYWHERE.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def login_link(address: str, code: str) -> str:
    """What logs a browser in, once."""
    return f"{address}/login?code={code}"


class _Server(uvicorn.Server):
    """Leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _LiveProtocol(WebSocketsSansIOProtocol):
    """Lets go of a client that does not read: to close waits until it has read all, which may be never."""

    async def run_asgi(self) -> None:
        await super().run_asgi()
        self.loop.call_later(_LAST_REQUESTS, self.transport.abort)


def _configured(house: ApiHouse) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(house),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws=_LiveProtocol,
        ws_max_size=_LARGEST_MESSAGE,
        timeout_graceful_shutdown=_LAST_REQUESTS,
    )


async def _started(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    while not server.started:
        if task.done():
            await task
            raise OstinatoError("the server did not start; the log says more")
        await asyncio.sleep(_GLANCE)


async def _listen(host: str, port: int) -> list[socket.socket]:
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
                raise _refused(error, host, port) from None
            absent = error
    if not sockets and absent is not None:
        raise _refused(absent, host, port)
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


def _refused(error: OSError, host: str, port: int) -> OstinatoError:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"port {port} of {host} is taken: another 'ostinato up' or 'ostinato web' may listen there; end it, or "
            "give another with --port"
        )
    if error.errno == errno.EACCES:
        return Conflict(f"port {port} of {host} is not allowed to you: give one above 1023 with --port")
    if error.errno in _NOT_HERE:
        return InvalidInput(f"this machine has no address {host}", field="host", hint="127.0.0.1 is always there")
    return OstinatoError(f"cannot listen at {host}, port {port}: {error.strerror}")


async def _check_open(house: ApiHouse, host: str) -> None:
    if not is_loopback(host) and not await house.services.access.has_tokens():
        raise Conflict(
            f"listening at {host} lets others on the network in, and there is no token yet: make one with "
            "'ostinato token add NAME --role admin', or leave out --host to listen on this machine only"
        )


def _login_command(settings: Settings, port: int) -> str:
    """What prints another link, as it is typed in this folder: with whatever it would not find by itself."""
    found = load_settings()
    words = ["ostinato", "login"]
    if found.app is None and found.db != settings.db:
        words += ["--db", without_password(settings.db)]
    if found.port != port:
        words += ["--port", str(port)]
    return shlex.join(words)


async def _introduce(house: ApiHouse, host: str, address: str, talk: Callable[[str], None]) -> None:
    access = house.services.access
    everywhere = ", and every other address of this machine" if host in _EVERYWHERE else ""
    talk(f"page       {address}{everywhere}")
    command = _login_command(house.settings, int(address.rpartition(":")[2]))
    if await access.has_tokens() or await access.has_logins():
        talk(f"log in     '{command}' prints a link")
        return
    with acting(Actor(os_user(), "cli")):
        code = await access.make_code(who=os_user())
    talk(f"log in     {login_link(address, code)}")
    talk(f"           (works once, for 15 minutes; '{command}' makes another)")
