"""No-op jobs through Procrastinate, one worker process, concurrency 100. Roles: install, worker, producer."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any

import procrastinate
import psycopg
from link import arguments, produce, tell, wait_for_end

BATCH = 500


def make(db: str, connections: int) -> tuple[procrastinate.App, Any]:
    """The app and its task."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=db, min_size=2, max_size=connections))

    @app.task(name="noop")
    async def noop() -> None:
        pass

    return app, noop


async def install(asked: dict[str, Any]) -> None:
    """Make the tables."""
    app, _ = make(asked["db"], 2)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
    tell(ready=True)


async def worker(asked: dict[str, Any]) -> None:
    """Its worker; the row of each job is kept, and a trigger adds one event row for each change of state."""
    logging.disable(logging.CRITICAL)
    app, _ = make(asked["db"], asked["connections"])
    threading.Thread(target=_end_with_the_bench, daemon=True).start()
    async with app.open_async():
        tell(ready=True)
        await app.run_worker_async(concurrency=asked["concurrency"], wait=True, fetch_job_polling_interval=1.0)


def _end_with_the_bench() -> None:
    wait_for_end()
    os._exit(0)


def producer(asked: dict[str, Any]) -> None:
    """Enqueue in batches and wait until all are recorded."""
    with asyncio.Runner() as runner, psycopg.connect(asked["db"], autocommit=True) as watcher:
        app, noop = make(asked["db"], 4)
        runner.run(app.open_async().__aenter__())

        def enqueue(n: int) -> None:
            while n > 0:
                size = min(BATCH, n)
                runner.run(noop.batch_defer_async(*[{}] * size))
                n -= size

        def count(state: str) -> int:
            row = watcher.execute("SELECT count(*) FROM procrastinate_jobs WHERE status = %s", (state,)).fetchone()
            assert row is not None
            return int(row[0])

        figures = produce(enqueue, lambda total: count("succeeded") >= total, asked["n"], asked["warm_up"])
        tell(**figures, recorded=count("succeeded") - asked["warm_up"])
        runner.run(app.close_async())


if __name__ == "__main__":
    given = arguments()
    if given["role"] == "producer":
        producer(given)
    else:
        asyncio.run(install(given) if given["role"] == "install" else worker(given))
