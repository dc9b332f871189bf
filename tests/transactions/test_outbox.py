"""Enqueueing in a transaction of another database: through its outbox, exactly once by the id of the row."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, NotFound, Ostinato, RunState
from ostinato.errors import StoreError, WaitTimeout
from ostinato.integrations.transactions.drainer import Drainer
from ostinato.integrations.transactions.outbox import Outbox
from ostinato.tasks import Task
from ostinato.testing import FakeClock
from tests.databases import SHARED, url_of
from tests.transactions.callers import configure_django, sqlalchemy_url

INSERT = "INSERT INTO ostinato_outbox (id, created_at, try_at, task, body) VALUES (:id, 1, 0, 'greet', :body)"


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path)


@pytest.fixture(params=SHARED)
def shop_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    given: str = request.getfixturevalue("empty_postgres_url")
    shown: str = sqlalchemy_url(given).render_as_string(hide_password=False)
    return shown


@pytest.fixture
def shop(shop_url: str, app: Ostinato) -> Iterator[Engine]:
    """Another database, with an outbox."""
    engine = create_engine(shop_url, poolclass=NullPool)
    app.outbox(engine).create()
    app.outbox(engine).create()
    yield engine
    engine.dispose()


def test_a_commit_in_another_database_starts_the_run(app: Ostinato, greet: Task[..., Any], shop: Engine) -> None:
    outbox = app.add_outbox(shop)
    app.start()
    with Session(shop) as session:
        pending = greet.using(connection=session, key="k", priority=2).enqueue("ada")
        assert (pending.id, bool(pending.outbox_id)) == (None, True)
        with pytest.raises(NotFound, match=f"row {pending.outbox_id}: its transaction is not committed"):
            pending.get()
        session.commit()
    ended = pending.wait(timeout="30s")
    assert (ended.id, ended.result, ended.key, ended.priority) == (pending.id, "hello ada", "k", 2)
    assert ended.due_at == pending.get().due_at
    app.stop()
    drain(app, drainer_of(app, outbox))  # the stop may have come before the row was deleted
    assert outbox.list() == []
    assert [run.id for run in app.runs.list()] == [pending.id]


def test_a_rollback_in_another_database_leaves_nothing(app: Ostinato, greet: Task[..., Any], shop: Engine) -> None:
    with shop.connect() as connection:
        pending = greet.using(connection=connection).enqueue_many([("ada",), ("bob",)])
        connection.rollback()
    assert app.outbox(shop).list() == []
    with pytest.raises(WaitTimeout, match="no engine is running"):
        pending[0].wait(timeout="10ms")


async def test_a_coroutine_writes_into_the_outbox_too(tmp_path: Path) -> None:
    pytest.importorskip("aiosqlite")
    pytest.importorskip("greenlet")
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    async with Ostinato(f"sqlite:///{tmp_path}/ledger.db") as app:
        greet = app.task("greet")(lambda name: f"hello {name}")
        app.add_outbox(engine).create()
        async with AsyncSession(engine) as session:
            pending = await greet.using(connection=session).aio.enqueue("ada")
            with pytest.raises(NotFound):
                await pending.get()
            await session.commit()
        assert (await pending.wait(timeout="30s")).result == "hello ada"
        assert (await pending.get()).id == pending.id


def test_django_writes_into_the_outbox_of_its_database(app: Ostinato, greet: Task[..., Any], tmp_path: Path) -> None:
    from django.db import transaction

    connection = configure_django(f"sqlite:///{tmp_path}/django.db")
    app.add_outbox("default").create()
    app.start()
    with transaction.atomic():
        greet.using(connection=connection).enqueue("nobody")
        transaction.set_rollback(True)
    with transaction.atomic():
        pending = greet.using(connection=connection).enqueue("ada")
    assert pending.wait(timeout="30s").result == "hello ada"
    assert len(app.runs.list()) == 1
    connection.close()


def test_on_commit_enqueues_after_the_commit_of_django(app: Ostinato, greet: Task[..., Any], tmp_path: Path) -> None:
    from django.db import transaction

    configure_django(f"sqlite:///{tmp_path}/django.db")
    with transaction.atomic():
        pending = greet.using(on_commit=True, key="k").enqueue("ada")
        (other,) = greet.using(on_commit=True).enqueue_many([("bob",)])
        assert (pending.id, app.runs.list()) == (None, [])
        with pytest.raises(NotFound, match="when the transaction is committed"):
            pending.wait()
        with pytest.raises(InvalidInput):
            greet.using(on_commit=True).enqueue(object())
    assert pending.get().key == "k"
    assert other.get().id == other.id
    with transaction.atomic():
        lost = greet.using(on_commit=True).enqueue("nobody")
        transaction.set_rollback(True)
    assert lost.id is None
    assert len(app.runs.list()) == 2
    with pytest.raises(InvalidInput, match=r"leave out \.aio"):
        asyncio.run(greet.using(on_commit=True).aio.enqueue())


def test_a_database_without_an_outbox_says_how_to_make_one(app: Ostinato, greet: Task[..., Any], shop_url: str) -> None:
    engine = create_engine(shop_url, poolclass=NullPool)
    with engine.connect() as connection:
        with pytest.raises(StoreError, match="ostinato outbox create URL"):
            greet.using(connection=connection).enqueue("ada")
        assert connection.execute(text("SELECT 1")).scalar() == 1
    with pytest.raises(StoreError, match=r"there is no table ostinato_outbox in .* 'ostinato outbox create URL'"):
        app.outbox(engine).list()


def drainer_of(app: Ostinato, outbox: Outbox, clock: FakeClock | None = None) -> Drainer:
    async def make(container: Any) -> Drainer:
        return Drainer(outbox, container.services.transactions.take, clock or container.clock, lambda *_: None)

    return app._host.run(make)


def drain(app: Ostinato, drainer: Drainer) -> int:
    """One batch, on the loop of the app."""

    async def work(_: Any) -> int:
        return await drainer.drain()

    return app._host.run(work)


def test_rows_that_are_refused_do_not_block_the_others_and_are_given_up_after_some_tries(
    app: Ostinato, greet: Task[..., Any], shop: Engine
) -> None:
    with shop.begin() as connection:
        (good,) = greet.using(connection=connection).enqueue_many([("ada",)])
        (body,) = connection.execute(text("SELECT body FROM ostinato_outbox")).one()
        connection.execute(text(INSERT), {"id": "unreadable", "body": "{"})
        wrong = body.replace('"due_at":', '"due_at":9').replace("greet", "greets")
        connection.execute(text(INSERT), {"id": "of another task", "body": wrong})
        late = body.replace('"due_at":', '"due_at":99999')
        connection.execute(text(INSERT), {"id": "never due", "body": late})
        nested = body.replace('"policy":"{', '"policy":"{\\"retry\\":' + "[" * 5000 + "]" * 5000 + ",")
        connection.execute(text(INSERT), {"id": "nested", "body": nested})
    clock = FakeClock()
    outbox = app.outbox(shop)
    drainer = drainer_of(app, outbox, clock)
    assert drain(app, drainer) == 5
    assert good.get().state is RunState.QUEUED
    assert drain(app, drainer) == 0
    for _ in range(5):
        clock.advance("1h")
        assert drain(app, drainer) == 4
    clock.advance("1d")
    assert drain(app, drainer) == 0
    failed = {row.id: row for row in outbox.list()}
    assert {row.try_at for row in failed.values()} == {None}
    assert {row.tries for row in failed.values()} == {6}
    assert "not readable" in (failed["unreadable"].error or "")
    assert "'greets'" in (failed["of another task"].error or "")
    assert failed["never due"].error
    assert failed["nested"].error == "its policy is nested too deep"
    assert len(app.runs.list()) == 1


def test_an_outbox_that_is_away_is_said_in_health_and_drained_when_it_is_back(
    app: Ostinato, greet: Task[..., Any], shop: Engine, tmp_path: Path
) -> None:
    with shop.begin() as connection:
        connection.execute(text("ALTER TABLE ostinato_outbox RENAME TO hidden"))
    outbox = app.add_outbox(shop)
    refused = threading.Event()
    event.listen(shop, "handle_error", lambda _: refused.set())
    app.start()
    assert refused.wait(30)
    name = f"outbox {outbox.name}"
    while (service := app.health()["services"][name])["well"]:
        pass
    assert "ostinato_outbox" in service["status"]
    with shop.begin() as connection:
        connection.execute(text("ALTER TABLE hidden RENAME TO ostinato_outbox"))
        pending = greet.using(connection=connection).enqueue("ada")
    assert pending.wait(timeout="30s").result == "hello ada"
    while not (service := app.health()["services"][name])["well"]:
        pass
    assert service["status"] == "is drained"


_NODE = """
import sys
from ostinato import Ostinato

app = Ostinato(sys.argv[1], tz="UTC")
app.task("greet")(lambda name: None)
app.add_outbox(sys.argv[2])
app.start()
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_node_that_is_killed_between_ledger_and_outbox_leaves_one_run(
    app: Ostinato, greet: Task[..., Any], shop: Engine, shop_url: str, url: str
) -> None:
    with shop.begin() as connection:
        pending = greet.using(connection=connection).enqueue_many([(str(number),) for number in range(5)])
    environment = {**os.environ, "OSTINATO_FAILPOINTS": "outbox.taken=kill"}
    command = [sys.executable, "-c", _NODE, url, shop_url]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.wait(60) == -signal.SIGKILL
    outbox = app.outbox(shop)
    assert len(outbox.list()) == 5
    assert len(app.runs.list()) == 5
    drainer = drainer_of(app, outbox)
    assert drain(app, drainer) == 5
    assert outbox.list() == []
    assert [one.get().id for one in pending] == sorted(run.id for run in app.runs.list())


def test_two_nodes_that_drain_one_outbox_take_each_row_once(app: Ostinato, greet: Task[..., Any], shop: Engine) -> None:
    with shop.begin() as connection:
        pending = greet.using(connection=connection).enqueue_many([(str(number),) for number in range(450)])
    other = Ostinato(app.settings.db, tz="UTC")
    other.task("greet", retry=0)(lambda name: f"hello {name}")
    try:
        for one in (app, other):
            one.add_outbox(shop)
            one.start()
        for waited in pending:
            assert waited.wait(timeout="60s").state is RunState.SUCCEEDED
    finally:
        other.stop(grace=0)
    assert len(app.runs.list(limit=1000)) == 450


def test_what_is_no_database_can_have_no_outbox(app: Ostinato) -> None:
    for wrong in (7, "://", "oracle+x://y"):
        with pytest.raises(InvalidInput):
            app.outbox(wrong)
