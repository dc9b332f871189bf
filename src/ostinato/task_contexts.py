"""What an app has around the calls of its code: tasks, checks and callbacks. A web framework sets it up; the executors,
the registry and the listeners enter it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["TaskContexts"]

T = TypeVar("T")


@dataclass(slots=True)
class TaskContexts:
    """What is entered around each call of one app, on the thread or in the coroutine that calls it."""

    enter: Callable[[], AbstractContextManager[object]] = nullcontext
    enter_async: Callable[[], AbstractAsyncContextManager[object]] | None = None
    """Of coroutines, if it is another."""
    enter_once: Callable[[], AbstractContextManager[object]] | None = None
    """On a thread that ends with the call, if it is another."""
    complete: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run
    """Awaits a coroutine for a thread that has no loop, and that waits for it."""
    call_for_coroutine: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None
    """Calls a sync function for a coroutine that awaits it, if it cannot be called on the loop."""
    check_threads: Callable[[], None] | None = None
    """Raises if the calling test could not undo what other threads do now."""
    process_setup: str | None = None
    """`module:function`, which a process of its own calls before it imports the task."""
    process_state: Callable[[], Any] | None = None
    """What that function is given, as JSON: asked in the process that starts the other."""

    async def awaited(self, answer: Awaitable[T]) -> T:
        """What a coroutine of the app answers."""
        if self.enter_async is None:
            with self.enter():
                return await answer
        async with self.enter_async():
            return await answer
