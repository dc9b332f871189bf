"""An operation on the database with whoever waits for it: made on a loop, run on a thread, told to the loop again.

The threads are in writer.py and readers.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import apsw

from ostinato.errors import StoreError, StoreUnavailable
from ostinato.stores.sqlite.query import Connection

__all__ = ["Job", "Operation", "deliver", "named_error"]

T = TypeVar("T")
Operation = Callable[[Connection], T]


class Job:
    """One operation, and what became of it."""

    __slots__ = ("error", "future", "loop", "operation", "result", "until", "wakes")

    def __init__(
        self,
        operation: Operation[Any],
        future: asyncio.Future[Any],
        loop: asyncio.AbstractEventLoop,
        lock_seconds: float,
        *,
        wakes: bool,
    ) -> None:
        self.operation = operation
        self.future = future
        self.loop = loop
        self.wakes = wakes
        self.until = time.monotonic() + lock_seconds
        """When it is given up, if the file is still locked then."""
        self.result: Any = None
        self.error: BaseException | None = None


def deliver(group: list[Job]) -> None:
    """Tell each loop its results in one hop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in group:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        # A loop that was closed meanwhile waits for no answer.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, jobs)


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():  # whoever asked has gone, or has been told that it takes too long
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def named_error(error: BaseException, path: str, waited: float) -> BaseException:
    """SQLite's error about this file as one of ours, with the fix; `waited`: how long a lock was waited for."""
    if isinstance(error, apsw.BusyError):
        named: StoreError = StoreUnavailable(
            f"another process held the lock of {path} for {waited:g} s: 'fuser {path}' names "
            "who has it open; let its transaction end, or end it, and try again"
        )
    elif isinstance(error, apsw.FullError):
        named = StoreUnavailable("the disk is full: make room; nothing was written")
    elif isinstance(error, apsw.IOError):
        # So says a disk that has no room left for the journal, too.
        named = StoreUnavailable(
            f"the disk could not be written ({error}): is it full, or gone? make room, or repair it"
        )
    elif isinstance(error, (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)):
        named = StoreError(f"the database cannot be opened for writing: {error}; check the folder and its rights")
    elif isinstance(error, apsw.NotADBError):
        named = StoreError("the file is not an SQLite database; choose another with --db or OSTINATO_DB")
    elif isinstance(error, apsw.Error):
        named = StoreError(f"SQLite refused: {error}")
    else:
        return error
    named.__cause__ = error
    return named
