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

__all__ = ["Effects", "has_effects", "noted", "noting_effects"]

T = TypeVar("T")


@dataclass(slots=True)
class Effects:
    """Of one request."""

    are_possible: bool = False
    """Something was written, or nobody knows: its commit was lost, or under way when the request was cancelled."""


_effects: ContextVar[Effects | None] = ContextVar("ostinato_effects", default=None)


@contextmanager
def noting_effects() -> Iterator[Effects]:
    """Note what is written in here."""
    effects = Effects()
    before = _effects.set(effects)
    try:
        yield effects
    finally:
        _effects.reset(before)


def has_effects() -> bool:
    """Whether the request that is answered here may have written anything."""
    effects = _effects.get()
    return effects is not None and effects.are_possible


def noted(writing: asyncio.Future[T]) -> asyncio.Future[T]:
    """The same write, noted before whoever waits for it goes on."""
    effects = _effects.get()
    if effects is not None:
        writing.add_done_callback(partial(_note, effects))
    return writing


def _note(effects: Effects, written: asyncio.Future[Any]) -> None:
    # Any other error means that it was rolled back.
    if written.cancelled() or isinstance(written.exception(), OutcomeUnknown | None):
        effects.are_possible = True
