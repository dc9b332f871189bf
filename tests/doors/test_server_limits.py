"""The server on a real port, with small limits: who is slow, greedy or does not read is let go; others are answered."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ostinato.api import live
from ostinato.api.app import create_app
from ostinato.cli.connections import Connection, Connections, Listener
from ostinato.cli.limits import Limits, limits_here, raise_descriptor_limit
from ostinato.cli.protocols import LARGEST_HEAD, HttpProtocol, LiveProtocol, LogThrottle
from ostinato.cli.server import _configured, serving
from ostinato.clock import SystemClock
from ostinato.config import Settings
from ostinato.execution.registry import Registry
from ostinato.models.access import Role
from ostinato.tuning import Tuning
from ostinato.wiring import Container, open_container

PATIENCE = 60.0
PATIENT = Limits(connections=8, per_address=4, websockets=2, head_seconds=600, body_seconds=600, write_seconds=600)
HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_A_BODY = (
    b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
)


class Server:
    """A server with its address, and the lines to it."""

    def __init__(self, container: Container, address: str, stack: contextlib.AsyncExitStack) -> None:
        self.container = container
        self.address = address
        self.port = int(address.rpartition(":")[2])
        self._stack = stack

    async def line(self, sent: bytes = b"") -> asyncio.StreamReader:
        """A connection on which this was sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._stack.callback(writer.close)
        writer.write(sent)
        await writer.drain()
        return reader

    async def healthy(self) -> int:
        """What a client that comes now is answered."""
        async with httpx.AsyncClient(base_url=self.address, timeout=PATIENCE) as client:
            return (await client.get("/healthz")).status_code

    async def metric(self, name: str) -> int:
        async with httpx.AsyncClient(base_url=self.address, timeout=PATIENCE) as client:
            lines = (await client.get("/metrics")).text.splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    async def token(self, name: str = "tests") -> str:
        _, token = await self.container.services.access.make_token(name, Role.ADMIN, "tests", None)
        return token


@asynccontextmanager
async def served(limits: Limits, **numbers: Any) -> AsyncIterator[Server]:
    settings = Settings(db="sqlite://:memory:", port=0, tuning=Tuning(**numbers))
    container = await open_container(settings, SystemClock(), Registry())
    try:
        async with contextlib.AsyncExitStack() as stack:
            address = await stack.enter_async_context(serving(container, lambda _: None, limits))
            async with contextlib.AsyncExitStack() as lines:
                yield Server(container, address, lines)
    finally:
        await container.close()


async def said(reader: asyncio.StreamReader) -> bytes:
    """Everything until the server ends the connection."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionResetError):
            return await reader.read()
    return b""


async def soon(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("sent", [HALF_A_HEAD, HALF_A_BODY])
async def test_a_request_that_does_not_come_to_its_end_is_answered_408(sent: bytes) -> None:
    async with served(replace(PATIENT, head_seconds=0.1, body_seconds=0.1)) as server:
        assert (await said(await server.line(sent))).startswith(b"HTTP/1.1 408 ")


async def test_a_connection_on_which_nothing_is_sent_ends() -> None:
    async with served(replace(PATIENT, head_seconds=0.1)) as server:
        assert (await said(await server.line())) == b""


@pytest.mark.parametrize("sent", [HALF_A_HEAD, HALF_A_BODY])
async def test_drop_by_drop_is_not_in_time(sent: bytes) -> None:
    """However often something comes: the deadline is for all of it."""
    async with served(replace(PATIENT, head_seconds=0.3, body_seconds=0.3)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x: y\r\n" if sent is HALF_A_HEAD else b" ")
                    await writer.drain()
                    await asyncio.sleep(0.02)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1_000), 0.001)
        writer.close()


async def test_the_second_request_on_a_connection_has_its_deadline_too() -> None:
    async with served(replace(PATIENT, head_seconds=0.5, keep_alive_seconds=600)) as server:
        whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        answers = await said(await server.line(whole + HALF_A_HEAD))
        assert answers.startswith(b"HTTP/1.1 200 ")
        assert answers.count(b"HTTP/1.1 ") in (1, 2)


async def test_a_client_that_does_not_read_its_answer_is_let_go() -> None:
    async with served(replace(PATIENT, write_seconds=0.2)) as server:
        token = await server.token()
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        line.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(line, ("127.0.0.1", server.port))
        ask = f"GET /api/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        await loop.sock_sendall(line, ask * 40)  # more than the buffers of the system hold

        async def is_gone() -> bool:
            return await server.metric("scheduler_http_connections") == 1  # the one that asks

        await soon(is_gone)
        line.close()


async def test_idle_connections_give_way_to_who_comes() -> None:
    async with served(PATIENT) as server:
        idle = [await server.line(HALF_A_HEAD) for _ in range(50)]
        for _ in range(3):
            assert await server.healthy() == 200
        for reader in idle[:40]:
            assert await said(reader) == b""
        assert (await server.metric("scheduler_http_connections_refused_total")) >= 46


async def test_where_nobody_is_idle_a_new_one_is_turned_away_at_once() -> None:
    async with served(PATIENT) as server:
        for _ in range(4):
            await server.line(HALF_A_BODY)

        async def is_turned_away() -> bool:  # as soon as all four are known to send
            return (await said(await server.line(HALF_A_HEAD + b"\r\n"))).startswith(b"HTTP/1.1 503 ")

        await soon(is_turned_away)


async def test_the_cap_in_all_holds_whatever_the_address() -> None:
    async with served(replace(PATIENT, per_address=100)) as server:
        for _ in range(8):
            await server.line(HALF_A_BODY)

        async def is_turned_away() -> bool:
            return (await said(await server.line(HALF_A_HEAD + b"\r\n"))).startswith(b"HTTP/1.1 503 ")

        await soon(is_turned_away)


async def test_a_trusted_proxy_has_no_cap_of_its_own() -> None:
    few = replace(PATIENT, connections=100, per_address=2)
    ours, others = Connections(few, lambda address: address == "10.0.0.5"), Connections(few)
    for connections in (ours, others):
        for _ in range(10):
            made = connections.admit("10.0.0.5")
            if made is not None:
                connections.turn(made, is_idle=False, seconds=None)
    assert (len(ours), len(others)) == (10, 2)


async def test_sockets_are_counted_apart() -> None:
    async with served(PATIENT) as server:
        token = await server.token()
        url = server.address.replace("http", "ws", 1) + "/api/live"
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            connect(url, additional_headers=bearer, open_timeout=PATIENCE) as one,
            connect(url, additional_headers=bearer, open_timeout=PATIENCE),
        ):
            with pytest.raises(InvalidStatus) as refused:
                await connect(url, additional_headers=bearer, open_timeout=PATIENCE)
            assert await server.healthy() == 200
            await one.close()

            async def is_let_in() -> bool:
                with contextlib.suppress(InvalidStatus):
                    async with connect(url, additional_headers=bearer, open_timeout=PATIENCE):
                        return True
                return False

            await soon(is_let_in)
        assert refused.value.response.status_code == 503


async def test_one_person_has_so_many_sockets() -> None:
    async with served(replace(PATIENT, websockets=10), live_sockets=1) as server:
        url = server.address.replace("http", "ws", 1) + "/api/live"
        bearers = [{"Authorization": f"Bearer {await server.token(name)}"} for name in ("ada", "bob")]
        async with connect(url, additional_headers=bearers[0], open_timeout=PATIENCE) as first:
            await first.send('{"type": "ping"}')
            assert json.loads(await first.recv()) == {"type": "pong"}
            async with connect(url, additional_headers=bearers[0], open_timeout=PATIENCE) as second:
                with pytest.raises(ConnectionClosed) as closed:
                    await second.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == live.TRY_AGAIN
            async with connect(url, additional_headers=bearers[1], open_timeout=PATIENCE) as other:
                await other.send('{"type": "ping"}')
                assert json.loads(await other.recv()) == {"type": "pong"}


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_flood_of_headers_ends_after_some_kilobytes(at_once: bool) -> None:
    async with served(PATIENT) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        part = b"".join(b"x-%d: y\r\n" % number for number in range(20_000))
        for _ in range(1 if at_once else 200):
            if writer.is_closing() or reader.at_eof():
                break
            writer.write(part + (b"\r\n" if at_once else b""))
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        answer = await said(reader)
        writer.close()
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("piece", [600, 60_000], ids=["piece by piece", "whole at once"])
def test_what_a_connection_holds_of_a_head_is_bounded(piece: int) -> None:
    """The parser is fed by hand: after how many bytes does it refuse?"""

    async def fed() -> tuple[int, list[bytes]]:
        container = await open_container(Settings(db="sqlite://:memory:"), SystemClock(), Registry())
        connections = Connections(PATIENT)
        connection = connections.admit("127.0.0.1")
        assert connection is not None
        server = uvicorn.Server(_configured(create_app(container, connections), connections))
        server.config.load()
        protocol = HttpProtocol(server.config, server.server_state, {}, connection, connections)
        transport = _Written()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if piece > LARGEST_HEAD:
            protocol.data_received(HALF_A_HEAD + b"x: y\r\n" * (piece // 6) + b"\r\n")
            assert transport.is_closing()
        else:
            protocol.data_received(HALF_A_HEAD)
        taken = 0
        while not transport.is_closing():
            protocol.data_received(b"x: y\r\n" * (piece // 6))
            taken += piece
            assert taken < 10 * LARGEST_HEAD
        await container.close()
        return taken, transport.written

    taken, written = asyncio.run(fed())
    assert taken <= LARGEST_HEAD + 600
    assert written[0].startswith(b"HTTP/1.1 400 ")


class _Written(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written: list[bytes] = []
        self._closed = False
        self._protocol: Any = None

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol


def test_parser_sockets_and_loop_are_named_whatever_is_installed() -> None:
    async def configured() -> uvicorn.Config:
        container = await open_container(Settings(db="sqlite://:memory:"), SystemClock(), Registry())
        try:
            return _configured(create_app(container), Connections(PATIENT))
        finally:
            await container.close()

    config = asyncio.run(configured())
    config.load()
    assert config.http_protocol_class is HttpProtocol
    assert issubclass(HttpProtocol, H11Protocol)
    assert config.ws_protocol_class is LiveProtocol
    assert config.h11_max_incomplete_event_size == LARGEST_HEAD
    assert config.loop == "none"


class _Exhausted:
    """A listening socket of a process that has no descriptor left, for a while."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.fails = True
        self.asked = 0

    def fileno(self) -> int:
        return self._listening.fileno()

    def accept(self) -> tuple[socket.socket, Any]:
        self.asked += 1
        if self.fails:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listening.accept()


async def test_without_a_descriptor_it_rests_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "ostinato.api")
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    short = _Exhausted(listening)
    loop = asyncio.get_running_loop()
    made: asyncio.Future[None] = loop.create_future()

    def protocol(_: Connection) -> asyncio.Protocol:
        made.set_result(None)
        return asyncio.Protocol()

    listener = Listener(short, Connections(PATIENT), protocol, None, rest_seconds=0.05)  # type: ignore[arg-type]
    begun = loop.time()
    _, writer = await asyncio.open_connection(*listening.getsockname())
    async with asyncio.timeout(PATIENCE):
        while short.asked < 5:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.001)
    assert loop.time() - begun >= 4 * 0.05 - 0.01  # it rested after each
    short.fails = False
    async with asyncio.timeout(PATIENCE):
        await made
    writer.close()
    listener.close()
    await listener.wait_closed()
    listening.close()
    assert sum("Too many open files" in record.message for record in caplog.records) == 1


def test_a_kind_of_message_is_logged_a_few_times_in_a_minute() -> None:
    def passed(throttle: LogThrottle, line: int, count: int) -> int:
        record = logging.LogRecord("uvicorn.error", logging.WARNING, "h11.py", line, "Invalid", (), None)
        return sum(throttle.filter(record) for _ in range(count))

    throttle = LogThrottle()
    assert passed(throttle, 1, 1_000) == LogThrottle.MOST
    assert passed(throttle, 2, 3) == 3
    assert passed(LogThrottle(seconds=0.0), 1, 1_000) == 1_000, "the minute is over each time"


@pytest.mark.parametrize(
    ("soft", "connections", "per_address"),
    [
        (64, 16, 8),
        (256, 64, 32),
        (1_024, 256, 128),
        (8_192, 1_000, 200),
        (resource.RLIM_INFINITY, 1_000, 200),
        (8, 8, 4),
    ],
)
def test_most_descriptors_are_kept_back(
    monkeypatch: pytest.MonkeyPatch, soft: int, connections: int, per_address: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, resource.RLIM_INFINITY))
    found = limits_here()
    assert (found.connections, found.per_address) == (connections, per_address)


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [(1_024, 524_288, 8_192), (1_024, 4_096, 4_096), (20_000, 20_000, None), (1_024, resource.RLIM_INFINITY, 8_192)],
)
def test_the_soft_limit_is_raised_to_what_is_enough(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int | None
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: asked.append(pair))
    raise_descriptor_limit()
    assert asked == ([] if wanted is None else [(wanted, hard)])


def test_without_a_server_nothing_is_told_of_connections() -> None:
    async def text() -> str:
        container = await open_container(Settings(db="sqlite://:memory:"), SystemClock(), Registry())
        try:
            transport = httpx.ASGITransport(create_app(container))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return (await client.get("/metrics")).text
        finally:
            await container.close()

    assert "scheduler_http_connections" not in asyncio.run(text())
