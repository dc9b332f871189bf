"""A coroutine that waits for nothing, carried out without an event loop. At the bottom: the SQLite store and the
connections of callers have such ones."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["driven"]

T = TypeVar("T")


def driven(coroutine: Coroutine[Any, Any, T], otherwise: str = "something was waited for without an event loop") -> T:
    """What it answers; RuntimeError with the text `otherwise` if it waits for something after all."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError(otherwise)
