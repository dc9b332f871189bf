"""A node whose sessions are full: `python throttled.py URL LOG`. It says `ready` on stdout and runs until it is ended.

Every execution appends one line of JSON to the log when it is over: its payload, and when it began and ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time

from ostinato import Ostinato


def make_app(url: str, log: str) -> Ostinato:
    app = Ostinato(url, name="throttled", slots=2)
    descriptor = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    app.sessions.throttle(lambda key: (90.0, 100.0))

    @app.task("reply")
    async def reply(payloads: list[int]) -> None:
        began = time.monotonic()
        await asyncio.sleep(0.02)
        os.write(descriptor, json.dumps([payloads, began, time.monotonic()]).encode() + b"\n")

    return app


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with make_app(sys.argv[1], sys.argv[2]):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
