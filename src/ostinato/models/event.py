"""Events: what happened in sessions, in order, each recorded once and in the transaction that made it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from ostinato.models.ids import RunId

__all__ = ["Event", "EventKind"]


class EventKind(StrEnum):
    """What happened."""

    ENQUEUED = "enqueued"
    """A run was put into its session's queue."""
    DEBOUNCED = "debounced"
    """A message joined a run that was queued before."""
    DROPPED = "dropped"
    """A queued run went because the queue was full, or a new message was refused."""
    STARTED = "started"
    """An attempt of a run began."""
    FINISHED = "finished"
    """A run ended, in whatever state."""
    STOPPED = "stopped"
    """Somebody stopped the session."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a session."""

    id: int
    at: datetime
    kind: EventKind
    session: str
    run: RunId | None
    data: Mapping[str, Any]
