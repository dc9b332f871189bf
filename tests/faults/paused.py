"""`python paused.py SECONDS [old]`: a node's writes one after the other, to be stopped at any await in them.

For each line `NUMBER URL` on stdin it forks a child that stops itself at its N-th await inside a transaction, and says
`PID stopped` on stdout, or `PID STATUS` of a child that came to its end without a stop; the next line ends that child.
A transaction may take SECONDS; `old` is a server before 17, which does not know how to end one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback

from ostinato import failpoints
from ostinato.models.session import Mode
from ostinato.stores.postgres.connection import Server
from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    beat,
    change,
    claim,
    finish,
    new_run,
    plan,
    put,
    retry,
    said,
)
from ostinato.testing.store_suite.mailbox import message

NODE = "paused"


async def write(url: str, seconds: float) -> None:
    store = PostgresStore(url)
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


def child(number: int, url: str, seconds: float) -> None:
    """Never returns to the loop of the parent."""
    status = 1
    try:
        failpoints.ON = True
        failpoints._wanted = failpoints._read(f"postgres.statement@{number}=stop")
        asyncio.run(write(url, seconds))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main(seconds: float) -> None:
    for line in sys.stdin:
        number, url = line.split()
        pid = os.fork()
        if pid == 0:
            child(int(number), url, seconds)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            print(pid, os.waitstatus_to_exitcode(status), flush=True)
            continue
        print(pid, "stopped", flush=True)
        sys.stdin.readline()  # the test says when it is done with it
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    if sys.argv[2:] == ["old"]:
        limits = Server._time_limits
        setattr(Server, "_time_limits", lambda self, _: limits(self, 160000))  # noqa: B010
    main(float(sys.argv[1]))
