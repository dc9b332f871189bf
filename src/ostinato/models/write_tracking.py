"""What a request has written, as far as its database knows: a door looks here before it says that what failed can be
sent again. Both databases note their writes; `api/idempotency.py` asks them to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ostinato.errors import OutcomeUnknown

__all__ = ["WriteTracking", "may_have_written", "noted", "tracking_writes"]

T = TypeVar("T")


@dataclass(slots=True)
class WriteTracking:
    """Of one request."""

    may_have_happened: bool = False
    """Something was written, or nobody knows: its commit was lost, or under way when the request was cancelled."""


_writes: ContextVar[WriteTracking | None] = ContextVar("ostinato_writes", default=None)


@contextmanager
def tracking_writes() -> Iterator[WriteTracking]:
    """Note what is written in here."""
    writes = WriteTracking()
    before = _writes.set(writes)
    try:
        yield writes
    finally:
        _writes.reset(before)


def may_have_written() -> bool:
    """Whether the request that is answered here may have written anything."""
    writes = _writes.get()
    return writes is not None and writes.may_have_happened


def noted(writing: asyncio.Future[T]) -> asyncio.Future[T]:
    """The same write, noted before whoever waits for it goes on."""
    writes = _writes.get()
    if writes is not None:
        writing.add_done_callback(partial(_note, writes))
    return writing


def _note(writes: WriteTracking, written: asyncio.Future[Any]) -> None:
    # Any other error means that it was rolled back.
    if written.cancelled() or isinstance(written.exception(), OutcomeUnknown | None):
        writes.may_have_happened = True
