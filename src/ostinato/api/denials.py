"""Who was turned away (401, 403, 429), for the audit log: counted, so that nobody fills it by knocking.

It stands around everything else. The first denial is noted at once, the rest of its minute as one entry that says how
often what was asked for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato.api.access import PRINCIPAL, Principal, address_of
from ostinato.api.container import ApiContainer
from ostinato.clock import SECOND, Micros
from ostinato.models.access import Actor

__all__ = ["Denials"]

WINDOW: Micros = 60 * SECOND
HOUR: Micros = 3_600 * SECOND
MOST_AN_HOUR = 60
"""So many are told apart by who and from where. Then, for an hour, all others are counted together."""
LONGEST_ASKED = 200
"""Characters of what was asked for: a path may have 32 KB, and nobody has to be logged in to send it."""
MOST_ASKED = 10
"""So many different things that one actor asked for are told apart in a minute; the others are counted as `others`."""

_STATUSES = frozenset({401, 403, 429})
_CLOSED = {4401: 401, 1008: 403}
"""What a WebSocket is closed with, as the status it stands for."""
_KEYED = frozenset({"ping", "badge"})
"""Where what stands behind the first part of a path is a secret."""
_UNKNOWN = "unknown"
"""Who it is that nobody let in."""


@dataclass(slots=True)
class _Window:
    """Denials of one actor that are counted together."""

    actor: Actor
    status: int
    more: Counter[str] = field(default_factory=Counter)
    """What was asked for beside the one that was noted, and how often."""

    def count(self, asked: str) -> None:
        self.more[asked if asked in self.more or len(self.more) < MOST_ASKED else "others"] += 1


class Denials:
    """Watches the answers, and notes those that say no."""

    def __init__(self, app: ASGIApp, container: ApiContainer) -> None:
        self._app = app
        self._container = container
        self._windows: dict[tuple[str, str | None, int], _Window] = {}
        self._hour: Micros | None = None
        self._told_apart = 0
        self._notes: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        denied: int | None = None

        async def watched(message: Message) -> None:
            nonlocal denied
            if message["type"] == "http.response.start" and message["status"] in _STATUSES:
                denied = message["status"]
            elif message["type"] == "websocket.close":
                denied = _CLOSED.get(message.get("code", 1000))
            await send(message)

        await self._app(scope, receive, watched)
        if denied is not None:
            await self._count(scope, denied)

    async def _count(self, scope: Scope, status: int) -> None:
        principal, address = scope.get(PRINCIPAL), address_of(HTTPConnection(scope))
        actor = principal.actor if isinstance(principal, Principal) else Actor(_UNKNOWN, "api", address)
        known = self._windows.get((actor.who, actor.address, status))
        if known is None and not self._has_room():
            actor = Actor(_UNKNOWN, "api", None)
            known = self._windows.get((actor.who, None, status))
        asked = f"{scope.get('method', 'WebSocket')} {_without_key(scope['path'])}"[:LONGEST_ASKED]
        if known is not None:
            known.count(asked)
            return
        key = (actor.who, actor.address, status)
        self._windows[key] = _Window(actor, status)
        length = HOUR if actor.address is None else WINDOW
        self._container.clock.call_at(self._container.clock.now() + length, partial(self._close, key))
        await self._container.services.audit.note_denial(actor, status, {asked: 1})

    def _has_room(self) -> bool:
        """Whether one more may be told apart in this hour."""
        now = self._container.clock.steady()
        if self._hour is None or now - self._hour >= HOUR:
            self._hour, self._told_apart = now, 0
        self._told_apart += 1
        return self._told_apart <= MOST_AN_HOUR

    def _close(self, key: tuple[str, str | None, int]) -> None:
        window = self._windows.pop(key)
        if window.more:
            told = self._container.services.audit.note_denial(window.actor, window.status, window.more)
            task = asyncio.ensure_future(told)
            self._notes.add(task)
            task.add_done_callback(self._notes.discard)


def _without_key(path: str) -> str:
    """The path, without the secret that some have in it."""
    first = path.split("/")[1] if path.startswith("/") else ""
    return f"/{first}/…" if first in _KEYED else path
