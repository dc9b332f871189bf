"""Enqueueing through the caller's own connection to the database of the ledger: one fate for both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, NotFound, Ostinato, Run, RunContext, RunState
from ostinato.errors import StoreError
from ostinato.tasks import Task
from tests.transactions.callers import CALLERS, OpenCaller, sqlalchemy_url

_SETTINGS = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings"


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture(params=[pytest.param(CALLERS[name], id=name) for name in CALLERS])
def opened(request: pytest.FixtureRequest) -> OpenCaller:
    caller: OpenCaller = request.param
    return caller


def all_runs(app: Ostinato) -> list[Run]:
    return list(app.runs.list(limit=100))


def test_a_commit_starts_the_run_with_what_was_written_beside_it(
    app: Ostinato, greet: Task[..., Any], opened: OpenCaller, postgres_url: str
) -> None:
    app.start()
    with opened(postgres_url) as transaction:
        transaction.execute("CREATE TABLE orders (id int)")
        pending = transaction.enqueue(greet, "ada")
        assert all_runs(app) == []
        transaction.commit()
    ended = app.runs.wait(pending.id, timeout="30s")
    assert (ended.state, ended.result) == (RunState.SUCCEEDED, "hello ada")
    with psycopg.connect(postgres_url) as reader:
        assert reader.execute("SELECT count(*) FROM orders").fetchone() == (0,)


def test_a_rollback_leaves_no_run(app: Ostinato, greet: Task[..., Any], opened: OpenCaller, postgres_url: str) -> None:
    with opened(postgres_url) as transaction:
        assert len(transaction.enqueue_many(greet, [("ada",), {"name": "bob"}])) == 2
        transaction.rollback()
    assert all_runs(app) == []


def test_many_calls_a_key_and_a_delay_are_as_they_are_without_a_transaction(
    app: Ostinato, greet: Task[..., Any], opened: OpenCaller, postgres_url: str
) -> None:
    active = greet.using(key="one").enqueue("first")
    with opened(postgres_url) as transaction:
        same = transaction.enqueue(greet, "second", key="one")
        new = transaction.enqueue(greet, "third", key="two", delay="1h", lane="subagent", priority=3)
        again = transaction.enqueue(greet, "fourth", key="two")
        many = transaction.enqueue_many(greet, [(str(number),) for number in range(150)])
        transaction.commit()
    assert same.id == active.id
    assert again.id == new.id
    assert app.task("other")(lambda: None).using(key="two").enqueue().is_new, "a key belongs to its task"
    run = app.runs.get(new.id)
    assert (run.key, run.lane, run.priority, (run.ready_at - run.due_at).total_seconds()) == ("two", "subagent", 3, 0)
    listed = app.runs.list(limit=200)
    assert [one.id for one in reversed(listed) if one.task == greet.name][-150:] == [one.id for one in many]
    assert len(listed) == 153


def test_what_is_wrong_is_refused_before_the_transaction_is_touched(
    app: Ostinato, greet: Task[..., Any], opened: OpenCaller, postgres_url: str
) -> None:
    with opened(postgres_url) as transaction:
        transaction.execute("CREATE TABLE orders (id int)")
        with pytest.raises(InvalidInput):
            transaction.enqueue(greet, object())
        with pytest.raises(InvalidInput):
            transaction.enqueue(greet, key="")
        with pytest.raises(InvalidInput):
            transaction.enqueue(greet, delay="soon")
        transaction.execute("INSERT INTO orders VALUES (1)")
        kept = transaction.enqueue(greet, "ada", lane="no such lane")
        transaction.commit()
    assert app.runs.get(kept.id).lane == "main"


def test_nothing_of_the_callers_session_is_needed_or_changed(
    app: Ostinato, greet: Task[..., Any], postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, row_factory=dict_row) as connection:
        connection.execute("SET search_path = pg_catalog; SET statement_timeout = '20s'; SET timezone = 'Asia/Tokyo'")
        connection.execute("SET datestyle = 'SQL, DMY'")
        connection.commit()
        before = connection.execute(_SETTINGS).fetchone()
        pending = greet.using(connection=connection, key="x", session="s").enqueue("ada")
        assert connection.execute(_SETTINGS).fetchone() == before
        connection.commit()
        assert connection.execute(_SETTINGS).fetchone() == before
    assert app.runs.get(pending.id or 0).key == "x"


def test_in_autocommit_the_run_is_there_at_once(app: Ostinato, greet: Task[..., Any], postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        pending = greet.using(connection=connection).enqueue("ada")
        assert pending.get().state is RunState.QUEUED
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_any_isolation_level_will_do(app: Ostinato, greet: Task[..., Any], postgres_url: str, level: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel[level]
        connection.execute("SELECT count(*) FROM ostinato.runs")
        first = greet.using(session="s").enqueue("first")
        second = greet.using(connection=connection, session="s").enqueue("second")
        connection.commit()
    app.start()
    assert app.runs.wait(first.id, timeout="30s").state is RunState.SUCCEEDED
    assert second.wait(timeout="30s").state is RunState.SUCCEEDED


def test_a_savepoint_of_the_caller_takes_the_run_with_it(
    app: Ostinato, greet: Task[..., Any], postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        kept = greet.using(connection=connection).enqueue("kept")
        with connection.transaction(force_rollback=True):
            lost = greet.using(connection=connection).enqueue("lost")
        connection.commit()
    assert [run.id for run in all_runs(app)] == [kept.id]
    with pytest.raises(NotFound, match=f"no run {lost.id}: the transaction that enqueued it is not committed"):
        lost.get()
    with pytest.raises(NotFound, match="was rolled back"):
        lost.wait()
    with pytest.raises(NotFound):
        lost.cancel()


def test_runs_of_a_session_go_one_after_the_other_and_the_session_knows_them(
    app: Ostinato, opened: OpenCaller, postgres_url: str
) -> None:
    under_way, go_on = threading.Semaphore(0), threading.Event()
    order: list[str] = []

    @app.task("step", retry=0)
    def step(name: str) -> None:
        order.append(name)
        under_way.release()
        go_on.wait(30)

    with opened(postgres_url) as transaction:
        pending = transaction.enqueue_many(step, [("a",), ("b",)], session="chat")
        transaction.commit()
    app.start()
    assert under_way.acquire(timeout=30)
    states = [app.runs.get(one.id).state for one in pending]
    assert states == [RunState.RUNNING, RunState.QUEUED]
    assert app.sessions.get("chat").queued == 1
    go_on.set()
    for one in pending:
        assert app.runs.wait(one.id, timeout="30s").state is RunState.SUCCEEDED
    assert order == ["a", "b"]
    kinds = [event.kind for event in app.sessions.events("chat")]
    assert [kind for kind in kinds if kind == "enqueued"] == ["enqueued", "enqueued"]


def test_a_transaction_that_stays_open_holds_up_nobody(app: Ostinato, greet: Task[..., Any], postgres_url: str) -> None:
    app.start()
    with psycopg.connect(postgres_url) as connection:
        pending = greet.using(connection=connection, session="chat").enqueue("late")
        for name in ("one", "two"):
            assert greet.using(session="chat").enqueue(name).wait(timeout="30s").state is RunState.SUCCEEDED
        assert greet.using(lane="cron").enqueue("x").wait(timeout="30s").state is RunState.SUCCEEDED
        connection.commit()
    assert pending.wait(timeout="30s").state is RunState.SUCCEEDED


def test_another_database_of_the_same_server_is_not_the_ledger(
    app: Ostinato, greet: Task[..., Any], opened: OpenCaller, empty_postgres_url: str
) -> None:
    with opened(empty_postgres_url) as transaction:
        transaction.execute("CREATE SCHEMA ostinato")
        transaction.execute("CREATE TABLE ostinato.runs (id int)")
        with pytest.raises(StoreError, match="ostinato outbox create"):
            transaction.enqueue(greet, "ada")
        transaction.execute("SELECT 1")
        transaction.commit()


def test_who_may_not_write_to_the_ledger_is_told_the_grants(
    app: Ostinato, greet: Task[..., Any], postgres_url: str
) -> None:
    app.runs.list()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE ROLE shop_of_a_test")
        try:
            connection.execute("SET ROLE shop_of_a_test")
            with pytest.raises(StoreError, match=r"'shop_of_a_test' may not enqueue .* GRANT USAGE"):
                greet.using(connection=connection).enqueue("ada")
            connection.execute("RESET ROLE; GRANT USAGE ON SCHEMA ostinato TO shop_of_a_test")
            connection.execute("GRANT SELECT, INSERT ON ostinato.runs TO shop_of_a_test; SET ROLE shop_of_a_test")
            assert greet.using(connection=connection, key="k", session="s").enqueue("ada").id is not None
        finally:
            connection.rollback()


def test_a_transaction_of_two_phases_is_refused_before_it_cannot_be_prepared(
    app: Ostinato, greet: Task[..., Any], postgres_url: str
) -> None:
    refused = partial(pytest.raises, InvalidInput, match="PostgreSQL prepares no transaction that has one")
    engine = create_engine(sqlalchemy_url(postgres_url), poolclass=NullPool)
    with psycopg.connect(postgres_url) as connection:
        connection.tpc_begin("shop")
        with refused():
            greet.using(connection=connection).enqueue("ada")
        connection.tpc_rollback()
        greet.using(connection=connection).enqueue("ada")
    with engine.connect() as two_phases:
        transaction = two_phases.begin_twophase()
        with refused():
            greet.using(connection=two_phases).enqueue("ada")
        transaction.rollback()
    with Session(engine, twophase=True) as session, refused():
        greet.using(connection=session).enqueue("ada")
    assert len(all_runs(app)) == 1


def test_a_refused_call_begins_no_transaction_in_a_session(greet: Task[..., Any], postgres_url: str) -> None:
    engine = create_engine(sqlalchemy_url(postgres_url), poolclass=NullPool)
    with Session(engine) as session:
        with pytest.raises(InvalidInput):
            greet.using(connection=session).enqueue(object())
        assert not session.in_transaction()


def test_a_connection_that_is_awaited_is_refused_in_sync_code(app: Ostinato, greet: Task[..., Any]) -> None:
    class AsyncConnection:
        __module__ = "psycopg.connection_async"

    with pytest.raises(InvalidInput, match=r"has to be awaited; await task.using\(connection=…\).aio.enqueue"):
        greet.using(connection=AsyncConnection()).enqueue()


def test_what_is_no_connection_is_refused(app: Ostinato, greet: Task[..., Any]) -> None:
    with pytest.raises(InvalidInput, match="str is no connection that is known"):
        greet.using(connection="postgresql://x").enqueue()


def test_a_run_may_enqueue_in_a_transaction_of_its_own(app: Ostinato, greet: Task[..., Any], postgres_url: str) -> None:
    @app.task("outer", retry=0)
    def outer(run: RunContext) -> int | None:
        with psycopg.connect(postgres_url) as connection:
            return greet.using(connection=connection).enqueue("inner").id

    app.start()
    ended = outer.enqueue().wait(timeout="30s")
    assert app.runs.wait(ended.result, timeout="30s").result == "hello inner"


_DYING = """
import os, signal, sys
import psycopg
from ostinato import Ostinato

app = Ostinato(sys.argv[1])
greet = app.task("greet")(lambda name: None)
connection = psycopg.connect(sys.argv[1])
connection.execute("CREATE TABLE orders (id int)")
print(greet.using(connection=connection).enqueue("ada").id, flush=True)
if sys.argv[2] == "commit":
    connection.commit()
    print("committed", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("when", ["before", "commit"])
def test_a_caller_that_is_killed_leaves_both_or_neither(app: Ostinato, postgres_url: str, when: str) -> None:
    command = [sys.executable, "-c", _DYING, postgres_url, when]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        assert int(caller.stdout.readline()) > 0
        if when == "commit":
            assert caller.stdout.readline() == "committed\n"
        os.kill(caller.pid, signal.SIGKILL)
    with psycopg.connect(postgres_url) as connection:
        # Waits for the server to end the transaction of the one that was killed.
        connection.execute("LOCK TABLE ostinato.runs IN ACCESS EXCLUSIVE MODE")
        runs = connection.execute("SELECT count(*) FROM ostinato.runs").fetchone()
        orders = connection.execute("SELECT to_regclass('public.orders') IS NOT NULL").fetchone()
    assert (runs, orders) == (((1,), (True,)) if when == "commit" else ((0,), (False,)))
