"""The server on a real port, and a socket that listens to its live stream."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from websockets.asyncio.client import ClientConnection, connect

from ostinato.api.app import create_app
from ostinato.clock import SystemClock
from ostinato.config import Settings
from ostinato.execution.registry import Registry
from ostinato.models.access import Role
from ostinato.tuning import Tuning
from ostinato.wiring import Container, open_container

__all__ = ["Api", "Socket", "api_on", "eventually", "listening", "started"]

PATIENCE = 60.0


@dataclass(frozen=True)
class Api:
    """A server of its own, with a token for its live stream."""

    container: Container
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/api/live"


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def api_on(
    db: str, registry: Registry | None = None, *, small_buffers: bool = False, **numbers: Any
) -> AsyncIterator[Api]:
    """An API process's worth of server on this loop, without an engine."""
    container = await open_container(Settings(db=db, tuning=Tuning(**numbers)), SystemClock(), registry or Registry())
    try:
        name = f"tests-{id(container)}"
        _, token = await container.services.access.make_token(name, Role.VIEWER, "tests", None)
        listener = socket.socket()
        if small_buffers:  # what is accepted has them too: a client that does not read is noticed soon
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(create_app(container), log_config=None, log_level="warning", lifespan="off")
        config.timeout_graceful_shutdown = 1
        server = _Server(config)
        task = asyncio.create_task(server.serve([listener]))
        try:
            await eventually(lambda: server.started)
            yield Api(container, listener.getsockname()[1], token)
        finally:
            server.should_exit = True
            await task
            listener.close()
    finally:
        if container.engine is not None:
            await container.engine.stop(grace=0)
        await container.close()


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something of this process has come to be so."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, "it never came"
        await asyncio.sleep(0.005)


async def started(api: Api) -> None:
    """Start an engine in the API's own process."""
    api.container.engine = api.container.make_engine()
    await api.container.engine.start()


class Socket:
    """A client of the live stream."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.messages: list[Any] = []
        """All that came."""

    async def send(self, type: str, **values: Any) -> None:
        await self.connection.send(json.dumps({"type": type, **values}))

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE):
            message = json.loads(await self.connection.recv())
        self.messages.append(message)
        return message

    async def subscribe(self, topic: str, cursor: str | None = None) -> Any:
        """Subscribe, and answer what says so."""
        await self.send("subscribe", topic=topic, cursor=cursor)
        return await self.until(lambda message: message["type"] == "subscribed" and message["topic"] == topic)

    async def until(self, found: Callable[[Any], bool]) -> Any:
        """The first message from now on that is looked for."""
        while not found(message := await self.next()):
            pass
        return message

    def events(self, kind: str | None = None) -> list[Any]:
        """The events that came so far."""
        found = [message["event"] for message in self.messages if message["type"] == "event"]
        return [event for event in found if kind is None or event["kind"] == kind]

    async def until_finished(self, ids: set[int]) -> None:
        """Listen until the end of each of these runs was told."""
        while not ids <= self.finished():
            await self.next()

    def finished(self) -> set[int]:
        return {event["run"]["id"] for event in self.events("run_finished")}


@asynccontextmanager
async def listening(
    api: Api, *, token: str | None = "", cookie: str | None = None, **options: Any
) -> AsyncIterator[Socket]:
    """A socket that was let in; token None sends none."""
    headers = {} if token is None else {"Authorization": f"Bearer {token or api.token}"}
    if cookie is not None:
        headers["Cookie"] = f"ostinato-{api.port}={cookie}"
    async with connect(
        api.url, additional_headers=headers, open_timeout=PATIENCE, close_timeout=1, **options
    ) as connection:
        yield Socket(connection)
