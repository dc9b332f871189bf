"""Code that enqueues in a transaction, under `rehearse`: its connection cannot lead to the ledger of the rehearsal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, NotFound, Ostinato, RunState
from ostinato.testing import FakeClock, drain, rehearse
from tests.transactions.callers import configure_django


@pytest.fixture
def url() -> str:
    return "postgresql://nobody@127.0.0.1:1/never"


@pytest.fixture
def shop_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


def test_an_eager_task_runs_in_the_transaction_that_it_was_enqueued_in(app: Ostinato, shop_url: str) -> None:
    with rehearse(app, eager=True), Session(create_engine(shop_url, poolclass=NullPool)) as session:

        @app.task
        def pay(order: int) -> int:
            session.execute(text("INSERT INTO orders VALUES (:id)"), {"id": -order})
            return int(session.execute(text("SELECT count(*) FROM orders")).scalar_one())

        session.execute(text("CREATE TABLE orders (id int)"))
        session.commit()
        session.execute(text("INSERT INTO orders VALUES (1)"))
        pending = pay.using(connection=session, key="k", delay="1h").enqueue(1)
        assert (pending.get().state, pending.outbox_id) == (RunState.SUCCEEDED, None)
        assert pending.result() == 2
        many = pay.using(connection=session).enqueue_many([(2,), pay.call(3)])
        assert [each.result() for each in many] == [3, 4]
        session.rollback()
        assert session.execute(text("SELECT count(*) FROM orders")).scalar_one() == 0


async def test_an_eager_coroutine_runs_on_the_loop_of_its_caller(app: Ostinato, tmp_path: Path) -> None:
    pytest.importorskip("aiosqlite")
    pytest.importorskip("greenlet")
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    with rehearse(app, eager=True):
        async with engine.connect() as connection:

            @app.task
            async def ask() -> int:
                return int((await connection.execute(text("SELECT 7"))).scalar_one())

            pending = await ask.using(connection=connection).aio.enqueue()
            assert await pending.result() == 7


def test_without_eager_it_is_in_the_rehearsed_ledger_at_once(app: Ostinato, shop_url: str, tmp_path: Path) -> None:
    greet = app.task("greet")(lambda name: f"hello {name}")
    engine = create_engine(shop_url, poolclass=NullPool)
    outbox = app.add_outbox(engine)
    outbox.create()
    clock = FakeClock()
    with rehearse(app, clock), engine.begin() as connection:
        pending = greet.using(connection=connection).enqueue("ada")
        assert pending.get().due_at == clock.now_utc()
        assert drain(app) == 1
        assert pending.result() == "hello ada"
        with pytest.raises(InvalidInput, match="no connection that is known"):
            greet.using(connection=7).enqueue("ada")
    assert outbox.list() == []
    with rehearse(app, clock, db=f"sqlite:///{tmp_path}/ledger.db"), engine.begin() as connection:
        pending = greet.using(connection=connection).enqueue("ada")
        with pytest.raises(NotFound, match="no run has come out of the outbox"):
            pending.get()
    assert [(row.task, row.created_at) for row in outbox.list()] == [("greet", clock.now_utc())]


def test_a_rehearsal_on_postgresql_has_its_transactions(postgres_url: str) -> None:
    app = Ostinato("sqlite:///never.db", tz="UTC")
    greet = app.task("greet")(lambda name: f"hello {name}")
    with rehearse(app, db=postgres_url), psycopg.connect(postgres_url) as connection:
        pending = greet.using(connection=connection).enqueue("ada")
        with pytest.raises(NotFound, match="is not committed yet"):
            pending.get()
        connection.commit()
        assert drain(app) == 1
        assert pending.result() == "hello ada"
    with rehearse(app, db=postgres_url, eager=True), psycopg.connect(postgres_url) as connection:
        assert greet.using(connection=connection).enqueue("bob").result() == "hello bob"


def test_on_commit_waits_for_the_commit_in_a_rehearsal_too(app: Ostinato, shop_url: str) -> None:
    from django.db import transaction

    configure_django(shop_url)
    greet: Any = app.task("greet")(lambda name: f"hello {name}")
    with rehearse(app, eager=True), transaction.atomic():
        pending = greet.using(on_commit=True).enqueue("ada")
        assert app.runs.list() == []
        transaction.get_connection().run_on_commit.pop()[1]()  # as captureOnCommitCallbacks(execute=True) does
        assert pending.result() == "hello ada"
