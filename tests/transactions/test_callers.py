"""Callers whose transaction is unlike the others: two phases, no autocommit, several databases, no name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, Ostinato
from ostinato.tasks import Task
from tests.transactions.callers import configure_django, sqlalchemy_url


class Base(DeclarativeBase):
    """Its tables are in a database of their own."""


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Ostinato]:
    app = Ostinato(f"sqlite:///{tmp_path}/ledger.db")
    yield app
    app.stop(grace=0)


def task_of(app: Ostinato) -> Task[..., Any]:
    @app.task("greet")
    def greet(name: str) -> str:
        return f"hello {name}"

    return greet


def test_django_with_autocommit_switched_off_enqueues_with_the_commit(app: Ostinato, tmp_path: Path) -> None:
    from django.db import transaction

    greet = task_of(app)
    connection = configure_django(f"sqlite:///{tmp_path}/django.db")
    outbox = app.add_outbox("default")
    outbox.create()
    transaction.set_autocommit(False)
    try:
        greet.using(connection=connection).enqueue("nobody")
        transaction.rollback()
        greet.using(connection=connection).enqueue("ada")
        transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert len(outbox.list()) == 1
    connection.close()


def test_a_transaction_of_two_phases_is_refused_before_it_cannot_be_prepared(postgres_url: str) -> None:
    app = Ostinato(postgres_url)
    greet = task_of(app)
    refused = partial(pytest.raises, InvalidInput, match="PostgreSQL prepares no transaction that has one")
    engine = create_engine(sqlalchemy_url(postgres_url), poolclass=NullPool)
    try:
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
        assert len(app.runs.list()) == 1
    finally:
        app.stop(grace=0)


def test_a_refused_call_begins_no_transaction_in_a_session(postgres_url: str) -> None:
    app = Ostinato(postgres_url)
    greet = task_of(app)
    engine = create_engine(sqlalchemy_url(postgres_url), poolclass=NullPool)
    with Session(engine) as session:
        with pytest.raises(InvalidInput):
            greet.using(connection=session).enqueue(object())
        assert not session.in_transaction()
    app.stop(grace=0)


async def test_a_session_of_several_databases_is_told_to_give_one(app: Ostinato, tmp_path: Path) -> None:
    greet = task_of(app)
    shop = create_engine(f"sqlite:///{tmp_path}/shop.db")
    app.add_outbox(shop).create()
    hint = r"session\.connection\(bind_arguments="
    with Session(binds={Base: shop}) as session:
        with pytest.raises(InvalidInput, match=hint):
            greet.using(connection=session).enqueue("ada")
        greet.using(connection=session.connection(bind_arguments={"mapper": Order})).enqueue("ada")
        session.commit()
    assert len(app.outboxes[0].list()) == 1
    async with AsyncSession(binds={Base: create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/shop.db")}) as waiting:
        with pytest.raises(InvalidInput, match=hint):
            await greet.using(connection=waiting).aio.enqueue("ada")


def test_engines_that_name_no_database_are_outboxes_of_their_own(app: Ostinato, tmp_path: Path) -> None:
    greet = task_of(app)
    engines = [
        create_engine("sqlite://", creator=partial(sqlite3.connect, tmp_path / f"{name}.db"), poolclass=NullPool)
        for name in ("one", "two")
    ]
    for engine in [*engines, *engines]:
        app.add_outbox(engine).create()
    assert [outbox.name for outbox in app.outboxes] == ["sqlite://", "sqlite:// (2)"]
    by_url = f"sqlite:///{tmp_path}/one.db"
    assert app.add_outbox(by_url) is app.add_outbox(create_engine(by_url))
    app.start()
    for engine in engines:
        with Session(engine) as session:
            pending = greet.using(connection=session).enqueue("ada")
            session.commit()
        assert pending.result(timeout="60s") == "hello ada"
