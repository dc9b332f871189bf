"""The reader threads: queries run beside the writer, and never wait for it.

They are threads of this file and not of `concurrent.futures`, whose pools take nothing more once the main thread has
ended: an engine goes on then, for as long as other threads keep the process alive, and drains at the end of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from ostinato.errors import StoreUnavailable
from ostinato.stores.sqlite.jobs import Job, Operation, deliver, named_error
from ostinato.stores.sqlite.locks import close
from ostinato.stores.sqlite.query import Connection

__all__ = ["Readers"]

T = TypeVar("T")

_THREADS = 2


class Readers:
    """Runs each query on the next free thread, which connects at its first."""

    def __init__(
        self, path: str, lock_seconds: float, connect: Callable[[], Connection], look: Callable[[], str | None]
    ) -> None:
        self._path = path
        self._lock_seconds = lock_seconds
        self._connect = connect
        self._look = look
        """Why nothing may be read any more, if so it is."""
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"ostinato-sqlite-reader-{number}", daemon=True)
            for number in range(1, _THREADS + 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, operation: Operation[T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(Job(operation, future, loop, self._lock_seconds, wakes=False))
        return future

    async def stop(self) -> None:
        """Finish what is queued, then close."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _run(self) -> None:
        connection: Connection | None = None
        while job := self._queue.get():
            if not job.future.cancelled():  # somebody still waits for it
                try:
                    if (fault := self._look()) is not None:
                        raise StoreUnavailable(fault)
                    connection = connection or self._connect()
                    job.result = job.operation(connection)
                except BaseException as error:  # whatever it is, its caller learns it; the reader lives on
                    job.error = named_error(error, self._path, self._lock_seconds)
                deliver([job])
            del job  # nothing is kept alive while it waits
        if connection is not None:
            close(connection)
