"""Django's database connections around each run, check and callback: the old and broken ones are closed, as around a
request.

Sync tasks share worker threads, each with connections of its own. A coroutine has a thread for its sync parts (the ORM
is one) that ends with the run, as a request of ASGI has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import close_old_connections, connections

from ostinato.errors import InvalidInput
from ostinato.integrations.django.configuration import is_testing

__all__ = ["around_call", "around_coroutine", "around_thread", "call_for_coroutine", "check_threads", "complete"]


@contextmanager
def around_call() -> Iterator[None]:
    """On the thread that calls a task."""
    close_old_connections()
    try:
        yield
    finally:
        # A test database cannot be dropped while a thread is still connected to it.
        if is_testing():
            connections.close_all()
        else:
            close_old_connections()


@contextmanager
def around_thread() -> Iterator[None]:
    """On a thread that ends with what it calls: nobody would use its connections again, however long they may live."""
    try:
        yield
    finally:
        connections.close_all()


@asynccontextmanager
async def around_coroutine() -> AsyncIterator[None]:
    """In the coroutine of a task."""
    async with ThreadSensitiveContext() as context:
        try:
            yield
        finally:
            # Nobody else uses that thread again. It is not waited for by joining it: a query that hangs would block
            # the engine's loop.
            executor = SyncToAsync.context_to_thread_executor.pop(context, None)
            if executor is not None:
                closed = executor.submit(connections.close_all)
                executor.shutdown(wait=False)
                await asyncio.wrap_future(closed)


def complete(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Await it for this thread, which does its sync parts meanwhile: they are in the transaction of the caller."""

    async def awaited() -> Any:
        return await coroutine

    return async_to_sync(awaited)()


async def call_for_coroutine(function: Callable[[], Any]) -> Any:
    """Where the sync parts of that coroutine are called: Django's ORM refuses a thread with a loop."""
    return await sync_to_async(function)()


def check_threads() -> None:
    """InvalidInput in the transaction of a TestCase: threads do not see it, and what they commit outlives the test."""
    for connection in connections.all(initialized_only=True):
        # Other transactions are of the test itself, which may want to see that nothing of them is seen.
        if any(block._from_testcase for block in connection.atomic_blocks):
            raise InvalidInput(
                "an engine runs tasks in threads, which do not see the transaction of this TestCase, and whose writes "
                "it does not undo",
                hint="use TransactionTestCase, or run tasks in the transaction with rehearse(jobs, eager=True)",
            )
