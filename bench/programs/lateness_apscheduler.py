"""200 jobs due each second through APScheduler 3 in memory: AsyncIOScheduler, or BackgroundScheduler with threads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.schedulers.background import BackgroundScheduler
from link import arguments, lateness, next_second, tell

starts: list[tuple[str, float, float]] = []


def note(name: str) -> None:
    """A start belongs to the latest due time before it: APScheduler does not tell a job when it was due."""
    started = time.time()
    starts.append((name, float(int(started + 0.02)), started))


async def note_async(name: str) -> None:
    """The same, on the loop."""
    note(name)


def add_jobs(scheduler: Any, job: Callable[[str], Any], names: list[str], first: int) -> None:
    """All due at the same whole seconds; a late start is not dropped."""
    start_date = datetime.fromtimestamp(first, UTC)
    for name in names:
        scheduler.add_job(
            job, "interval", seconds=1, start_date=start_date, args=[name], id=name, misfire_grace_time=None
        )


async def on_the_loop(names: list[str], seconds: int) -> int:
    """AsyncIOScheduler: async jobs on its loop, as ours are."""
    scheduler = AsyncIOScheduler(timezone=UTC)
    scheduler.start()
    first = next_second(3)
    add_jobs(scheduler, note_async, names, first)
    await asyncio.sleep(first + 1 + seconds + 0.7 - time.time())
    scheduler.shutdown()
    return first


def on_threads(names: list[str], seconds: int) -> int:
    """BackgroundScheduler with a thread for each job, so that none has to wait."""
    pool = {"default": ThreadPoolExecutor(len(names))}
    scheduler = BackgroundScheduler(executors=pool, timezone=UTC)
    scheduler.start()
    first = next_second(3)
    add_jobs(scheduler, note, names, first)
    time.sleep(first + 1 + seconds + 0.7 - time.time())
    scheduler.shutdown()
    return first


def main() -> None:
    """The first second is a warm-up."""
    logging.disable(logging.CRITICAL)
    asked = arguments()
    names = [f"s{number}" for number in range(asked["count"])]
    if asked["scheduler"] == "asyncio":
        first = asyncio.run(on_the_loop(names, asked["seconds"]))
    else:
        first = on_threads(names, asked["seconds"])
    tell(**lateness(starts, names, first + 1, asked["seconds"]))


if __name__ == "__main__":
    main()
