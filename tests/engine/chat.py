"""Tasks of a session for tests: one that notes what it hears, one that goes on until it is told to stop."""

from __future__ import annotations

import asyncio
from typing import Any

from ostinato import Ostinato

__all__ = ["Chat", "Hanging"]


class Chat:
    """A task that notes what it is called with."""

    def __init__(self, app: Ostinato, **policy: Any) -> None:
        self.heard: list[list[Any]] = []
        self.task = app.task("reply", **policy)(self._reply)

    def _reply(self, payloads: list[Any]) -> int:
        self.heard.append(payloads)
        return len(payloads)


class Hanging:
    """An async task that goes on until it is told to stop, and cleans up."""

    def __init__(self, app: Ostinato) -> None:
        self.started: list[list[Any]] = []
        self.cleaned: list[list[Any]] = []

        @app.task("hang", retry=3)
        async def hang(payloads: list[Any]) -> None:
            self.started.append(payloads)
            try:
                await asyncio.Event().wait()
            finally:
                self.cleaned.append(payloads)

        self.task = hang
