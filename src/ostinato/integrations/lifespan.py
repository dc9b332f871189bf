"""The lifespan of an ASGI app: the engine runs on the server's event loop, from its start to its end.

`app.lifespan()` makes it. A server calls it once in each of its processes; that of a mounted app is never called.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from ostinato.errors import InvalidInput

__all__ = ["Lifespan", "lifespan_of"]

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
"""Of Starlette, FastAPI and Litestar: given their app, a context manager, which may yield the state of requests."""


Leave: TypeAlias = Callable[[], Awaitable[None]]


def lifespan_of(enter: Callable[[], Awaitable[Leave]], other: Lifespan | None) -> Lifespan:
    """Runs the engine inside another lifespan: what its tasks need of that is there before the first of them and after
    the last. `enter` answers how to leave."""
    if other is not None and inspect.iscoroutinefunction(type(other).__call__):
        raise InvalidInput(
            f"lifespan() takes a lifespan of your own, and not a {type(other).__name__} app",
            field="other",
            hint=f"write {type(other).__name__}(lifespan=jobs.lifespan()), with the parentheses",
        )

    @asynccontextmanager
    async def lifespan(asgi_app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            state = None if other is None else await stack.enter_async_context(other(asgi_app))
            leave = await enter()
            try:
                yield state
            finally:
                await leave()

    return lifespan
