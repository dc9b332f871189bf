"""The outbox in MySQL or MariaDB: what is sent there, and the whole way if OSTINATO_TEST_MYSQL names a database.

`OSTINATO_TEST_MYSQL=mysql+pymysql://user@host/database`; its table ostinato_outbox is made anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato import Ostinato
from ostinato.coroutines import driven
from ostinato.integrations.transactions import table
from ostinato.models.outbox import OutboxRow
from ostinato.tasks import Task


class Sent:
    """A connection that keeps what it is sent."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, Sequence[Any]]] = []

    async def fetch(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.statements.append((statement, values))
        return [("a",), ("b",)] if statement.startswith("SELECT id") else []


@pytest.mark.parametrize("dialect", ["mysql", "mariadb"])
def test_its_table_knows_transactions_and_all_letters_whatever_the_server_does_by_default(dialect: str) -> None:
    (statement,) = table.create_statements(dialect)
    assert "ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4" in statement
    assert "body LONGTEXT" in statement


@pytest.mark.parametrize("dialect", ["mysql", "mariadb"])
def test_each_row_is_changed_by_its_id_alone_so_that_nobody_waits_for_open_transactions(dialect: str) -> None:
    db = Sent()
    driven(table.delete(db, dialect, ["a", "b"]))
    assert [(words.partition("WHERE ")[2], values) for words, values in db.statements] == [
        ("id IN (%s)", ["a"]),
        ("id IN (%s)", ["b"]),
    ]
    db.statements.clear()
    assert driven(table.retry(db, None)) == 2
    assert [(words.partition("WHERE ")[2], values) for words, values in db.statements] == [
        ("tries > 0", ()),
        ("id = %s", ("a",)),
        ("id = %s", ("b",)),
    ]


def test_an_error_is_cut_to_what_a_column_can_hold() -> None:
    db = Sent()
    driven(table.refuse(db, OutboxRow("a", 1, "greet", "", tries=1), "x" * 100_000, 7))
    ((_, values),) = db.statements
    assert values == (2, "x" * 2_000, 7, "a")


@pytest.fixture
def shop(app: Ostinato) -> Iterator[Engine]:
    if (given := os.environ.get("OSTINATO_TEST_MYSQL")) is None:
        pytest.skip("OSTINATO_TEST_MYSQL names no MySQL")
    engine = create_engine(given, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS ostinato_outbox"))
    for _ in range(2):
        app.add_outbox(engine).create()
    yield engine
    engine.dispose()


def test_an_open_transaction_in_mysql_holds_up_nobody(app: Ostinato, greet: Task[..., Any], shop: Engine) -> None:
    (outbox,) = app.outboxes
    app.start()
    with Session(shop) as open_one, Session(shop) as other:
        held = greet.using(connection=open_one).enqueue_many([("late",)] * 20)
        pending = greet.using(connection=other).enqueue_many([("größer 😀 100%",)] * 250)
        other.commit()
        assert {one.result(timeout="30s") for one in pending} == {"hello größer 😀 100%"}
        while outbox.list():
            pass
        open_one.commit()
    assert {one.result(timeout="30s") for one in held} == {"hello late"}
    with Session(shop) as session:
        greet.using(connection=session).enqueue("nobody")
        session.rollback()
    app.stop()
    assert outbox.list() == []
    with shop.begin() as connection:
        columns = "id, created_at, try_at, tries, task, body"
        connection.execute(text(f"INSERT INTO ostinato_outbox ({columns}) VALUES ('x', 1, NULL, 6, 'greet', '')"))
    assert (outbox.retry(), [row.state for row in outbox.list()]) == (1, ["waiting"])
    outbox.remove("x")
    assert outbox.list() == []
