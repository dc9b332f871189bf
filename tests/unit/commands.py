"""How tests start real commands, hear them out, and see that they are gone; everything bounded in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ostinato.execution.executors.group import ProcessGroup
from ostinato.execution.guard import Guard

__all__ = ["PATIENCE", "Collected", "bounded", "closing", "ended", "soon", "started"]

T = TypeVar("T")
PATIENCE = 60.0


class Collected:
    """What came, and a way to wait for it."""

    def __init__(self) -> None:
        self.data = b""

    def __call__(self, data: bytes) -> None:
        self.data += data

    async def until(self, words: bytes) -> None:
        end = time.monotonic() + PATIENCE
        while words not in self.data:
            assert time.monotonic() < end, f"never heard {words!r}, only {self.data!r}"
            await asyncio.sleep(0.005)


async def started(command: str | list[str], heard: Collected, folder: Path = Path("/"), **more: Any) -> ProcessGroup:
    tokens = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    return await ProcessGroup.start(tokens, folder=folder, environment=dict(os.environ), stdout=heard, **more)


def ended(command: str | list[str], **more: Any) -> tuple[int, bytes]:
    """Run it to its end."""

    async def main() -> tuple[int, bytes]:
        heard = Collected()
        status = await (await started(command, heard, **more)).wait()
        return status, heard.data

    return bounded(main())


def bounded(work: Coroutine[Any, Any, T]) -> T:
    async def main() -> T:
        return await asyncio.wait_for(work, PATIENCE)

    return asyncio.run(main())


@contextlib.contextmanager
def closing(guard: Guard) -> Iterator[Guard]:
    """A guard of a test's own, which ends with it."""
    try:
        yield guard
    finally:
        process = guard.process
        guard.forget()
        if process is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)


def soon(look: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not look() and time.monotonic() < end:
        time.sleep(0.005)
    return look()
