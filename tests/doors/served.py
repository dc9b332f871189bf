"""The server in this process, on a database of its own: each request is carried through it on the container's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx
import requests
from schemathesis import Case

from ostinato.api.app import create_app
from ostinato.clock import SystemClock
from ostinato.config import Settings
from ostinato.execution.registry import Registry
from ostinato.models.access import Role
from ostinato.wiring import Container, open_container

__all__ = ["Served"]

BASE = "http://127.0.0.1:8321"
T = TypeVar("T")


class Served:
    """A container with the server on it, and an admin's token. No engine: nothing that is added is ever executed."""

    def __init__(self, folder: Path, registry: Registry, token: str | None = None, url: str | None = None) -> None:
        """`token` is that of an admin, if the database in the folder has one already."""
        self.folder = folder
        self._runner = asyncio.Runner()
        settings = Settings(db=url or f"sqlite:///{folder / 'ostinato.db'}")
        self.container: Container = self.run(open_container(settings, SystemClock(), registry))
        self.token = token or self.run(self._make_token())
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(self.container)),
            base_url=BASE,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30,
        )

    async def _make_token(self) -> str:
        _, token = await self.container.services.access.make_token("tests", Role.ADMIN, "tests", None)
        return token

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def send(self, method: str, url: str, **parts: Any) -> httpx.Response:
        return self.run(self._client.request(method, url, **parts))

    def carry(self, case: Case[Any]) -> httpx.Response:
        """Send what schemathesis made, byte for byte as `requests` would."""
        made = requests.Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
        assert made.method is not None
        assert made.url is not None
        body = made.body.encode() if isinstance(made.body, str) else made.body
        headers = [(name.encode("latin-1"), _bytes(value)) for name, value in made.headers.items()]
        return self.send(made.method, made.url, headers=headers, content=body)

    def close(self) -> None:
        self.run(self._client.aclose())
        self.run(self.container.close())
        self._runner.close()


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value
