"""No-op tasks through Huey on SQLite with fsync, four worker threads, results stored. Roles: worker, producer."""

from __future__ import annotations

import logging
import os
import sqlite3
from typing import Any

from huey import SqliteHuey
from link import arguments, produce, tell, wait_for_end


def make(path: str) -> tuple[Any, Any]:
    """Huey and its task; a result row is written for each task, also when it returns None."""
    huey = SqliteHuey("bench", filename=path, fsync=True, results=True, store_none=True)

    @huey.task(name="noop")
    def noop() -> None:
        pass

    return huey, noop


def worker(asked: dict[str, Any]) -> None:
    """The consumer as its command line makes it, but with shorter pauses when the queue is empty (in its favour)."""
    logging.disable(logging.CRITICAL)
    huey, _ = make(asked["path"])
    consumer = huey.create_consumer(
        workers=asked["workers"], worker_type="thread", initial_delay=0.01, max_delay=0.05, periodic=False
    )
    consumer.start()
    tell(ready=True)
    wait_for_end()
    os._exit(0)


def producer(asked: dict[str, Any]) -> None:
    """One enqueue per task: Huey has no batch for it."""
    _, noop = make(asked["path"])
    watcher = sqlite3.connect(asked["path"], isolation_level=None)

    def enqueue(n: int) -> None:
        for _ in range(n):
            noop()

    def count() -> int:
        found: int = watcher.execute("SELECT count(*) FROM kv").fetchone()[0]
        return found

    figures = produce(enqueue, lambda total: count() >= total, asked["n"], asked["warm_up"])
    tell(**figures, recorded=count() - asked["warm_up"])


if __name__ == "__main__":
    given = arguments()
    worker(given) if given["role"] == "worker" else producer(given)
