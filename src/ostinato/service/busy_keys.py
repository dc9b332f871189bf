"""Patience with a key that somebody's open transaction has: tried again here, as a store's writer waits for nobody.

Called by runs.py and sessions.py around the store call that enqueues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ostinato.errors import KeyBusy

__all__ = ["when_key_is_free"]

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25


async def when_key_is_free(enqueue: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Enqueue, if need be again and again; KeyBusy if the transaction is still open after so many seconds."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + seconds, _FIRST_PAUSE
    while True:
        try:
            return await enqueue()
        except KeyBusy:
            if loop.time() + pause > until:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
