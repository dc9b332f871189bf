"""An app of another framework with Ostinato in it, asked through its own routes in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx
from starlette.types import ASGIApp

__all__ = ["BASE", "MountClient"]

BASE = "http://127.0.0.1:8000"
T = TypeVar("T")


class MountClient:
    """Asks an ASGI app on a loop of its own, as a server would."""

    def __init__(self, app: ASGIApp, address: str = "127.0.0.1") -> None:
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(app, client=(address, 50_000))
        self.client = httpx.AsyncClient(transport=transport, base_url=BASE, timeout=30)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        return self.run(self.client.request(method, path, **parts))

    def get(self, path: str, **parts: Any) -> httpx.Response:
        return self.send("GET", path, **parts)

    def post(self, path: str, json: Any = None, **parts: Any) -> httpx.Response:
        return self.send("POST", path, json=json, **parts)

    def close(self) -> None:
        self.run(self.client.aclose())
        self._runner.close()
