"""One listener of the live stream: a bounded queue of messages, and the messages themselves.

The hub puts, whoever sends takes. A listener that does not keep up is dropped; nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ostinato.clock import Signal
from ostinato.errors import OstinatoError

__all__ = ["Ended", "Failed", "Happened", "Lines", "Listener", "Message", "Pong", "Skipped", "Subscribed"]

MOST_WAITING = 12_000
"""Messages: several looks of a busy ledger."""
AT_ONCE = 50
"""Messages that are taken between two breaths: a socket that takes all it gets would never wait."""


class Subscribed(msgspec.Struct, tag="subscribed", frozen=True, omit_defaults=True):
    """From here on the topic is published: now load what you show."""

    topic: str
    cursor: str | None = None
    """Of output: the number of the last line that was published."""


class Happened(msgspec.Struct, tag="event", frozen=True):
    """One event; its JSON is made once for all listeners."""

    topic: str
    event: msgspec.Raw


class Skipped(msgspec.Struct, tag="skipped", frozen=True):
    """More happened than can be published: load anew."""

    topic: str
    runs: int


class Lines(msgspec.Struct, tag="lines", frozen=True):
    """Lines of a run's output; the cursor is the number of the last one."""

    topic: str
    cursor: str
    lines: Sequence[dict[str, Any]]


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """The run has ended, and all of its output was published."""

    topic: str


class Pong(msgspec.Struct, tag="pong", frozen=True):
    """Somebody asked whether anybody is there."""


@dataclass(frozen=True, slots=True)
class Failed:
    """What could not be done, or why a topic is not published any more. Each door has its own form for errors."""

    topic: str | None
    error: OstinatoError


Message = Subscribed | Happened | Skipped | Lines | Ended | Pong | Failed


class Listener:
    """Somebody who listens to some topics."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.is_dropped = False
        """It did not take what was put, and gets nothing more."""
        self._waiting: deque[Message] = deque()
        self._taken = 0
        self._signal = Signal()

    @property
    def waiting(self) -> int:
        """How many messages were not yet taken."""
        return len(self._waiting)

    def put(self, message: Message) -> None:
        """One more message to send."""
        if len(self._waiting) >= MOST_WAITING:
            self.is_dropped = True
            self._waiting.clear()
        if not self.is_dropped:
            self._waiting.append(message)
        self._signal.set()

    async def take(self) -> Message | None:
        """The next message, when there is one; None if the listener was dropped."""
        while not self._waiting and not self.is_dropped:
            self._taken = 0
            await self._signal.wait()
        self._taken += 1
        if self._taken % AT_ONCE == 0:
            await asyncio.sleep(0)
        return self._waiting.popleft() if self._waiting else None
