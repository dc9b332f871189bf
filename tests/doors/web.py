"""The server in this process, on a database in memory and a clock that stands still; requests are carried through it
on the container's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import httpx
from fastapi import FastAPI

from ostinato.api.app import create_app
from ostinato.config import Settings
from ostinato.execution.registry import Registry
from ostinato.models.access import Role
from ostinato.models.ids import NodeId
from ostinato.models.node import NodeBeat
from ostinato.testing import FakeClock
from ostinato.tuning import DEFAULT_TUNING
from ostinato.wiring import Container, open_container
from tests.stores.places import raw

__all__ = ["BASE", "Client", "Web", "web_on"]

BASE = "http://127.0.0.1:8321"
T = TypeVar("T")
HOUR = 3_600_000_000


class Client:
    """Somebody who asks: a script with a token, or a browser with a cookie."""

    def __init__(self, web: Web, headers: dict[str, str], address: str) -> None:
        self._web = web
        transport = httpx.ASGITransport(web.app, client=(address, 50_000))
        self._client = httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30)

    @property
    def cookies(self) -> httpx.Cookies:
        return self._client.cookies

    @property
    def origin_key(self) -> str:
        """That of the login."""
        return self._client.headers["X-Origin-Key"]

    def log_in(self, **secret: str) -> httpx.Response:
        """Log in as the page does: keep the key, and send it from now on."""
        answer = self.post("/api/login", secret)
        assert answer.status_code == 200
        self._client.headers["X-Origin-Key"] = answer.json()["origin_key"]
        return answer

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        return self._web.run(self._client.request(method, path, **parts))

    def send_together(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Requests that are under way at the same time: method, path, and what else goes with it."""

        async def together() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self._client.request(method, path, **parts) for method, path, parts in requests)
            )

        return self._web.run(together())

    def get(self, path: str, **parts: Any) -> httpx.Response:
        return self.send("GET", path, **parts)

    def post(self, path: str, json: Any = None, **parts: Any) -> httpx.Response:
        return self.send("POST", path, json=json, **parts)


class Web:
    """A container with the server on it. No engine."""

    def __init__(self, runner: asyncio.Runner, container: Container, clock: FakeClock) -> None:
        self._runner = runner
        self.container = container
        self.clock = clock
        self.app: FastAPI = create_app(container)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def anybody(self, address: str = "127.0.0.1", **headers: str) -> Client:
        return Client(self, headers, address)

    def token(self, role: Role | str, name: str | None = None, expires: str | None = None) -> str:
        _, secret = self.run(self.container.services.access.make_token(name or str(role), role, "tests", expires))
        return secret

    def script(self, role: Role | str, name: str | None = None) -> Client:
        """Somebody with a new token of this role."""
        return self.anybody(Authorization=f"Bearer {self.token(role, name)}")

    def browser(self, role: Role | str = Role.ADMIN, who: str = "ada") -> Client:
        """Somebody who has followed a login link, and sends the key of the page's origin with every request."""
        client = self.anybody()
        client.log_in(code=self.run(self.container.services.access.make_code(who=who, role=role)))
        return client

    def set(self, **settings: Any) -> None:
        """Other settings from now on."""
        self.container.settings = replace(self.container.settings, **settings)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """What the database answers, past the store."""
        return self.run(raw(self.container.store, statement))

    def beat(self, id: str = "one", tasks: Sequence[str] = (), lease: int = HOUR, running: int = 0) -> None:
        """A node shows that it is alive."""
        now = self.clock.now()
        beat = NodeBeat(NodeId(id), "here", 1, 4, running, False, tuple(tasks), now, now, now + lease, "{}")
        self.run(self.container.store.nodes.renew(beat))

    def audit(self) -> list[tuple[str, str, str, str]]:
        """Who, door, verb and object of every entry but of denials, the oldest first."""
        entries = self.run(self.container.services.audit.page(limit=500)).items
        done = [entry for entry in reversed(entries) if entry.verb != "denied"]
        return [(entry.who, entry.door, entry.verb, entry.object) for entry in done]

    def denials(self) -> list[tuple[str, str | None, str, int, int]]:
        """Who, address, what was asked, the status and the count of every denial, the oldest first."""
        entries = self.run(self.container.services.audit.page(verb="denied", limit=500)).items
        return [
            (one.who, one.address, one.object, one.detail["status"], one.detail["count"]) for one in reversed(entries)
        ]


@contextmanager
def web_on(registry: Registry | None = None, url: str = "sqlite://:memory:", **settings: Any) -> Iterator[Web]:
    clock = FakeClock("2026-01-01T00:00:00Z")
    # Nodes are only said to be alive here: none of them sends anything.
    tuning = replace(settings.pop("tuning", DEFAULT_TUNING), send_test_seconds=0.05)
    with asyncio.Runner() as runner:
        chosen = Settings(db=url, tuning=tuning, **settings)
        container = runner.run(open_container(chosen, clock, registry or Registry()))
        try:
            yield Web(runner, container, clock)
        finally:
            runner.run(container.close())
