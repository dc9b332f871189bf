"""A row of an outbox: a run that waits in the database of its caller until an engine takes it into the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.errors import NotLoadable
from ostinato.models.run import NewRun, StoredWork

__all__ = ["OUTBOX_SERVICE", "Arrival", "OutboxBody", "OutboxRow", "OutboxState", "Refusal", "Taken", "read_body"]

OutboxState = Literal["waiting", "refused", "failed"]
OUTBOX_SERVICE = "outbox "
"""How the names of the services begin that drain one; its own name follows."""

_LAST_INSTANT: Micros = 253_402_300_799_000_000
"""The last second that a datetime can tell."""


class OutboxBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a row holds besides its task, as JSON: the work and the policy as the ledger keeps them."""

    kind: str
    work: str
    policy: str
    due_at: Annotated[Micros, msgspec.Meta(ge=0, le=_LAST_INSTANT)]
    key: str | None = None
    scope: str | None = None
    trace: str | None = None

    def stored(self, task: str) -> StoredWork:
        """Its work, for a run of this task."""
        return StoredWork(self.kind, task, self.work, self.policy)

    def text(self) -> str:
        """As it is stored."""
        return msgspec.json.encode(self).decode()


_decode = msgspec.json.Decoder(OutboxBody).decode


def read_body(text: str) -> OutboxBody:
    """The body of a row; NotLoadable if it is none."""
    try:
        return _decode(text)
    except msgspec.DecodeError as error:
        raise NotLoadable(f"its body is not readable: {error}") from error


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row as the outbox has it."""

    id: str
    created_micros: Micros
    task: str
    body: str
    tries: int = 0
    """How often it was refused."""
    error: str | None = None
    """Why, the last time."""
    try_micros: Micros | None = 0
    """When to look at it; None if it is not tried any more."""

    @property
    def state(self) -> OutboxState:
        """Whether it waits to be taken, was refused and is tried again, or was given up."""
        if self.try_micros is None:
            return "failed"
        return "refused" if self.tries else "waiting"

    @property
    def created_at(self) -> datetime:
        """When it was enqueued."""
        return _moment(self.created_micros)

    @property
    def try_at(self) -> datetime | None:
        """When it is tried again, if it was refused; None if it is not tried any more, or was not tried yet."""
        return _moment(self.try_micros) if self.try_micros else None


def _moment(at: Micros) -> datetime:
    """Whatever somebody else may have written there."""
    return from_micros(max(0, min(at, _LAST_INSTANT)))


@dataclass(frozen=True, slots=True)
class Arrival:
    """A run that comes out of an outbox."""

    id: str
    """Of its row: one run for each, however often it comes."""
    run: NewRun
    sent_at: Micros


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that the ledger does not take, and why."""

    row: OutboxRow
    error: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch of rows."""

    done: tuple[str, ...] = ()
    """The ids of what is in the ledger: they are no longer needed in the outbox."""
    refused: tuple[Refusal, ...] = ()
