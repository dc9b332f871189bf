"""A node for the fault tests: `python worker.py URL LOG`. It says `ready` on stdout and runs until it is ended.

Every execution appends one line `schedule due attempt pid` to the log before it works a little.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import signal
import sys
import time
from dataclasses import replace

from ostinato import Ostinato, RunContext
from ostinato.config import load_settings
from ostinato.durations import parse_duration

ready = asyncio.Event()
"""The test knows that the node has started."""


def make_app(url: str, log: str) -> Ostinato:
    # Shorter than settings allow: nothing here starts commands, and tests shall not wait for a long one.
    lease = parse_duration(os.environ.get("FAULTS_LEASE", "15s"))
    app = Ostinato(settings=replace(load_settings(db=url), lease=lease), name="faults")
    descriptor = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def note(run: RunContext) -> None:
        line = f"{run.schedule or run.key} {run.due_at.timestamp():.6f} {run.attempt} {os.getpid()}\n"
        os.write(descriptor, line.encode())

    @app.task("work")
    async def work(run: RunContext) -> None:
        note(run)
        await asyncio.sleep(random.random() * 0.5)

    @app.task("work_sync")
    def work_sync(run: RunContext) -> None:
        note(run)
        time.sleep(random.random() * 0.5)

    @app.task("hang")
    async def hang(run: RunContext) -> None:
        note(run)
        await asyncio.Event().wait()

    @app.task("poison")
    async def poison(run: RunContext) -> None:
        note(run)
        await ready.wait()
        os.kill(os.getpid(), signal.SIGKILL)

    @app.task("reply")
    def reply(run: RunContext, payloads: list[str]) -> None:
        note(run)

    app.task("hang_requeued", requeue_on_drain=True)(hang.function)
    return app


async def main() -> None:
    app = make_app(sys.argv[1], sys.argv[2])
    if app.settings.telegram.token is not None:
        # Before it is ready: on busy cores this takes longer than a test waits for what a bot does.
        importlib.import_module("aiogram")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with app:
        print("ready", flush=True)
        ready.set()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
