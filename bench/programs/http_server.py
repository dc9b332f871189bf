"""The other side of the HTTP calls: holds every call of /hold until one of /go; /held tells how many it holds."""

from __future__ import annotations

import asyncio
import sys

from link import tell

BODY = b'{"ok": true}'


async def main() -> None:
    """Listen on a free port until the bench closes our stdin."""
    go = asyncio.Event()
    held = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal held
        head = await reader.readuntil(b"\r\n\r\n")
        path, body = head.split(b" ", 2)[1], BODY
        if path == b"/hold":
            held += 1
            await go.wait()
            held -= 1
        elif path == b"/go":
            go.set()
        else:
            go.clear()
            body = b"%d" % held
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2_000)
    tell(port=server.sockets[0].getsockname()[1])
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
