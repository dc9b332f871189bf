"""`python paused.py URL SCHEMA SECONDS [old]`: a node's writes one after the other, to be stopped at any await in them.

`OSTINATO_FAILPOINTS=postgres.statement@N=stop` stops it at the N-th. A transaction may take SECONDS; `old` is a server
before 17, which does not know how to end one. It exits with 0 when it came to its end without a stop.
"""

from __future__ import annotations

import asyncio
import sys

from ostinato.models.session import Mode
from ostinato.stores.postgres.connection import Server
from ostinato.stores.postgres.store import PostgresStore
from tests.stores.builders import HOUR, MINUTE, NOW, beat, change, claim, finish, new_run, plan, put, retry, said
from tests.stores.mailbox import message

NODE = "paused"


async def main(url: str, schema: str, seconds: float) -> None:
    store = PostgresStore(url, schema)
    store._database.server.transaction_seconds = seconds
    await store.open()
    await store.nodes.renew(beat(NODE))
    await store.lanes.ensure_lanes({"main": 30, "cron": 30}, [])
    schedule = await put(store, after_finish=HOUR)
    await store.runs.insert_runs([new_run(key="k"), new_run()])
    await store.sessions.send([message("one", session="s"), message("two", session="s")], NOW)
    await store.schedules.record_fires([plan(schedule)], NOW + 5 * MINUTE)
    claimed = (await store.runs.claim_runs(claim(node=NODE, now=NOW + HOUR))).runs
    again = claim(node=NODE, now=NOW + HOUR + 1)
    first, *others = claimed
    await store.runs.finish_runs([retry(first, ready_at=NOW + 2 * HOUR, output=said("x\n"))], again)
    await store.runs.finish_runs([finish(run, output=said("y\n")) for run in others], again)
    await store.sessions.send([message("three", session="s", mode=Mode.INTERRUPT)], NOW + HOUR)
    await store.schedules.change_schedule(schedule, 1, change(enabled=False, next_at=None), NOW + HOUR)
    await store.close()


if __name__ == "__main__":
    if sys.argv[4:] == ["old"]:
        limits = Server._time_limits
        setattr(Server, "_time_limits", lambda self, _: limits(self, 160000))  # noqa: B010
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
