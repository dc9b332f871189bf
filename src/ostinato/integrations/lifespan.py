"""The lifespan of an ASGI app: the engine runs on the server's event loop, from its start to its end.

`app.lifespan()` makes it. A server calls it once in each of its processes; that of a mounted app is never called.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from ostinato.termination import Stoppable, another_interrupt_forces

__all__ = ["Lifespan", "lifespan_of"]

Lifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]
"""Of Starlette, FastAPI and Litestar: given their app, a context manager, which may yield the state of requests."""


def lifespan_of(
    app: Stoppable, enter: Callable[[], Awaitable[None]], leave: Callable[[], Awaitable[None]], other: Lifespan | None
) -> Lifespan:
    """Runs the engine inside another lifespan: what its tasks need of that is there before the first of them and after
    the last."""

    @asynccontextmanager
    async def lifespan(asgi_app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            state = None if other is None else await stack.enter_async_context(other(asgi_app))
            await enter()
            try:
                yield state
            finally:
                with another_interrupt_forces(app):
                    await leave()

    return lifespan
