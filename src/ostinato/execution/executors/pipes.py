"""Pipes to a process: a reader for what it prints, a writer for what it is given. Neither ever blocks."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

__all__ = ["PipeReader", "PipeWriter"]

_CHUNK = 65_536


class PipeReader:
    """Hands on what comes through a pipe, as it comes."""

    def __init__(self, pipe: int, sink: Callable[[bytes], None]) -> None:
        self._pipe: int | None = pipe
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Set at the end of file."""
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._hear)

    def close(self) -> None:
        """Listen no more."""
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = None

    def _hear(self) -> None:
        assert self._pipe is not None
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return
        if data:
            self._sink(data)
        else:
            self.close()
            self.ended.set_result(None)


class PipeWriter:
    """Writes into a pipe, and then an end of file unless `keep_open`; what is left unread is nobody's loss."""

    def __init__(self, pipe: int, data: bytes, *, keep_open: bool = False) -> None:
        self._pipe: int | None = pipe
        self._rest = memoryview(data)
        self._keep_open = keep_open
        self._loop = asyncio.get_running_loop()
        os.set_blocking(pipe, False)
        self._say()

    def add(self, data: bytes) -> None:
        """Say more; only for one that is kept open, and nobody's loss if that has closed."""
        if self._pipe is not None:
            self._rest = memoryview(bytes(self._rest) + data)
            self._say()

    def close(self) -> None:
        """Say no more."""
        if self._pipe is not None:
            self._loop.remove_writer(self._pipe)
            os.close(self._pipe)
            self._pipe = None

    def _say(self) -> None:
        assert self._pipe is not None
        with contextlib.suppress(BlockingIOError):
            try:
                self._rest = self._rest[os.write(self._pipe, self._rest) :]
            except BrokenPipeError:  # it reads no more
                self.close()
                return
        if self._rest:
            self._loop.add_writer(self._pipe, self._say)
        elif self._keep_open:
            self._loop.remove_writer(self._pipe)
        else:
            self.close()
