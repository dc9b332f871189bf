"""Processes that are stopped (SIGSTOP) in the middle of a transaction on PostgreSQL: the others go on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState
from ostinato.models.ids import NodeId
from ostinato.stores.postgres.store import PostgresStore
from tests.faults.nodes import nodes
from tests.stores.builders import HOUR, NOW, beat, claim, finish, new_run, put
from tests.stores.mailbox import message

PROGRAM = Path(__file__).with_name("paused.py")
AT_ONCE = 4
BOUND = 60


class Paused:
    """A process that stops itself at the N-th await inside a transaction."""

    def __init__(self, url: str, schema: str, number: int, *, old: bool) -> None:
        environment = {
            **os.environ,
            "OSTINATO_FAILPOINTS": f"postgres.statement@{number}=stop",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        # On an old server nobody but the others ends the transaction of a stopped process.
        arguments = [url, schema, str(BOUND) if old else "1", *(["old"] if old else [])]
        self._process = subprocess.Popen([sys.executable, str(PROGRAM), *arguments], env=environment)

    async def stopped(self) -> bool:
        """Wait until it has stopped; False if it came to its end."""
        _, status = await asyncio.to_thread(os.waitpid, self._process.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self._process.returncode = os.waitstatus_to_exitcode(status)
        assert self._process.returncode == 0
        return False

    def end(self) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(BOUND)


async def go_on(store: PostgresStore) -> None:
    """Whatever the stopped process may hold: its locks of claims, sessions, keys, schedules and runs."""
    now = NOW + 2 * HOUR
    await store.runs.insert_runs([new_run(key="k"), new_run(key="mine")])
    await put(store, note="seen")
    await store.sessions.send([message("mine", session="s")], now)
    claimed = (await store.runs.claim_runs(claim(node="other", now=now))).runs
    assert claimed
    done = await store.runs.finish_runs([finish(run) for run in claimed], claim(node="other", now=now + 1))
    assert list(done.lost) == []


async def others_go_on(url: str, number: int, *, old: bool) -> bool:
    """Stop a process at this await and let others work; False if it has no await of this number."""
    schema = f"pause_{number}"
    store = PostgresStore(url, schema)
    await store.open()
    await store.lanes.ensure_lanes({"main": 30, "cron": 30}, [])
    paused = Paused(url, schema, number, old=old)
    try:
        if not await paused.stopped():
            return False
        await store.nodes.renew(beat("other", now=NOW))
        working = asyncio.ensure_future(go_on(store))
        for beats in range(1, 4):
            assert (await store.nodes.renew(beat("other", now=NOW + beats))).held
        if old:
            await store.runs.stale_runs([(NodeId("paused"), NOW)], NOW + HOUR)
        await asyncio.wait_for(working, BOUND)
        assert NodeId("other") in dict(await store.nodes.signs_of_life())
        return True
    finally:
        paused.end()
        await store.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("server", "step"), [("17", 1), ("16", 7)])
def test_a_process_that_is_stopped_at_any_await_inside_a_transaction_holds_up_nobody_for_long(
    postgres_url: str, server: str, step: int
) -> None:
    numbers = iter(range(1, 1000, step))
    reached: list[int] = []

    async def work() -> None:
        for number in numbers:
            if not await others_go_on(postgres_url, number, old=server == "16"):
                return
            reached.append(number)

    async def all_of_them() -> None:
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    asyncio.run(all_of_them())
    assert sorted(reached) == list(range(1, max(reached) + 1, step))
    assert max(reached) > 50, "the program has more awaits than this"


@pytest.mark.timeout(180)
def test_a_stopped_node_is_lost_the_others_go_on_and_it_comes_back_under_a_new_name(
    postgres_url: str, tmp_path: Path
) -> None:
    app = Ostinato(postgres_url, name="reader")
    work = app.task("work", retry=0)(lambda: None)
    log = tmp_path / "executions"
    lease = {"OSTINATO_LEASE": "10s"}
    try:
        with (
            nodes(postgres_url, log, OSTINATO_FAILPOINTS="postgres.commit@12=stop", **lease) as stopping,
            nodes(postgres_url, log, **lease) as healthy,
        ):
            victim = stopping.start()
            runs = [work.using(key=f"first-{number}").enqueue() for number in range(40)]
            wait_until(lambda: is_stopped(victim.pid))
            healthy.start()
            runs += [work.using(key=f"second-{number}").enqueue() for number in range(10)]
            for run in runs[40:]:
                assert run.wait(timeout="60s").state is RunState.SUCCEEDED
            wait_until(lambda: sorted(node.state for node in app.nodes.list()) == ["alive", "lost"])
            victim.send_signal(signal.SIGCONT)
            wait_until(lambda: sorted(node.state for node in app.nodes.list()) == ["alive", "alive", "lost"])
            ended = [run.wait(timeout="60s") for run in runs]
            assert {run.state for run in ended} <= {RunState.SUCCEEDED, RunState.FAILED}
            assert stopping.stop(victim) == 0
    finally:
        app.stop()
    executed = [line.split()[0] for line in log.read_text().splitlines()]
    assert len(executed) == len(set(executed)), "retry=0 is at most once"


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + BOUND
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
