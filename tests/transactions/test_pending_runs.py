"""The handles of what is enqueued in a transaction: results, wrong connections, and what is refused."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, NotFound, Ostinato, Run, RunFailed, RunState, Shell
from ostinato.errors import WaitTimeout
from ostinato.models.ids import RunId
from ostinato.service.runs import RunService
from tests.transactions.callers import CALLERS


@dataclass
class Receipt:
    order: int
    total: float


@pytest.fixture
def shop(app: Ostinato, tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    app.outbox(engine).create()
    yield engine
    engine.dispose()


def test_a_handle_of_a_transaction_has_the_result_that_the_function_returned(app: Ostinato, shop: Engine) -> None:
    @app.task(retry=0)
    def pay(order: int) -> Receipt:
        if order < 0:
            raise ValueError("no such order")
        return Receipt(order, 1.5)

    app.add_outbox(shop)
    app.start()
    with Session(shop) as session:
        paid = pay.using(connection=session).enqueue(42)
        (refused,) = pay.using(connection=session).enqueue_many([pay.call(-1)])
        with pytest.raises(InvalidInput, match=r"has no number yet; ask the handle itself: handle\.wait\(\)"):
            app.runs.get(paid)
        session.commit()
    receipt: Receipt = paid.result(timeout="30s")
    assert receipt == Receipt(42, 1.5)
    with pytest.raises(RunFailed, match="no such order"):
        refused.result(timeout="30s")
    assert app.runs.get(paid).id == paid.id


async def test_a_handle_that_is_awaited_has_its_result_too(tmp_path: Path) -> None:
    pytest.importorskip("aiosqlite")
    pytest.importorskip("greenlet")
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    async with Ostinato(f"sqlite:///{tmp_path}/ledger.db") as app:

        @app.task
        async def pay(order: int) -> Receipt:
            return Receipt(order, 1.5)

        app.add_outbox(engine).create()
        async with AsyncSession(engine) as session:
            first = await pay.using(connection=session).aio.enqueue(1)
            (second,) = await pay.using(connection=session).aio.enqueue_many([(2,)])
            await session.commit()
        receipt: Receipt = await first.result(timeout="30s")
        assert receipt == Receipt(1, 1.5)
        assert await pay.aio.result(second, timeout="30s") == Receipt(2, 1.5)
        assert await pay.aio.result(second) == Receipt(2, 1.5)


def test_a_connection_that_is_none_is_refused(app: Ostinato) -> None:
    task = app.task("task")(lambda: None)
    with pytest.raises(InvalidInput, match=r"connection cannot be None: .*leave it out to enqueue at once"):
        task.using(connection=None)
    with pytest.raises(InvalidInput, match="cannot be None"):
        task.using(connection=None, on_commit=True)
    assert task.using(on_commit=False).enqueue().get().state is RunState.QUEUED
    is_django = bool(app.outboxes)
    assert task.using(on_commit=is_django).enqueue().get().state is RunState.QUEUED


def test_a_connection_of_a_driver_alone_is_refused_by_its_whole_name(app: Ostinato) -> None:
    task = app.task("task")(lambda: None)
    with pytest.raises(InvalidInput, match=r"sqlite3\.Connection is no connection that is known; .*through these"):
        task.using(connection=sqlite3.connect(":memory:")).enqueue()


def test_only_tasks_are_enqueued_in_a_transaction(app: Ostinato, shop: Engine) -> None:
    given: dict[str, Any]
    for given in ({"connection": shop.connect()}, {"on_commit": True}):
        with pytest.raises(InvalidInput, match=r"only a task is enqueued in a transaction .* a task that enqueues it"):
            app.enqueue(Shell("true"), **given)
        with pytest.raises(InvalidInput, match="only a task is enqueued"):
            asyncio.run(app.aio.enqueue(Shell("true"), **given))


_WITHOUT_DJANGO = """
import sys
from ostinato import InvalidInput, Ostinato

task = Ostinato("sqlite://:memory:").task("task")(lambda: None)
for missing in (False, True):
    if missing:
        for name in [name for name in sys.modules if name.partition(".")[0] == "django"]:
            del sys.modules[name]
        sys.modules["django"] = None
    try:
        task.using(on_commit=True).enqueue()
    except InvalidInput as error:
        print(error.field, error)
"""


def test_on_commit_without_django_says_what_it_needs() -> None:
    told = subprocess.run([sys.executable, "-c", _WITHOUT_DJANGO], capture_output=True, text=True, check=True).stdout
    not_configured, not_installed = told.splitlines()
    assert "on_commit needs Django, whose settings are not configured here; call django.setup() first" in not_configured
    assert "on_commit needs Django, which is not installed; give a connection instead" in not_installed


def test_an_outbox_that_nobody_drains_is_said(app: Ostinato, shop: Engine, caplog: pytest.LogCaptureFixture) -> None:
    task = app.task("task")(lambda: None)
    with caplog.at_level(logging.WARNING, "ostinato.outbox"), shop.begin() as connection:
        pending = [task.using(connection=connection).enqueue() for _ in range(2)]
    assert [("app.add_outbox" in record.getMessage()) for record in caplog.records] == [True], "once"
    with pytest.raises(WaitTimeout, match="after 10ms: no engine is running"):
        pending[0].wait(timeout=0.01)
    app.start()
    with pytest.raises(WaitTimeout, match=r"No running node has said that it drains an outbox: app\.add_outbox"):
        pending[0].wait(timeout="10ms")
    app.add_outbox(shop)
    assert pending[0].wait(timeout="30s").state is RunState.SUCCEEDED
    with shop.connect() as connection:
        lost = task.using(connection=connection).enqueue()
        connection.rollback()
    with pytest.raises(WaitTimeout, match="after 10ms: is it committed"):
        lost.wait(timeout="10ms")


@pytest.mark.parametrize("caller", ["psycopg", "psycopg async"])
def test_a_pipeline_of_psycopg_is_joined(postgres_url: str, caller: str) -> None:
    app = Ostinato(postgres_url, tz="UTC")
    task = app.task("task")(lambda name: None)

    async def in_pipeline(connection: Any) -> list[Any]:
        async with connection.pipeline():
            await connection.execute("CREATE TABLE orders (id int)")
            pending = await task.using(connection=connection).aio.enqueue_many([("a",), ("b",)])
            await connection.execute("INSERT INTO orders VALUES (1)")
            pending.append(await task.using(connection=connection, key="k").aio.enqueue("c"))
        return list(pending)

    try:
        with CALLERS[caller](postgres_url) as transaction:
            if caller == "psycopg async":
                pending = transaction._runner.run(in_pipeline(transaction.connection))
            else:
                with transaction.connection.pipeline():
                    transaction.execute("CREATE TABLE orders (id int)")
                    pending = transaction.enqueue_many(task, [("a",), ("b",)])
                    transaction.execute("INSERT INTO orders VALUES (1)")
                    pending.append(transaction.enqueue(task, "c", key="k"))
            assert app.runs.list() == []
            transaction.commit()
        assert [run.id for run in reversed(app.runs.list())] == [one.id for one in pending]
        with psycopg.connect(postgres_url) as reader:
            assert reader.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    finally:
        app.stop(grace=0)


def test_what_is_no_number_of_a_run_is_refused(app: Ostinato) -> None:
    task = app.task("task")(lambda: None)
    handle = task.enqueue()
    run = app.runs.get(handle)
    assert (app.runs.get(run).id, app.runs.output(handle), app.runs.lines(handle)) == (handle.id, "", [])
    wrong: Any
    for wrong in ("abc", str(handle.id), None, True, 1.0, object()):
        for verb in (app.runs.get, app.runs.wait, app.runs.cancel, app.runs.retry, app.runs.output):
            with pytest.raises(InvalidInput, match="give its number, or its handle"):
                verb(wrong)
    for missing in (0, -1, 2**63, 10**30):
        with pytest.raises(NotFound, match=f"there is no run {missing};"):
            app.runs.get(missing)
    with pytest.raises(WaitTimeout, match="still queued after 10ms: no engine is running"):
        app.runs.wait(handle, timeout=0.01)
    with pytest.raises(WaitTimeout, match=r"still queued or running after 10ms$"):
        app.wait_idle(timeout=0.01)
    assert app.runs.cancel(handle).state is RunState.CANCELLED
    assert app.runs.retry(handle).id > handle.id


def test_a_run_that_ends_while_a_late_wait_asks_what_it_waits_for_has_ended(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = app.task("task")(lambda: None).enqueue()
    get, asked = RunService.get, []

    async def get_later(runs: RunService, id: RunId) -> Run:
        asked.append(id)
        if len(asked) == 2:
            await runs.cancel(id)
        return await get(runs, id)

    monkeypatch.setattr(RunService, "get", get_later)
    assert app.runs.wait(handle, timeout=0).state is RunState.CANCELLED


def test_the_call_that_is_wrong_among_many_is_named(app: Ostinato, shop: Engine) -> None:
    @app.task
    def pay(order: int) -> None: ...

    with pytest.raises(InvalidInput, match=r"^calls\[1\]: argument 'order' of task 'pay' ") as raised:
        pay.enqueue_many([(1,), ("two",), (3,)])
    assert raised.value.field == "args"
    with pytest.raises(InvalidInput, match=r"^calls\[2\]: a call cannot be 3"):
        pay.enqueue_many([(1,), (2,), 3])  # type: ignore[list-item]
    with shop.connect() as connection, pytest.raises(InvalidInput, match=r"^calls\[1\]: task 'pay' needs"):
        pay.using(connection=connection).enqueue_many([(1,), ()])
    with pytest.raises(InvalidInput, match=r"^argument 'order' of task 'pay' "):
        pay.enqueue("two")  # type: ignore[arg-type]
    assert app.runs.list() == []
