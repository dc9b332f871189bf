"""An app for ordeals of Ostinato itself: tasks that take a moment, schedules of seconds, and requests in between."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from typing import Any

from ostinato import Ostinato, Retry
from ostinato.run_handles import RunHandle

__all__ = ["add_schedules", "app", "ask"]

app = Ostinato("sqlite://:memory:", name="chaos", lanes={"cron": 20, "main": 10, "narrow": 2})


@app.task("work")
async def work() -> None:
    """On the loop."""
    await asyncio.sleep(random.expovariate(5))
    if random.random() < 0.05:
        raise RuntimeError("this attempt is one that fails")


@app.task("work_sync")
def work_sync() -> None:
    """In a thread."""
    time.sleep(random.expovariate(5))


def add_schedules(client: Ostinato, count: int = 40) -> None:
    """Due every second to every ten, under all kinds of rules."""
    chance = random.Random(count)
    for number in range(count):
        step = chance.choice((1, 2, 5, 10))
        client.schedules.add(
            f"s{number}",
            chance.choice((f"every {step}s", f"*/{step} * * * * *")),
            chance.choice(("work", "work_sync")),
            retry=chance.choice((0, Retry(2, base="100ms"))),
            overlap=chance.choice(("skip", "queue_one", "allow")),
            catch_up=chance.choice(("none", "latest", "all")),
            lane=chance.choice(("cron", "cron", "narrow")),
            keep={"age": None, "count": None},
        )


def ask() -> Iterable[RunHandle[Any]]:
    """Some runs, with and without another try."""
    for retry in (0, 2):
        yield work.using(retry=retry).enqueue()
