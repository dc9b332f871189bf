"""Processes that are stopped (SIGSTOP) in the middle of a transaction on PostgreSQL: the others go on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from ostinato import Ostinato, RunState
from ostinato.models.ids import NodeId
from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.builders import HOUR, NOW, beat, claim, finish, new_run, put
from ostinato.testing.store_suite.mailbox import message
from tests.faults.mail import wait_until
from tests.faults.mailers import is_stopped
from tests.faults.nodes import nodes
from tests.postgres_databases import fresh_database

PROGRAM = Path(__file__).with_name("paused.py")
AT_ONCE = 10
LEASE = "3s"
BOUND = 60
SECONDS = 2
"""How long a transaction may take here: most of the test waits for it, so that many can wait at once."""


class Pauser:
    """A process of paused.py, whose children stop themselves at the N-th await inside a transaction."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *, old: bool) -> Pauser:
        # On an old server nobody but the others ends the transaction of a stopped process.
        arguments = [str(BOUND), "old"] if old else [str(SECONDS)]
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, str(PROGRAM), *arguments),
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        )

    async def stopped(self, number: int, url: str) -> bool:
        """Let a child run until it has stopped; False if it came to its end."""
        self._say(f"{number} {url}")
        assert self._process.stdout is not None
        async with asyncio.timeout(BOUND):
            words = (await self._process.stdout.readline()).split()
        assert words[1:] in ([b"stopped"], [b"0"]), f"the child for await {number} failed"
        return words[1] == b"stopped"

    def end_child(self) -> None:
        self._say("end")

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())


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


async def others_go_on(pauser: Pauser, url: str, number: int, *, old: bool) -> bool:
    """Stop a process at this await and let others work; False if it has no await of this number."""
    if not await pauser.stopped(number, url):
        return False
    store = PostgresStore(url)
    await store.open()
    try:
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
        pauser.end_child()
        await store.close()


async def migrate(url: str) -> None:
    store = PostgresStore(url)
    await store.open()
    await store.lanes.ensure_lanes({"main": 30, "cron": 30}, [])
    await store.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("server", "step"), [("17", 1), ("16", 7)])
def test_a_process_that_is_stopped_at_any_await_inside_a_transaction_holds_up_nobody_for_long(
    postgres_admin: psycopg.Connection[Any], postgres_server: str, postgres_url: str, server: str, step: int
) -> None:
    numbers = iter(range(1, 1000, step))
    reached: list[int] = []
    template = urlsplit(postgres_url).path.removeprefix("/")

    async def work() -> None:
        pauser = await Pauser.start(old=server == "16")
        try:
            for number in numbers:
                with fresh_database(postgres_admin, postgres_server, template) as url:
                    if not await others_go_on(pauser, url, number, old=server == "16"):
                        return
                reached.append(number)
        finally:
            await pauser.end()

    async def all_of_them() -> None:
        await migrate(postgres_url)
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
    failpoint = "postgres.commit@12=stop"

    def states() -> list[str]:
        return sorted(node.state for node in app.nodes.list())

    try:
        with (
            nodes(postgres_url, log, OSTINATO_FAILPOINTS=failpoint, FAULTS_LEASE=LEASE) as stopping,
            nodes(postgres_url, log, FAULTS_LEASE=LEASE) as healthy,
        ):
            victim = stopping.start()
            runs = [work.using(key=f"first-{number}").enqueue() for number in range(40)]
            wait_until(lambda: is_stopped(psutil.Process(victim.pid)), "it is stopped")
            healthy.start()
            runs += [work.using(key=f"second-{number}").enqueue() for number in range(10)]
            for run in runs[40:]:
                assert run.wait(timeout="60s").state is RunState.SUCCEEDED
            wait_until(lambda: is_declared_lost(postgres_url), "it is lost")
            victim.send_signal(signal.SIGCONT)
            wait_until(lambda: states() == ["alive", "alive", "lost"], "it is back")
            ended = [run.wait(timeout="60s") for run in runs]
            assert {run.state for run in ended} <= {RunState.SUCCEEDED, RunState.FAILED}
            assert stopping.stop(victim) == 0
    finally:
        app.stop()
    executed = [line.split()[0] for line in log.read_text().splitlines()]
    assert len(executed) == len(set(executed)), "retry=0 is at most once"


def is_declared_lost(url: str) -> bool:
    """A node is shown as lost once its lease is over, and may still renew it; here the others have decided."""
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT FROM ostinato.nodes WHERE lost_at IS NOT NULL").rowcount == 1
