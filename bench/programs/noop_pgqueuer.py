"""No-op jobs through pgqueuer with asyncpg, batch size 100, one worker process. Roles: install, worker, producer.

The worker runs on uvloop, as pgqueuer's own command line does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
from link import arguments, produce, tell, wait_for_end
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

BATCH = 500


async def install(asked: dict[str, Any]) -> None:
    """Make the tables, with its default (logged, durable)."""
    connection = await asyncpg.connect(asked["db"])
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()
    tell(ready=True)


async def worker(asked: dict[str, Any]) -> None:
    """Its worker on one connection; the queue's row is deleted and its log keeps a row for each change of state."""
    logging.disable(logging.CRITICAL)
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(asked["db"])))

    @queuer.entrypoint("noop")
    async def noop(job: Any) -> None:
        pass

    threading.Thread(target=_end_with_the_bench, daemon=True).start()
    tell(ready=True)
    await queuer.run(batch_size=asked["batch"], dequeue_timeout=timedelta(seconds=1))


def _end_with_the_bench() -> None:
    wait_for_end()
    os._exit(0)


def producer(asked: dict[str, Any]) -> None:
    """Enqueue in batches and wait until the queue is empty, then count what its log says."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(asked["db"]))
        queries = Queries(AsyncpgDriver(connection))

        last: list[Any] = []

        def enqueue(n: int) -> None:
            while n > 0:
                size = min(BATCH, n)
                last[:] = runner.run(queries.enqueue(["noop"] * size, [None] * size, [0] * size))[-1:]
                n -= size

        def is_done(_: int) -> bool:
            # A cheap look first: the last one in is among the last to end.
            if runner.run(connection.fetchval("SELECT EXISTS (SELECT 1 FROM pgqueuer WHERE id = $1)", last[0])):
                return False
            return not runner.run(connection.fetchval("SELECT EXISTS (SELECT 1 FROM pgqueuer)"))

        figures = produce(enqueue, is_done, asked["n"], asked["warm_up"])
        done = runner.run(connection.fetchval("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"))
        tell(**figures, recorded=done - asked["warm_up"])
        runner.run(connection.close())


if __name__ == "__main__":
    given = arguments()
    if given["role"] == "producer":
        producer(given)
    else:
        uvloop.run(install(given) if given["role"] == "install" else worker(given))
