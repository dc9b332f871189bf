"""What `ostinato up` and its server say to each other: JSON of the types below, over a socket that only they have.

server_process.py is the engine's side, server_child.py the server's.
"""

from __future__ import annotations

import select
import socket
import struct
from typing import Any, Generic, Literal, TypeVar

import msgspec

from ostinato.config import Settings
from ostinato.models.session_options import SessionOptions
from ostinato.models.task import TaskDescription

__all__ = [
    "Answer",
    "Ask",
    "Begin",
    "EngineState",
    "Failed",
    "FromServer",
    "KnownTask",
    "Learn",
    "Link",
    "Question",
    "Said",
    "Serving",
    "ToServer",
    "engines_link",
    "servers_link",
]

_LENGTH = struct.Struct("!Q")


class KnownTask(msgspec.Struct, frozen=True):
    """What the services ask of a task."""

    options: dict[str, Any]
    """Its policy, in a form that users write."""
    takes_payloads: bool | None
    session_options: SessionOptions
    description: TaskDescription


class Begin(msgspec.Struct, tag="begin", frozen=True):
    """The first word: what to serve."""

    settings: Settings
    tasks: dict[str, KnownTask]


class Learn(msgspec.Struct, tag="learn", frozen=True):
    """Tasks that were registered since."""

    tasks: dict[str, KnownTask]


class EngineState(msgspec.Struct, tag="engine", frozen=True):
    """Of the engine beside the server."""

    is_started: bool
    is_draining: bool = False


class Answer(msgspec.Struct, tag="answer", frozen=True):
    """To the question of this number; why there is none, if there is none."""

    number: int
    value: Any = None
    error: str | None = None


class Said(msgspec.Struct, tag="said", frozen=True):
    """A line for whoever started `up`."""

    text: str


class Serving(msgspec.Struct, tag="serving", frozen=True):
    """It takes requests, at this port."""

    port: int
    address: str
    """As a browser on this machine takes it."""


class Failed(msgspec.Struct, tag="failed", frozen=True):
    """It does not start, and why: the name of the error, and what that says."""

    kind: str
    text: str


Question = Literal["health", "statistics", "checks", "arguments"]


class Ask(msgspec.Struct, tag="ask", frozen=True):
    """A question about the engine, or for the code of the application."""

    number: int
    what: Question
    names: list[str]


ToServer = Begin | Learn | EngineState | Answer
FromServer = Said | Serving | Failed | Ask

Sent = TypeVar("Sent", bound=ToServer | FromServer)
Received = TypeVar("Received", bound=ToServer | FromServer)


class Link(Generic[Sent, Received]):
    """One end. Every message has its length before it."""

    def __init__(self, end: socket.socket, decoder: msgspec.json.Decoder[Received], gone: int | None = None) -> None:
        """`gone` is a descriptor that has something when the other process is gone: a fork may hold the link open."""
        self._end = end
        self._decoder = decoder
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)
        self._gone = gone
        if gone is not None:
            self._poll.register(gone, select.POLLIN)

    def send(self, message: Sent) -> None:
        """Wait until there is room for it; OSError when the other side is gone."""
        data = msgspec.json.encode(message)
        self._end.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Received | None:
        """Wait for the next message; None when the other side is gone, or says what is none."""
        head = self._exactly(_LENGTH.size)
        data = None if head is None else self._exactly(*_LENGTH.unpack(head))
        try:
            return None if data is None else self._decoder.decode(data)
        except msgspec.DecodeError:
            return None

    def hang_up(self) -> None:
        """Say nothing more: the other side hears an end, and may still answer."""
        self._end.shutdown(socket.SHUT_WR)

    def _exactly(self, length: int) -> bytes | None:
        data = bytearray()
        while len(data) < length:
            try:
                if self._gone in {descriptor for descriptor, _ in self._poll.poll()}:
                    return None
                more = self._end.recv(min(length - len(data), 1 << 16))
            except OSError:
                return None
            if not more:
                return None
            data += more
        return bytes(data)


def engines_link(end: socket.socket) -> Link[ToServer, FromServer]:
    """The engine's end."""
    return Link(end, msgspec.json.Decoder(FromServer))


def servers_link(end: socket.socket, gone: int | None = None) -> Link[FromServer, ToServer]:
    """The server's end."""
    return Link(end, msgspec.json.Decoder(ToServer), gone)
