"""Callers of an outbox that are unlike the others: no autocommit, several databases, no name."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from ostinato import InvalidInput, Ostinato
from ostinato.tasks import Task
from tests.transactions.callers import configure_django


class Base(DeclarativeBase):
    """Its tables are in a database of their own."""


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


def test_django_with_autocommit_switched_off_enqueues_with_the_commit(
    app: Ostinato, greet: Task[..., Any], tmp_path: Path
) -> None:
    from django.db import transaction

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


async def test_a_session_of_several_databases_is_told_to_give_one(
    app: Ostinato, greet: Task[..., Any], tmp_path: Path
) -> None:
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


def test_engines_that_name_no_database_are_outboxes_of_their_own(
    app: Ostinato, greet: Task[..., Any], tmp_path: Path
) -> None:
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


async def test_an_async_connection_that_is_not_open_is_told_to_be_opened(greet: Task[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("aiosqlite")
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    with pytest.raises(InvalidInput, match=r"is not open; async with engine\.connect\(\) as connection: …"):
        await greet.using(connection=engine.connect()).aio.enqueue("ada")
