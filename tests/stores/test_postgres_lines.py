"""PostgreSQL behind a line that breaks: answers that never arrive, connections that are cut, black holes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import psycopg
import pytest

from ostinato.errors import StoreUnavailable
from ostinato.models.ids import NodeId
from ostinato.models.run import Report
from ostinato.models.states import RunState
from ostinato.stores.postgres.claims import lock_claims
from ostinato.stores.postgres.connection import Server
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.builders import NOW, beat, claim, claim_one, finish, ids, new_run, printed, said
from ostinato.tuning import Tuning
from tests.proxy import Proxy, proxied

PATIENCE = 50


@pytest.fixture
def line(postgres_url: str) -> Iterator[Proxy]:
    with proxied(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def far(line: Proxy, postgres_store: PostgresStore, runner: asyncio.Runner) -> Iterator[PostgresStore]:
    """The same database as `postgres_store`, through the line."""
    store = PostgresStore(line.url)
    store._database.server.transaction_seconds = PATIENCE
    runner.run(store.open())
    yield store
    line.forward()
    runner.run(store.close())


async def until(admin: psycopg.Connection[Any], query: str, *values: object) -> None:
    """Return when the query answers a row."""
    async with asyncio.timeout(PATIENCE):
        while not (await asyncio.to_thread(lambda: admin.execute(query.encode(), values).fetchall())):
            pass


async def lose_answer_of(
    call: Awaitable[Any], line: Proxy, admin: psycopg.Connection[Any], committed: str, meanwhile: str | None = None
) -> Any:
    """Let a call's commit happen while no answer gets through, then cut the line; others do something in between."""
    line.swallow_commit_answer()
    calling = asyncio.ensure_future(call)
    await until(admin, committed)
    if meanwhile is not None:
        await asyncio.to_thread(admin.execute, meanwhile.encode())
    line.cut()
    return await asyncio.wait_for(calling, PATIENCE)


@pytest.mark.parametrize("key", ["k", None])
async def test_an_enqueue_that_was_executed_before_its_answer_was_lost_is_not_executed_again(
    far: PostgresStore, line: Proxy, admin: psycopg.Connection[Any], key: str | None
) -> None:
    ended = "UPDATE ostinato.runs SET state = 'succeeded', finished_at = 1, token = 1, attempt = 1"
    enqueue = far.runs.insert_runs([new_run(key=key), new_run(key=key and "other")])
    made = await lose_answer_of(enqueue, line, admin, "SELECT 1 FROM ostinato.runs", ended)
    rows = admin.execute("SELECT id, state FROM ostinato.runs ORDER BY id").fetchall()
    assert rows == [(id, "succeeded") for id in made]
    assert len(made) == 2


async def test_what_the_server_never_got_is_enqueued_with_the_next_connection(
    far: PostgresStore, line: Proxy, admin: psycopg.Connection[Any]
) -> None:
    line.black_hole()
    enqueue = asyncio.ensure_future(far.runs.insert_runs([new_run()]))
    await asyncio.sleep(0)
    line.cut()
    made = await asyncio.wait_for(enqueue, PATIENCE)
    assert admin.execute("SELECT id FROM ostinato.runs").fetchall() == [(id,) for id in made]


async def test_a_claim_that_waits_on_a_line_that_is_cut_leaves_nothing_running_that_nobody_knows(
    far: PostgresStore, line: Proxy, admin: psycopg.Connection[Any]
) -> None:
    await far.runs.insert_runs([new_run(), new_run()])
    lock = far._database.server.claims_lock
    waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    with admin.transaction():
        admin.execute("SELECT pg_advisory_xact_lock(%s)", (lock,))
        claiming = asyncio.ensure_future(far.runs.claim_runs(claim()))
        await until(admin, waiting)
        ((old,),) = admin.execute(waiting).fetchall()
        line.cut()
        await until(admin, f"{waiting} AND pid <> %s", old)
        # Its transaction is over. The server may list it a moment longer.
        assert admin.execute("SELECT 1 FROM pg_locks WHERE pid = %s", (old,)).fetchall() == []
    claimed = (await asyncio.wait_for(claiming, PATIENCE)).runs
    rows = admin.execute("SELECT id, token FROM ostinato.runs WHERE state = 'running' ORDER BY id").fetchall()
    assert rows == [(run.id, run.token) for run in claimed]
    assert len(rows) == 2


async def test_what_was_printed_is_there_once_though_the_answer_was_lost(
    far: PostgresStore, line: Proxy, admin: psycopg.Connection[Any]
) -> None:
    await far.runs.insert_runs([new_run()])
    run = await claim_one(far)
    lines = said(*(f"{number}\n" for number in range(300)))
    await far.runs.report_runs([Report(run.id, run.token, output=lines[:100])])
    reporting = far.runs.report_runs([Report(run.id, run.token, output=lines[100:200])])
    await lose_answer_of(reporting, line, admin, "SELECT 1 FROM ostinato.output WHERE text = E'150\\n'")
    await far.runs.finish_runs([finish(run, output=lines[200:])])
    assert await printed(far, run.id) == "".join(part.text for part in lines)


async def hold_and_vanish(store: PostgresStore, line: Proxy, held: asyncio.Event) -> None:
    """Hold the lock that every claim needs, in the middle of a transaction whose line goes dead."""

    async def hold(connection: Connection) -> None:
        if held.is_set():
            raise StoreUnavailable("the line was dead")
        await lock_claims(connection, store._database.server)
        await connection.execute("UPDATE ostinato.runs SET reason = 'mine'")
        await (await connection.execute("SELECT 1")).fetchall()
        line.black_hole()
        held.set()
        await (await connection.execute("SELECT 2")).fetchall()

    await store._database.write(hold)


async def test_a_node_behind_a_black_hole_holds_up_nobody_for_longer_than_a_transaction_may_take(
    line: Proxy, postgres_store: PostgresStore
) -> None:
    far = PostgresStore(line.url)
    far._database.server.transaction_seconds = 1.0
    await far.open()
    inserted = await postgres_store.runs.insert_runs([new_run()])
    held = asyncio.Event()
    holding = asyncio.ensure_future(hold_and_vanish(far, line, held))
    await asyncio.wait_for(held.wait(), PATIENCE)
    claiming = asyncio.ensure_future(postgres_store.runs.claim_runs(claim()))
    for number in range(3):
        assert (await postgres_store.nodes.renew(beat(now=NOW + number))).held
    claimed = (await asyncio.wait_for(claiming, PATIENCE)).runs
    assert ids(claimed) == inserted
    assert list((await postgres_store.runs.finish_runs([finish(run) for run in claimed])).lost) == []
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(holding, PATIENCE)
    line.cut()
    await far.close()


async def test_the_connections_of_a_node_that_is_declared_lost_are_ended_before_its_rows_are_touched(
    line: Proxy, postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a server before 17, which ends no transaction by itself."""
    limits = Server._time_limits
    monkeypatch.setattr(Server, "_time_limits", lambda self, version: limits(self, min(version, 160000)))
    far = PostgresStore(line.url)
    far._database.server.transaction_seconds = PATIENCE
    await far.open()
    try:
        await far.runs.insert_runs([new_run()])
        await far.nodes.renew(beat("paused"))
        await claim_one(far, node="paused")
        held = asyncio.Event()
        holding = asyncio.ensure_future(hold_and_vanish(far, line, held))
        await asyncio.wait_for(held.wait(), PATIENCE)
        claiming = asyncio.ensure_future(postgres_store.runs.claim_runs(claim(now=NOW + 1)))
        silent = [(NodeId("paused"), NOW)]
        (stale,) = (await asyncio.wait_for(postgres_store.runs.stale_runs(silent, NOW + 1), PATIENCE)).runs
        again = finish(stale, RunState.QUEUED, ready_at=NOW, attempt_state="failed")
        done = await asyncio.wait_for(postgres_store.runs.finish_runs([again]), PATIENCE)
        assert (list(done.lost), (await asyncio.wait_for(claiming, PATIENCE)).runs) == ([], [])
        line.cut()
        await asyncio.gather(holding, return_exceptions=True)
    finally:
        line.forward()
        await far.close()


async def test_a_beat_on_a_dead_line_ends_and_the_next_one_is_written(
    line: Proxy, postgres_store: PostgresStore
) -> None:
    far = PostgresStore(f"{line.url}&connect_timeout=2", tuning=Tuning(postgres_beat_seconds=0.3))
    await far.open()
    assert (await far.nodes.renew(beat())).held
    line.black_hole()
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(far.nodes.renew(beat(now=NOW + 1)), PATIENCE)
    line.forward()
    assert (await far.nodes.renew(beat(now=NOW + 2))).held
    assert await postgres_store.nodes.signs_of_life() == [(NodeId("node-1"), NOW + 2)]
    await far.close()


async def test_a_call_that_is_cancelled_on_a_silent_line_is_cancelled_and_nothing_else(
    far: PostgresStore, line: Proxy
) -> None:
    """An error of the line in its place would let a service of the engine go on that was told to end."""
    await far.nodes.renew(beat("far"))
    await far.lanes.list_lanes()
    for call in (far.nodes.renew(beat("far")), far.lanes.list_lanes()):
        line.swallowed.clear()
        line.black_hole()
        calling = asyncio.ensure_future(call)
        assert await asyncio.to_thread(line.swallowed.wait, PATIENCE)
        calling.cancel()
        await asyncio.wait({calling}, timeout=PATIENCE)
        assert calling.cancelled()
        line.cut()
    assert (await far.nodes.renew(beat("far"))).held


async def test_a_close_does_not_wait_for_a_write_that_its_caller_gave_up(
    line: Proxy, postgres_store: PostgresStore
) -> None:
    store = PostgresStore(line.url)
    store._database.server.transaction_seconds = 10 * PATIENCE
    await store.open()
    line.black_hole()
    writing = asyncio.ensure_future(store.runs.insert_runs([new_run()]))
    assert await asyncio.to_thread(line.swallowed.wait, PATIENCE)
    writing.cancel()
    closing = asyncio.ensure_future(store.close())
    await asyncio.wait({closing}, timeout=PATIENCE)
    line.cut()
    assert closing.done()
    assert writing.cancelled()
