"""A line between a node and its PostgreSQL server that a test can break: TCP in front, the server's socket behind.

It runs on a thread of its own, so that it goes on whatever the node does. `forward` is how it begins;
`swallow_commit_answer` lets the next commit through and drops what the server says of it; `black_hole` drops both ways
and keeps every connection open; `cut` ends all connections; `refuse` ends them and lets nobody in, as if the server
were gone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["Proxy", "proxied"]

_SYNC = b"S\x00\x00\x00\x04"


class Proxy:
    """One listening port; every connection to it goes to the same server."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._folder = parse_qs(parts.query)["host"][0]
        self._database = parts.path
        self._user = parts.username or "postgres"
        self._asks = self._answers = True
        self._until_sync = False
        self._refuses = False
        self.swallowed = threading.Event()
        """Set when something did not get through."""
        self._lines: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-proxy", daemon=True)
        self._thread.start()
        self._listening = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._listening.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        """The same database, through this line."""
        return f"postgresql://{self._user}@127.0.0.1:{self.port}{self._database}?sslmode=disable&gssencmode=disable"

    def forward(self) -> None:
        """What comes from now on gets through, on old and new connections."""
        self._asks = self._answers = True
        self._until_sync = False
        self._refuses = False

    def swallow_commit_answer(self) -> None:
        """The next Sync gets through, which ends a transaction, and from then on nothing that the server says."""
        self._until_sync = True

    def black_hole(self) -> None:
        """Nothing gets through, and nobody learns it."""
        self._asks = self._answers = False

    def cut(self) -> None:
        """End every connection there is, on both sides; new ones are forwarded."""

        self._end_lines(refuses=False)

    def refuse(self) -> None:
        """The same, and new ones are ended too, until `forward`."""
        self._end_lines(refuses=True)

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._listening.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _end_lines(self, *, refuses: bool) -> None:
        async def end() -> None:
            lines, self._lines = self._lines, set()
            for line in lines:
                line.transport.abort()
            self.forward()
            self._refuses = refuses

        self._call(end())

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        self._lines.add(writer)
        server_reader, server_writer = await asyncio.open_unix_connection(f"{self._folder}/.s.PGSQL.5432")
        self._lines.add(server_writer)
        await asyncio.gather(
            self._pump(reader, server_writer, asks=True), self._pump(server_reader, writer, asks=False)
        )

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, asks: bool) -> None:
        try:
            while data := await reader.read(65536):
                if asks and self._until_sync and data.endswith(_SYNC):
                    self._answers = False
                if self._asks if asks else self._answers:
                    writer.write(data)
                    await writer.drain()
                else:
                    self.swallowed.set()
        except OSError:
            pass
        finally:
            writer.close()
            self._lines.discard(writer)


@contextmanager
def proxied(server: str) -> Iterator[Proxy]:
    """A line that is gone afterwards."""
    proxy = Proxy(server)
    try:
        yield proxy
    finally:
        proxy.close()
